"""PyTorch's processes that exchange data by NCCL: one process for each GPU."""
import os
import sys
import tempfile
import time
from unittest import mock

from hawser_cases import UNSUPPORTED, case, main, need

torch, = need("torch")
import torch.distributed as dist  # pylint: disable=wrong-import-position  # need() ends the script without torch
import torch.multiprocessing as processes  # pylint: disable=wrong-import-position

MIB = 1 << 20


def _rank(rank, ranks, store, function, arguments, results):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{store}", rank=rank, world_size=ranks)
    try:
        result = function(rank, ranks, *arguments)
        if rank == 0:
            results.put(result)
    finally:
        dist.destroy_process_group()


def spread(function, *arguments):
    """Calls a function in a process for each GPU with its rank, the number of ranks and arguments; what rank 0 returns."""
    ranks = torch.cuda.device_count()
    results = processes.get_context("spawn").SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        processes.spawn(_rank, (ranks, os.path.join(folder, "store"), function, arguments, results), nprocs=ranks)
        return results.get()


def _all_reduce(rank, ranks, steps):
    sent = torch.full((256 * MIB // 4,), float(rank + 1), device="cuda")
    dist.all_reduce(sent)
    for _ in range(5):  # the first call of a kind loads code
        dist.all_reduce(sent, op=dist.ReduceOp.AVG)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        dist.all_reduce(sent, op=dist.ReduceOp.AVG)
    torch.cuda.synchronize()
    return time.perf_counter() - began, [sent[0].item(), sent[-1].item(), sent.double().sum().item(), ranks]


@case(steps=100)
def all_reduce_256_mib(steps, timer):
    seconds, result = spread(_all_reduce, steps)
    timer.seconds = seconds
    return result


def _collectives(rank, ranks):
    own = torch.arange(1000, device="cuda", dtype=torch.float32) + 1000 * rank
    result = []
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN):
        one = own.clone()
        dist.all_reduce(one, op=op)
        result.append(one.sum().item())
    root = own.clone()
    dist.broadcast(root, src=ranks - 1)
    gathered = [torch.empty_like(own) for _ in range(ranks)]
    dist.all_gather(gathered, own)
    part = torch.empty(1000 // ranks, device="cuda")
    dist.reduce_scatter_tensor(part, own[:len(part) * ranks])
    exchanged = torch.empty(1000 // ranks * ranks, device="cuda")
    dist.all_to_all_single(exchanged, own[:len(exchanged)])
    received = torch.empty_like(own)
    operations = [dist.P2POp(dist.isend, own, (rank + 1) % ranks), dist.P2POp(dist.irecv, received, (rank - 1) % ranks)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    dist.barrier()
    halves = dist.new_group(list(range(0, ranks, 2)))
    if rank % 2 == 0:
        dist.all_reduce(own, group=halves)
    objects = [None] * ranks
    dist.all_gather_object(objects, {"rank": rank})
    return result + [root.sum().item(), sum(one.sum().item() for one in gathered), part.sum().item(),
                     exchanged.sum().item(), received.sum().item(), own.sum().item(),
                     sum(one["rank"] for one in objects)]


@case()
def collectives():
    return spread(_collectives)


def _training(rank, ranks, steps):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024),
                                torch.nn.ReLU(), torch.nn.Linear(1024, 10)).cuda()
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = torch.Generator().manual_seed(rank)
    inputs = torch.randn(64, 256, generator=data).cuda()
    labels = torch.randint(10, (64,), generator=data).cuda()
    losses = []
    began = None
    for step in range(steps + 1):
        if step == 1:
            torch.cuda.synchronize()
            began = time.perf_counter()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    return seconds, [torch.stack(losses[::10]).sum().item(), losses[-1].item(), ranks]


@case(steps=100, tolerance=1e-6)
def data_parallel_training(steps, timer):
    seconds, result = spread(_training, steps)
    timer.seconds = seconds
    return result


def _captured(rank, ranks):
    own = torch.zeros(1000, device="cuda")
    total = torch.zeros_like(own)
    gathered = torch.zeros(1000 * ranks, device="cuda")
    part = torch.zeros(1000, device="cuda")
    received = torch.zeros_like(own)

    def communicate():
        total.copy_(own)
        dist.all_reduce(total)
        dist.all_gather_into_tensor(gathered, total * 0.5 + own)
        dist.reduce_scatter_tensor(part, gathered)
        operations = [dist.P2POp(dist.isend, part, (rank + 1) % ranks),
                      dist.P2POp(dist.irecv, received, (rank - 1) % ranks)]
        for work in dist.batch_isend_irecv(operations):
            work.wait()

    communicate()  # the first call of a kind connects the ranks
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        communicate()
    result = []
    for replay in range(5):
        own.copy_(torch.arange(1000, dtype=torch.float32) + 1000 * rank + replay)
        graph.replay()
        if replay % 2 == 1:
            dist.all_reduce(received)  # not captured, behind the graph
        result.append([one.double().sum().item() for one in (total, gathered, part, received)])
    return result


@case()
def captured_collectives():
    return spread(_captured)


def _captured_training(rank, ranks, steps):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10)).cuda()
    data = torch.Generator().manual_seed(rank)
    inputs = torch.randn(64, 256, generator=data).cuda()
    labels = torch.randint(10, (64,), generator=data).cuda()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # PyTorch asks for 11 steps before the capture
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=True)

        def step():
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            return loss

        for _ in range(11):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    losses = []
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        graph.replay()
        losses.append(loss.detach().clone())
    torch.cuda.synchronize()
    return time.perf_counter() - began, [torch.stack(losses[::10]).sum().item(), losses[-1].item(), ranks]


@case(steps=100, tolerance=1e-6)
def data_parallel_graph(steps, timer):
    with mock.patch.dict(os.environ, {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}):  # as PyTorch asks for captures of DDP
        seconds, result = spread(_captured_training, steps)
    timer.seconds = seconds
    return result


if __name__ == "__main__":
    if "--list" not in sys.argv and torch.cuda.device_count() < 2:
        print('{"missing": "a second GPU"}')
        sys.exit(UNSUPPORTED)
    main("torch", torch.__version__)
