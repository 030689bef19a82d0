# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The networks of test/bench/networks.py that benches.py names, in PyTorch: of each a
class of the same name and sizes, and in `samples` an input and a target."""
import torch
from torch import nn
from torch.nn import functional


def attend(q, k, v, isCausal):
    return functional.scaled_dot_product_attention(
        q, k, v, is_causal=isCausal, enable_gqa=q.shape[1] != k.shape[1])


def joined(heads):
    """[batch, heads, tokens, size] as [batch, tokens, width]"""
    return heads.transpose(1, 2).flatten(2)


def ofTokens(output, labels):
    return functional.cross_entropy(output.flatten(0, -2), labels.flatten())


class Block(nn.Module):
    """Of a GPT; or of an encoder: norms come behind, and all see all."""

    def __init__(self, width, heads, isGpt):
        super().__init__()
        self.heads, self.isGpt = heads, isGpt
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def mixed(self, x):
        split = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        return self.out(joined(attend(*split.permute(2, 0, 3, 1, 4), self.isGpt)))

    def widened(self, x):
        return self.down(functional.gelu(
            self.up(x), approximate="tanh" if self.isGpt else "none"))

    def forward(self, x):
        if self.isGpt:
            x = x + self.mixed(self.norms[0](x))
            return x + self.widened(self.norms[1](x))
        x = self.norms[0](x + self.mixed(x))
        return self.norms[1](x + self.widened(x))


class Words(nn.Module):
    """What a GPT and an encoder have in common."""

    def __init__(self, layers, width, heads, vocabulary, tokens, batch, isGpt):
        super().__init__()
        self.sizes = vocabulary, (batch, tokens)
        self.table = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.zeros(tokens, width))
        self.blocks = nn.Sequential(
            *(Block(width, heads, isGpt) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def embedded(self, ids):
        return self.table(ids) + self.places


class gpt(Words):
    loss = staticmethod(ofTokens)

    def __init__(self, layers, width, heads, vocabulary, tokens, batch):
        super().__init__(layers, width, heads, vocabulary, tokens, batch, True)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.embedded(ids))))

    def samples(self):
        vocabulary, shape = self.sizes
        return torch.randint(vocabulary, (2, *shape)).unbind()


class encoder(Words):
    loss = staticmethod(functional.mse_loss)

    def __init__(self, layers, width, heads, vocabulary, tokens, batch):
        super().__init__(layers, width, heads, vocabulary, tokens, batch, False)

    def forward(self, ids):
        return self.blocks(self.norm(self.embedded(ids)))

    def samples(self):
        vocabulary, shape = self.sizes
        return (torch.randint(vocabulary, shape),
                torch.randn(*shape, self.places.shape[-1]))


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, groups, hidden):
        super().__init__()
        self.size = width // heads
        self.norms = nn.ModuleList(nn.RMSNorm(width, eps=1e-6) for _ in range(2))
        self.q, self.k, self.v, self.out, self.gate, self.up, self.down = (
            nn.Linear(*sizes, bias=False) for sizes in (
                (width, width), (width, groups * self.size),
                (width, groups * self.size), (width, width), (width, hidden),
                (width, hidden), (hidden, width)))

    def forward(self, x, cos, sin):
        normed = self.norms[0](x)
        q, k, v = (layer(normed).unflatten(-1, (-1, self.size)).transpose(1, 2)
                   for layer in (self.q, self.k, self.v))
        cos, sin = cos.to(q.dtype), sin.to(q.dtype)

        def rotated(y):
            low, high = y.chunk(2, -1)
            return y * cos + torch.cat((-high, low), -1) * sin

        x = x + self.out(joined(attend(rotated(q), rotated(k), v, True)))
        normed = self.norms[1](x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class llama(nn.Module):
    """Without embedding and head."""
    loss = staticmethod(functional.mse_loss)

    def __init__(self, layers, width, heads, groups, hidden, vocabulary, tokens,
                 batch):
        super().__init__()
        assert not vocabulary
        self.shape = batch, tokens, width
        size = width // heads
        angles = torch.outer(torch.arange(tokens),
                             10000.0 ** -(torch.arange(0, size, 2) / size))
        angles = torch.cat((angles, angles), -1)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.blocks = nn.ModuleList(
            LlamaBlock(width, heads, groups, hidden) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-6)

    def forward(self, x):
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return self.norm(x)

    def samples(self):
        return torch.randn(2, *self.shape).unbind()


class ConvNorm(nn.Sequential):
    def __init__(self, inputs, outputs, kernel, stride=1):
        super().__init__(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2,
                                   bias=False), nn.BatchNorm2d(outputs))


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride, isFirst):
        super().__init__()
        self.layers = nn.Sequential(
            ConvNorm(channels, width, 1), nn.ReLU(),
            ConvNorm(width, width, 3, stride), nn.ReLU(),
            ConvNorm(width, 4 * width, 1))
        self.beside = (ConvNorm(channels, 4 * width, 1, stride) if isFirst
                       else nn.Identity())

    def forward(self, x):
        return functional.relu(self.beside(x) + self.layers(x))


class resnet50(nn.Module):
    loss = staticmethod(ofTokens)

    def __init__(self, images, size, width, blocks):
        super().__init__()
        self.shape, channels = (images, 3, size, size), width
        layers = [ConvNorm(3, width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        for stage, count in enumerate(blocks):
            for block in range(count):
                layers.append(Bottleneck(channels, width,
                                         1 if block or not stage else 2, not block))
                channels = 4 * width
            width *= 2
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                    nn.Linear(channels, 1000))
        self.to(memory_format=torch.channels_last)

    def forward(self, x):
        return self.layers(x)

    def samples(self):
        images = torch.randn(self.shape)
        return (images.to(memory_format=torch.channels_last),
                torch.randint(1000, self.shape[:1]))
