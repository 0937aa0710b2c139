"""What programs of PyTorch do around their computations: loading data, checkpoints, memory, optimisers."""
import io

from hawser_cases import case, main, need

torch, = need("torch")

GPU = "cuda"


def numbers(*tensors):
    """The sum and the largest magnitude of each tensor."""
    return [number for t in tensors for number in (t.double().sum().item(), t.double().abs().max().item())]


def seeded(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(GPU)


class Numbers(torch.utils.data.Dataset):
    """Rows of numbers that depend on their index only."""

    def __len__(self):
        return 256

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(100, generator=generator), index % 10


def layers():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(100, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Dropout(0.1),
                               torch.nn.Linear(64, 10)).to(GPU)


def train(model, optimizer, steps, seed=1):
    torch.manual_seed(seed)
    inputs, targets = seeded(32, 100), torch.arange(32, device=GPU) % 10
    losses = []
    for _ in range(steps):
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


@case()
def loader_with_processes_and_pinned_memory():
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=32, num_workers=2, pin_memory=True)
    results = []
    for inputs, labels in loader:
        if not inputs.is_pinned():
            raise RuntimeError("a batch is not pinned")
        results += [inputs.to(GPU, non_blocking=True).sum(), labels.to(GPU, non_blocking=True).sum()]
    return numbers(torch.stack([r.double() for r in results]))


@case()
def checkpoint():
    model = layers()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    train(model, optimizer, 5)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    straight = train(model, optimizer, 5, seed=2)
    other = layers()
    again = torch.optim.AdamW(other.parameters(), lr=1e-2)
    file.seek(0)
    state = torch.load(file, map_location=GPU)
    other.load_state_dict(state["model"])
    again.load_state_dict(state["optimizer"])
    continued = train(other, again, 5, seed=2)
    return [float(torch.equal(straight, continued)), *numbers(straight)]


@case()
def optimisers():
    results = []
    for kind, options in ((torch.optim.AdamW, {"fused": True}), (torch.optim.AdamW, {"foreach": True}),
                          (torch.optim.Adam, {"capturable": True}), (torch.optim.SGD, {"momentum": 0.9, "fused": True}),
                          (torch.optim.RMSprop, {"foreach": True}), (torch.optim.Adagrad, {}), (torch.optim.LBFGS, {})):
        model = layers().eval()
        if kind is torch.optim.LBFGS:
            optimizer = kind(model.parameters(), lr=0.1)
            inputs, targets = seeded(32, 100), torch.arange(32, device=GPU) % 10

            def closure(model=model, optimizer=optimizer, inputs=inputs, targets=targets):
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(inputs), targets)
                loss.backward()
                return loss

            results.append(torch.stack([optimizer.step(closure) for _ in range(2)]).detach())
        else:
            results.append(train(model, kind(model.parameters(), lr=1e-2, **options), 5))
    return numbers(*results)


@case()
def embeddings():
    torch.manual_seed(0)
    table = torch.nn.Embedding(1000, 64, padding_idx=0).to(GPU)
    bags = torch.nn.EmbeddingBag(1000, 64, mode="mean").to(GPU)
    words = torch.randint(1000, (32, 20), generator=torch.Generator().manual_seed(1)).to(GPU)
    (table(words).square().sum() + bags(words).square().sum()).backward()
    return numbers(table(words), bags(words), table.weight.grad, bags.weight.grad)


@case()
def memory_runs_out_and_is_found_again():
    total = torch.cuda.get_device_properties(0).total_memory
    results = []
    for _ in range(2):
        try:
            torch.empty(2 * total, dtype=torch.uint8, device=GPU)
            results.append(0.0)
        except torch.OutOfMemoryError:
            results.append(1.0)
    kept = []
    try:
        while len(kept) < 10_000:
            kept.append(torch.empty(total // 64, dtype=torch.uint8, device=GPU))
    except torch.OutOfMemoryError:
        results.append(1.0)
    several = len(kept)
    kept.clear()
    torch.cuda.empty_cache()
    return [*results, float(several > 8), *numbers(seeded(1000, 1000) * 2)]


@case()
def expandable_segments():
    torch.cuda.empty_cache()
    torch._C._accelerator_setAllocatorSettings("expandable_segments:True")  # pylint: disable=protected-access
    try:
        blocks = [seeded(n * 100_000, seed=n) for n in range(1, 8)]
        del blocks[::2]
        blocks += [torch.full((3_000_000,), 2.0, device=GPU), seeded(1_000_000)]
        results = numbers(*blocks)
        del blocks
        torch.cuda.empty_cache()
        return results
    finally:
        torch._C._accelerator_setAllocatorSettings("expandable_segments:False")  # pylint: disable=protected-access


@case()
def statistics_of_memory():
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    kept = torch.empty(10 << 20, dtype=torch.uint8, device=GPU)
    torch.empty(100 << 20, dtype=torch.uint8, device=GPU)
    free, total = torch.cuda.mem_get_info()
    return [torch.cuda.memory_allocated() - before, torch.cuda.max_memory_allocated() - before, kept.numel(),
            float(0 < free < total), float(torch.cuda.memory_stats()["num_ooms"] >= 0)]


@case(tolerance=1e-3)
def half_of_the_numbers_by_structure():
    from torch.sparse import to_sparse_semi_structured  # pylint: disable=import-outside-toplevel  # uses cuSPARSELt
    dense = seeded(128, 128).half() * torch.tensor([1, 0, 0, 1], device=GPU).repeat(32).half()
    return numbers(to_sparse_semi_structured(dense) @ seeded(128, 64, seed=1).half())


@case()
def gradients_of_functions():
    from torch.func import hessian, jacrev, vmap  # pylint: disable=import-outside-toplevel
    x = seeded(20)
    return numbers(jacrev(torch.sin)(x), hessian(lambda v: (v ** 3).sum())(x), vmap(torch.dot)(seeded(5, 20),
                                                                                            seeded(5, 20, seed=1)))


@case()
def streams_and_events():
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    streams = [torch.cuda.Stream(priority=-(i % 2)) for i in range(4)]
    begin.record()
    parts = []
    for i, stream in enumerate(streams):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            parts.append(seeded(200, 200, seed=i) @ seeded(200, 200, seed=i + 1))
    for stream in streams:
        torch.cuda.current_stream().wait_stream(stream)
    end.record()
    end.synchronize()
    return [float(begin.elapsed_time(end) > 0), *numbers(*parts)]


if __name__ == "__main__":
    main("torch", torch.__version__)
