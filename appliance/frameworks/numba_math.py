"""Numba's kernels and memory, each a small case."""
from hawser_cases import case, main, need

np, = need("numpy")
if not hasattr(np, "row_stack"):  # NumPy 2.5 has removed a name that numba-cuda still registers
    np.row_stack = np.vstack
numba, cuda = need("numba", "numba.cuda")

BLOCK = 256


def numbers(*arrays):
    """The sum and the largest magnitude of each array."""
    result = []
    for array in arrays:
        host = np.asarray(array.copy_to_host() if hasattr(array, "copy_to_host") else array)
        result += [float(host.sum(dtype=np.float64)), float(np.abs(host).max())]
    return result


def seeded(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@cuda.jit
def scaled_sum(x, y, factor, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = factor * x[i] + y[i]


@case()
def kernel_with_host_arrays():
    x, y = seeded(10_000), seeded(10_000, seed=1)
    out = np.zeros_like(x)
    scaled_sum[40, BLOCK](x, y, np.float32(3), out)  # copied to the device and back by the call
    return numbers(out)


@case()
def kernel_with_device_arrays():
    x, y = cuda.to_device(seeded(10_000)), cuda.to_device(seeded(10_000, seed=1))
    out = cuda.device_array_like(x)
    scaled_sum[40, BLOCK](x, y, np.float32(2), out)
    scaled_sum[40, BLOCK](out, y, np.float32(2), out)
    parts = cuda.to_device(seeded(64, 100))
    return numbers(out, out[100:200], parts[3], parts.T)


@cuda.jit
def tiled_product(a, b, out):
    left = cuda.shared.array((16, 16), numba.float32)
    right = cuda.shared.array((16, 16), numba.float32)
    x, y = cuda.grid(2)
    column, row = cuda.threadIdx.x, cuda.threadIdx.y
    total = numba.float32(0)
    for tile in range(a.shape[1] // 16):
        left[row, column] = a[y, tile * 16 + column]
        right[row, column] = b[tile * 16 + row, x]
        cuda.syncthreads()
        for i in range(16):
            total += left[row, i] * right[i, column]
        cuda.syncthreads()
    out[y, x] = total


@case()
def shared_memory():
    a, b = seeded(128, 64), seeded(64, 96, seed=1)
    out = cuda.device_array((128, 96), np.float32)
    tiled_product[(6, 8), (16, 16)](cuda.to_device(a), cuda.to_device(b), out)
    if not np.allclose(out.copy_to_host(), a @ b, atol=1e-3):
        raise ArithmeticError("the product differs from NumPy's")
    return numbers(out)


@cuda.jit
def histogram(x, bins, low, high, counts):
    width = (high - low) / bins
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        at = int((x[i] - low) / width)
        if 0 <= at < bins:
            cuda.atomic.add(counts, at, 1)


@cuda.jit
def warp_sums(x, sums):
    i = cuda.grid(1)
    value = x[i]
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xffffffff, value, distance)
    if cuda.laneid == 0:
        sums[i // 32] = value


@case()
def atomics_and_shuffles():
    counts = cuda.to_device(np.zeros(50, np.int32))
    histogram[32, BLOCK](cuda.to_device(seeded(100_000)), 50, np.float32(-3), np.float32(3), counts)
    sums = cuda.device_array(256, np.int64)
    warp_sums[32, BLOCK](cuda.to_device(np.arange(8192)), sums)
    return numbers(counts, sums)


@case()
def reduction():
    total = cuda.reduce(lambda a, b: a + b)
    largest = cuda.reduce(lambda a, b: max(a, b))
    x = cuda.to_device(np.arange(100_000, dtype=np.float64))
    return [float(total(x)), float(largest(x, init=0))]


@case()
def universal_functions():
    @numba.vectorize(["float32(float32, float32)", "float64(float64, float64)"], target="cuda")
    def distance(a, b):
        return (a * a + b * b) ** 0.5

    @numba.guvectorize(["void(float32[:], float32[:], float32[:])"], "(n),(n)->()", target="cuda")
    def inner(a, b, out):
        total = 0.0
        for i in range(a.shape[0]):
            total += a[i] * b[i]
        out[0] = total

    return numbers(distance(seeded(1000), seeded(1000, seed=1)), distance(seeded(100, dtype=np.float64), 2.0),
                   inner(seeded(50, 40), seeded(50, 40, seed=1)))


@case()
def streams_and_events():
    first, second = cuda.stream(), cuda.stream()
    begin, end = cuda.event(), cuda.event()
    x = cuda.pinned_array(10_000, np.float32)
    x[:] = seeded(10_000)
    back = cuda.pinned_array_like(x)
    begin.record(first)
    on_device = cuda.to_device(x, stream=first)
    out = cuda.device_array_like(on_device, stream=first)
    scaled_sum[40, BLOCK, first](on_device, on_device, np.float32(4), out)
    end.record(first)
    end.wait(second)
    out.copy_to_host(back, stream=second)
    second.synchronize()
    if not begin.elapsed_time(end) > 0:
        raise ArithmeticError("no time has passed between the events")
    return numbers(back)


@case()
def memory_of_both_sides():
    mapped = cuda.mapped_array(1000, np.float32)
    managed = cuda.managed_array(1000, np.float32)
    mapped[:] = seeded(1000)
    managed[:] = seeded(1000, seed=1)
    out = cuda.device_array(1000, np.float32)
    scaled_sum[4, BLOCK](mapped, managed, np.float32(1), out)
    scaled_sum[4, BLOCK](mapped, managed, np.float32(5), managed)
    cuda.synchronize()
    with cuda.pinned(np.zeros(10)):
        free, total = cuda.current_context().get_memory_info()
    return [*numbers(out, np.array(managed)), float(0 < free <= total)]


@cuda.jit
def walk(states, out):
    i = cuda.grid(1)
    if i < out.size:
        total = 0.0
        for _ in range(100):
            total += cuda.random.xoroshiro128p_normal_float32(states, i)
        out[i] = total


@case()
def random_numbers():
    need("numba.cuda.random")
    out = cuda.device_array(1000, np.float32)
    walk[4, BLOCK](cuda.random.create_xoroshiro128p_states(1024, seed=1), out)
    return numbers(out)


@cuda.jit
def sweeps(grid, rounds):
    column = cuda.grid(1)
    everyone = cuda.cg.this_grid()
    for row in range(1, rounds):
        grid[row, column] = grid[row - 1, grid.shape[1] - 1 - column] + 1
        everyone.sync()


@case()
def cooperative_groups():
    grid = cuda.to_device(np.zeros((20, 1024), np.int32))
    sweeps[8, 128](grid, np.int32(20))
    return numbers(grid)


@case()
def error_of_a_kernel():
    @cuda.jit(debug=True, opt=False)
    def fail(x):
        if x[0] > 0:
            raise ValueError("a positive number")

    try:
        fail[1, 1](np.ones(1))
    except ValueError as e:
        return [str(e) == "a positive number"]
    return [False]


@case(steps=1000)
def launches(steps, timer):
    x, y = cuda.to_device(seeded(1000)), cuda.to_device(seeded(1000, seed=1))
    scaled_sum[4, BLOCK](x, y, np.float32(0), x)
    cuda.synchronize()
    timer.start()
    for _ in range(steps):
        scaled_sum[4, BLOCK](x, y, np.float32(0.5), x)
    cuda.synchronize()
    timer.stop()
    return numbers(x)


if __name__ == "__main__":
    main("numba", numba.__version__)
