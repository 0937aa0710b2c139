// One call: choosing it, making it, and writing what it did.
#ifndef HAWSER_RANDOM_CALLS_RUN_H
#define HAWSER_RANDOM_CALLS_RUN_H

#include "values.h"

#include <unistd.h>

#include <fstream>

// Calls that are never made, by a part of their names.
static const struct {
    const char *part, *reason;
} never_made[] = {
    {"ExportTable", "private tables"},
    {"DeviceReset", "ends the context of all handles; their later use is undefined"},
    {"PrimaryCtxRe", "may end the context of all handles; their later use is undefined"},
    {"CtxAttach", "its counterpart may end the context"},
    {"CtxDetach", "may end the context"},
    {"External", "needs objects of graphics"},
    {"Graphics", "needs objects of graphics"},
    {"NvSci", "needs objects of NvSci"},
    {"Notification", "needs a callback with private data"},
    {"Logs", "writes files"},
    {"SetValidDevices", "changes the devices for the calls of the whole process"},
};

// Outputs that differ between two runs or two devices' names: only whether they are written counts.
static const char *const private_outputs[] = {"MemGetInfo",
                                              "Uuid",
                                              "Luid",
                                              "PCIBusId",
                                              "TotalMem",
                                              "GetId",
                                              "Elapsed",
                                              "DeviceGetName",
                                              "DevResource", // private bytes
                                              "GetDeviceProperties",
                                              "Ipc",
                                              "Export",
                                              "GetProcAddress",
                                              "EntryPoint",
                                              "LinkComplete",
                                              "CaptureInfo",
                                              "TensorMap",
                                              "GraphMemAttribute",
                                              "MemPoolGetAttribute",
                                              "GetErrorString",
                                              "GetResourceDesc"}; // bytes behind the member in use

static std::string only_group; // of calls; empty for all

static bool never(const function_t &function) {
    for (const auto &row : never_made) {
        if (contains(function.symbol, row.part)) {
            return true;
        }
    }
    return !only_group.empty() && only_group != function.group;
}

static CUcontext current_context() {
    CUcontext context = nullptr;
    static auto get = DRIVER(cuCtxGetCurrent);
    get(&context);
    return context;
}

static bool capturing() {
    static auto query = DRIVER(cuStreamIsCapturing);
    for (const slot_t &slot : slots[STREAM]) {
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        if (slot.life == LIVE && query((CUstream) slot.value, &status) == CUDA_SUCCESS
            && status != CU_STREAM_CAPTURE_STATUS_NONE) {
            return true;
        }
    }
    return false;
}

static uint32_t checksum(const unsigned char *bytes, size_t count) { // FNV-1a
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < count; i++) {
        sum = (sum ^ bytes[i]) * 16777619u;
    }
    return sum;
}

// The functions that calls are made of, in the order that decides which one a random number means. With a file, those
// that an earlier run printed: it gave the same calls, whatever functions have been described since.
static void choose_functions(const char *file) {
    if (*file == 0) {
        return;
    }
    std::vector<function_t> chosen;
    std::ifstream lines(file);
    for (std::string text; std::getline(lines, text);) {
        if (text.compare(0, 9, "function ") == 0) {
            for (const function_t &function : functions) {
                if (text.substr(9) == function.symbol) {
                    chosen.push_back(function);
                }
            }
        }
    }
    functions = chosen;
    if (functions.empty()) {
        fprintf(stderr, "random_calls: the file names no function: %s\n", file);
        exit(2);
    }
}

// Changes whenever other calls come from a seed although functions and types are the same.
static const unsigned GENERATION = 2;

// Prints the functions, and a checksum of all that decides which calls a seed gives.
static void print_description() {
    std::string all = text_of("generation %u\n", GENERATION);
    for (const function_t &function : functions) {
        printf("function %s\n", function.symbol);
        all += std::string(function.symbol) + (never(function) ? " never\n" : "\n");
        for (const parameter_t &parameter : function.parameters) {
            std::string base = type_t(parameter.type).base;
            all += std::string(parameter.type) + " " + parameter.name;
            if (const values_t *type = find_type(enumerations, base)) {
                for (long long value : type->values) {
                    all += " " + std::to_string(value);
                }
            }
            if (const structure_t *type = find_type(structures, base)) {
                for (const field_t &field : type->fields) {
                    all += std::string(" ") + field.type + " " + field.name + " " + std::to_string(field.offset);
                }
            }
            all += "\n";
        }
    }
    printf("description %08x\n", checksum((const unsigned char *) all.data(), all.size()));
}

// A block of an allocation gets known contents.
static void keep_allocation(unsigned at, uint64_t address, size_t bytes) {
    static auto set = DRIVER(cuMemsetD8_v2);
    static auto synchronize = DRIVER(cuCtxSynchronize);
    keep_block(at, address, bytes);
    if (block_types[at] == 'p' || block_types[at] == 'r') {
        memset((void *) address, 0, block_types[at] == 'p' ? bytes : 0);
        return;
    }
    int results[] = {synchronize(), set(address, 0, bytes), synchronize()};
    for (int result : results) {
        if (result != 0) {
            print(" clear=%d", result);
        }
    }
}

static size_t bytes_of(const function_t &function, const uint64_t *a) {
    size_t pitch = 0, product = 0;
    for (size_t i = 0; i < function.parameters.size(); i++) {
        std::string name = function.parameters[i].name;
        if (name == "pPitch" || name == "pitch") {
            pitch = a[i] != 0 ? *(size_t *) scratch[i].bytes : 0;
        } else if (name == "bytesize" || name == "size" || name == "Bytesize") {
            product = a[i];
        } else if (name == "Height" || name == "height") {
            product = pitch * a[i];
        }
    }
    return product;
}

// Keeps a new block. Memory of a stream that captures exists only when its graph runs.
static void keep_output(random_t &random, const function_t &function, const uint64_t *a, uint64_t address,
                        bool in_capture) {
    std::string symbol = function.symbol;
    size_t bytes = bytes_of(function, a);
    bool reserves = contains(symbol, "Reserve");
    bool allocation = (contains(symbol, "Alloc") && !contains(symbol, "Node")) || reserves;
    if (!allocation || bytes == 0 || in_capture || !address_name(address).empty()) {
        return;
    }
    bool host = contains(symbol, "HostAlloc") || contains(symbol, "AllocHost") || contains(symbol, "MallocHost");
    unsigned at = reserves ? RESERVED : contains(symbol, "Managed") ? 11 : host ? 9 : 2 + random.below(4);
    keep_allocation(at, address, bytes);
}

static void print_output(random_t &random, const function_t &function, const uint64_t *a, const argument_t &argument,
                         size_t at, bool in_capture) {
    unsigned char *bytes = scratch[at].bytes;
    const type_t &type = argument.type;
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    size_t length = SCRATCH_BYTES;
    while (length > 0 && bytes[length - 1] == UNTOUCHED) {
        length--;
    }
    print(" %s=", argument.name.c_str());
    for (const char *part : private_outputs) {
        if (contains(function.symbol, part)) {
            print("%s", length > 0 ? "set" : "unset");
            return;
        }
    }
    kind_t kind = kind_of(type.base);
    const structure_t *structure = find_type(structures, type.base);
    if (length == 0) {
        print("unset");
    } else if (kind != NO_HANDLE && type.depth == 1) {
        uint64_t owner = 0;
        for (size_t i = 0; i < function.parameters.size() && owner == 0; i++) {
            type_t other(function.parameters[i].type);
            kind_t of = other.depth == 0 ? kind_of(other.base) : NO_HANDLE;
            bool owns = of == MODULE || of == LIBRARY || of == KERNEL || of == FUNCTION || of == MIPMAPPED
                || of == GREEN || (of == GRAPH && kind == NODE) || (of == NODE && kind == GRAPH)
                || (of == ARRAY && kind == ARRAY) || (of == NODE && kind == NODE);
            owner = owns ? a[i] : 0;
        }
        keep_handle(kind, own_slots(kind) + random.below(OTHER_SLOTS), word, owner, (uint64_t) current_context());
        print("%s", handle_name(kind, word).c_str());
    } else if (type.base == "CUdeviceptr" || (type.base == "void" && type.depth == 2)) {
        keep_output(random, function, a, word, in_capture);
        std::string name = address_name(word);
        print("%s", !name.empty() ? name.c_str() : word == 0 ? "null" : "address");
    } else if (type.base == "char") {
        const char *text = type.depth == 2 ? (const char *) word : (const char *) bytes;
        print("%.60s", text != nullptr ? text : "null");
    } else if (structure != nullptr) {
        for (const field_t &field : structure->fields) {
            uint64_t value = 0;
            memcpy(&value, bytes + field.offset, field.bytes);
            bool set = field.offset + field.bytes <= length;
            if (set && value != 0 && std::string(field.type) != "float") {
                print("%s:%s ", field.name, word_name(field.bytes == 4 ? (uint64_t) (int) value : value).c_str());
            }
        }
    } else if (type.base == "size_t" || contains(type.base, "64") || contains(type.base, "long") || type.depth == 2) {
        print("%s", word_name(word).c_str());
    } else if (type.base == "void") {
        print("%zu:%s", length, length >= 8 ? word_name(word).c_str() : text_of("%d", *(int *) bytes).c_str());
    } else if (find_type(enumerations, type.base) != nullptr || contains(type.base, "int") || type.base == "CUdevice") {
        print("%d", *(int *) bytes);
    } else {
        print("set");
    }
}

// A call that ended well and ended a handle or a block.
static void end_object(const function_t &function, const uint64_t *a) {
    type_t type(function.parameters[0].type);
    kind_t kind = type.depth == 0 ? kind_of(type.base) : NO_HANDLE;
    if (kind == NO_HANDLE) {
        end_block(a[0]);
    } else if (a[0] != 0 && !(kind == STREAM && a[0] <= 2)) {
        end_handle(kind, a[0]);
    }
}

static void flush_line() {
    fwrite(line.data(), 1, line.size(), stdout);
    fflush(stdout);
    line.clear();
}

// A descriptor that a call has exported.
static void close_descriptor(const std::string &symbol, const uint64_t *a, const unsigned char *bytes) {
    if (contains(symbol, "ExportToShareable") && a[2] == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        close(*(const int *) bytes);
    }
}

// The functions come in rounds: each round calls each function once, in an order of its own.
static const function_t *function_of(uint64_t seed, unsigned index) {
    static std::vector<const function_t *> order;
    static unsigned round = ~0u;
    unsigned count = 0;
    for (const function_t &function : functions) {
        count += !never(function);
    }
    if (round != index / count) {
        round = index / count;
        order.clear();
        random_t random(seed, ~(uint64_t) round);
        for (const function_t &function : functions) {
            if (!never(function)) {
                order.push_back(&function);
                std::swap(order.back(), order[random.below((unsigned) order.size())]);
            }
        }
    }
    return order[index % count];
}

static void make_call(random_t &random, const function_t *function, unsigned index) {
    std::string symbol = function->symbol;
    size_t count = function->parameters.size();
    unsigned mode = random.below(6), bad = random.below(count > 0 ? (unsigned) count : 1);
    uint64_t a[MAX_ARGUMENTS + 1] = {};
    std::vector<argument_t> arguments;
    memset(scratch, UNTOUCHED, count * sizeof(scratch[0]));
    node_to_set = OWN_NODES;
    print("%u %s(", index, function->symbol);
    for (size_t i = 0; i < count; i++) {
        arguments.push_back({type_t(function->parameters[i].type), function->parameters[i].name, 0, false});
        bool spoilt = mode < 4 ? false : mode < 5 ? bad == i : random.chance(2);
        print("%s", i > 0 ? ", " : "");
        a[i] = argument_value(random, symbol, arguments[i], scratch[i].bytes, spoilt);
        if (kind_of(arguments[i].type.base) == LINK && arguments[i].type.depth == 0 && a[i] == 0) {
            print(") not made: no link state\n");
            return;
        }
    }
    print(") = ");
    if (!function->runtime && function->address == nullptr) {
        print("absent\n");
        return;
    }
    flush_line();
    bool in_capture = slots[CONTEXT][0].life == LIVE && capturing();
    int result = function->call(function->address, a);
    print("%d", result);
    if (result == 0 && count > 0 && destructive(symbol)) {
        end_object(*function, a);
    }
    for (size_t i = 0; i < count; i++) {
        bool written = arguments[i].out && a[i] != 0;
        if (written && result == 0) {
            close_descriptor(symbol, a, scratch[i].bytes);
            print_output(random, *function, a, arguments[i], i, in_capture);
        }
    }
    if (function->runtime) {
        print(" last=%d", (int) cudaPeekAtLastError());
    }
}

// The contents of all blocks.
static void print_contents() {
    static auto copy = DRIVER(cuMemcpyDtoH_v2);
    static unsigned char bytes[OWN_BYTES];
    print(" contents");
    for (unsigned i = 0; i < BLOCKS; i++) {
        const block_t &block = blocks[i];
        size_t count = block.bytes < OWN_BYTES ? block.bytes : OWN_BYTES;
        if (block.life == LIVE && block.type != 'r') {
            int result = on_device(block) ? (int) copy(bytes, block.address, count) : 0;
            const unsigned char *at = on_device(block) ? bytes : (const unsigned char *) block.address;
            print(result != 0 ? " %c%u:error %d" : " %c%u:%08x", block.type, i,
                  result != 0 ? result : (int) checksum(at, count));
        }
    }
}

// Waits for the work of all contexts. Returns the current one's result.
static int synchronize_contexts() {
    static auto synchronize = DRIVER(cuCtxSynchronize);
    static auto push = driver_function<CUresult (*)(CUcontext)>("cuCtxPushCurrent_v2");
    static auto pop = driver_function<CUresult (*)(CUcontext *)>("cuCtxPopCurrent_v2");
    CUcontext context;
    for (const slot_t &slot : slots[CONTEXT]) {
        if (slot.life == LIVE && slot.value != (uint64_t) current_context()
            && push((CUcontext) slot.value) == CUDA_SUCCESS) {
            synchronize();
            pop(&context);
        }
    }
    return synchronize();
}

// Waits for the call's work, so that its errors belong to it and contents do not depend on time.
static void settle(unsigned index) {
    if (current_context() != nullptr) {
        if (capturing()) {
            print(" capturing");
        } else {
            print(" sync=%d", synchronize_contexts());
            if (index % 10 == 9) {
                print_contents();
            }
        }
    }
    print("\n");
    flush_line();
}

#endif
