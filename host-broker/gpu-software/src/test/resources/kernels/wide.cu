// Division of 128 bits: nvcc compiles it to carry chains that mix subtraction and addition. make-ptx.sh compiles it.
typedef unsigned long long Word;

__device__ unsigned __int128 wide(const Word *words) {
    return (unsigned __int128) words[1] << 64 | words[0];
}

__device__ void put(Word *words, unsigned __int128 value) {
    words[0] = (Word) value;
    words[1] = (Word) (value >> 64);
}

// Each thread reads dividend and divisor and writes unsigned and signed quotients and remainders; low words first.
extern "C" __global__ void divide(Word *p) {
    p += 12 * threadIdx.x;
    unsigned __int128 a = wide(p), b = wide(p + 2);
    put(p + 4, a / b);
    put(p + 6, a % b);
    put(p + 8, (unsigned __int128) ((__int128) a / (__int128) b));
    put(p + 10, (unsigned __int128) ((__int128) a % (__int128) b));
}
