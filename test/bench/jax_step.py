# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One training step of the GPT-2-like model in JAX: median milliseconds.

usage: jax_step.py BATCH (as many threads as the process may use processors)
"""
import statistics
import sys
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

LAYERS, WIDTH, HEADS, VOCABULARY, TOKENS = 4, 512, 8, 8192, 128


def parameters():
    random = np.random.default_rng(0)

    def weight(*shape):
        return jnp.asarray(random.standard_normal(shape, np.float32) * 0.02)

    def linear(inputs, outputs):
        return {"w": weight(inputs, outputs), "b": jnp.zeros(outputs)}

    def norm():
        return {"scale": jnp.ones(WIDTH), "bias": jnp.zeros(WIDTH)}

    blocks = [{"first": norm(), "qkv": linear(WIDTH, 3 * WIDTH),
               "mix": linear(WIDTH, WIDTH), "second": norm(),
               "up": linear(WIDTH, 4 * WIDTH),
               "down": linear(4 * WIDTH, WIDTH)} for _ in range(LAYERS)]
    return {"table": weight(VOCABULARY, WIDTH), "place": weight(TOKENS, WIDTH),
            "blocks": blocks, "norm": norm(),
            "head": weight(WIDTH, VOCABULARY)}


def linear(p, x):
    return x @ p["w"] + p["b"]


def norm(p, x):
    mean = x.mean(-1, keepdims=True)
    centred = x - mean
    variance = (centred * centred).mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + 1e-5) * p["scale"] + p["bias"]


def block(p, x):
    batch = x.shape[0]
    qkv = linear(p["qkv"], norm(p["first"], x))
    q, k, v = (part.reshape(batch, TOKENS, HEADS, -1)
               for part in jnp.split(qkv, 3, -1))
    mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    x = x + linear(p["mix"], mixed.reshape(batch, TOKENS, WIDTH))
    hidden = jax.nn.gelu(linear(p["up"], norm(p["second"], x)),
                         approximate=True)
    return x + linear(p["down"], hidden)


def loss(p, ids):
    x = p["table"][ids] + p["place"]
    for each in p["blocks"]:
        x = block(each, x)
    logits = norm(p["norm"], x) @ p["head"]
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), ids[..., None], -1)
    return -chosen.mean()


@partial(jax.jit, donate_argnums=(0, 1, 2))
def step(p, first, second, count, ids):
    value, gradient = jax.value_and_grad(loss)(p, ids)
    squares = sum(jnp.vdot(g, g) for g in jax.tree.leaves(gradient))
    scale = jnp.minimum(1, 1 / (jnp.sqrt(squares) + 1e-6))
    correct1, correct2 = 1 - 0.9 ** count, 1 - 0.999 ** count

    def update(w, g, m, v):
        g = g * scale
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        moved = m / correct1 / (jnp.sqrt(v / correct2) + 1e-8)
        return w * (1 - 1e-3 * 0.01) - 1e-3 * moved, m, v

    leaves, tree = jax.tree.flatten(p)
    new = [update(*each) for each in zip(
        leaves, *(jax.tree.leaves(t) for t in (gradient, first, second)))]
    return value, *(tree.unflatten(each) for each in zip(*new))


def main(batch):
    p = parameters()
    first, second = (jax.tree.map(jnp.zeros_like, p) for _ in range(2))
    ids = jnp.asarray(np.random.default_rng(1).integers(
        VOCABULARY, size=(batch, TOKENS)))
    times = []
    for i in range(12):
        start = time.perf_counter()
        value, p, first, second = step(p, first, second, i + 1.0, ids)
        jax.block_until_ready(p)
        times.append(1e3 * (time.perf_counter() - start))
    print(f"{statistics.median(times[2:]):.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
