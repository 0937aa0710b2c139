/*
 * Blocks of jumps near the code of a program. A block has a slot for each function of our runtime library; a redirected
 * function begins with a jump through its slot, so a call costs one jump, as a call through a shared library's linkage
 * table does. The first call through any slot loads our library into the program's own namespace and fills the slots of
 * all blocks. All objects within reach of a jump share a block, and a block is never freed, because code of a closed
 * object may still run at exit.
 */
#ifndef HWS_BLOCK_H
#define HWS_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#define HWS_JUMP_BYTES 6 /* the longest jump */

typedef struct hws_block hws_block_t;

/*
 * Names our libcudart of a major, 12 or 13, for the first call. The text must stay valid; NULL when there is none.
 * Call it before the other functions.
 */
void hws_block_set_library(int major, const char *path);

/* The library of a major; NULL for none. */
const char *hws_block_library(int major);

/*
 * A block whose slots jumps in [low, high) reach. Returns NULL and sets errno: EACCES or EPERM when the system forbids
 * new code in memory, ENOMEM when there is no room within 2 GiB. Any thread.
 */
const hws_block_t *hws_block_near(int major, uintptr_t low, uintptr_t high);

/*
 * Writes the jump that replaces the first bytes of a function at an address in the block's reach. Returns its length;
 * 0 when the function is too short for a jump.
 */
size_t hws_block_jump(const hws_block_t *block, uint32_t name, uintptr_t address, size_t size,
                      unsigned char code_p[HWS_JUMP_BYTES]);

#endif
