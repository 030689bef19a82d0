//===- Flags.td - The command line of ax-collectives ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

include "ax/Support/Flags.td"

def help1_measuring : Section<
  "Measuring", "mpirun -np 2 ax-collectives --peer --min-bytes=4096">;
def help2_ranks : Section<
  "Ranks", "ax-collectives --ranks=8 --device=cuda --comm=nccl">;
def help3_machine : Section<
  "The machine", "ax-collectives --ranks=2 --calibrate=machine.yaml">;

defm device : Value<
  "device", "NAME", "Whose memory is exchanged: cpu, or cuda", help2_ranks,
  [Common]>;
defm devices : Value<
  "devices", "CARD,..",
  "Which card each rank has; without it rank i card i, and of fewer cards "
  "neighbours share one", help2_ranks, [Common]>;
defm comm : Value<
  "comm", "NAME",
  "How ranks communicate (local, or mpi where mpirun has started several "
  "processes; nccl, between cards)", help2_ranks, [Common], "local,mpi,nccl">;
defm ranks : Value<
  "ranks", "N", "Ranks that are threads, without a launcher (2)",
  help2_ranks, [Natural, Common]>;
defm min_bytes : Value<
  "min-bytes", "N", "The smallest size (64); the next is 4 times as large",
  help1_measuring, [Natural, Common]>;
defm max_bytes : Value<
  "max-bytes", "N", "The largest size (67108864)", help1_measuring,
  [Natural, Common]>;
defm rounds : Value<
  "rounds", "N", "How often each is measured, of which the fastest counts (20)",
  help1_measuring, [Natural, Common]>;
defm peer : Switch<
  "peer", "Beside it MPI's own calls; of threads direct reads, which wait for "
  "nobody", help1_measuring, [Common]>;
defm calibrate : Value<
  "calibrate", "FILE.yaml",
  "Measure in place of all that what each rank has of this machine while all "
  "work, and write it for axopt --machine", help3_machine, [Common]>;
