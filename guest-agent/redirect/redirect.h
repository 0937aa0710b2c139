/*
 * Redirects the public functions of a statically linked CUDA runtime, in a program or shared object that the dynamic
 * linker has mapped, to our libcudart. It finds them by their names in the file's symbol table. It reads no private
 * table of NVIDIA's and identifies no code by its bytes.
 */
#ifndef HWS_REDIRECT_H
#define HWS_REDIRECT_H

#include <stddef.h>
#include <stdint.h>

#define HWS_REDIRECT_MAX_PATH 4096

/*
 * The path of a file in the folder of the library that contains this code; "" when there is no such file. Not for
 * concurrent use.
 */
void hws_redirect_beside(const char *name, char path_p[HWS_REDIRECT_MAX_PATH]);

/* Finds our libcudart beside this library. Call it once, before hws_redirect_object. */
void hws_redirect_begin(void);

/*
 * Redirects the functions of one object. name is the dynamic linker's, "" for the program; base is the address that
 * relocation adds, inside any address of the object. Does nothing for an object without a static runtime. Changes all
 * functions, or none; then it prints one line with the reason, and the program goes on.
 *
 * No thread may execute the object meanwhile. That holds before its constructors run: until then the dynamic linker
 * has given its address to nobody.
 */
void hws_redirect_object(const char *name, uintptr_t base, const void *inside);

#endif
