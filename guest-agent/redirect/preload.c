/*
 * libhawser-preload.so: redirects statically linked CUDA runtimes in all that a program loads at its start, when
 * LD_PRELOAD or /etc/ld.so.preload names it. Linked with -z initfirst, because nvcc's code registers with its runtime
 * in constructors. It does not see what the program opens later; `hawser run` does, by libhawser-audit.so.
 */
#include "redirect.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>

static int redirect_one(struct dl_phdr_info *info, size_t size, void *ignored) {
    (void) size;
    (void) ignored;
    hws_redirect_object(info->dlpi_name, info->dlpi_addr, (const void *) (info->dlpi_addr + info->dlpi_phdr->p_vaddr));
    return 0;
}

/* Whether the audit library has done it already. The loader ignores LD_AUDIT for set-uid programs. */
static bool is_audited(char **environment) {
    for (char **entry = environment; getauxval(AT_SECURE) == 0 && *entry != NULL; entry++) {
        if (strncmp(*entry, "LD_AUDIT=", 9) == 0 && strstr(*entry, "/libhawser-audit.so") != NULL) {
            return true;
        }
    }
    return false;
}

/* The C library has not run its own constructors yet, so the environment comes as an argument. */
__attribute__((constructor)) static void redirect_all(int argc, char **argv, char **environment) {
    (void) argc;
    (void) argv;
    if (!is_audited(environment)) {
        hws_redirect_begin();
        dl_iterate_phdr(redirect_one, NULL);
    }
}
