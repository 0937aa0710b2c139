"""CUDA by ctypes alone: what any Python has. Libraries are opened by their names, as programs with wheels do."""
import ctypes

from hawser_cases import case, main


def check(status):
    if status != 0:
        raise RuntimeError(f"status {status}")


def runtime():
    return ctypes.CDLL("libcudart.so.13")


def version():
    number = ctypes.c_int()
    check(runtime().cudaRuntimeGetVersion(ctypes.byref(number)))
    return f"{number.value // 1000}.{number.value % 1000 // 10}"


def upload(cudart, values):
    host = (ctypes.c_float * len(values))(*values)
    device = ctypes.c_void_p()
    check(cudart.cudaMalloc(ctypes.byref(device), ctypes.sizeof(host)))
    check(cudart.cudaMemcpy(device, host, ctypes.c_size_t(ctypes.sizeof(host)), 1))
    return device


def download(cudart, device, count):
    host = (ctypes.c_float * count)()
    check(cudart.cudaMemcpy(host, device, ctypes.c_size_t(ctypes.sizeof(host)), 2))
    return list(host)


@case()
def copies():
    cudart = runtime()
    values = [float(i % 251) for i in range(100_000)]
    return download(cudart, upload(cudart, values), len(values)) == values


@case(steps=50)
def products(steps, timer):
    cudart, cublas = runtime(), ctypes.CDLL("libcublas.so.13")
    n = 64
    handle, one, zero = ctypes.c_void_p(), ctypes.c_float(1), ctypes.c_float(0)
    check(cublas.cublasCreate_v2(ctypes.byref(handle)))
    a = upload(cudart, [float(i % 3 - 1) for i in range(n * n)])
    b = upload(cudart, [float(i % 5 - 2) for i in range(n * n)])
    c = upload(cudart, [0.0] * (n * n))

    def product():
        check(cublas.cublasSgemm_v2(handle, 0, 0, n, n, n, ctypes.byref(one), a, n, b, n, ctypes.byref(zero), c, n))

    product()
    check(cudart.cudaDeviceSynchronize())
    timer.start()
    for _ in range(steps):
        product()
    check(cudart.cudaDeviceSynchronize())
    timer.stop()
    result = download(cudart, c, n * n)
    check(cublas.cublasDestroy_v2(handle))
    return [sum(result), max(result), min(result)]


if __name__ == "__main__":
    main("ctypes", version())
