# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small models, as torch exports them, whose weights are hard to tell from
buffers: MODEL.dynamo.onnx, which says it, and MODEL.torchscript.onnx, which does
not. names.json: what is a parameter. And two that PyTorch trains: batchnorm,
exported in training mode, with the loss in either mode; padding, an embedding of
which a row has no gradient, with some steps. And vit, of which no two weights are
equal. Made with PyTorch 2.15.0.

usage: make.py
"""
import json
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import nn
from torch.nn import functional as F

HERE = Path(__file__).parent


def sines(positions, width):
    angles = torch.arange(float(positions))[:, None] / (
        10000 ** (torch.arange(width / 2) * 2 / width))
    return torch.cat([angles.sin(), angles.cos()], 1)


class FeatureTokens(nn.Module):
    """FT-Transformer: each number of the input times a vector of its own."""
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 8))
        self.bias = nn.Parameter(torch.randn(5, 8))
        self.head = nn.Linear(8, 3)
        self.register_buffer("centre", torch.randn(5))
        self.register_buffer("spread", torch.rand(5) + 0.5)

    def forward(self, x):
        x = (x - self.centre) / self.spread
        return self.head((x[..., None] * self.weight + self.bias)
                         .relu().mean(1))


class AttentionBiases(nn.Module):
    """LeViT's biases of attention, and Swin's mask."""
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.attention_biases = nn.Parameter(torch.randn(2, 10))
        self.head = nn.Linear(8, 3)
        self.register_buffer("places", torch.randint(10, (6, 6)))
        mask = torch.zeros(6, 6)
        mask[0, 3:] = -100
        self.register_buffer("attn_mask", mask)

    def forward(self, x):
        q, k, v = self.qkv(x).reshape(-1, 6, 2, 3, 4).permute(3, 0, 2, 1, 4)
        scores = q @ k.transpose(-1, -2) * 0.5
        scores = scores + self.attention_biases[:, self.places]
        mixed = (scores + self.attn_mask).softmax(-1) @ v
        return self.head(mixed.transpose(1, 2).flatten(2).mean(1))


class ConstantInput(nn.Module):
    """StyleGAN: a learned image is what the convolution takes."""
    def __init__(self):
        super().__init__()
        self.const = nn.Parameter(torch.randn(1, 4, 4, 4))
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.style = nn.Linear(8, 4)

    def forward(self, z):
        x = self.conv(self.const.expand(z.shape[0], -1, -1, -1))
        return (x * (1 + self.style(z))[:, :, None, None]).mean((2, 3))


class NormOnInput(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(6)
        self.fc = nn.Linear(6, 3)
        self.act = nn.PReLU()

    def forward(self, x):
        return self.act(self.fc(self.bn(x)))


class LogitsBias(nn.Module):
    """BART: a bias of the logits that nobody trains."""
    def __init__(self):
        super().__init__()
        self.shared = nn.Embedding(20, 8)
        self.fc = nn.Linear(8, 8)
        self.register_buffer("final_logits_bias", torch.zeros(1, 20))

    def forward(self, ids):
        return (F.linear(self.fc(self.shared(ids)), self.shared.weight)
                + self.final_logits_bias)


class Positions(nn.Module):
    """DiT's positions, which are sines, learned ones, and rotary tables."""
    def __init__(self):
        super().__init__()
        self.proj = nn.Conv2d(3, 8, 4, 4)
        rows = sines(4, 4)
        grid = torch.cat([rows[:, None].expand(4, 4, 4),
                          rows[None].expand(4, 4, 4)], -1)
        self.register_buffer("pos_embed", grid.reshape(1, 16, 8))
        self.cls = nn.Parameter(torch.randn(1, 1, 8))
        self.learned = nn.Parameter(torch.randn(1, 17, 8))
        self.register_buffer("cos", sines(17, 8)[:, 4:].repeat(1, 2))
        self.head = nn.Linear(8, 3)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        h = self.proj(x).flatten(2).transpose(1, 2) + self.pos_embed
        h = torch.cat([self.cls.expand(x.shape[0], -1, -1), h], 1)
        h = (h + self.learned) * self.cos
        return self.head(h.mean(1)) * self.scale.exp()


class Grid(nn.Module):
    """Swin v2: a net of coordinates makes the biases of attention; and slopes
    of ALiBi."""
    def __init__(self):
        super().__init__()
        axis = torch.linspace(-1, 1, 5).sign() * torch.linspace(-1, 1, 5).abs()
        self.register_buffer("table", torch.stack(
            torch.meshgrid(axis, axis, indexing="ij"), -1)[None])
        self.mlp = nn.Linear(2, 4)
        self.fc = nn.Linear(25, 4)
        self.register_buffer("slopes", 2.0 ** -torch.arange(1.0, 5))

    def forward(self, x):
        bias = self.mlp(self.table).flatten(1, 2).mean(1)
        return self.fc(x) * self.slopes + bias


class Fourier(nn.Module):
    """Random frequencies that stay as they are."""
    def __init__(self):
        super().__init__()
        self.register_buffer("frequencies", torch.randn(8))
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        return self.fc((2 * torch.pi * (x[:, None] * self.frequencies)).sin())


MODELS = {
    "fourier": (Fourier, lambda: torch.randn(4)),
    "feature_tokens": (FeatureTokens, lambda: torch.randn(4, 5)),
    "attention_biases": (AttentionBiases, lambda: torch.randn(4, 6, 8)),
    "constant_input": (ConstantInput, lambda: torch.randn(4, 8)),
    "norm_on_input": (NormOnInput, lambda: torch.randn(4, 6)),
    "logits_bias": (LogitsBias, lambda: torch.randint(20, (4, 6))),
    "positions": (Positions, lambda: torch.randn(4, 3, 16, 16)),
    "grid": (Grid, lambda: torch.randn(4, 25)),
}


def export(model, x, name, **options):
    """As docs/training.md says it."""
    path = HERE / f"{name}.dynamo.onnx"
    torch.onnx.export(model, (x,), path, dynamo=True, optimize=False,
                      external_data=False, verbose=False,
                      input_names=["input"], output_names=["logits"],
                      **options)
    made = onnx.load(path)
    for node in made.graph.node:  # Paths of the machine that made it.
        del node.metadata_props[:]
    onnx.save(made, path)


def batchnorm():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(),
                          nn.Flatten(), nn.Linear(8 * 36, 10))
    with torch.no_grad():
        model[1].running_mean.uniform_(-1, 1)
    x, labels = torch.randn(16, 3, 8, 8), torch.randint(10, (16,))
    export(model.train(), x, "batchnorm")
    np.savez(HERE / "batchnorm.npz", input=x, labels=labels)
    losses = {"eval": F.cross_entropy(model.eval()(x), labels).item()}
    losses["train"] = F.cross_entropy(model.train()(x), labels).item()
    (HERE / "batchnorm.json").write_text(json.dumps(losses) + "\n")


def paddingRun(make, optimize, ids, labels):
    model = make()
    optimizer = optimize(model.parameters())
    losses, norms = [], []
    for x, y in zip(ids, labels):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.5).item())
        optimizer.step()
        losses.append(loss.item())
    return {"loss": losses, "gradient_norm": norms,
            "table": model[0].weight.tolist()}


def padding():
    def make():
        torch.manual_seed(0)
        return nn.Sequential(nn.Embedding(20, 8, padding_idx=0), nn.Flatten(),
                             nn.Linear(32, 8), nn.GELU(), nn.Linear(8, 4))

    random = torch.Generator().manual_seed(1)
    ids = torch.randint(20, (6, 8, 4), generator=random)
    ids[torch.rand(ids.shape, generator=random) < 0.3] = 0
    labels = torch.randint(4, (6, 8), generator=random)
    export(make(), ids[0], "padding")
    np.savez(HERE / "padding.npz", input=ids.flatten(0, 1),
             labels=labels.flatten())
    runs = {
        "adamw(lr=1e-2,weight_decay=0.1)": lambda p: torch.optim.AdamW(
            p, lr=1e-2, weight_decay=0.1),
        "adam(lr=1e-2,weight_decay=0.1)": lambda p: torch.optim.Adam(
            p, lr=1e-2, weight_decay=0.1),
        "sgd(lr=0.1,momentum=0.9,weight_decay=0.1)": lambda p: torch.optim.SGD(
            p, lr=0.1, momentum=0.9, weight_decay=0.1),
    }
    (HERE / "padding.json").write_text(json.dumps(
        {flag: paddingRun(make, optimize, ids, labels)
         for flag, optimize in runs.items()}) + "\n")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(16), nn.LayerNorm(16)
        self.qkv, self.mix = nn.Linear(16, 48), nn.Linear(16, 16)
        self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, x):
        q, k, v = (self.qkv(self.first(x)).unflatten(-1, (3, 4, 4))
                   .permute(2, 0, 3, 1, 4))
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + self.mix(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.second(x))))


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.cls = nn.Parameter(torch.zeros(1, 1, 16))
        self.places = nn.Parameter(torch.zeros(1, 17, 16))
        self.blocks = nn.Sequential(Block(), Block())
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1)
        return self.head(self.norm(self.blocks(x + self.places))[:, 0])


def vit():
    torch.manual_seed(0)
    model = VisionTransformer()
    with torch.no_grad():  # No two weights are equal.
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    export(model, torch.randn(4, 3, 16, 16), "vit",
           dynamic_shapes=({0: torch.export.Dim("batch")},))


def main():
    batchnorm()
    vit()
    padding()
    names = {}
    for name, (make, sample) in MODELS.items():
        torch.manual_seed(0)
        model, x = make().train(), sample()
        export(model, x, name)
        torch.onnx.export(model, (x,), HERE / f"{name}.torchscript.onnx",
                          dynamo=False, opset_version=17,
                          training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False, input_names=["input"],
                          output_names=["logits"])
        names[name] = [key for key, _ in model.named_parameters()]
    (HERE / "names.json").write_text(json.dumps(names, indent=1) + "\n")


if __name__ == "__main__":
    main()
