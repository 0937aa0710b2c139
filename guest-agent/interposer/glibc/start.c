/*
 * Starts a program under versions of glibc older and newer than 2.34. Before 2.34, code in the program itself ran its
 * constructors. Since then libc.so.6 runs them, unless the program brings such code; this file is that code. Linked
 * with --wrap=__libc_start_main, the function that the C library's crt1.o calls.
 */
#include <stddef.h>

typedef void (*hws_constructor_t)(int argc, char **argv, char **environment);

extern const hws_constructor_t __preinit_array_start[] __attribute__((visibility("hidden")));
extern const hws_constructor_t __preinit_array_end[] __attribute__((visibility("hidden")));
extern const hws_constructor_t __init_array_start[] __attribute__((visibility("hidden")));
extern const hws_constructor_t __init_array_end[] __attribute__((visibility("hidden")));
extern void _init(void) __attribute__((visibility("hidden")));

__asm__(".symver hws_old_start_main,__libc_start_main@GLIBC_2.2.5");
int hws_old_start_main(int (*main)(int, char **, char **), int argc, char **argv, int (*init)(int, char **, char **),
                       void (*fini)(void), void (*end_of_linker)(void), void *stack_end);
int __wrap___libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
                             int (*init)(int, char **, char **), void (*fini)(void), void (*end_of_linker)(void),
                             void *stack_end);

static int construct(int argc, char **argv, char **environment) {
    for (const hws_constructor_t *p = __preinit_array_start; p < __preinit_array_end; p++) {
        (*p)(argc, argv, environment);
    }
    _init();
    for (const hws_constructor_t *p = __init_array_start; p < __init_array_end; p++) {
        (*p)(argc, argv, environment);
    }
    return 0;
}

/* In all versions the dynamic linker runs the destructors. */
int __wrap___libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
                             int (*init)(int, char **, char **), void (*fini)(void), void (*end_of_linker)(void),
                             void *stack_end) {
    (void) init;
    (void) fini;
    return hws_old_start_main(main, argc, argv, construct, NULL, end_of_linker, stack_end);
}
