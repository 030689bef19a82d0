# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTorch takes for a benchmark of benches.py; test/card/bench runs it. Prints
the median milliseconds of a run.

usage: torch_peer.py eager|compile|max-autotune step|predict|attention
                     NETWORK SIZES OPTIMIZER ITERATIONS cuda|cpu

The exit code is 3 where there is no PyTorch, or none that sees a card. `cpu` is to
try the programs, not to measure.
"""
import json
import statistics
import sys
import time

try:
    import torch
except ImportError:
    print(f"{sys.executable} has no PyTorch", file=sys.stderr)
    sys.exit(3)

WARM = 5


def milliseconds(function, device="cuda", runs=20):
    """The median of some runs, on a card by its events."""
    times = []
    for _ in range(WARM + runs):
        if device == "cpu":
            start = time.perf_counter()
            function()
            times.append(1e3 * (time.perf_counter() - start))
            continue
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        function()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[WARM:])


def compiled(function, how, isShort=False):
    """`isShort`: what is a graph of the device is faster."""
    if how == "eager":
        return function
    mode = how if how != "compile" else "reduce-overhead" if isShort else None
    return torch.compile(function, mode=mode)


def onHost(tensors, device):
    """Where a card reads them from while the host does other things."""
    return [tensor.pin_memory() if device == "cuda" else tensor for tensor in tensors]


def step(network, optimizer, how, device):
    """Weights and what the optimizer keeps are f32, as axopt's are; samples come from
    the host."""
    model = network.to(device)
    kind = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[optimizer]
    rule = kind(model.parameters(), lr=1e-3, fused=device == "cuda")
    samples = onHost(model.samples(), device)
    lossOf = compiled(lambda x, target: model.loss(model(x), target), how)

    def run():
        torch.compiler.cudagraph_mark_step_begin()
        given = [sample.to(device, non_blocking=True) for sample in samples]
        with torch.autocast(device, torch.bfloat16):
            loss = lossOf(*given)
        loss.backward()
        rule.step()
        rule.zero_grad()

    return run


def predict(network, how, device):
    """As axrun does, from inputs in memory of the host to outputs there, in f32."""
    model = compiled(network.to(device, torch.bfloat16).eval(), how, isShort=True)
    x, _ = onHost(network.samples(), device)
    result = None

    @torch.no_grad()
    def run():
        nonlocal result
        torch.compiler.cudagraph_mark_step_begin()
        given = x.to(device, non_blocking=True)
        output = model(given.bfloat16() if given.is_floating_point() else given)
        if result is None:
            result = torch.empty(output.shape, pin_memory=device == "cuda")
        result.copy_(output.float(), non_blocking=True)

    return run


def attention(sizes, how, device):
    """Nothing but it: a function for each backend that there is."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch_networks import attend
    shape = (sizes["batch"], sizes["heads"], sizes["tokens"],
             sizes["width"] // sizes["heads"])
    q, k, v, out = (torch.randn(shape, device=device, dtype=torch.bfloat16)
                    for _ in range(4))
    for tensor in q, k, v:
        tensor.requires_grad_()

    def by(backend):
        function = compiled(lambda q, k, v: attend(q, k, v, True), how)

        def run():
            torch.compiler.cudagraph_mark_step_begin()
            with sdpa_kernel(backend):
                torch.autograd.grad(function(q, k, v), (q, k, v), out)

        return run

    return [by(backend) for backend in
            (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION,
             SDPBackend.EFFICIENT_ATTENTION)]


def fastest(functions, device, runs):
    """Of those that run here."""
    times, why = [], None
    for function in functions:
        try:
            times.append(milliseconds(function, device, runs))
        except RuntimeError as error:
            why = error
    if not times:
        raise why
    return min(times)


def main():
    how, measure, name, sizes, optimizer, runs, device = sys.argv[1:]
    if device == "cuda" and not torch.cuda.is_available():
        print(f"PyTorch {torch.__version__} sees no card", file=sys.stderr)
        sys.exit(3)
    import torch_networks
    sizes = json.loads(sizes)
    if measure == "attention":
        print(fastest(attention(sizes, how, device), device, int(runs)))
        return
    network = getattr(torch_networks, name)(**sizes)
    run = (predict(network, how, device) if measure == "predict"
           else step(network, optimizer, how, device))
    print(milliseconds(run, device, int(runs)))


if __name__ == "__main__":
    main()
