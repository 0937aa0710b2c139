/* Compares names and texts of all error codes with NVIDIA's library: errors OURS THEIRS. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef const char *(*text_t)(int);

int main(int argc, char **argv) {
    static const char *const functions[] = {"cudaGetErrorName", "cudaGetErrorString"};
    int different = 0;
    int known = 0;
    void *ours = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *theirs = argc == 3 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (ours == NULL || theirs == NULL) {
        fprintf(stderr, "usage: errors OURS THEIRS: %s\n", argc == 3 ? dlerror() : "two libraries are needed");
        return 2;
    }
    for (int i = 0; i < 2; i++) {
        text_t mine = (text_t) dlsym(ours, functions[i]);
        text_t nvidia = (text_t) dlsym(theirs, functions[i]);
        for (int code = -1; code <= 10001; code++) {
            known += strcmp(nvidia(code), nvidia(-1)) != 0;
            if (strcmp(mine(code), nvidia(code)) != 0) {
                fprintf(stderr, "%s(%d): %s, NVIDIA: %s\n", functions[i], code, mine(code), nvidia(code));
                different++;
            }
        }
    }
    printf("%d texts compared, %d differ\n", known, different);
    return different != 0 || known < 200;
}
