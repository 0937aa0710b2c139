// The state of a run of random calls: its random numbers, the handles and blocks that calls have created, and the line
// that it writes. Values of handles and addresses never reach a line; names do.
#ifndef HAWSER_RANDOM_CALLS_STATE_H
#define HAWSER_RANDOM_CALLS_STATE_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// Random numbers of one call: they depend on the seed and the call's index only, so that a call keeps its arguments when
// other calls are left out.
struct random_t {
    uint64_t state;

    random_t(uint64_t seed, uint64_t index) : state(seed * 0x9E3779B97F4A7C15u + index * 0xD1B54A32D192ED03u + 1) {
    }

    uint64_t next() { // splitmix64
        uint64_t z = state += 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        return z ^ z >> 31;
    }

    // From 0 to n - 1.
    unsigned below(unsigned n) {
        return (unsigned) (next() % n);
    }

    bool chance(unsigned of) {
        return below(of) == 0;
    }

    template <typename T, size_t N> T of(const T (&values)[N]) {
        return values[below(N)];
    }
};

enum kind_t {
    NO_HANDLE,
    CONTEXT,
    MODULE,
    LIBRARY,
    FUNCTION,
    KERNEL,
    STREAM,
    EVENT,
    POOL,
    LINK,
    ARRAY,
    MIPMAPPED,
    GRAPH,
    NODE,
    GRAPH_EXEC,
    USER_OBJECT,
    TEXTURE,
    SURFACE,
    PHYSICAL,
    GREEN,
    RESOURCES,
    KINDS
};

static const char *const kind_names[KINDS] = {"",         "context", "module",   "library", "function", "kernel",
                                              "stream",   "event",   "pool",     "link",    "array",    "mipmapped",
                                              "graph",    "node",    "exec",     "object",  "texture",  "surface",
                                              "physical", "green",   "resources"};

// A C type without const, struct and enum.
struct type_t {
    std::string base;
    int depth; // number of *
    bool constant;

    explicit type_t(const std::string &text) : depth(0), constant(text.compare(0, 6, "const ") == 0) {
        std::string rest = constant ? text.substr(6) : text;
        for (const char *word : {"struct ", "enum "}) {
            if (rest.compare(0, strlen(word), word) == 0) {
                rest = rest.substr(strlen(word));
            }
        }
        for (size_t at; (at = rest.find("const ")) != std::string::npos;) {
            rest.erase(at, 6);
        }
        while (!rest.empty() && (rest.back() == '*' || rest.back() == ' ')) {
            depth += rest.back() == '*';
            rest.pop_back();
        }
        base = rest == "CUstreamAttrID" || rest == "CUkernelNodeAttrID" ? "CUlaunchAttributeID" : rest;
    }
};

static kind_t kind_of(const std::string &base) {
    static const struct {
        const char *type;
        kind_t kind;
    } kinds[] = {{"CUcontext", CONTEXT},
                 {"CUmodule", MODULE},
                 {"CUlibrary", LIBRARY},
                 {"cudaLibrary_t", LIBRARY},
                 {"CUfunction", FUNCTION},
                 {"cudaFunction_t", FUNCTION},
                 {"CUkernel", KERNEL},
                 {"cudaKernel_t", KERNEL},
                 {"CUstream", STREAM},
                 {"cudaStream_t", STREAM},
                 {"CUevent", EVENT},
                 {"cudaEvent_t", EVENT},
                 {"CUmemoryPool", POOL},
                 {"cudaMemPool_t", POOL},
                 {"CUlinkState", LINK},
                 {"CUarray", ARRAY},
                 {"cudaArray_t", ARRAY},
                 {"cudaArray_const_t", ARRAY},
                 {"CUmipmappedArray", MIPMAPPED},
                 {"cudaMipmappedArray_t", MIPMAPPED},
                 {"cudaMipmappedArray_const_t", MIPMAPPED},
                 {"CUgraph", GRAPH},
                 {"cudaGraph_t", GRAPH},
                 {"CUgraphNode", NODE},
                 {"cudaGraphNode_t", NODE},
                 {"CUgraphExec", GRAPH_EXEC},
                 {"cudaGraphExec_t", GRAPH_EXEC},
                 {"CUuserObject", USER_OBJECT},
                 {"cudaUserObject_t", USER_OBJECT},
                 {"CUtexObject", TEXTURE},
                 {"cudaTextureObject_t", TEXTURE},
                 {"CUsurfObject", SURFACE},
                 {"cudaSurfaceObject_t", SURFACE},
                 {"CUmemGenericAllocationHandle", PHYSICAL},
                 {"CUgreenCtx", GREEN},
                 {"CUdevResourceDesc", RESOURCES}};
    for (const auto &row : kinds) {
        if (base == row.type) {
            return row.kind;
        }
    }
    return NO_HANDLE;
}

enum life_t { NOTHING, LIVE, DEAD };

struct slot_t {
    uint64_t value;
    uint64_t owner; // the handle whose end ends this one; 0 for none
    uint64_t context;
    life_t life;
};

// The first slots of each kind are the run's own: they are never destroyed, so that other objects may refer to them. Slot
// 0 has the most general object; special_slots (values.h) says which calls are for the others.
static const unsigned SLOTS = 16, OTHER_SLOTS = 3;
static slot_t slots[KINDS][SLOTS];

// The run's own objects that differ from those in slot 0. The first nodes are in graph 0, ALLOC_NODE and FREE_NODE in
// MEMORY_GRAPH, CONDITION_NODE in CONDITION_GRAPH. CHILD_GRAPH is like CHILD_NODE's graph, and CLONE is graph 0's.
enum own_graph_t { MEMORY_GRAPH = 1, CONDITION_GRAPH, CHILD_GRAPH, CLONE, OWN_GRAPHS };
enum own_array_t { SURFACE_ARRAY = 1, SPARSE_ARRAY, DEFERRED_ARRAY, OWN_ARRAYS };
enum own_event_t { SECOND_EVENT = 1, SHARED_EVENT, OWN_EVENTS };
enum own_pool_t { EXPORTED_POOL = 1, IMPORTED_POOL, OWN_POOLS };
enum own_node_t {
    EMPTY_NODE,
    KERNEL_NODE,
    MEMCPY_NODE,
    MEMSET_NODE,
    HOST_NODE,
    CHILD_NODE,
    RECORD_NODE,
    WAIT_NODE,
    BATCH_NODE,
    ALLOC_NODE,
    FREE_NODE,
    CONDITION_NODE,
    OWN_NODES
};
static const unsigned GENERAL_NODES = ALLOC_NODE;

static unsigned own_slots(kind_t kind) {
    switch (kind) {
        case NODE:
            return OWN_NODES;
        case GRAPH:
            return OWN_GRAPHS;
        case ARRAY:
            return OWN_ARRAYS;
        case EVENT:
            return OWN_EVENTS;
        case POOL:
            return OWN_POOLS;
        default:
            return 1;
    }
}

struct block_t {
    char type; // d: device, p: pinned, h: pageable, m: managed, v: mapped, r: reserved, w: words of memory operations
    uint64_t address;
    size_t bytes;
    life_t life;
};

// Blocks 0 and 1 (device), 6 and 7 (pageable), 8 (pinned), 10 (managed), 12 (mapped) and 13 (of a pool) are the run's own
// and are never freed. So are those behind the general ones, which only calls of address_rules (values.h) use: a
// reservation, words and registered memory.
static const unsigned RESERVED = 14, WORDS = 15, REGISTERED = 16, BLOCKS = 17, GENERAL_BLOCKS = RESERVED;
static const size_t OWN_BYTES = 65536, HOST_BYTES = 4 << 20, GRANULE = 2 << 20, WAIT_OFFSET = 2048;
static block_t blocks[BLOCKS];
static const char block_types[] = "ddddddhhppmmvdrwh";

static bool own_block(unsigned i) {
    return i <= 1 || (i >= 6 && i <= 8) || i == 10 || (i >= 12 && i != RESERVED);
}

static bool on_device(const block_t &block) {
    return block.type == 'd' || block.type == 'v' || block.type == 'w';
}

// The line of the current call.
static std::string line;

static void __attribute__((format(printf, 1, 2))) print(const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    line += text;
}

static std::string text_of(const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return text;
}

// Its name as a line shows it; "other" for a handle that no call has returned.
static std::string handle_name(kind_t kind, uint64_t value) {
    if (value == 0) {
        return "null";
    }
    if (kind == STREAM && value <= 2) {
        return value == 1 ? "legacy" : "per-thread";
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        if (slots[kind][i].life != NOTHING && slots[kind][i].value == value) {
            return text_of("%s%s%u", slots[kind][i].life == DEAD ? "~" : "", kind_names[kind], i);
        }
    }
    return "other";
}

// Empty for an address in no block.
static std::string address_name(uint64_t address) {
    for (int life = LIVE; life <= DEAD; life++) {
        for (unsigned i = 0; i < BLOCKS; i++) {
            const block_t &b = blocks[i];
            if (b.life == life && address >= b.address && address - b.address < b.bytes) {
                uint64_t offset = address - b.address;
                return text_of("%s%c%u", life == DEAD ? "~" : "", b.type, i)
                    + (offset > 0 ? text_of("+%llu", (unsigned long long) offset) : "");
            }
        }
    }
    return "";
}

// A number that may be an address or a handle: large ones are named.
static std::string word_name(uint64_t value) {
    std::string name = value >= 1 << 16 ? address_name(value) : "";
    for (int kind = 1; name.empty() && value > 2 && kind < KINDS; kind++) {
        std::string handle = kind == TEXTURE || kind == SURFACE ? "other" : handle_name((kind_t) kind, value);
        name = handle == "other" ? "" : handle;
    }
    if (!name.empty()) {
        return name;
    }
    bool address = value >= (uint64_t) 1 << 32 && value < (uint64_t) -4096;
    return address ? "address" : text_of("%lld", (long long) value);
}

static void end_dependents(uint64_t owner) {
    for (auto &of_kind : slots) {
        for (slot_t &slot : of_kind) {
            if (slot.life != NOTHING && slot.owner == owner) {
                slot.life = NOTHING;
                end_dependents(slot.value);
            }
        }
    }
}

// Remembers a new handle; a handle that is known keeps its name.
static void keep_handle(kind_t kind, unsigned slot, uint64_t value, uint64_t owner, uint64_t context) {
    if (value == 0 || (kind == STREAM && value <= 2)) {
        return;
    }
    for (slot_t &known : slots[kind]) {
        if (known.life == LIVE && known.value == value) {
            return;
        }
    }
    for (slot_t &old : slots[kind]) { // its value may be the new handle's
        old.life = old.life == DEAD ? NOTHING : old.life;
    }
    slots[kind][slot] = {value, owner, context, LIVE};
}

static void end_handle(kind_t kind, uint64_t value) {
    for (slot_t &slot : slots[kind]) {
        if (slot.life == LIVE && slot.value == value) {
            slot.life = DEAD;
            end_dependents(value);
        }
    }
    if (kind == CONTEXT) {
        for (auto &of_kind : slots) {
            for (slot_t &slot : of_kind) {
                slot.life = slot.context == value && &slot != &slots[CONTEXT][0] ? NOTHING : slot.life;
            }
        }
    }
}

static void keep_block(unsigned at, uint64_t address, size_t bytes) {
    for (block_t &old : blocks) { // the address of a freed block may return
        old.life = old.life == DEAD ? NOTHING : old.life;
    }
    blocks[at] = {block_types[at], address, bytes, LIVE};
}

static void end_block(uint64_t address) {
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (blocks[i].life == LIVE && blocks[i].address == address) {
            blocks[i].life = DEAD;
        }
    }
}

#endif
