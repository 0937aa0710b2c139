#!/bin/sh
# Compares the output of behaviour.cu with NVIDIA's runtime and with ours, on a machine with an NVIDIA GPU and nvcc:
# compare-behaviour.sh FOLDER-WITH-OUR-LIBRARIES. Three differences are known: cudaFree(NULL) does not report an earlier
# fault, and after a fault the driver's code is 700 where NVIDIA's runtime returns 46.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nvcc -std=c++17 -w -cudart shared -o "$work/behaviour" "$here/behaviour.cu" -lpthread
mkdir "$work/ours"
# Without Hawser's libcuda.so.1, which the linker would find before the GPU's.
cp "$1/libcudart.so.13" "$work/ours/"
LD_LIBRARY_PATH=${CUDA_HOME:-/usr/local/cuda}/lib64 "$work/behaviour" > "$work/theirs.txt"
LD_LIBRARY_PATH=$work/ours "$work/behaviour" > "$work/ours.txt"
diff "$work/theirs.txt" "$work/ours.txt"
