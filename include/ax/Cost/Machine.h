//===- Machine.h - How fast a rank's machine is -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_COST_MACHINE_H
#define AX_COST_MACHINE_H

#include "ax/Cost/Epilogue.h"

namespace ax::cost {

/// How fast the machine of one rank computes and communicates: multiplications
/// and additions, or bytes, in a second; latencies in seconds. The numbers here
/// are of no machine that somebody has measured.
struct Machine {
  llvm::StringRef name = "generic CPU core";
  double flopsPerSecond = 5e10;
  /// Of factors of bf16 and f16.
  double narrowFlopsPerSecond = 5e10;
  double bytesPerSecond = 1e10;
  double collectiveLatency = 5e-6;
  double collectiveBytesPerSecond = 5e9;
  /// What is started goes on while the rank computes. Threads of one process
  /// (`--comm=local`) do all of a collective themselves, where they wait for
  /// it; on a GPU streams do it.
  bool overlapsCollectives = false;
  const Library *library = &cpuLibrary();

  /// Of a contraction's factors.
  double flopsPerSecondOf(mlir::Type element) const {
    return isNarrowFloat(element) ? narrowFlopsPerSecond : flopsPerSecond;
  }
};

/// Returns the machine that a plan, or the plan that `op` is in, is priced for
/// (`kMachine`); the generic one where that names none which is known, as
/// `verifyPlan` tells.
Machine machineOf(mlir::Operation *op);

/// Returns whether there is a machine of this target.
bool isMachine(llvm::StringRef target);

} // namespace ax::cost

#endif // AX_COST_MACHINE_H
