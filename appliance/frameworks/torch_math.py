"""PyTorch's operations, each a small case."""
from hawser_cases import case, main, need

torch, = need("torch")
F = torch.nn.functional
GPU = "cuda"


def numbers(*tensors):
    """The sum and the largest magnitude of each tensor."""
    result = []
    for tensor in tensors:
        wide = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        wide = wide.detach().cpu().double()
        result += [wide.sum().item(), wide.abs().max().item()]
    return result


def seeded(*shape, seed=0, dtype=torch.float32, requires_grad=False):
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(GPU, dtype)
    return made.requires_grad_(requires_grad)


@case()
def elementwise_and_reductions():
    x = seeded(1000, 300)
    return numbers(x.exp().sin() * x, x.sum(0), x.softmax(1), x.cumsum(1), x.std(1))


@case()
def sort_and_index():
    x = seeded(100_000)
    values, order = x.sort()
    return numbers(values, order, x.topk(100).values, x[x > 1], x.unique(), torch.histc(x, 50))


@case()
def random_numbers():
    torch.manual_seed(3)
    return numbers(torch.rand(1000, device=GPU), torch.randn(1000, device=GPU), torch.randperm(1000, device=GPU))


@case()
def products_in_all_types():
    result = []
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128):
        result += numbers(seeded(256, 384, dtype=dtype) @ seeded(384, 128, seed=1, dtype=dtype))
    return result


@case()
def products_of_8_bits():
    a = torch.arange(64 * 64, dtype=torch.int32).remainder(11).sub(5).to(GPU, torch.int8).reshape(64, 64)
    scale = torch.ones((), device=GPU)
    f8 = seeded(64, 64).to(torch.float8_e4m3fn)
    return numbers(torch._int_mm(a, a), torch._scaled_mm(f8, f8.t(), scale, scale, out_dtype=torch.bfloat16))


@case()
def products_in_tf32():
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        return numbers(seeded(256, 256) @ seeded(256, 256, seed=1))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


@case()
def batches_and_epilogues():
    a, b, bias = seeded(8, 64, 32), seeded(8, 32, 48, seed=1), seeded(48, seed=2, dtype=torch.bfloat16)
    x, w = seeded(64, 32, dtype=torch.bfloat16), seeded(32, 48, seed=1, dtype=torch.bfloat16)
    return numbers(torch.bmm(a, b), torch.baddbmm(torch.ones(8, 64, 48, device=GPU), a, b, beta=.5, alpha=2),
                   torch.addmm(bias, x, w), torch._addmm_activation(bias, x, w),
                   torch._addmm_activation(bias, x, w, use_gelu=True))


@case()
def vectors():
    a, m = seeded(100), seeded(70, 100, seed=1)
    return numbers(torch.dot(a, a), torch.mv(m, a), torch.outer(a, a), torch.vdot(a, a), torch.linalg.norm(a))


@case()
def captured_graph():
    layer = torch.nn.Linear(64, 64).to(GPU)
    with torch.no_grad():
        layer.weight.copy_(seeded(64, 64))
        layer.bias.copy_(seeded(64, seed=1))
    x = torch.ones(8, 64, device=GPU)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        layer(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = layer(x).relu()
    result = []
    for value in (1, 2, 3):
        x.fill_(value)
        graph.replay()
        result += numbers(y)
    return result


@case()
def attention():
    from torch.nn.attention import SDPBackend, sdpa_kernel
    q = seeded(2, 4, 128, 64, dtype=torch.bfloat16)
    result = []
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH):
        with sdpa_kernel(backend):
            result += numbers(F.scaled_dot_product_attention(q, q, q, is_causal=True))
    return result


@case()
def attention_of_cudnn():
    from torch.nn.attention import SDPBackend, sdpa_kernel
    q = seeded(2, 4, 128, 64, dtype=torch.bfloat16)
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return numbers(F.scaled_dot_product_attention(q, q, q, is_causal=True))


@case(tolerance=1e-5)
def convolutions():
    x = seeded(2, 3, 32, 32, requires_grad=True)
    w = seeded(8, 3, 3, 3, seed=1, requires_grad=True)
    y = F.conv2d(x, w, padding=1, stride=2)
    y.sum().backward()
    line = F.conv1d(seeded(2, 4, 100), seeded(6, 4, 5, seed=2))
    wide = F.conv_transpose2d(seeded(1, 4, 8, 8), seeded(4, 2, 3, 3, seed=3), stride=2)
    return numbers(y, x.grad, w.grad, line, wide, F.conv3d(seeded(1, 2, 8, 8, 8), seeded(3, 2, 3, 3, 3, seed=4)))


@case(tolerance=1e-5)
def normalisations_and_pools():
    x = seeded(4, 8, 16, 16, requires_grad=True)
    norm = torch.nn.BatchNorm2d(8).to(GPU)
    y = F.max_pool2d(norm(x), 2)
    y.sum().backward()
    return numbers(y, x.grad, norm.running_mean, F.layer_norm(x, (16, 16)), F.group_norm(x, 4), F.avg_pool2d(x, 3))


@case(tolerance=1e-5)
def recurrent():
    torch.manual_seed(0)
    result = []
    for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        layer = kind(16, 32, num_layers=2, bidirectional=True).to(GPU)
        x = seeded(5, 3, 16, requires_grad=True)
        y, _ = layer(x)
        y.sum().backward()
        result += numbers(y, x.grad, layer.weight_hh_l0.grad)
    return result


@case(tolerance=1e-5)
def ctc_loss():
    x = seeded(50, 4, 20, requires_grad=True)
    loss = F.ctc_loss(x.log_softmax(2), torch.arange(40, device=GPU).remainder(19).add(1).reshape(4, 10).int().cpu(),
                      torch.full((4,), 50, dtype=torch.int32), torch.full((4,), 10, dtype=torch.int32))
    loss.backward()
    return numbers(loss, x.grad)


@case(tolerance=1e-5)
def transforms():
    x = seeded(32, 60)
    return numbers(torch.fft.fft(x), torch.fft.rfft2(x), torch.fft.irfft(torch.fft.rfft(x)), torch.fft.fftn(seeded(4, 6, 8)),
                   torch.fft.fft(seeded(37, dtype=torch.float64)), torch.stft(seeded(2000), 128, return_complex=True,
                                                                            window=torch.ones(128, device=GPU)))


def solvable(n, *batch):
    a = seeded(*batch, n, n, dtype=torch.float64)
    return a @ a.mT + n * torch.eye(n, device=GPU, dtype=torch.float64)


@case(tolerance=1e-9)
def linear_algebra():
    a, b = solvable(32), seeded(32, 4, seed=1, dtype=torch.float64)
    q, r = torch.linalg.qr(a)
    return numbers(torch.linalg.cholesky(a), torch.linalg.solve(a, b), torch.linalg.lstsq(a, b).solution, q.abs(), r.abs(),
                   torch.linalg.inv(a), torch.linalg.slogdet(a).logabsdet, torch.linalg.svdvals(a), torch.linalg.eigvalsh(a),
                   torch.linalg.solve(solvable(16, 5), seeded(5, 16, 2, seed=2, dtype=torch.float64)),
                   torch.linalg.solve_triangular(a.tril(), b, upper=False))


@case(tolerance=1e-5)
def sparse():
    dense = seeded(64, 64)
    a = dense.where(dense > 1, torch.zeros_like(dense)).to_sparse_csr()
    return numbers(a @ seeded(64, 8, seed=1), (a @ a).to_dense(), a.to_sparse_coo() @ seeded(64, 3, seed=2), a @ dense[0])


@case()
def memory():
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    x = torch.empty(1 << 20, device=GPU)
    held = torch.cuda.memory_allocated() - before
    try:
        torch.empty(1 << 50, device=GPU)
        refused = False
    except torch.cuda.OutOfMemoryError:
        refused = True
    return [held, refused, x.fill_(2).sum().item()]


@case()
def pinned_and_streams():
    host = torch.arange(1 << 20, dtype=torch.float32).pin_memory()
    streams = [torch.cuda.Stream() for _ in range(4)]
    parts = []
    for i, stream in enumerate(streams):
        with torch.cuda.stream(stream):
            parts.append(host.to(GPU, non_blocking=True).mul_(i + 1))
    torch.cuda.synchronize()
    return numbers(*parts)


if __name__ == "__main__":
    torch.use_deterministic_algorithms(False)
    main("torch", torch.__version__)
