//===- Flags.td - The command line of axlaunch ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

include "ax/Support/Flags.td"

def help1_restarting : Section<
  "Restarting",
  "axlaunch --fallback plan4.mlir -- mpirun -np 8 axrun plan.mlir --data "
  "train.npz --steps=1000 --save run --save-every=50">;

defm max_restarts : Value<
  "max-restarts", "N", "How often the command is run again (3)",
  help1_restarting, [Natural, Common]>;
defm fallback : Value<
  "fallback", "PLAN",
  "A plan for fewer ranks, to go on with when two runs in a row saved no step; "
  "several are taken in this order", help1_restarting, [Repeatable, Common]>;
defm grace : Value<
  "grace", "SECONDS",
  "What ranks have to end after one has failed, before mpirun kills them (5); "
  "mpirun waits twice as long after every failure", help1_restarting,
  [Natural, Common]>;
