// The functions of both APIs with their parameters, the values of enumerations and the numbers in structures: from
// Hawser's description of the driver, and from the toolkit's header of the runtime.
#ifndef HAWSER_RANDOM_CALLS_TABLE_H
#define HAWSER_RANDOM_CALLS_TABLE_H

#include "state.h"

#include <dlfcn.h>
#include <type_traits>

// An argument from a word: a number or pointer itself, a structure by its address.
template <typename T> static T hws_argument(uint64_t word) {
    T value;
    if constexpr (std::is_class<T>::value || std::is_union<T>::value) {
        memcpy(&value, (const void *) (uintptr_t) word, sizeof(value));
    } else {
        memcpy(&value, &word, sizeof(value));
    }
    return value;
}

struct parameter_t {
    const char *type, *name;
};

struct function_t {
    const char *symbol, *group;
    int (*call)(void *function, const uint64_t *a);
    std::vector<parameter_t> parameters;
    bool runtime;
    void *address; // of a driver function; the runtime's are linked
};

struct field_t {
    const char *name, *type;
    size_t offset, bytes;
};

struct values_t {
    const char *type;
    std::vector<long long> values;
};

struct structure_t {
    const char *type;
    size_t bytes;
    std::vector<field_t> fields;
};

#define HWS_ENUM(type, ...)
#define HWS_FIELDS(type, ...)
#define HWS_CALL(symbol, group, result, prototype, arguments, ...)                                                     \
    static int call_##symbol(void *function, const uint64_t *a) {                                                      \
        (void) a;                                                                                                      \
        return (int) ((result(*) prototype) function) arguments;                                                       \
    }
#include "hws_cuda_call_table.inc"
#undef HWS_CALL
// The runtime's functions are overloaded in C++.
#define HWS_CALL(symbol, group, result, prototype, arguments, ...)                                                     \
    static int call_##symbol(void *, const uint64_t *a) {                                                              \
        (void) a;                                                                                                      \
        result(*function) prototype = symbol;                                                                          \
        return (int) function arguments;                                                                               \
    }
#include "runtime_table.inc"
#undef HWS_CALL

#define HWS_CALL(symbol, group, result, prototype, arguments, ...)                                                     \
    {#symbol, #group, call_##symbol, {__VA_ARGS__}, !strcmp(#group, "runtime"), nullptr},
static std::vector<function_t> functions = {
#include "hws_cuda_call_table.inc"
#include "runtime_table.inc"
};
#undef HWS_CALL
#undef HWS_ENUM
#undef HWS_FIELDS

#define HWS_CALL(symbol, ...)
#define HWS_FIELDS(type, ...)
#define HWS_ENUM(type, ...) {#type, {__VA_ARGS__}},
static const std::vector<values_t> enumerations = {
#include "hws_cuda_call_table.inc"
#include "runtime_table.inc"
};
#undef HWS_ENUM
#undef HWS_FIELDS

#define HWS_ENUM(type, ...)
#define HWS_FIELDS(type, ...) {#type, sizeof(type), {__VA_ARGS__}},
static const std::vector<structure_t> structures = {
#include "hws_cuda_call_table.inc"
};
#undef HWS_FIELDS
#undef HWS_ENUM
#undef HWS_CALL

template <typename T> static const T *find_type(const std::vector<T> &all, const std::string &type) {
    for (const T &one : all) {
        if (type == one.type) {
            return &one;
        }
    }
    return nullptr;
}

// The driver's function under its exported name, for the run's own calls; ends the run if there is none.
template <typename F> static F driver_function(const char *symbol) {
    static void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = library != nullptr ? dlsym(library, symbol) : nullptr;
    if (found == nullptr) {
        fprintf(stderr, "random_calls: %s: %s\n", symbol, dlerror());
        exit(2);
    }
    F function;
    memcpy(&function, &found, sizeof(function));
    return function;
}

#define DRIVER(function) driver_function<decltype(&function)>(#function)

#endif
