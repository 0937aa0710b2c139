#include "block.h"

#include "functions.h"

#include "hws_log.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define REACH (INT32_MAX - 16 * PAGE) /* of a jump's 32 bits, less the block itself */
#define STEP (1l << 20)               /* between the places where a block is tried */
#define STUB 16                       /* bytes of code of a slot */
#define CODE_BYTES ((HWS_RUNTIME_NAMES * STUB + HWS_JUMP_BYTES + PAGE - 1) / PAGE * PAGE)
#define DATA_BYTES ((sizeof(hws_block_t) + PAGE - 1) / PAGE * PAGE)
#define EXIT_NO_LIBRARY 127 /* as the dynamic linker exits when a function is missing */

struct hws_block {
    struct hws_block *next;
    int major;
    void (*enter)(void);
    void *_Atomic slots[HWS_RUNTIME_NAMES];
}; /* its code follows at DATA_BYTES: STUB bytes for each slot, and the jump to enter */

static const char *libraries[2];            /* 12, 13 */
static void *targets[2][HWS_RUNTIME_NAMES]; /* our functions, once is_resolved; guarded by lock */
static bool is_resolved[2];
static hws_block_t *blocks; /* guarded by lock */

/*
 * Not a mutex: before glibc 2.34 mutexes are in libpthread, a second copy of which an audit library must not load. The
 * holder never calls the dynamic linker, whose lock a thread may hold when it comes here.
 */
static atomic_flag lock = ATOMIC_FLAG_INIT;

static void take_lock(void) {
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) {
        sched_yield();
    }
}

static void free_lock(void) {
    atomic_flag_clear_explicit(&lock, memory_order_release);
}

void hws_block_set_library(int major, const char *path) {
    libraries[major - 12] = path;
}

const char *hws_block_library(int major) {
    return libraries[major - 12];
}

/*
 * The first call of a function comes here by its stub, which has pushed the major and the name's number. Keeps the
 * registers that can carry arguments, resolves the function and jumps to it.
 */
void hws_block_enter(void) __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".globl hws_block_enter\n"
        ".hidden hws_block_enter\n"
        ".type hws_block_enter, @function\n"
        "hws_block_enter:\n"
        "    .cfi_startproc\n"
        "    .cfi_def_cfa_offset 16\n"
        "    endbr64\n"
        "    pushq %rbp\n"
        "    .cfi_def_cfa_offset 24\n"
        "    .cfi_offset %rbp, -24\n"
        "    movq %rsp, %rbp\n"
        "    .cfi_def_cfa_register %rbp\n"
        "    subq $192, %rsp\n"
        "    andq $-16, %rsp\n"
        "    movaps %xmm0, (%rsp)\n"
        "    movaps %xmm1, 16(%rsp)\n"
        "    movaps %xmm2, 32(%rsp)\n"
        "    movaps %xmm3, 48(%rsp)\n"
        "    movaps %xmm4, 64(%rsp)\n"
        "    movaps %xmm5, 80(%rsp)\n"
        "    movaps %xmm6, 96(%rsp)\n"
        "    movaps %xmm7, 112(%rsp)\n"
        "    movq %rax, 128(%rsp)\n"
        "    movq %rdi, 136(%rsp)\n"
        "    movq %rsi, 144(%rsp)\n"
        "    movq %rdx, 152(%rsp)\n"
        "    movq %rcx, 160(%rsp)\n"
        "    movq %r8, 168(%rsp)\n"
        "    movq %r9, 176(%rsp)\n"
        "    movq %r10, 184(%rsp)\n"
        "    movl 8(%rbp), %edi\n"
        "    call hws_block_resolve\n"
        "    movq %rax, %r11\n"
        "    movaps (%rsp), %xmm0\n"
        "    movaps 16(%rsp), %xmm1\n"
        "    movaps 32(%rsp), %xmm2\n"
        "    movaps 48(%rsp), %xmm3\n"
        "    movaps 64(%rsp), %xmm4\n"
        "    movaps 80(%rsp), %xmm5\n"
        "    movaps 96(%rsp), %xmm6\n"
        "    movaps 112(%rsp), %xmm7\n"
        "    movq 128(%rsp), %rax\n"
        "    movq 136(%rsp), %rdi\n"
        "    movq 144(%rsp), %rsi\n"
        "    movq 152(%rsp), %rdx\n"
        "    movq 160(%rsp), %rcx\n"
        "    movq 168(%rsp), %r8\n"
        "    movq 176(%rsp), %r9\n"
        "    movq 184(%rsp), %r10\n"
        "    movq %rbp, %rsp\n"
        "    popq %rbp\n"
        "    .cfi_def_cfa %rsp, 16\n"
        "    addq $8, %rsp\n"
        "    .cfi_def_cfa_offset 8\n"
        "    jmp *%r11\n"
        "    .cfi_endproc\n"
        ".size hws_block_enter, . - hws_block_enter\n");

static unsigned char *stub_of(const hws_block_t *block, uint32_t name) {
    return (unsigned char *) block + DATA_BYTES + (size_t) name * STUB;
}

/* Writes the 32-bit distance from the end of an instruction to its target. */
static void put_distance(unsigned char *at, const void *target) {
    int32_t distance = (int32_t) ((const unsigned char *) target - (at + sizeof distance));
    memcpy(at, &distance, sizeof distance);
}

static void put_jump_through(unsigned char *at, const void *slot) {
    at[0] = 0xff; /* jmp *slot(%rip) */
    at[1] = 0x25;
    put_distance(at + 2, slot);
}

/* A stub jumps through its slot. A slot without a function leads to the stub's second part, which calls enter. */
static void put_stub(hws_block_t *block, uint32_t name) {
    unsigned char *stub = stub_of(block, name);
    uint32_t which = (uint32_t) block->major << 16 | name;
    put_jump_through(stub, (const void *) &block->slots[name]);
    stub[6] = 0x68; /* push which */
    memcpy(stub + 7, &which, sizeof which);
    stub[11] = 0xe9; /* jmp to the jump to enter */
    put_distance(stub + 12, stub_of(block, HWS_RUNTIME_NAMES));
    atomic_store_explicit(&block->slots[name], stub + HWS_JUMP_BYTES, memory_order_relaxed);
}

/* The caller holds the lock. The slots stay readable only, because nothing changes them again. */
static void fill(hws_block_t *block) {
    for (uint32_t name = 0; name < HWS_RUNTIME_NAMES; name++) {
        void *target = targets[block->major - 12][name];
        if (target != NULL) {
            atomic_store_explicit(&block->slots[name], target, memory_order_release);
        }
    }
    mprotect(block, DATA_BYTES, PROT_READ);
}

/* Called by hws_block_enter. Does not return when our library, or the function in it, is missing. */
__attribute__((visibility("hidden"), used)) void *hws_block_resolve(uint32_t which) {
    int major = (int) (which >> 16);
    uint32_t wanted = which & 0xffff;
    void *found[HWS_RUNTIME_NAMES];
    int saved = errno;
    /* The audit library has a namespace of its own; the program's is LM_ID_BASE. */
    void *library = dlmopen(LM_ID_BASE, libraries[major - 12], RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL) {
        hws_log(HWS_ERROR, "the CUDA runtime cannot be loaded: %s", dlerror());
        _exit(EXIT_NO_LIBRARY);
    }
    for (uint32_t name = 0; name < HWS_RUNTIME_NAMES; name++) {
        found[name] = hws_runtime_has(major, name) ? dlsym(library, hws_runtime_name(name)) : NULL;
    }
    if (found[wanted] == NULL) {
        hws_log(HWS_ERROR, "%s has no function %s: it is of another version than the library that redirects to it",
                libraries[major - 12], hws_runtime_name(wanted));
        _exit(EXIT_NO_LIBRARY);
    }
    take_lock();
    if (!is_resolved[major - 12]) {
        memcpy(targets[major - 12], found, sizeof found);
        is_resolved[major - 12] = true;
        for (hws_block_t *block = blocks; block != NULL; block = block->next) {
            if (block->major == major) {
                fill(block);
            }
        }
    }
    free_lock();
    errno = saved;
    return found[wanted];
}

static bool is_reached(uintptr_t block, uintptr_t low, uintptr_t high) {
    return block < low ? high - block <= REACH : block - low <= REACH;
}

/*
 * Maps pages near [low, high): below first, where a program's heap does not grow. Older kernels take the address as a
 * hint, so the place is checked. Returns MAP_FAILED.
 */
static void *map_near(uintptr_t low, uintptr_t high) {
    size_t bytes = DATA_BYTES + CODE_BYTES;
    for (int up = 0; up <= 1; up++) {
        for (long away = 0; away < REACH; away += STEP) {
            uintptr_t distance = (uintptr_t) away + bytes;
            uintptr_t wanted = up ? (high + PAGE - 1) / PAGE * PAGE + (uintptr_t) away : low / PAGE * PAGE - distance;
            if (!is_reached(wanted, low, high) || (!up && distance + PAGE > low)) {
                break;
            }
            void *at = mmap((void *) wanted, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            if (at != MAP_FAILED && is_reached((uintptr_t) at, low, high)) {
                return at;
            }
            if (at != MAP_FAILED) {
                munmap(at, bytes);
            }
        }
    }
    errno = ENOMEM;
    return MAP_FAILED;
}

static hws_block_t *make(int major, uintptr_t low, uintptr_t high) {
    hws_block_t *block = map_near(low, high);
    if (block == MAP_FAILED) {
        return NULL;
    }
    block->major = major;
    block->enter = hws_block_enter;
    put_jump_through(stub_of(block, HWS_RUNTIME_NAMES), (const void *) &block->enter);
    for (uint32_t name = 0; name < HWS_RUNTIME_NAMES; name++) {
        put_stub(block, name);
    }
    if (mprotect((char *) block + DATA_BYTES, CODE_BYTES, PROT_READ | PROT_EXEC) != 0) {
        int failure = errno;
        munmap(block, DATA_BYTES + CODE_BYTES);
        errno = failure;
        return NULL;
    }
    return block;
}

const hws_block_t *hws_block_near(int major, uintptr_t low, uintptr_t high) {
    take_lock();
    hws_block_t *block = blocks;
    while (block != NULL && (block->major != major || !is_reached((uintptr_t) block, low, high))) {
        block = block->next;
    }
    if (block == NULL && (block = make(major, low, high)) != NULL) {
        block->next = blocks;
        blocks = block;
        if (is_resolved[major - 12]) {
            fill(block);
        }
    }
    int failure = errno;
    free_lock();
    errno = failure;
    return block;
}

size_t hws_block_jump(const hws_block_t *block, uint32_t name, uintptr_t address, size_t size,
                      unsigned char code_p[HWS_JUMP_BYTES]) {
    bool is_through = size >= HWS_JUMP_BYTES;
    size_t length = is_through ? HWS_JUMP_BYTES : HWS_JUMP_BYTES - 1;
    uintptr_t target = is_through ? (uintptr_t) &block->slots[name] : (uintptr_t) stub_of(block, name);
    if (size < length) {
        return 0;
    }
    int32_t distance = (int32_t) (target - (address + length));
    code_p[0] = is_through ? 0xff : 0xe9; /* jmp *slot(%rip), or jmp stub */
    code_p[1] = 0x25;
    memcpy(code_p + length - sizeof distance, &distance, sizeof distance);
    return length;
}
