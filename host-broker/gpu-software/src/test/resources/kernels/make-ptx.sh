#!/bin/sh
# Makes the committed PTX of kernels.cu again. Needs nvcc; NVCC names it where it is not on the PATH.
set -eu
cd "$(dirname "$0")"
nvcc=${NVCC:-nvcc}
command -v "$nvcc" >/dev/null 2>&1 || nvcc=/usr/local/cuda/bin/nvcc
# Optimised, as a debug build, for a newer GPU, and unoptimised without debug data.
"$nvcc" -ptx -arch=compute_75 -o kernels-sm75.ptx kernels.cu
"$nvcc" -ptx -arch=compute_90 -o kernels-sm90.ptx kernels.cu
"$nvcc" -ptx -arch=compute_75 -use_fast_math -o kernels-fast.ptx kernels.cu
"$nvcc" -ptx -arch=compute_75 -G -o kernels-debug.ptx kernels.cu
# Debug sections and the names of source files (paths of the machine that made them) are left out.
sed -i -e '/^\t\.section/,$d' -e '/^\t\.file/d' kernels-debug.ptx
