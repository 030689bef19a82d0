# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ax-collectives on memory of cards, the simulated ones: over NCCL, on one card, and
by way of the host."""
import re
from pathlib import Path

from cases import Failed, run, scratch, tool
from nccl import CUDA, RUN_FAILED, USAGE

CASES = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all",
         "permute", "send_recv"]
# What nccl-tests multiply the rate of an algorithm by, of n ranks.
BUS = {"all_reduce": lambda n: 2 * (n - 1) / n, "all_gather": lambda n: (n - 1) / n,
       "reduce_scatter": lambda n: (n - 1) / n, "all_to_all": lambda n: (n - 1) / n}
SIZES = [60, 240, 960, 3840]


def measured(ranks, *flags, **settings):
    return run(tool("ax-collectives"), "--device=cuda", f"--ranks={ranks}", "--rounds=1",
               f"--min-bytes={SIZES[0]}", f"--max-bytes={SIZES[-1]}", *flags,
               env=CUDA | settings).stdout


def table(ranks, flags, counts, **settings):
    """All cases are right, and rates are what they are called; who exchanges calls the
    driver or NCCL, and others do not."""
    with scratch() as folder:
        said = measured(ranks, *flags, SIMGPU_COUNTS=f"{folder}/counts", **settings)
        called = dict(line.split() for line in
                      Path(f"{folder}/counts").read_text().splitlines())
    rows = [line.split() for line in said.splitlines()[1:]]
    # NCCL sends nothing from a rank to itself.
    cases = CASES[:-1] if ranks == 1 and "--comm=nccl" in flags else CASES
    if [row[0] for row in rows] != [name for name in cases for _ in SIZES]:
        raise Failed(said)
    for i, (name, size, type, us, algorithm, bus, wrong) in enumerate(rows):
        # In parts of equal sizes.
        wanted = SIZES[i % len(SIZES)] // 4 // ranks * ranks * 4
        rate = wanted / float(us) / 1e3
        factor = BUS.get(name, lambda n: 1)(ranks)
        if (int(size), type, wrong) != (wanted, "f32", "0") or \
                abs(float(algorithm) - rate) > 0.006 + 0.01 * rate or \
                abs(float(bus) - rate * factor) > 0.006 + 0.01 * rate:
            raise Failed(f"{name} {size}\n{said}")
    for name, wanted in counts.items():
        if (name in called) != wanted:
            raise Failed(f"{name}: {called}")


def refuses(says, *flags, code=USAGE, **settings):
    done = run(tool("ax-collectives"), "--rounds=1", "--max-bytes=64", *flags,
               expect=code, env=CUDA | settings)
    if not re.fullmatch(says, done.stderr.strip()):
        raise Failed(done.stderr)


def withTarget(name):
    refuses(f"ax-collectives: error: AXRUN_TARGET: .*'{name}'.*", "--device=cuda",
            "--devices=0,0", AXRUN_TARGET=name)


def fails():
    refuses("ax-collectives: error: rank [01]: all_reduce 16 f32 'benchmark': "
            r"ncclAllReduce: internal error \(3\)[^\n]*\n.*", "--device=cuda",
            "--comm=nccl", code=RUN_FAILED, SIMGPU_FAIL="ncclAllReduce:1:3")


def calibrated(flags, ranks, sharers):
    """What cards are for plans; the simulated ones are those of a capability."""
    memory = 8 << 30
    with scratch() as folder:
        path = f"{folder}/machine.yaml"
        run(tool("ax-collectives"), "--device=cuda", f"--ranks={ranks}",
            f"--calibrate={path}", *flags,
            env=CUDA | {"SIMGPU_CAPABILITY": "90", "SIMGPU_MEMORY": str(memory)})
        text = Path(path).read_text()
    found = dict(re.findall(r"^([\w-]+): +'?(.*?)'?$", text, re.M))
    wanted = {"target": "sm_90", "overlap": "true", "ranks-per-host": "0",
              "memory": str(memory // sharers)}
    if {key: found[key] for key in wanted} != wanted or \
            not re.fullmatch(f"\\w.*, {ranks} ranks", found["name"]) or \
            not float(found["command-latency"]) > 0:
        raise Failed(text)


def cases(every):
    nccl = {"ncclSend": True, "cuLaunchKernel": False, "cuMemcpyDtoHAsync": True}
    for ranks in 1, 2, 3, 5:
        yield f"nccl {ranks}", table, ranks, ["--comm=nccl"], \
            nccl | {"ncclSend": ranks > 1}
    onCard = {"ncclSend": False, "cuLaunchKernel": True}
    for ranks in 2, 3:
        yield f"on one card {ranks}", table, ranks, \
            ["--devices=" + ",".join(["1"] * ranks)], onCard
    yield "a machine of cards", calibrated, ["--comm=nccl"], 2, 1
    if every:
        yield "a machine of one card", calibrated, ["--devices=1,1"], 2, 2
    yield "by the host", table, 2, ["--comm=local"], \
        {"ncclSend": False, "cuLaunchKernel": False, "cuMemcpyDtoHAsync": True}
    idle = "ax-collectives: error: --{} has no use in this run: it is for --device={}"
    yield "peer", refuses, idle.format("peer", "cpu"), "--device=cuda", "--peer"
    yield "cards of the CPU", refuses, idle.format("devices", "cuda"), "--devices=0,0"
    yield ("too few cards", refuses,
           "ax-collectives: error: --devices has 1 card, and there are 2 ranks: give "
           "one for each rank", "--device=cuda", "--devices=0")
    yield ("too many cards", refuses,
           "ax-collectives: error: --devices has 2 cards, and there is 1 rank: give "
           "one for each rank", "--device=cuda", "--devices=0,1", "--ranks=1")
    yield ("no such card", refuses,
           "ax-collectives: error: --devices: there is no card 9 of device 'cuda', "
           "which has 8, from 0", "--device=cuda", "--devices=0,9")
    yield ("no cards", refuses,
           "ax-collectives: error: --devices=0,x: .*", "--device=cuda",
           "--devices=0,x")
    yield ("no device", refuses, "ax-collectives: error: there is no device 'gpu', but: "
           "cpu, cuda", "--device=gpu")
    yield ("nccl of the CPU", refuses,
           "ax-collectives: error: --comm=nccl is for --device=cuda, not for 'cpu': "
           "leave it out", "--comm=nccl")
    yield ("mpi without processes", refuses,
           "ax-collectives: error: --comm=mpi is for processes that mpirun starts: "
           "leave it out", "--comm=mpi")
    yield ("no communicator", refuses,
           "ax-collectives: error: --comm=tcp: expected local, mpi or nccl.*",
           "--comm=tcp")
    yield ("no target", withTarget, "z80")
    yield ("a call that fails", fails)
