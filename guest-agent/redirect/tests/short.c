/* Functions of a static runtime that are too short for the common jump. */
__asm__(".text\n.balign 16\n.globl cudaDeviceReset\n.hidden cudaDeviceReset\n.type cudaDeviceReset, @function\n"
        "cudaDeviceReset: push $99\n pop %rax\n ret\n nop\n.size cudaDeviceReset, 5\n"
        ".balign 16\n.globl __cudaGetProcAddress\n.hidden __cudaGetProcAddress\n"
        ".type __cudaGetProcAddress, @function\n"
        "__cudaGetProcAddress: xor %eax, %eax\n ret\n.size __cudaGetProcAddress, 3\n");
