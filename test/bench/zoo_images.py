# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks of the zoo that see images: each is written with onnx.helper as
PyTorch exports it, with random weights. `small` ones have few channels and
places; they are for tests of numbers, the others for times.
"""
import numpy as np

from networks import Graph, attention, gelu, layerNorm

FLOAT = np.float32


def conv(g, x, inputs, outputs, kernel, stride=1, groups=1, bias=True, pad=None):
    pad = kernel // 2 if pad is None else pad
    scale = np.sqrt(2 / (inputs // groups * kernel * kernel))
    w = g.weight(outputs, inputs // groups, kernel, kernel, scale=scale)
    return g.op("Conv", x, w, *([g.weight(outputs)] if bias else []),
                kernel_shape=[kernel] * 2, strides=[stride] * 2,
                pads=[pad] * 4, group=groups)


def silu(g, x):
    return g.op("Mul", x, g.op("Sigmoid", x))


def classify(g, x, channels, classes):
    x = g.op("Flatten", g.op("GlobalAveragePool", x))
    return g.linear(x, channels, classes)


def resnet(small):
    size, width, blocks = (32, 8, 1) if small else (224, 64, 2)
    g = Graph("resnet")
    x = g.input("x", FLOAT, 1, 3, size, size)
    x = g.op("Relu", conv(g, x, 3, width, 7, 2))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = width
    for stage in range(4):
        for block in range(blocks):
            outputs, stride = width << stage, 2 if stage and not block else 1
            y = g.op("Relu", conv(g, x, channels, outputs, 3, stride))
            y = conv(g, y, outputs, outputs, 3)
            if channels != outputs:
                x = conv(g, x, channels, outputs, 1, stride)
            x = g.op("Relu", g.op("Add", x, y))
            channels = outputs
    g.output(classify(g, x, channels, 100))
    return g


def squeeze(g, x, channels, reduced, inner, gate):
    y = g.op("GlobalAveragePool", x)
    y = inner(g, conv(g, y, channels, reduced, 1))
    return g.op("Mul", x, gate(g, conv(g, y, reduced, channels, 1)))


def inverted(g, x, inputs, expanded, outputs, kernel, stride, activation,
             reduced, inner, gate):
    y = x
    if expanded != inputs:
        y = activation(g, conv(g, y, inputs, expanded, 1))
    y = activation(g, conv(g, y, expanded, expanded, kernel, stride, expanded))
    if reduced:
        y = squeeze(g, y, expanded, reduced, inner, gate)
    y = conv(g, y, expanded, outputs, 1)
    return g.op("Add", x, y) if stride == 1 and inputs == outputs else y


def relu(g, x):
    return g.op("Relu", x)


def hardSwish(g, x):
    return g.op("HardSwish", x)


def hardSigmoid(g, x):
    return g.op("HardSigmoid", x, alpha=1 / 6, beta=0.5)


def sigmoid(g, x):
    return g.op("Sigmoid", x)


def mobilenet(small):
    """MobileNetV3, large."""
    layers = [(3, 16, 16, 0, relu, 1), (3, 64, 24, 0, relu, 2),
              (3, 72, 24, 0, relu, 1), (5, 72, 40, 24, relu, 2),
              (5, 120, 40, 32, relu, 1), (5, 120, 40, 32, relu, 1),
              (3, 240, 80, 0, hardSwish, 2), (3, 200, 80, 0, hardSwish, 1),
              (3, 184, 80, 0, hardSwish, 1), (3, 184, 80, 0, hardSwish, 1),
              (3, 480, 112, 120, hardSwish, 1),
              (3, 672, 112, 168, hardSwish, 1),
              (5, 672, 160, 168, hardSwish, 2),
              (5, 960, 160, 240, hardSwish, 1),
              (5, 960, 160, 240, hardSwish, 1)]
    g = Graph("mobilenet")
    size = 32 if small else 224
    x = g.input("x", FLOAT, 1, 3, size, size)
    x, channels = hardSwish(g, conv(g, x, 3, 16, 3, 2)), 16
    for kernel, expanded, outputs, reduced, activation, stride in (
            layers[:5] + layers[10:11] if small else layers):
        x = inverted(g, x, channels, expanded, outputs, kernel, stride,
                     activation, reduced, relu, hardSigmoid)
        channels = outputs
    x = hardSwish(g, conv(g, x, channels, 6 * channels, 1))
    g.output(classify(g, x, 6 * channels, 100))
    return g


def efficientnet(small):
    """EfficientNet-B0."""
    layers = [(1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2),
              (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4),
              (6, 3, 1, 320, 1)]
    g = Graph("efficientnet")
    size = 32 if small else 224
    x = g.input("x", FLOAT, 1, 3, size, size)
    x, channels = silu(g, conv(g, x, 3, 32, 3, 2)), 32
    for expand, kernel, first, outputs, repeats in layers[:3 if small else 7]:
        for i in range(1 if small else repeats):
            x = inverted(g, x, channels, expand * channels, outputs, kernel,
                         1 if i else first, silu, channels // 4, silu, sigmoid)
            channels = outputs
    x = silu(g, conv(g, x, channels, 4 * channels, 1))
    g.output(classify(g, x, 4 * channels, 100))
    return g


def convnext(small):
    size, width, depths = (64, 16, (1, 1)) if small else (224, 96, (2, 2, 4, 2))
    g = Graph("convnext")

    def channelNorm(x, channels):
        x = g.op("Transpose", x, perm=[0, 2, 3, 1])
        return g.op("Transpose", layerNorm(g, x, channels), perm=[0, 3, 1, 2])

    x = g.input("x", FLOAT, 1, 3, size, size)
    x = channelNorm(conv(g, x, 3, width, 4, 4, pad=0), width)
    channels = width
    for stage, depth in enumerate(depths):
        if stage:
            x = conv(g, channelNorm(x, channels), channels, 2 * channels, 2, 2,
                     pad=0)
            channels *= 2
        for _ in range(depth):
            y = conv(g, x, channels, channels, 7, groups=channels)
            y = layerNorm(g, g.op("Transpose", y, perm=[0, 2, 3, 1]), channels)
            y = gelu(g, g.linear(y, channels, 4 * channels))
            y = g.linear(y, 4 * channels, channels)
            y = g.op("Mul", y, g.weight(channels))
            x = g.op("Add", x, g.op("Transpose", y, perm=[0, 3, 1, 2]))
    x = g.op("ReduceMean", x, axes=[2, 3], keepdims=0)
    g.output(g.linear(layerNorm(g, x, channels), channels, 100))
    return g


def roll(g, x, by, size):
    """Along rows and columns of [batch, rows, columns, channels]."""
    for axis in 1, 2:
        cut = by % size
        first = g.op("Slice", x, g.ints(cut), g.ints(size), g.ints(axis))
        rest = g.op("Slice", x, g.ints(0), g.ints(cut), g.ints(axis))
        x = g.op("Concat", first, rest, axis=axis)
    return x


def swinBlock(g, x, size, width, heads, window, shift):
    windows, tokens = size // window, window * window
    y = layerNorm(g, x, width)
    if shift:
        y = roll(g, y, shift, size)
    y = g.op("Reshape", y, g.ints(1, windows, window, windows, window, width))
    y = g.op("Transpose", y, perm=[0, 1, 3, 2, 4, 5])
    y = g.op("Reshape", y, g.ints(windows ** 2, tokens, width))
    qkv = g.op("Reshape", g.linear(y, width, 3 * width),
               g.ints(windows ** 2, tokens, 3, heads, width // heads))
    qkv = g.op("Transpose", qkv, perm=[2, 0, 3, 1, 4])
    q, k, v = (g.op("Gather", qkv, g.constant(i, np.int64), axis=0)
               for i in range(3))
    q = g.op("Mul", q, g.constant((width // heads) ** -0.5))
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    # Each pair's place in the table of relative biases.
    place = np.stack(np.meshgrid(np.arange(window), np.arange(window),
                                 indexing="ij")).reshape(2, -1)
    apart = place[:, :, None] - place[:, None, :] + window - 1
    pairs = (apart[0] * (2 * window - 1) + apart[1]).reshape(-1)
    bias = g.op("Gather", g.weight((2 * window - 1) ** 2, heads),
                g.ints(*pairs), axis=0)
    bias = g.op("Transpose", g.op("Reshape", bias, g.ints(tokens, tokens, heads)),
                perm=[2, 0, 1])
    scores = g.op("Add", scores, g.op("Unsqueeze", bias, g.ints(0)))
    if shift:
        region = np.zeros(size, int)
        region[-window:-shift], region[-shift:] = 1, 2
        region = region[:, None] * 3 + region
        region = region.reshape(windows, window, windows, window)
        region = region.transpose(0, 2, 1, 3).reshape(windows ** 2, 1, 1, tokens)
        apart = region != region.transpose(0, 1, 3, 2)
        scores = g.op("Add", scores, g.constant(np.where(apart, -100.0, 0.0)))
    y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]),
             g.ints(windows ** 2, tokens, width))
    y = g.linear(y, width, width)
    y = g.op("Reshape", y, g.ints(1, windows, windows, window, window, width))
    y = g.op("Transpose", y, perm=[0, 1, 3, 2, 4, 5])
    y = g.op("Reshape", y, g.ints(1, size, size, width))
    if shift:
        y = roll(g, y, -shift, size)
    x = g.op("Add", x, y)
    y = gelu(g, g.linear(layerNorm(g, x, width), width, 4 * width))
    return g.op("Add", x, g.linear(y, 4 * width, width))


def swin(small):
    """Swin-T's widths and windows, with two blocks in each stage."""
    size, width, window, stages = (32, 16, 4, 2) if small else (224, 96, 7, 4)
    g = Graph("swin")
    x = conv(g, g.input("x", FLOAT, 1, 3, size, size), 3, width, 4, 4, pad=0)
    x, size = g.op("Transpose", x, perm=[0, 2, 3, 1]), size // 4
    x, heads = layerNorm(g, x, width), max(1, width // 32)
    for stage in range(stages):
        if stage:
            parts = []
            for column, row in ((0, 0), (0, 1), (1, 0), (1, 1)):
                part = g.op("Slice", x, g.ints(row), g.ints(size), g.ints(1),
                            g.ints(2))
                parts.append(g.op("Slice", part, g.ints(column), g.ints(size),
                                  g.ints(2), g.ints(2)))
            x = layerNorm(g, g.op("Concat", *parts, axis=-1), 4 * width)
            x = g.linear(x, 4 * width, 2 * width, bias=False)
            size, width, heads = size // 2, 2 * width, 2 * heads
        for shift in 0, window // 2:
            x = swinBlock(g, x, size, width, heads, window,
                          shift if size > window else 0)
    x = g.op("ReduceMean", layerNorm(g, x, width), axes=[1, 2], keepdims=0)
    g.output(g.linear(x, width, 100))
    return g


def transformerBlock(g, x, batch, tokens, width, heads):
    y = attention(g, layerNorm(g, x, width), batch, tokens, width, heads)
    x = g.op("Add", x, y)
    y = gelu(g, g.linear(layerNorm(g, x, width), width, 4 * width))
    return g.op("Add", x, g.linear(y, 4 * width, width))


def patches(g, x, size, patch, width):
    """[1, patches, width], their number."""
    x = conv(g, x, 3, width, patch, patch, pad=0)
    tokens = (size // patch) ** 2
    x = g.op("Reshape", x, g.ints(1, width, tokens))
    return g.op("Transpose", x, perm=[0, 2, 1]), tokens


def vit(small):
    size, width, heads, layers = (32, 32, 4, 2) if small else (224, 384, 6, 6)
    g = Graph("vit")
    x, tokens = patches(g, g.input("x", FLOAT, 1, 3, size, size), size, 16,
                        width)
    x = g.op("Concat", g.weight(1, 1, width), x, axis=1)
    x = g.op("Add", x, g.weight(1, tokens + 1, width))
    for _ in range(layers):
        x = transformerBlock(g, x, 1, tokens + 1, width, heads)
    x = g.op("Gather", layerNorm(g, x, width), g.constant(0, np.int64), axis=1)
    g.output(g.linear(x, width, 100))
    return g


def mixer(small):
    size, width, layers = (64, 32, 2) if small else (224, 384, 6)
    g = Graph("mixer")
    x, tokens = patches(g, g.input("x", FLOAT, 1, 3, size, size), size, 16,
                        width)
    for _ in range(layers):
        y = g.op("Transpose", layerNorm(g, x, width), perm=[0, 2, 1])
        y = g.linear(gelu(g, g.linear(y, tokens, width // 2)), width // 2,
                     tokens)
        x = g.op("Add", x, g.op("Transpose", y, perm=[0, 2, 1]))
        y = gelu(g, g.linear(layerNorm(g, x, width), width, 4 * width))
        x = g.op("Add", x, g.linear(y, 4 * width, width))
    x = g.op("ReduceMean", layerNorm(g, x, width), axes=[1], keepdims=0)
    g.output(g.linear(x, width, 100))
    return g


def unet(small):
    """For segmentation: 4 levels, transposed convolutions upwards."""
    size, width, levels = (32, 8, 2) if small else (160, 32, 4)
    g = Graph("unet")

    def double(x, inputs, outputs):
        x = g.op("Relu", conv(g, x, inputs, outputs, 3))
        return g.op("Relu", conv(g, x, outputs, outputs, 3))

    x = double(g.input("x", FLOAT, 1, 3, size, size), 3, width)
    skipped = []
    for _ in range(levels):
        skipped.append(x)
        x = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        x, width = double(x, width, 2 * width), 2 * width
    for skip in reversed(skipped):
        w = g.weight(width, width // 2, 2, 2, scale=np.sqrt(2 / width))
        x = g.op("ConvTranspose", x, w, g.weight(width // 2),
                 kernel_shape=[2, 2], strides=[2, 2])
        x = double(g.op("Concat", skip, x, axis=1), width, width // 2)
        width //= 2
    g.output(conv(g, x, width, 5, 1))
    return g


def nfnet(small):
    """Weights standardised at each inference, as exporters leave them."""
    size, width, blocks = (32, 16, 1) if small else (192, 64, 2)
    g = Graph("nfnet")

    def standard(x, inputs, outputs, kernel, stride=1, groups=1):
        w = g.weight(outputs, inputs // groups, kernel, kernel, scale=1)
        fan = inputs // groups * kernel * kernel
        mean = g.op("ReduceMean", w, axes=[1, 2, 3], keepdims=1)
        centred = g.op("Sub", w, mean)
        variance = g.op("ReduceMean", g.op("Mul", centred, centred),
                        axes=[1, 2, 3], keepdims=1)
        scale = g.op("Max", g.op("Mul", variance, g.constant(float(fan))),
                     g.constant(1e-4))
        w = g.op("Mul", g.op("Div", centred, g.op("Sqrt", scale)),
                 g.weight(outputs, 1, 1, 1, scale=1))
        return g.op("Conv", x, w, g.weight(outputs), kernel_shape=[kernel] * 2,
                    strides=[stride] * 2, pads=[kernel // 2] * 4, group=groups)

    def activation(x):
        return g.op("Mul", silu(g, x), g.constant(1.7881293))

    x = g.input("x", FLOAT, 1, 3, size, size)
    x = activation(standard(x, 3, width, 3, 2))
    channels = width
    for stage in range(1 if small else 4):
        for block in range(blocks):
            outputs, stride = 2 * width << stage, 1 if block else 2
            middle = outputs // 2
            y = activation(g.op("Mul", x, g.constant(0.97)))
            short = x
            if not block:
                pooled = g.op("AveragePool", y, kernel_shape=[2, 2],
                              strides=[2, 2])
                short = standard(pooled, channels, outputs, 1)
            y = activation(standard(y, channels, middle, 1))
            y = activation(standard(y, middle, middle, 3, stride,
                                    max(1, middle // 32)))
            y = standard(y, middle, outputs, 1)
            y = squeeze(g, y, outputs, outputs // 2, relu, sigmoid)
            x = g.op("Add", g.op("Mul", y, g.constant(0.4)), short)
            channels = outputs
    g.output(classify(g, activation(x), channels, 100))
    return g


def detr(small):
    """Encoder, decoder and heads behind a backbone's last features."""
    side, inputs, width, heads, queries, layers = (
        (4, 32, 32, 4, 6, 1) if small else (25, 1024, 256, 8, 100, 2))
    g = Graph("detr")
    tokens = side * side
    x = conv(g, g.input("features", FLOAT, 1, inputs, side, side), inputs,
             width, 1)
    x = g.op("Transpose", g.op("Reshape", x, g.ints(1, width, tokens)),
             perm=[0, 2, 1])
    place, query = g.weight(1, tokens, width), g.weight(1, queries, width)

    def feedForward(x):
        y = g.op("Relu", g.linear(x, width, 8 * width))
        y = g.linear(y, 8 * width, width)
        return layerNorm(g, g.op("Add", x, y), width)

    for _ in range(layers):
        placed = g.op("Add", x, place)
        y = attention(g, placed, 1, tokens, width, heads, values=x)
        x = feedForward(layerNorm(g, g.op("Add", x, y), width))
    keys = g.op("Add", x, place)
    y = g.constant(np.zeros((1, queries, width)))
    for _ in range(layers):
        placed = g.op("Add", y, query)
        z = attention(g, placed, 1, queries, width, heads, values=y)
        y = layerNorm(g, g.op("Add", y, z), width)
        z = attention(g, g.op("Add", y, query), 1, queries, width, heads,
                      other=keys, otherTokens=tokens, values=x)
        y = feedForward(layerNorm(g, g.op("Add", y, z), width))
    y = layerNorm(g, y, width)
    g.output(g.linear(y, width, 92))
    for _ in range(2):
        y = g.op("Relu", g.linear(y, width, width))
    g.output(g.op("Sigmoid", g.linear(y, width, 4)))
    return g


NETWORKS = {network.__name__: network for network in (
    resnet, mobilenet, efficientnet, convnext, swin, vit, mixer, unet, nfnet,
    detr)}
