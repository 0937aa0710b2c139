"""PyTorch's training and inference, each a case of many steps."""
from hawser_cases import case, main, need

torch, = need("torch")
nn, F = torch.nn, torch.nn.functional
GPU = "cuda"


def repeat(steps, timer, step, warm=3):
    """The losses of the first and the last step. The losses stay on the GPU meanwhile."""
    losses = [step(i).detach() for i in range(warm)]
    torch.cuda.synchronize()
    timer.start()
    for i in range(steps):
        losses.append(step(warm + i).detach())
    torch.cuda.synchronize()
    timer.stop()
    return [losses[0].item(), losses[-1].item()]


def trainer(model, inputs, targets, autocast=None, optimizer=torch.optim.AdamW, **options):
    made = optimizer(model.parameters(), 3e-4, **options)
    scaler = torch.amp.GradScaler("cuda", enabled=autocast == torch.float16)

    def step(i):
        x, y = inputs[i % len(inputs)], targets[i % len(targets)]
        with torch.autocast("cuda", autocast or torch.float32, enabled=autocast is not None):
            out = model(x)
            loss = F.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))
        made.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(made)
        scaler.update()
        return loss
    return step


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2) for part in self.qkv(self.first(x)).split(c, 2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
        x = x + self.out(mixed)
        return x + self.down(F.gelu(self.up(self.second(x))))


class Gpt(nn.Module):
    """A decoder with learnt positions, as GPT-2."""

    def __init__(self, vocabulary, width, layers, heads, length):
        super().__init__()
        torch.manual_seed(2)
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, x):
        at = torch.arange(x.shape[1], device=x.device)
        return self.head(self.norm(self.blocks(self.tokens(x) + self.positions(at))))


def text(vocabulary, batch, length, count=8):
    made = torch.randint(0, vocabulary, (count, batch, length + 1), generator=torch.Generator().manual_seed(1)).to(GPU)
    return made[:, :, :-1], made[:, :, 1:]


@case(steps=200)
def perceptron(steps, timer):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 10)).to(GPU)
    x = torch.randn(4, 128, 64, generator=torch.Generator().manual_seed(2)).to(GPU)
    y = torch.randint(0, 10, (4, 128), generator=torch.Generator().manual_seed(3)).to(GPU)
    return repeat(steps, timer, trainer(model, x, y))


@case(steps=500)
def tiny_gpt(steps, timer):
    return repeat(steps, timer, trainer(Gpt(64, 64, 2, 4, 64).to(GPU), *text(64, 16, 64)))


@case(steps=200)
def tiny_gpt_in_bfloat16(steps, timer):
    return repeat(steps, timer, trainer(Gpt(64, 64, 2, 4, 64).to(GPU), *text(64, 16, 64), torch.bfloat16, fused=True))


@case(steps=200, tolerance=1e-2)
def tiny_gpt_in_float16(steps, timer):
    return repeat(steps, timer, trainer(Gpt(64, 64, 2, 4, 64).to(GPU), *text(64, 16, 64), torch.float16))


@case(steps=10, tolerance=1e-2)
def gpt_of_124_million(steps, timer):
    return repeat(steps, timer, trainer(Gpt(50304, 768, 12, 12, 512).to(GPU), *text(50304, 4, 512), torch.bfloat16, fused=True))


def decoder(model):
    model = model.to(GPU, torch.bfloat16).eval()
    tokens = torch.zeros(1, 64, dtype=torch.long, device=GPU)

    @torch.no_grad()
    def step(i):
        following = model(tokens)[0, i % 64].argmax()
        tokens[0, (i + 1) % 64] = following
        return following.float()
    return step


@case(steps=100)
def decoding_of_a_token(steps, timer):
    return repeat(steps, timer, decoder(Gpt(50304, 768, 12, 12, 64)))


@case(steps=100)
def decoding_by_graphs(steps, timer):
    model = Gpt(50304, 768, 12, 12, 64).to(GPU, torch.bfloat16).eval()
    tokens = torch.zeros(1, 64, dtype=torch.long, device=GPU)
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            model(tokens)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            following = model(tokens)[0].argmax(1)

    def step(i):
        graph.replay()
        tokens[0, (i + 1) % 64] = following[i % 64]
        return following[i % 64].float()
    return repeat(steps, timer, step)


@case(steps=20, tolerance=1e-2)
def resnet_50(steps, timer):
    torchvision, = need("torchvision")
    torch.manual_seed(4)
    model = torchvision.models.resnet50(num_classes=100).to(GPU, memory_format=torch.channels_last)
    x = torch.randn(1, 64, 3, 224, 224, generator=torch.Generator().manual_seed(5)).to(GPU)
    y = torch.randint(0, 100, (1, 64), generator=torch.Generator().manual_seed(6)).to(GPU)
    inputs = [part.contiguous(memory_format=torch.channels_last) for part in x]
    return repeat(steps, timer, trainer(model, inputs, y, torch.bfloat16, torch.optim.SGD))


@case(steps=50, tolerance=1e-4)
def compiled(steps, timer):
    model = torch.compile(Gpt(64, 64, 2, 4, 64).to(GPU))
    return repeat(steps, timer, trainer(model, *text(64, 16, 64)))


@case(steps=50, tolerance=1e-4)
def compiled_to_graphs(steps, timer):
    torch._dynamo.reset()
    model = torch.compile(Gpt(64, 64, 2, 4, 64).to(GPU).eval(), mode="reduce-overhead")
    inputs, _ = text(64, 16, 64)

    @torch.no_grad()
    def step(i):
        torch.compiler.cudagraph_mark_step_begin()
        return model(inputs[i % len(inputs)]).float().pow(2).mean().clone()
    return repeat(steps, timer, step)


if __name__ == "__main__":
    main("torch", torch.__version__)
