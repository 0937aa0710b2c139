"""CuPy's operations, each a small case."""
from hawser_cases import case, main, need

np, cp = need("numpy", "cupy")


def numbers(*arrays):
    """The sum and the largest magnitude of each array."""
    result = []
    for array in arrays:
        host = cp.asnumpy(array)
        host = np.stack([host.real, host.imag]) if np.iscomplexobj(host) else host
        result += [float(host.sum(dtype=np.float64)), float(np.abs(host).max())]
    return result


def seeded(*shape, seed=0, dtype=np.float32):
    return cp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


@case()
def elementwise_and_reductions():
    x = seeded(1000, 300)
    return numbers(cp.sin(cp.exp(x)) * x, x.sum(0), x.cumsum(1), x.std(1), cp.where(x > 0, x, 0))


@case()
def sort_and_index():
    x = seeded(100_000)
    return numbers(cp.sort(x), cp.argsort(x), x[x > 1], cp.unique(cp.round(x)), cp.histogram(x, 50)[0])


@case()
def raw_kernel():
    kernel = cp.RawKernel(r'extern "C" __global__ void twice(float *x, int n) {'
                          r' int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }', "twice")
    x = seeded(1000)
    kernel((4,), (256,), (x, np.int32(x.size)))
    return numbers(x)


@case()
def memory_pools():
    pool = cp.cuda.MemoryPool(cp.cuda.malloc_async)
    with cp.cuda.using_allocator(pool.malloc):
        x = seeded(1000, 1000)
        held = pool.used_bytes()
        return [held, *numbers(x * 2)]


@case()
def streams_and_graphs():
    stream = cp.cuda.Stream(non_blocking=True)
    x = seeded(1000)
    with stream:
        stream.begin_capture()
        y = x * 2
        graph = stream.end_capture()
        graph.launch()
    stream.synchronize()
    return numbers(y)


@case()
def products():
    return numbers(seeded(100, 80) @ seeded(80, 60, seed=1), seeded(5, 30, 20) @ seeded(5, 20, 10, seed=2),
                   seeded(64, 64, dtype=np.float64) @ seeded(64, 64, seed=3, dtype=np.float64))


@case()
def random_numbers():
    cp.random.seed(5)
    return numbers(cp.random.rand(1000), cp.random.standard_normal(1000), cp.random.default_rng(3).random(1000))


@case(tolerance=1e-5)
def transforms():
    return numbers(cp.fft.fft(seeded(32, 60)), cp.fft.rfft2(seeded(32, 60)), cp.fft.ifftn(seeded(4, 6, 8)))


@case(tolerance=1e-9)
def linear_algebra():
    a = seeded(32, 32, dtype=np.float64)
    a = a @ a.T + 32 * cp.eye(32)
    return numbers(cp.linalg.cholesky(a), cp.linalg.solve(a, seeded(32, 4, seed=1, dtype=np.float64)), cp.linalg.inv(a),
                   cp.linalg.svd(a)[1], cp.linalg.eigvalsh(a), abs(cp.linalg.qr(a)[1]))


@case(tolerance=1e-5)
def sparse():
    from cupyx.scipy import sparse as matrices
    dense = seeded(64, 64)
    a = matrices.csr_matrix(cp.where(dense > 1, dense, 0))
    return numbers(a @ seeded(64, 8, seed=1), (a @ a).toarray(), a @ dense[0])


if __name__ == "__main__":
    main("cupy", cp.__version__)
