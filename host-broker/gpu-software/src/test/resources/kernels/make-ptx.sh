#!/bin/sh
# Regenerates the committed PTX of this folder's programs. Needs nvcc; NVCC names it if it is not on the PATH.
set -eu
cd "$(dirname "$0")"
nvcc=${NVCC:-nvcc}
command -v "$nvcc" >/dev/null 2>&1 || nvcc=/usr/local/cuda/bin/nvcc
# Optimised, for a newer GPU, with fast mathematics, and as a debug build.
"$nvcc" -ptx -arch=compute_75 -o kernels-sm75.ptx kernels.cu
"$nvcc" -ptx -arch=compute_90 -o kernels-sm90.ptx kernels.cu
"$nvcc" -ptx -arch=compute_75 -use_fast_math -o kernels-fast.ptx kernels.cu
"$nvcc" -ptx -arch=compute_75 -G -o kernels-debug.ptx kernels.cu
# Kernels some of which the software GPU refuses, warp operations with known results of an H200, and 128-bit division.
"$nvcc" -ptx -arch=compute_90 -std=c++17 -rdc=true -o refused-sm90.ptx refused.cu
"$nvcc" -ptx -arch=compute_90 -o warp-sm90.ptx warp.cu
"$nvcc" -ptx -arch=compute_75 -o wide-sm75.ptx wide.cu
# Removes debug sections and the names of source files, which are paths of the compiling machine.
sed -i -e '/^\t\.section/,$d' -e '/^\t\.file/d' kernels-debug.ptx
