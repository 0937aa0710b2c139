/*
 * Replaces functions that glibc 2.31 lacks by functions that old and new versions have. Part of each guest library and
 * of the guest's command, and visible only inside them.
 */
#include <stddef.h>
#include <sys/stat.h>

#define HIDDEN __attribute__((visibility("hidden")))
#define OLD(own, name, version) __asm__(".symver " #own "," #name "@" #version)

/*
 * Since glibc 2.33 these are functions of libc.so.6; before, they were in the static part of libc. Version 1 is Linux'
 * struct stat on x86-64.
 */
#define STAT_VERSION 1
OLD(hws_old_fxstat, __fxstat, GLIBC_2.2.5);
OLD(hws_old_xstat, __xstat, GLIBC_2.2.5);
OLD(hws_old_lxstat, __lxstat, GLIBC_2.2.5);
int hws_old_fxstat(int version, int fd, struct stat *status_p);
int hws_old_xstat(int version, const char *path, struct stat *status_p);
int hws_old_lxstat(int version, const char *path, struct stat *status_p);

HIDDEN int fstat(int fd, struct stat *status_p) {
    return hws_old_fxstat(STAT_VERSION, fd, status_p);
}

HIDDEN int stat(const char *restrict path, struct stat *restrict status_p) {
    return hws_old_xstat(STAT_VERSION, path, status_p);
}

HIDDEN int lstat(const char *restrict path, struct stat *restrict status_p) {
    return hws_old_lxstat(STAT_VERSION, path, status_p);
}

/* Since glibc 2.38, strtol in programs with all features parses numbers as C23 does (0b1). Our texts contain none. */
OLD(hws_old_strtol, strtol, GLIBC_2.2.5);
OLD(hws_old_strtoul, strtoul, GLIBC_2.2.5);
OLD(hws_old_strtoll, strtoll, GLIBC_2.2.5);
OLD(hws_old_strtoull, strtoull, GLIBC_2.2.5);
long hws_old_strtol(const char *text, char **end_p, int base);
unsigned long hws_old_strtoul(const char *text, char **end_p, int base);
long long hws_old_strtoll(const char *text, char **end_p, int base);
unsigned long long hws_old_strtoull(const char *text, char **end_p, int base);
HIDDEN long __isoc23_strtol(const char *text, char **end_p, int base);
HIDDEN unsigned long __isoc23_strtoul(const char *text, char **end_p, int base);
HIDDEN long long __isoc23_strtoll(const char *text, char **end_p, int base);
HIDDEN unsigned long long __isoc23_strtoull(const char *text, char **end_p, int base);

long __isoc23_strtol(const char *text, char **end_p, int base) {
    return hws_old_strtol(text, end_p, base);
}

unsigned long __isoc23_strtoul(const char *text, char **end_p, int base) {
    return hws_old_strtoul(text, end_p, base);
}

long long __isoc23_strtoll(const char *text, char **end_p, int base) {
    return hws_old_strtoll(text, end_p, base);
}

unsigned long long __isoc23_strtoull(const char *text, char **end_p, int base) {
    return hws_old_strtoull(text, end_p, base);
}
