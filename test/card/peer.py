# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTorch takes for what speed.py has, where there is one with a card: run by
card/run, whose table gets the lines."""
import statistics
import sys

from products import PRODUCTS

try:
    import torch
    if not torch.cuda.is_available():
        sys.exit("PyTorch sees no card")
except ImportError:
    sys.exit("there is no PyTorch")


def milliseconds(function, warm=5, runs=20):
    """The median of some runs, by events."""
    times = []
    for run in range(warm + runs):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        function()
        end.record()
        end.synchronize()
        if run >= warm:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


def tell(what, time, gigabytes=None, flops=None):
    rate = (f"{gigabytes / time * 1e3:.0f} GB/s" if gigabytes
            else f"{flops / time / 1e9:.0f} TFLOP/s")
    print(f"peer: | PyTorch {torch.__version__} {what} | {time:.4f} ms | {rate} |",
          flush=True)


for m, k, n in PRODUCTS:
    a, b = (torch.randn(*shape, device="cuda").half() for shape in ((m, k), (k, n)))
    tell(f"matmul {m}x{k}x{n} f16", milliseconds(lambda: a @ b),
         flops=2 * m * k * n)
elements = 1 << 24
for dtype in torch.float32, torch.float16:
    x = torch.randn(elements // 4096, 4096, device="cuda").to(dtype)
    both = 2 * x.nbytes / 1e9
    tell(f"copy {dtype}", milliseconds(x.clone), gigabytes=both)
    tell(f"softmax 4096 {dtype}", milliseconds(lambda: torch.softmax(x, -1)),
         gigabytes=both)
    tell(f"layer norm 4096 {dtype}",
         milliseconds(lambda: torch.nn.functional.layer_norm(x, (4096,))),
         gigabytes=both)
    tell(f"column sum {dtype}", milliseconds(lambda: x.sum(0)), gigabytes=both / 2)


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = torch.nn.ModuleList(
            torch.nn.LayerNorm(width) for _ in range(2))
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        split = self.qkv(self.norms[0](x)).unflatten(-1, (3, self.heads, -1))
        mixed = torch.nn.functional.scaled_dot_product_attention(
            *split.permute(2, 0, 3, 1, 4), is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        hidden = self.up(self.norms[1](x))
        return x + self.down(torch.nn.functional.gelu(hidden, approximate="tanh"))


class Gpt(torch.nn.Module):
    """The network of speed.py's step."""

    def __init__(self, layers, width, heads, vocabulary, tokens):
        super().__init__()
        self.table = torch.nn.Embedding(vocabulary, width)
        self.places = torch.nn.Parameter(torch.zeros(tokens, width))
        self.blocks = torch.nn.Sequential(
            *(Block(width, heads) for _ in range(layers)))
        self.norm = torch.nn.LayerNorm(width)
        self.head = torch.nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.table(ids) + self.places)))


def step():
    model = Gpt(12, 768, 12, 50257, 1024).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    ids, labels = torch.randint(50257, (2, 16, 1024), device="cuda")

    def train():
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(
                model(ids).flatten(0, 1), labels.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return milliseconds(train)


tell("step like GPT-2 small's, autocast to bf16", step(), flops=6 * 16384 *
     (12 * (12 * 768**2 + 768 * 1024) + 768 * 50257))
