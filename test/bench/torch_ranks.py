# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPT-2-like model in PyTorch over two processes of one thread, which talk
by gloo: median milliseconds.

usage: torch_ranks.py forward|step tp|dp BATCH

tp: a DTensor each weight that is split, as Megatron splits (columns of the
queries, keys and values, and of the first layer of the MLP, rows of what comes
behind; the vocabulary of the table and of the head; the loss of logits that
stay split). dp: DistributedDataParallel; BATCH is that of all.
"""
import os
import statistics
import sys
import tempfile
import time

import torch
import torch.multiprocessing as mp
from torch import distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel, RowwiseParallel, loss_parallel, parallelize_module)
from torch.nn import functional as F

import torch_step
from torch_step import HEADS, LAYERS, TOKENS, VOCABULARY, Model

RANKS = 2
PROCESSORS = sorted(os.sched_getaffinity(0))


def split(model, keepsLogits):
    """A rank's columns of queries, keys and values are those of its heads."""
    torch_step.HEADS = HEADS // RANKS
    plan = {"table": RowwiseParallel(input_layouts=Replicate()),
            "head": ColwiseParallel(
                output_layouts=Shard(-1) if keepsLogits else Replicate(),
                use_local_output=not keepsLogits)}
    for i in range(LAYERS):
        for name, style in (("qkv", ColwiseParallel), ("mix", RowwiseParallel),
                            ("up", ColwiseParallel), ("down", RowwiseParallel)):
            plan[f"blocks.{i}.{name}"] = style()
    return parallelize_module(model, init_device_mesh("cpu", (RANKS,)), plan)


def makeStep(model, isSplit, ids):
    # DTensors and others do not mix in what is fused, nor in a norm.
    groups = [[p for p in model.parameters() if isinstance(p, DTensor) == kind]
              for kind in (False, True)]
    groups = [group for group in groups if group]
    optimizer = torch.optim.AdamW([{"params": group} for group in groups],
                                  fused=True)

    def step():
        with loss_parallel() if isSplit else torch.enable_grad():
            logits = model(ids).flatten(0, 1)
            F.cross_entropy(logits, ids.flatten()).backward()
        norms = [nn.utils.get_total_norm([p.grad for p in group])
                 for group in groups]
        norm = torch.stack([n.full_tensor() if isinstance(n, DTensor) else n
                            for n in norms]).norm()
        for group in groups:
            nn.utils.clip_grads_with_norm_(group, 1, norm)
        optimizer.step()
        optimizer.zero_grad()

    return step


def work(rank, folder, what, layout, batch):
    os.sched_setaffinity(0, {PROCESSORS[rank % len(PROCESSORS)]})
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting",
                            rank=rank, world_size=RANKS)
    model = Model()
    isSplit = layout == "tp"
    if isSplit:
        model = split(model, keepsLogits=what == "step")
    elif what == "step":
        model = nn.parallel.DistributedDataParallel(
            model, gradient_as_bucket_view=True)
    ids = torch.randint(VOCABULARY, (batch if isSplit else batch // RANKS,
                                     TOKENS))
    run = makeStep(model, isSplit, ids) if what == "step" else (
        lambda: model(ids))
    times = []
    with torch.set_grad_enabled(what == "step"):
        for _ in range(12 if what == "step" else 33):
            dist.barrier()
            start = time.perf_counter()
            run()
            times.append(1e3 * (time.perf_counter() - start))
    if rank == 0:
        print(f"{statistics.median(times[2:]):.2f}", flush=True)
    dist.destroy_process_group()


def main(what, layout, batch):
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, (folder, what, layout, int(batch)), nprocs=RANKS)


if __name__ == "__main__":
    main(*sys.argv[1:])
