# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks of the zoo that see text, sound, series and tables; see
zoo_images.py."""
import numpy as np

from networks import Graph, attention, encoder, gelu, geluTanh, gpt, layerNorm
from zoo_images import relu, transformerBlock

FLOAT = np.float32


def conv1(g, x, inputs, outputs, kernel, stride=1, pad=0, dilation=1, groups=1,
          bias=True):
    scale = np.sqrt(2 / (inputs // groups * kernel))
    w = g.weight(outputs, inputs // groups, kernel, scale=scale)
    return g.op("Conv", x, w, *([g.weight(outputs)] if bias else []),
                kernel_shape=[kernel], strides=[stride], pads=[pad] * 2,
                dilations=[dilation], group=groups)


def transposed(g, x, inputs, outputs, kernel, stride, pad):
    w = g.weight(inputs, outputs, kernel,
                 scale=np.sqrt(2 * stride / (inputs * kernel)))
    return g.op("ConvTranspose", x, w, g.weight(outputs), kernel_shape=[kernel],
                strides=[stride], pads=[pad] * 2)


def swapped(g, x):
    return g.op("Transpose", x, perm=[0, 2, 1])


def wav2vec(small):
    """wav2vec2: strided convolutions, positions by 128 taps in 16 groups."""
    samples, inner, width, heads, taps, groups, layers = (
        (1000, 16, 32, 4, 16, 4, 1) if small else (16000, 512, 768, 12, 128, 16, 2))
    g = Graph("wav2vec")
    x = g.op("Unsqueeze", g.input("x", FLOAT, 1, samples), g.ints(1))
    channels = 1
    for i, (kernel, stride) in enumerate([(10, 5)] + 4 * [(3, 2)] + 2 * [(2, 2)]):
        x = conv1(g, x, channels, inner, kernel, stride, bias=False)
        samples, channels = (samples - kernel) // stride + 1, inner
        if not i:
            x = g.op("InstanceNormalization", x, g.constant(np.ones(inner)),
                     g.constant(np.zeros(inner)))
        x = gelu(g, x)
    x = g.linear(layerNorm(g, swapped(g, x), inner), inner, width)
    y = conv1(g, swapped(g, x), width, width, taps, pad=taps // 2, groups=groups)
    y = g.op("Slice", y, g.ints(0), g.ints(-1), g.ints(2))
    x = layerNorm(g, g.op("Add", x, swapped(g, gelu(g, y))), width)
    for _ in range(layers):
        x = transformerBlock(g, x, 1, samples, width, heads)
    g.output(g.linear(layerNorm(g, x, width), width, 32))
    return g


def conv_tasnet(small):
    samples, filters, narrow, wide, blocks, repeats = (
        (800, 16, 8, 16, 3, 1) if small else (16000, 512, 128, 512, 8, 1))
    g = Graph("conv_tasnet")

    def globalNorm(x, channels):
        mean = g.op("ReduceMean", x, axes=[1, 2], keepdims=1)
        centred = g.op("Sub", x, mean)
        variance = g.op("ReduceMean", g.op("Mul", centred, centred),
                        axes=[1, 2], keepdims=1)
        deviation = g.op("Sqrt", g.op("Add", variance, g.constant(1e-8)))
        y = g.op("Mul", g.op("Div", centred, deviation),
                 g.constant(np.ones((channels, 1))))
        return g.op("Add", y, g.constant(np.zeros((channels, 1))))

    def prelu(x):
        return g.op("PRelu", x, g.constant([[0.25]]))

    mixture = g.op("Relu", conv1(g, g.input("x", FLOAT, 1, 1, samples), 1,
                                 filters, 16, 8, bias=False))
    x = conv1(g, globalNorm(mixture, filters), filters, narrow, 1)
    total = None
    for _ in range(repeats):
        for block in range(blocks):
            y = globalNorm(prelu(conv1(g, x, narrow, wide, 1)), wide)
            y = conv1(g, y, wide, wide, 3, pad=1 << block, dilation=1 << block,
                      groups=wide)
            y = globalNorm(prelu(y), wide)
            skip = conv1(g, y, wide, narrow, 1)
            total = g.op("Add", total, skip) if total else skip
            x = g.op("Add", x, conv1(g, y, wide, narrow, 1))
    masks = g.op("Sigmoid", conv1(g, prelu(total), narrow, 2 * filters, 1))
    frames = (samples - 16) // 8 + 1
    masks = g.op("Reshape", masks, g.ints(2, filters, frames))
    x = g.op("Mul", mixture, masks)
    g.output(transposed(g, x, filters, 1, 16, 8, 0))
    return g


def hifigan(small):
    """A vocoder: transposed convolutions, each before three dilated stacks."""
    frames, width, rates = (6, 16, (4, 2)) if small else (32, 256, (8, 8, 2, 2))
    g = Graph("hifigan")

    def leaky(x, alpha=0.1):
        return g.op("LeakyRelu", x, alpha=alpha)

    x = conv1(g, g.input("mel", FLOAT, 1, 80, frames), 80, width, 7, pad=3)
    for rate in rates:
        x = transposed(g, leaky(x), width, width // 2, 2 * rate, rate, rate // 2)
        width, total = width // 2, None
        for kernel in 3, 7, 11:
            y = x
            for dilation in 1, 3, 5:
                z = conv1(g, leaky(y), width, width, kernel, 1,
                          dilation * (kernel // 2), dilation)
                z = conv1(g, leaky(z), width, width, kernel, 1, kernel // 2)
                y = g.op("Add", y, z)
            total = g.op("Add", total, y) if total else y
        x = g.op("Div", total, g.constant(3.0))
    g.output(g.op("Tanh", conv1(g, leaky(x, 0.01), width, 1, 7, pad=3)))
    return g


def recurrent(g, kind, gates, x, inputs, hidden, directions, batch, **attributes):
    """[time, batch, directions * hidden]"""
    scale = hidden ** -0.5
    kinds = {} if directions == 1 else {"direction": "bidirectional"}
    states = [g.constant(np.zeros((directions, batch, hidden)))
              for _ in range(2 if kind == "LSTM" else 1)]
    y, *_ = g.op(kind, x, g.weight(directions, gates * hidden, inputs, scale=scale),
                 g.weight(directions, gates * hidden, hidden, scale=scale),
                 g.weight(directions, 2 * gates * hidden, scale=scale), "",
                 *states, outputs=1 + len(states), hidden_size=hidden, **kinds,
                 **attributes)
    y = g.op("Transpose", y, perm=[0, 2, 1, 3])
    return g.op("Reshape", y, g.ints(0, 0, -1))


def lstm(small):
    steps, inputs, hidden = (5, 8, 16) if small else (100, 128, 256)
    g = Graph("lstm")
    x = g.op("Transpose", g.input("x", FLOAT, 1, steps, inputs), perm=[1, 0, 2])
    for width in inputs, hidden:
        x = recurrent(g, "LSTM", 4, x, width, hidden, 1, 1)
    g.output(g.linear(x, hidden, 10))
    return g


def lstm_batch(small):
    """16 sequences, both directions."""
    steps, inputs, hidden, batch = (
        (4, 8, 16, 3) if small else (50, 128, 256, 16))
    g = Graph("lstm_batch")
    x = recurrent(g, "LSTM", 4, g.input("x", FLOAT, steps, batch, inputs), inputs,
                  hidden, 2, batch)
    g.output(g.linear(x, 2 * hidden, 10))
    return g


def gru(small):
    """As PyTorch's; its gates are linear before the reset."""
    steps, inputs, hidden = (5, 8, 16) if small else (100, 128, 256)
    g = Graph("gru")
    x = g.op("Transpose", g.input("x", FLOAT, 1, steps, inputs), perm=[1, 0, 2])
    x = recurrent(g, "GRU", 3, x, inputs, hidden, 2, 1, linear_before_reset=1)
    g.output(g.linear(x, 2 * hidden, 10))
    return g


def bert(small):
    tokens, width, heads, vocabulary, layers = (
        (6, 32, 4, 40, 2) if small else (128, 768, 12, 8192, 3))
    return encoder(layers, width, heads, vocabulary, tokens, isMasked=True)


def gpt_prefill(small):
    return gpt(2, 32, 4, 40, 6) if small else gpt(3, 768, 12, 4096)


def gpt_decode(small):
    """One token behind those whose keys and values are inputs."""
    past, width, heads, vocabulary, layers = (
        (5, 32, 4, 40, 2) if small else (255, 768, 12, 8192, 4))
    g = Graph("gpt_decode")
    ids = g.input("input_ids", np.int64, 1, 1, below=vocabulary)
    x = g.op("Add", g.op("Gather", g.weight(vocabulary, width), ids),
             g.weight(1, 1, width))
    for i in range(layers):
        before = [g.input(f"past_{kind}_{i}", FLOAT, 1, heads, past,
                          width // heads) for kind in ("key", "value")]
        y = attention(g, layerNorm(g, x, width), 1, 1, width, heads, past=before)
        x = g.op("Add", x, y)
        y = geluTanh(g, g.linear(layerNorm(g, x, width), width, 4 * width))
        x = g.op("Add", x, g.linear(y, 4 * width, width))
    g.output(g.op("MatMul", layerNorm(g, x, width), g.weight(width, vocabulary)))
    return g


def whisper(small):
    """The encoder."""
    frames, mels, width, heads, layers = (
        (20, 8, 32, 4, 1) if small else (1000, 80, 384, 6, 2))
    g = Graph("whisper")
    x = gelu(g, conv1(g, g.input("mel", FLOAT, 1, mels, frames), mels, width, 3,
                      pad=1))
    x = swapped(g, gelu(g, conv1(g, x, width, width, 3, 2, 1)))
    x = g.op("Add", x, g.weight(frames // 2, width))
    for _ in range(layers):
        x = transformerBlock(g, x, 1, frames // 2, width, heads)
    g.output(layerNorm(g, x, width))
    return g


def t5(small):
    """The encoder: RMS norms, biases by distance, gated feed-forward."""
    tokens, width, heads, vocabulary, layers = (
        (6, 32, 4, 40, 2) if small else (128, 512, 8, 4096, 4))
    g = Graph("t5")

    def norm(x):
        mean = g.op("ReduceMean", g.op("Pow", x, g.constant(2.0)), axes=[-1])
        root = g.op("Sqrt", g.op("Add", mean, g.constant(1e-6)))
        return g.op("Mul", g.op("Div", x, root), g.constant(np.ones(width)))

    ids = g.input("input_ids", np.int64, 1, tokens, below=vocabulary)
    x = g.op("Gather", g.weight(vocabulary, width), ids)
    apart = np.arange(tokens)[None] - np.arange(tokens)[:, None]
    near = np.where(np.abs(apart) < 8, np.abs(apart),
                    np.minimum(15, 8 + np.log2(np.abs(apart).clip(8) / 8) * 2))
    buckets = (near + 16 * (apart > 0)).astype(np.int64)
    bias = g.op("Gather", g.weight(32, heads, scale=1), g.constant(buckets, np.int64))
    bias = g.op("Unsqueeze", g.op("Transpose", bias, perm=[2, 0, 1]), g.ints(0))
    for _ in range(layers):
        x = g.op("Add", x, attention(g, norm(x), 1, tokens, width, heads,
                                     added=bias, bias=False, scaled=False))
        y = norm(x)
        gate = geluTanh(g, g.linear(y, width, 2 * width, bias=False))
        y = g.op("Mul", gate, g.linear(y, width, 2 * width, bias=False))
        x = g.op("Add", x, g.linear(y, 2 * width, width, bias=False))
    g.output(norm(x))
    return g


def windowed(name, small, back, ahead):
    """Attention to so many tokens on either side, with an input that says which there
    are, as layers of Mistral or ModernBERT."""
    tokens, width, heads = (12, 32, 4) if small else (4096, 512, 8)
    back, ahead = (3, min(ahead, 3)) if small else (back, ahead)
    g = Graph(name)
    x = g.input("x", FLOAT, 1, tokens, width)
    there = g.input("there", np.bool_, 1, 1, 1, tokens)
    places = g.op("Range", *(g.constant(n, np.int64) for n in (0, tokens, 1)))
    apart = g.op("Sub", g.op("Unsqueeze", places, g.ints(1)), places)
    near = g.op("And", g.op("LessOrEqual", apart, g.constant(back, np.int64)),
                g.op("GreaterOrEqual", apart, g.constant(-ahead, np.int64)))
    mask = g.op("Where", g.op("And", there, near), g.constant(0),
                g.constant(np.finfo(FLOAT).min))
    g.output(attention(g, x, 1, tokens, width, heads, added=mask, bias=False))
    return g


def sliding_window(small):
    return windowed("sliding_window", small, 511, 0)


def local_window(small):
    return windowed("local_window", small, 64, 64)


def spectrogram(small):
    """Four seconds of sound as speech recognisers take them."""
    points, step, mels, samples = (
        (16, 8, 5, 80) if small else (400, 160, 80, 64000))
    g = Graph("spectrogram")
    x = g.input("sound", FLOAT, 1, samples, 1)
    waves = g.op("STFT", x, g.constant(step, np.int64),
                 g.constant(np.hanning(points)), onesided=1)
    power = g.op("ReduceSum", g.op("Mul", waves, waves), g.ints(-1),
                 keepdims=0)
    bands = np.abs(np.random.default_rng(0).standard_normal(
        (points // 2 + 1, mels)))
    y = g.op("MatMul", power, g.constant(bands))
    g.output(g.op("Log", g.op("Add", y, g.constant(1e-5))))
    return g


def expertsOf(name, tokens, width, inner, count, k):
    """A layer of which each token's matrices are looked up, as PyTorch's exporters
    write mixtures of experts."""
    g = Graph(name)
    x = g.input("x", FLOAT, tokens, width)
    shares = g.op("Softmax", g.linear(x, width, count, bias=False), axis=-1)
    parts, which = g.op("TopK", shares, g.ints(k), outputs=2, axis=1)
    which = g.op("Reshape", which, g.ints(-1))
    rows = g.op("Expand", g.op("Unsqueeze", x, g.ints(1)),
                g.ints(tokens, k, width))
    rows = g.op("Reshape", rows, g.ints(tokens * k, width, 1))
    for name, outputs, inputs in (("up", inner, width), ("down", width, inner)):
        chosen = g.op("Gather", g.weight(count, outputs, inputs), which)
        rows = g.op("MatMul", chosen, rows)
        if name == "up":
            rows = g.op("Mul", rows, g.op("Sigmoid", rows))
    y = g.op("Mul", g.op("Reshape", rows, g.ints(tokens, k, width)),
             g.op("Unsqueeze", parts, g.ints(2)))
    g.output(g.op("ReduceSum", y, g.ints(1), keepdims=0))
    return g


def experts(small):
    return expertsOf("experts", *(
        (4, 8, 12, 4, 2) if small else (16, 512, 1024, 8, 2)))


def experts_prompt(small):
    return expertsOf("experts_prompt", *(
        (24, 8, 12, 4, 2) if small else (512, 512, 1024, 32, 4)))


def dlrm(small):
    """Rows of tables, their products with each other and with numbers."""
    batch, tables, rows, width = (3, 4, 10, 8) if small else (128, 26, 10000, 64)
    g = Graph("dlrm")
    dense, wide = g.input("dense", FLOAT, batch, 13), 13
    for outputs in 8 * width, 4 * width, width:
        dense, wide = relu(g, g.linear(dense, wide, outputs)), outputs
    ids = g.input("sparse", np.int64, batch, tables, below=rows)
    vectors = [dense]
    for i in range(tables):
        column = g.op("Gather", ids, g.constant(i, np.int64), axis=1)
        vectors.append(g.op("Gather", g.weight(rows, width), column))
    stacked = g.op("Reshape", g.op("Concat", *vectors, axis=1),
                   g.ints(batch, tables + 1, width))
    products = g.op("MatMul", stacked, swapped(g, stacked))
    products = g.op("Reshape", products, g.ints(batch, (tables + 1) ** 2))
    lower = np.flatnonzero(np.tri(tables + 1, k=-1))
    products = g.op("Gather", products, g.ints(*lower), axis=1)
    x, wide = g.op("Concat", dense, products, axis=1), width + lower.size
    for outputs in 16 * width, 8 * width, 4 * width:
        x, wide = relu(g, g.linear(x, wide, outputs)), outputs
    g.output(g.op("Sigmoid", g.linear(x, wide, 1)))
    return g


NETWORKS = {network.__name__: network for network in (
    wav2vec, conv_tasnet, hifigan, lstm, lstm_batch, gru, bert, gpt_prefill,
    gpt_decode, whisper, t5, sliding_window, local_window, spectrogram, experts,
    experts_prompt, dlrm)}
