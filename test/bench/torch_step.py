# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One training step of the GPT-2-like model in PyTorch (loss, backward pass,
clipping, fused AdamW; all of it compiled or none): median milliseconds.

usage: torch_step.py eager|compile THREADS BATCH
"""
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, WIDTH, HEADS, VOCABULARY, TOKENS = 4, 512, 8, 8192, 128


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        split = [part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
                 for part in self.qkv(self.first(x)).chunk(3, -1)]
        mixed = F.scaled_dot_product_attention(*split, is_causal=True)
        x = x + self.mix(mixed.transpose(1, 2).flatten(2))
        hidden = F.gelu(self.up(self.second(x)), approximate="tanh")
        return x + self.down(hidden)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, WIDTH)
        self.place = nn.Parameter(torch.zeros(TOKENS, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.table(ids) + self.place)))


def main(mode, threads, batch):
    torch.set_num_threads(threads)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    ids = torch.randint(VOCABULARY, (batch, TOKENS))

    def step():
        loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        optimizer.zero_grad()

    # Loss and forward pass, backward pass, clipping and update: dynamo makes
    # three graphs of these.
    if mode == "compile":
        step = torch.compile(step)
    times = []
    for _ in range(12):
        start = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - start))
    print(f"PyTorch {torch.__version__} {mode}, AdamW fused, {threads} "
          "threads", file=sys.stderr)
    print(f"{statistics.median(times[2:]):.1f}")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
