# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks of the zoo that make images from noise; see zoo_images.py."""
import numpy as np

from networks import Graph, attention, gelu, layerNorm
from zoo_images import conv, silu

FLOAT = np.float32


def groupNorm(g, x, channels, groups):
    """As PyTorch exports GroupNorm up to operator set 20."""
    y = g.op("Reshape", x, g.ints(0, groups, -1))
    y = g.op("InstanceNormalization", y, g.constant(np.ones(groups)),
             g.constant(np.zeros(groups)), epsilon=1e-5)
    y = g.op("Reshape", y, g.op("Shape", x))
    y = g.op("Mul", y, g.constant(np.ones((channels, 1, 1))))
    return g.op("Add", y, g.constant(np.zeros((channels, 1, 1))))


def upsample(g, x):
    return g.op("Resize", x, "", g.constant([1, 1, 2, 2]), mode="nearest",
                coordinate_transformation_mode="asymmetric",
                nearest_mode="floor")


def resBlock(g, x, inputs, outputs, groups, time=None, embedding=0):
    """Of diffusion models: group norm, silu, convolution, twice."""
    y = conv(g, silu(g, groupNorm(g, x, inputs, groups)), inputs, outputs, 3)
    if time:
        shift = g.linear(silu(g, time), embedding, outputs)
        y = g.op("Add", y, g.op("Unsqueeze", shift, g.ints(2, 3)))
    y = conv(g, silu(g, groupNorm(g, y, outputs, groups)), outputs, outputs, 3)
    if inputs != outputs:
        x = conv(g, x, inputs, outputs, 1)
    return g.op("Add", x, y)


def crossBlock(g, x, size, width, heads, groups, text, words, depth):
    """Attention of places to each other and to a text, and a GEGLU."""
    tokens = size * size
    y = conv(g, groupNorm(g, x, width, groups), width, width, 1)
    y = g.op("Transpose", y, perm=[0, 2, 3, 1])
    y = g.op("Reshape", y, g.ints(1, tokens, width))
    y = g.op("Add", y, attention(g, layerNorm(g, y, width), 1, tokens, width,
                                 heads, bias=False))
    y = g.op("Add", y, attention(g, layerNorm(g, y, width), 1, tokens, width,
                                 heads, bias=False, other=text,
                                 otherTokens=words, otherWidth=depth))
    hidden = g.linear(layerNorm(g, y, width), width, 8 * width)
    value, gate = g.op("Split", hidden, outputs=2, axis=-1)
    hidden = g.op("Mul", value, gelu(g, gate))
    y = g.op("Add", y, g.linear(hidden, 4 * width, width))
    y = g.op("Reshape", y, g.ints(1, size, size, width))
    y = g.op("Transpose", y, perm=[0, 3, 1, 2])
    return g.op("Add", x, conv(g, y, width, width, 1))


def diffusion(small):
    """UNet2DConditionModel: two levels down, the middle, two up."""
    size, width, heads, groups, words, depth = (
        (8, 16, 2, 4, 5, 24) if small else (32, 160, 4, 32, 77, 768))
    g = Graph("diffusion")
    x = g.input("sample", FLOAT, 1, 4, size, size)
    angle = g.op("Mul", g.input("timestep", FLOAT, 1, 1),
                 g.constant(1e4 ** -np.linspace(0, 1, width // 2)))
    time = g.op("Concat", g.op("Cos", angle), g.op("Sin", angle), axis=-1)
    embedding = 4 * width
    time = g.linear(silu(g, g.linear(time, width, embedding)), embedding,
                    embedding)
    text = g.input("text", FLOAT, 1, words, depth)

    def level(x, inputs, outputs, size):
        x = resBlock(g, x, inputs, outputs, groups, time, embedding)
        return crossBlock(g, x, size, outputs, heads, groups, text, words, depth)

    first = x = conv(g, x, 4, width, 3)
    second = x = level(x, width, width, size)
    third = x = conv(g, x, width, width, 3, 2)
    fourth = x = level(x, width, 2 * width, size // 2)
    x = level(x, 2 * width, 2 * width, size // 2)
    x = level(g.op("Concat", x, fourth, axis=1), 4 * width, 2 * width, size // 2)
    x = resBlock(g, g.op("Concat", x, third, axis=1), 3 * width, 2 * width,
                 groups, time, embedding)
    x = conv(g, upsample(g, x), 2 * width, 2 * width, 3)
    x = level(g.op("Concat", x, second, axis=1), 3 * width, width, size)
    x = resBlock(g, g.op("Concat", x, first, axis=1), 2 * width, width, groups,
                 time, embedding)
    g.output(conv(g, silu(g, groupNorm(g, x, width, groups)), width, 4, 3))
    return g


def vae(small):
    """The decoder of a latent diffusion model."""
    size, width, groups, levels = (4, 16, 4, 1) if small else (16, 128, 32, 3)
    g = Graph("vae")
    x = conv(g, g.input("latent", FLOAT, 1, 4, size, size), 4, width, 3)
    x = resBlock(g, x, width, width, groups)
    y = g.op("Reshape", groupNorm(g, x, width, groups),
             g.ints(1, width, size * size))
    y = attention(g, g.op("Transpose", y, perm=[0, 2, 1]), 1, size * size, width,
                  1)
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1]),
             g.ints(1, width, size, size))
    x = resBlock(g, g.op("Add", x, y), width, width, groups)
    for i in range(levels):
        outputs = width // 2 if i else width
        x = resBlock(g, x, width, outputs, min(groups, outputs // 2))
        x, width = conv(g, upsample(g, x), outputs, outputs, 3), outputs
    x = silu(g, groupNorm(g, x, width, min(groups, width // 2)))
    g.output(conv(g, x, width, 3, 3))
    return g


NETWORKS = {network.__name__: network for network in (diffusion, vae)}
