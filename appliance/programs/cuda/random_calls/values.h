// The arguments of a call: legal ones, and illegal ones that CUDA documents or checks. A value whose use CUDA calls
// undefined is never made.
#ifndef HAWSER_RANDOM_CALLS_VALUES_H
#define HAWSER_RANDOM_CALLS_VALUES_H

#include "structures.h"

__device__ unsigned device_variable[16];

static const unsigned MAX_ARGUMENTS = 20;
static const size_t SCRATCH_BYTES = 8192;
static const unsigned char UNTOUCHED = 0xA5;
static const size_t MANY_BYTES = 70000; // larger than each block of the device, smaller than the host's

struct scratch_t {
    alignas(16) unsigned char bytes[SCRATCH_BYTES];
};
static scratch_t scratch[MAX_ARGUMENTS];

struct argument_t {
    type_t type;
    std::string name;
    uint64_t word;
    bool out; // the call may write to its scratch
};

static bool use_dead_handles; // also handles of destroyed objects; native CUDA checks only some

static const char good_image[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n.visible .global .align 4 .b8 numbers[64];\n"
    ".visible .entry add(.param .u64 p, .param .u32 v)\n{\n    .reg .b64 %a<3>;\n    .reg .b32 %v<2>;\n"
    "    ld.param.u64 %a1, [p];\n    cvta.to.global.u64 %a2, %a1;\n    ld.param.u32 %v1, [v];\n"
    "    red.global.add.u32 [%a2], %v1;\n    ret;\n}\n"
    ".visible .entry stop(.param .u64 p, .param .u32 v)\n{\n    trap;\n    ret;\n}\n";
static const char bad_image[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n    no.such.op %r1;\n    ret;\n}\n";

static bool contains(const std::string &text, const char *part) {
    return strcasestr(text.c_str(), part) != nullptr;
}

static bool destructive(const std::string &symbol) {
    if (contains(symbol, "FreeNode") || contains(symbol, "ReleaseUserObject")) {
        return false;
    }
    for (const char *word : {"Destroy", "Unload", "Free", "Release"}) {
        if (contains(symbol, word)) {
            return true;
        }
    }
    return false;
}

// The own objects that calls with a part of a name are about, where slot 0 is not meant.
static const struct {
    kind_t kind;
    const char *part;
    unsigned slot;
} special_slots[] = {
    {NODE, "KernelNode", KERNEL_NODE},
    {NODE, "MemcpyNode", MEMCPY_NODE},
    {NODE, "MemsetNode", MEMSET_NODE},
    {NODE, "HostNode", HOST_NODE},
    {NODE, "ChildGraph", CHILD_NODE},
    {NODE, "EventRecordNode", RECORD_NODE},
    {NODE, "EventWaitNode", WAIT_NODE},
    {NODE, "BatchMemOpNode", BATCH_NODE},
    {NODE, "AllocNode", ALLOC_NODE},
    {NODE, "FreeNode", FREE_NODE},
    {GRAPH, "AllocNode", MEMORY_GRAPH},
    {GRAPH, "FreeNode", MEMORY_GRAPH},
    {GRAPH, "Conditional", CONDITION_GRAPH},
    {GRAPH, "ExecChildGraph", CHILD_GRAPH},
    {GRAPH, "AddChildGraph", CHILD_GRAPH},
    {GRAPH, "FindInClone", CLONE},
    {ARRAY, "Surf", SURFACE_ARRAY},
    {ARRAY, "Sparse", SPARSE_ARRAY},
    {ARRAY, "MemoryRequirements", DEFERRED_ARRAY},
    {EVENT, "Ipc", SHARED_EVENT},
    {EVENT, "Elapsed", SECOND_EVENT},
    {POOL, "Export", EXPORTED_POOL},
    {POOL, "ImportPointer", IMPORTED_POOL},
};

// A live own object: the one that the call is about; of nodes, any one in graph 0.
static uint64_t own_handle(random_t &random, const std::string &symbol, kind_t kind) {
    unsigned slot = kind == NODE ? random.below(GENERAL_NODES) : 0;
    for (const auto &row : special_slots) {
        if (row.kind == kind && contains(symbol, row.part) && slots[kind][row.slot].life == LIVE) {
            slot = row.slot;
        }
    }
    if (kind == NODE && (contains(symbol, "GraphNodeSetParams") || contains(symbol, "ExecNodeSetParams"))) {
        node_to_set = slot;
    }
    return slots[kind][slot].life == LIVE ? slots[kind][slot].value : 0;
}

static uint64_t handle_value(random_t &random, const std::string &symbol, kind_t kind, bool bad) {
    bool ends = destructive(symbol) && !(kind == STREAM && contains(symbol, "Free"));
    if (kind == STREAM && !bad && random.chance(3) && !contains(symbol, "Batch")) {
        return ends ? 0 : random.below(3);
    }
    if (bad && !(use_dead_handles && random.chance(2))) {
        return 0;
    }
    if (!bad && !ends && random.chance(4) == (kind == CONTEXT)) {
        return own_handle(random, symbol, kind);
    }
    bool own_only = kind == EVENT && contains(symbol, "Graph"); // a graph's node keeps it
    unsigned own = own_slots(kind), first = ends ? own + random.below(OTHER_SLOTS) : random.below(own + OTHER_SLOTS);
    for (unsigned i = 0; i < SLOTS; i++) {
        unsigned at = (first + i) % SLOTS;
        const slot_t &slot = slots[kind][at];
        if (slot.life == (bad ? DEAD : LIVE) && !(at < own && ends) && !(own_only && at > 0)) {
            return slot.value;
        }
    }
    return 0;
}

// The blocks that calls with a part of a name are for, where any block is not meant.
static const struct {
    const char *part;
    unsigned block, other;
    size_t offset;
} address_rules[] = {
    {"MemAdvise", 10, 11, 0},
    {"Prefetch", 10, 11, 0},
    {"RangeGet", 10, 11, 0},
    {"AttachMem", 10, 11, 0},
    {"cuMemMap", RESERVED, RESERVED, 0},
    {"cuMemUnmap", RESERVED, RESERVED, 0},
    {"cuMemSetAccess", RESERVED, RESERVED, 0},
    {"AddressFree", RESERVED, RESERVED, 0},
    {"cuMemGetAccess", 12, RESERVED, 0},
    {"RetainAllocation", 12, RESERVED, 0},
    {"WaitValue", WORDS, WORDS, WAIT_OFFSET},
    {"WriteValue", WORDS, WORDS, 0},
    {"ExportPointer", 13, 2, 0},
    {"IpcGetMem", 0, 13, 0},
    {"FreeHost", 9, 9, 0},
    {"HostGet", 8, REGISTERED, 0},
    {"HostUnregister", REGISTERED, 9, 0},
    {"HostRegister", 7, 8, 0},
};

// An address of device memory, or of any memory. Own memory only where the call keeps the address.
static uint64_t address_value(random_t &random, const std::string &symbol, bool device, bool bad) {
    bool kept_by_graph = contains(symbol, "Graph"), ends = destructive(symbol), words = contains(symbol, "teValue");
    words |= contains(symbol, "WaitValue");
    if (contains(symbol, "MemFreeNode") && !bad && !random.chance(4)) {
        return kept.graph_memory;
    }
    for (const auto &row : address_rules) {
        if (contains(symbol, row.part) && !bad && (words || !random.chance(5))) {
            const block_t &block = blocks[random.chance(4) ? row.other : row.block];
            return block.life == LIVE ? block.address + row.offset : 0;
        }
    }
    if (words) { // other memory may never have the value that is waited for
        return random.chance(2) ? 16 : blocks[WORDS].address + WAIT_OFFSET + 1;
    }
    if (bad) {
        const block_t &block = blocks[random.below(6)];
        switch (random.below(5)) {
            case 0:
                return 0;
            case 1:
                return 16;
            case 2:
                return block.life == DEAD ? block.address : 0;
            case 3:
                return block.life == LIVE && !kept_by_graph ? block.address + (ends ? 16 : 1) : 0;
            default:
                return kept_by_graph || ends ? 0 : blocks[6].address;
        }
    }
    unsigned first = random.below(GENERAL_BLOCKS);
    for (unsigned i = 0; i < GENERAL_BLOCKS; i++) {
        unsigned at = (first + i) % GENERAL_BLOCKS;
        const block_t &block = blocks[at];
        bool fits = block.life == LIVE && (on_device(block) || block.type == 'm' || !device);
        if (fits && !(ends && own_block(at)) && !(kept_by_graph && !own_block(at))) {
            return block.address + (!ends && block.bytes >= OWN_BYTES && random.chance(4) ? 256 : 0);
        }
    }
    return 0;
}

static uint64_t host_address(random_t &random, const std::string &name) {
    unsigned at = contains(name, "dst") ? 6 : 7;
    if (random.chance(3) && blocks[8].life == LIVE) {
        at = 8;
    }
    return blocks[at].address;
}

// Numbers that are legal and illegal for parameters of a name (or a part of it) of calls with a part of a name.
static const struct {
    const char *part, *name;
    std::vector<long long> legal, illegal;
} number_rules[] = {
    {"AttachMem", "flags", {1, 2, 4}, {0, 3, 8}},
    {"AttachMem", "length", {0, OWN_BYTES}, {64}},
    {"ShareableHandle", "flags", {0}, {1, 2}},
    {"AllocManaged", "flags", {1, 2}, {0, 4}},
    {"MallocManaged", "flags", {1, 2}, {0, 4}},
    {"GreenCtxCreate", "flags", {1}, {0, 2}},
    {"GreenCtxStreamCreate", "flags", {1}, {0, 2}},
    {"UserObjectCreate", "flags", {1}, {0, 2}},
    {"WaitValue", "flags", {0, 1, 3}, {4, 128}},
    {"WaitValue", "value", {0}, {0}},
    {"WriteValue", "flags", {0, 1}, {2, 128}},
    {"SplitByCount", "useFlags", {0, 1}, {2, 3}}, // greater ones crash driver 580
    {"SplitByCount", "minCount", {8, 16}, {0, 1000}},
    {"GenerateDesc", "nbResources", {1}, {0}},
    {"AddressReserve", "alignment", {0, GRANULE}, {3, 4096}},
    {"cuMemMap", "size", {GRANULE}, {0, 4096, GRANULE + 4096}},
    {"cuMemUnmap", "size", {GRANULE}, {0, 4096, GRANULE + 4096}},
    {"cuMemSetAccess", "size", {GRANULE}, {0, 4096, GRANULE + 4096}},
    {"AddressFree", "size", {GRANULE}, {0, 4096, GRANULE + 4096}},
    {"Advise", "device", {0, -1}, {-3, 999}},
    {"Prefetch", "device", {0, -1}, {-3, 999}},
    {"ParamInfo", "paramIndex", {0, 1}, {2, 1000}},
    {"TensorMap", "tensorRank", {2, 3}, {0, 6}},
    {"GetAttribute", "dataSize", {4}, {0, 3, 8}},
    {"Level", "level", {0, 1}, {7, 1000}},
    {"BatchMemOp", "flags", {0}, {1, 4}},
    {"LinkAddData", "size", {sizeof(good_image)}, {0}},
};

static uint64_t number_value(random_t &random, const std::string &symbol, const type_t &type, const std::string &name,
                             bool bad) {
    for (const auto &row : number_rules) {
        if (contains(symbol, row.part) && contains(name, row.name)) {
            const std::vector<long long> &values = bad ? row.illegal : row.legal;
            return (uint64_t) values[random.below((unsigned) values.size())];
        }
    }
    bool allocates = contains(symbol, "Alloc") || contains(symbol, "Reserve") || symbol == "cuMemCreate";
    if (contains(name, "flags") || name == "Flags") {
        return bad ? random.of({2u, 4u, 8u, 0x80u, 0xFFFFu, 0xFFFFFFFFu}) : random.of({0u, 0u, 0u, 1u});
    }
    if (type.base == "CUdevice" || (type.base == "int" && contains(name, "device")) || name == "dev"
        || name == "ordinal") {
        return bad ? (uint64_t) random.of({-1, 999}) : 0;
    }
    if (contains(name, "Options")) {
        return 0;
    }
    bool elements = contains(symbol, "Batch") || contains(symbol, "SetAccess") || contains(symbol, "Capabilities")
        || contains(symbol, "UserObject");
    if (contains(name, "num") || (elements && name == "count") || contains(name, "RefCount")) {
        return bad ? random.of({0u, 2u}) : contains(name, "Dependencies") ? random.below(3) : 1;
    }
    if (contains(name, "GridDim") || contains(name, "BlockDim") || name == "blockSize") {
        return bad ? random.of({0u, 2048u, 70000u}) : random.of({1u, 1u, 32u});
    }
    if (contains(name, "sharedMem") || contains(name, "SMem")) {
        return bad ? random.of({49152u + 4, 1u << 20}) : random.of({0u, 64u});
    }
    if (contains(name, "pitch")) {
        return bad ? random.of({0u, 1u, 3u}) : PITCH;
    }
    if (contains(name, "height") || name == "Height") {
        return bad ? 0 : random.of({1u, (unsigned) ROWS});
    }
    if (contains(name, "offset")) {
        return bad ? random.of({1u, 4096u, 1u << 30}) : 0;
    }
    if (name == "len" || name == "bufferSize") {
        return bad ? random.of({0u, 1u, 4u}) : 256;
    }
    if (name == "ElementSizeBytes") {
        return bad ? random.of({0u, 3u, 32u}) : random.of({4u, 8u, 16u});
    }
    if (contains(name, "priority")) {
        return bad ? (uint64_t) random.of({-100, 100}) : (uint64_t) random.of({0, -1});
    }
    if (contains(name, "version")) {
        return bad ? random.of({0u, 1u, 99000u}) : random.of({12000u, 13000u});
    }
    if (type.base == "size_t" && allocates) {
        return bad ? random.of({(uint64_t) 0, (uint64_t) 1 << 50, ~(uint64_t) 0})
            : contains(symbol, "Reserve") || symbol == "cuMemCreate" ? (uint64_t) 2 << 20
                                                                     : random.of({(uint64_t) 4096, OWN_BYTES});
    }
    if (type.base == "size_t") {
        return bad ? random.of({(uint64_t) 0, (uint64_t) 3, (uint64_t) MANY_BYTES})
                   : random.of({(uint64_t) 4, (uint64_t) 16, (uint64_t) 64, (uint64_t) 4096});
    }
    return bad ? random.of({-1, 0x7FFF}) : (int) random.below(3);
}

// The values that work for types with many others.
static const struct {
    const char *part, *type;
    std::vector<long long> values;
} enum_rules[] = {
    {"Memcpy", "MemcpyKind", {cudaMemcpyDefault}},
    {"", "AllocationHandleType", {CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR}},
    {"PointerSet", "pointer_attribute", {CU_POINTER_ATTRIBUTE_SYNC_MEMOPS}},
    {"StreamGet", "Attr", {1, 3, 8}},
    {"StreamSet", "Attr", {1, 3, 8}},
    {"NodeGet", "Attr", {1, 2, 4, 8}},
    {"NodeSet", "Attr", {1, 2, 8}},
    {"Tensor", "", {0}},
    {"Mem", "AllocationType", {1}},
    {"Resource", "DevResourceType", {1}},
    {"Link", "InputType", {CU_JIT_INPUT_PTX}},
};

static uint64_t enum_value(random_t &random, const std::string &symbol, const values_t &type, bool bad) {
    if (bad) {
        return (uint64_t) random.of({-1, 0x7FFF, 1000});
    }
    for (const auto &row : enum_rules) {
        if (contains(symbol, row.part) && contains(type.type, row.type) && !random.chance(4)) {
            return (uint64_t) row.values[random.below((unsigned) row.values.size())];
        }
    }
    long long value;
    do { // the last one of many types is "MAX"
        value = type.values[random.below((unsigned) type.values.size())];
    } while (value >= 0x7FFFFFFF && type.values.size() > 1);
    return (uint64_t) value;
}

static const char *text_value(random_t &random, const std::string &symbol, const std::string &name, bool bad) {
    if (contains(name, "path") || contains(name, "fname") || contains(name, "fileName")) {
        return bad ? random.of({"", "/nonexistent/file"}) : contains(symbol, "DotPrint") ? "/dev/null" : "/nonexistent";
    }
    if (contains(symbol, "Address") || contains(symbol, "EntryPoint")) {
        return bad ? random.of({"cuNoSuchFunction", ""})
                   : random.of({"cuMemAlloc", "cuStreamCreate", "cuLaunchKernel"});
    }
    if (contains(symbol, "PCI")) {
        return bad ? random.of({"", "nonsense", "ffff:ff:1f.0"}) : "0000:00:00.0";
    }
    return bad ? random.of({"no_such", ""}) : contains(symbol, "Global") ? "numbers" : "add";
}

static std::string address_text(uint64_t address) {
    std::string text = address_name(address);
    return address == 0 ? "null" : address == kept.graph_memory ? "graph memory" : text.empty() ? "16" : text;
}

// Arrays and structures that the call only reads, in the argument's scratch.
static bool fill_input(random_t &random, const std::string &symbol, const argument_t &argument, void *memory) {
    const std::string &name = argument.name;
    uint64_t *words = (uint64_t *) memory;
    kind_t kind = kind_of(argument.type.base);
    const values_t *values = find_type(enumerations, argument.type.base);
    if (kind != NO_HANDLE && argument.type.depth == 1 && (argument.type.constant || name == "dependencies")) {
        for (unsigned i = 0; i < 4; i++) {
            words[i] = handle_value(random, symbol, kind, false);
            print("%s%s", i > 0 ? "," : "", handle_name(kind, words[i]).c_str());
        }
        return true;
    }
    for (const char *array : {"dsts", "srcs", "dptrs"}) {
        if (name == array) {
            for (unsigned i = 0; i < 4; i++) {
                words[i] = blocks[name == "dptrs" ? 10 : name == "srcs"].address + i * 4096;
            }
            return true;
        }
    }
    if (name == "sizes" || name == "dataSizes") {
        std::fill(words, words + 4, name == "sizes" ? 64 : 4);
        return true;
    }
    if (name == "data" && argument.type.depth == 2) { // a buffer for each attribute
        for (unsigned i = 0; i < 4; i++) {
            words[i] = (uint64_t) (words + 512 + i * 8);
        }
        return true;
    }
    if (name == "attrsIdxs" || name == "prefetchLocIdxs") {
        memset(memory, 0, 256);
        return true;
    }
    if (values != nullptr && name == "attributes") {
        for (unsigned i = 0; i < 4; i++) {
            ((int *) memory)[i] = (int) enum_value(random, symbol, *values, false);
            print("%s%d", i > 0 ? "," : "", ((int *) memory)[i]);
        }
        return true;
    }
    if (contains(argument.type.base, "uint") && argument.type.constant) { // a tensor's sizes and strides
        for (unsigned i = 0; i < 8; i++) {
            uint64_t value = contains(name, "Strides") && contains(argument.type.base, "64") ? 512 << i : 16;
            value = name == "elementStrides" ? 1 : value;
            argument.type.base == "cuuint64_t" ? (void) (words[i] = value)
                                               : (void) (((uint32_t *) memory)[i] = (uint32_t) value);
        }
        return true;
    }
    bool imports = contains(symbol, "Import") && (name == "shareData" || name == "exportData");
    bool splits = name == "input" || name == "resources" || name == "mapInfoList" || name == "opList";
    bool in = argument.type.constant || imports || splits || name == "attrs" || name == "paramArray"
        || argument.type.base == "CUmemLocation" || argument.type.base == "cudaMemLocation"
        || (contains(name, "params") && !contains(symbol, "GetParams"));
    if (!in) {
        return false;
    }
    memset(memory, 0, SCRATCH_BYTES);
    print("{");
    fill_structure(argument.type.base, random, memory);
    print("}");
    return true;
}

static void *pointer_value(random_t &random, const std::string &symbol, argument_t &argument, void *memory, bool bad) {
    const type_t &type = argument.type;
    const std::string &name = argument.name;
    if (type.base == "char" && type.constant && type.depth == 1) {
        const char *text = bad && random.chance(3) ? nullptr : text_value(random, symbol, name, bad);
        print("%s", text == nullptr ? "null" : *text == 0 ? "\"\"" : text);
        return (void *) text;
    }
    if (contains(name, "options") || (name == "pResViewDesc" && !bad) || name == "extra" || name == "userData"
        || name == "optionValues") {
        print("null");
        return nullptr;
    }
    if (name == "kernelParams" || name == "args") {
        kernel_address = blocks[0].address;
        print("%s", bad ? "null" : "arguments");
        return bad ? nullptr : kernel_arguments;
    }
    if (type.base == "void" && type.depth == 1 && contains(symbol, "ShareableHandle")) {
        argument.out = contains(symbol, "Export");
        int descriptor = contains(symbol, "Pool") ? kept.pool_descriptor : kept.memory_descriptor;
        print("%s", argument.out ? "out" : bad ? "no descriptor" : "descriptor");
        return argument.out ? memory : (void *) (intptr_t) (bad ? -1 : descriptor);
    }
    if (type.base == "void" && type.depth == 1) {
        if (name == "image" || name == "code" || name == "fatCubin" || (name == "data" && contains(symbol, "Link"))) {
            const char *image = bad ? random.of({(const char *) nullptr, bad_image}) : good_image;
            print("%s", image == nullptr ? "null" : bad ? "bad image" : "image");
            return (void *) image;
        }
        if (contains(name, "func") || contains(name, "entry") || name == "symbolPtr") {
            print("%s", bad ? "no function" : "add");
            return bad ? (void *) bad_image : (void *) add;
        }
        if (name == "symbol") {
            print("%s", bad ? "no symbol" : "variable");
            return bad ? (void *) bad_image : (void *) &device_variable;
        }
        bool host = contains(name, "host"), written = name == "data" || name == "value" || contains(name, "_out");
        if (!written || (type.constant && name != "value")) {
            uint64_t address = host ? (bad ? 0 : host_address(random, name))
                                    : address_value(random, symbol,
                                                    !contains(name, "src") && !contains(name, "dst")
                                                        && !contains(symbol, "Host") && !contains(name, "p"),
                                                    bad);
            print("%s", address_text(address).c_str());
            return (void *) address;
        }
        if (type.constant) {
            memset(memory, 0, SCRATCH_BYTES);
            *(uint64_t *) memory = random.below(2);
            print("&%u", *(unsigned *) memory);
            return memory;
        }
    }
    if (bad && random.chance(2)) {
        print("null");
        return nullptr;
    }
    if (fill_input(random, symbol, argument, memory)) {
        if (bad) {
            spoil_structure(type.base, random, memory);
        }
        return memory;
    }
    argument.out = true;
    if (name == "value" && contains(symbol, "Set")) {
        memset(memory, 0, 16);
    }
    if (contains(name, "num") && type.base == "size_t" && contains(symbol, "Get") && !contains(symbol, "Capture")) {
        *(size_t *) memory = random.of({0, 1, 64});
        print("&%zu", *(size_t *) memory);
    } else if (name == "mode") {
        const values_t *values = find_type(enumerations, type.base);
        *(int *) memory = (int) enum_value(random, symbol, *values, bad);
        print("&%d", *(int *) memory);
    } else {
        print("out");
    }
    return memory;
}

// Makes one argument and prints it.
static uint64_t argument_value(random_t &random, const std::string &symbol, argument_t &argument, void *memory,
                               bool bad) {
    const type_t &type = argument.type;
    kind_t kind = kind_of(type.base);
    const values_t *values = find_type(enumerations, type.base);
    if (type.depth > 0) {
        return (uint64_t) (uintptr_t) pointer_value(random, symbol, argument, memory, bad);
    }
    if (kind != NO_HANDLE) {
        uint64_t value = handle_value(random, symbol, kind, bad);
        print("%s", handle_name(kind, value).c_str());
        return value;
    }
    if (type.base == "CUdeviceptr") {
        uint64_t address = address_value(random, symbol, symbol != "cuMemcpy" && symbol != "cuMemcpyAsync", bad);
        print("%s", address_text(address).c_str());
        return address;
    }
    if (values != nullptr) {
        uint64_t value = enum_value(random, symbol, *values, bad);
        print("%d", (int) value);
        return value;
    }
    if (contains(type.base, "HostFn") || contains(type.base, "Callback")) {
        print("%s", bad ? "null" : "function");
        return bad ? 0 : contains(type.base, "HostFn") ? (uint64_t) host_function : (uint64_t) stream_callback;
    }
    if (contains(type.base, "B2DSize")) {
        print("null");
        return 0;
    }
    for (const char *number : {"int", "size_t", "unsigned", "char", "short", "long", "CUdevice", "uint"}) {
        if (contains(type.base, number)) {
            uint64_t value = number_value(random, symbol, type, argument.name, bad);
            print("%lld", (long long) value);
            return value;
        }
    }
    memset(memory, 0, SCRATCH_BYTES); // a structure by value
    print("{");
    fill_structure(type.base, random, memory);
    print("}");
    if (bad) {
        spoil_structure(type.base, random, memory);
    }
    return (uint64_t) (uintptr_t) memory;
}

#endif
