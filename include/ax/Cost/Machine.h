//===- Machine.h - The machine that ranks run on ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_COST_MACHINE_H
#define AX_COST_MACHINE_H

#include "ax/Cost/Epilogue.h"
#include "ax/Support/MachineRates.h"

namespace ax::cost {

/// What ranks have of their machine, and what its library does along with
/// products.
struct Machine : MachineRates {
  const Library *library = &cpuLibrary();

  Machine() = default;
  explicit Machine(MachineRates rates);

  /// Of a contraction's factors.
  double flopsPerSecondOf(mlir::Type element) const {
    return isNarrowFloat(element) ? narrowFlopsPerSecond : flopsPerSecond;
  }
};

/// Returns the machine that a plan, or the plan that `op` is in, is priced for
/// (`kMachine`); the generic one where that names none which is known, as
/// `verifyPlan` tells.
Machine machineOf(mlir::Operation *op);
/// Returns the library of that machine.
const Library &libraryOf(mlir::Operation *op);

/// Returns what a plan has in `kMachine` for it: the name of a GPU whose data
/// sheet it is, or a dictionary with all that is not as there, or as in the
/// generic machine.
mlir::Attribute toAttribute(const MachineRates &rates,
                            mlir::MLIRContext *context);

/// Reads the same; an Error whose text is what is wrong, behind the plan.
llvm::Expected<MachineRates> fromAttribute(mlir::Attribute attribute);

} // namespace ax::cost

#endif // AX_COST_MACHINE_H
