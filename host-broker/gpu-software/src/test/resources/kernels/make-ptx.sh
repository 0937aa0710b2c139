#!/bin/sh
# Makes the committed PTX of the programs here again. Needs nvcc; NVCC names it where it is not on the PATH.
set -eu
cd "$(dirname "$0")"
nvcc=${NVCC:-nvcc}
command -v "$nvcc" >/dev/null 2>&1 || nvcc=/usr/local/cuda/bin/nvcc
# Optimised, as a debug build, for a newer GPU, and unoptimised without debug data.
"$nvcc" -ptx -arch=compute_75 -o kernels-sm75.ptx kernels.cu
"$nvcc" -ptx -arch=compute_90 -o kernels-sm90.ptx kernels.cu
"$nvcc" -ptx -arch=compute_75 -use_fast_math -o kernels-fast.ptx kernels.cu
"$nvcc" -ptx -arch=compute_75 -G -o kernels-debug.ptx kernels.cu
# Kernels of which the software GPU refuses some, and warp operations of which an H200's results are known.
"$nvcc" -ptx -arch=compute_90 -std=c++17 -rdc=true -o refused-sm90.ptx refused.cu
"$nvcc" -ptx -arch=compute_90 -o warp-sm90.ptx warp.cu
"$nvcc" -ptx -arch=compute_75 -o wide-sm75.ptx wide.cu
# Debug sections and the names of source files (paths of the machine that made them) are left out.
sed -i -e '/^\t\.section/,$d' -e '/^\t\.file/d' kernels-debug.ptx
