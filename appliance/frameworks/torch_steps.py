"""Trains a small model, and prints the loss of each step with all of its bits: torch_steps.py gpt|conv STEPS.

hawser-check --moves moves the vGPU meanwhile. The last line has the longest time of a step after the first ten.
"""
import sys
import time

from hawser_cases import need

torch, = need("torch")
nn, F = torch.nn, torch.nn.functional
GPU = "cuda"
LETTERS, WIDTH, LENGTH, BATCH = 96, 256, 64, 16


class Block(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for part in self.qkv(self.first(x)).split(c, 2))
        future = torch.full((t, t), -1e9, device=x.device).triu(1)
        mixed = torch.softmax(q @ k.transpose(-1, -2) / (c // self.heads) ** 0.5 + future, -1) @ v
        x = x + self.dropout(self.out(mixed.transpose(1, 2).reshape(b, t, c)))
        return x + self.dropout(self.down(F.gelu(self.up(self.second(x)))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(LETTERS, WIDTH), nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
        self.blocks, self.out = nn.Sequential(*(Block(4) for _ in range(4))), nn.Linear(WIDTH, LETTERS)

    def forward(self, x):
        return self.out(self.blocks(self.tokens(x) + self.places))


def conv():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, LETTERS))


def main(name, steps):
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    model = (Gpt() if name == "gpt" else conv()).to(GPU)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    random = torch.Generator().manual_seed(3)
    slowest = 0.0
    for i in range(steps):
        began = time.perf_counter()
        if name == "gpt":
            x = torch.randint(LETTERS, (BATCH, LENGTH + 1), generator=random).pin_memory().to(GPU, non_blocking=True)
            loss = F.cross_entropy(model(x[:, :-1]).reshape(-1, LETTERS), x[:, 1:].reshape(-1))
        else:
            x = torch.randn(BATCH, 3, 64, 64, generator=random).to(GPU)
            y = torch.randint(LETTERS, (BATCH,), generator=random).to(GPU)
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", i, loss.item().hex(), flush=True)
        if i >= 10:
            slowest = max(slowest, time.perf_counter() - began)
    print("slowest step: %.1f ms" % (slowest * 1e3), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
