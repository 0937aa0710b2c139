#!/bin/sh
# On a machine with an NVIDIA GPU and nvcc: what behaviour.cu prints over NVIDIA's runtime and over ours, which must be
# the same: compare-behaviour.sh FOLDER-WITH-OUR-LIBRARIES. Three known differences are left in the output: cudaFree(NULL)
# does not report an earlier fault, and after one the driver's code is 700 where NVIDIA's runtime says 46.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nvcc -std=c++17 -w -cudart shared -o "$work/behaviour" "$here/behaviour.cu" -lpthread
mkdir "$work/ours"
# Alone: beside it Hawser's libcuda.so.1 would be found before the GPU's.
cp "$1/libcudart.so.13" "$work/ours/"
LD_LIBRARY_PATH=${CUDA_HOME:-/usr/local/cuda}/lib64 "$work/behaviour" > "$work/theirs.txt"
LD_LIBRARY_PATH=$work/ours "$work/behaviour" > "$work/ours.txt"
diff "$work/theirs.txt" "$work/ours.txt"
