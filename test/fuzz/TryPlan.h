//===- TryPlan.h - What verifies also runs ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_FUZZ_TRYPLAN_H
#define AX_TEST_FUZZ_TRYPLAN_H

#include "mlir/IR/BuiltinOps.h"

namespace ax::test {

/// Compiles and runs a verified plan, if it is small, on zeros. Aborts when
/// anybody behind the verifier calls it a bad plan, or a fault of ours.
void tryPlan(mlir::ModuleOp module);

/// Prints the message and aborts when the error is a fault of ours.
void expectNoFault(llvm::Error error, bool isVerified);

} // namespace ax::test

#endif // AX_TEST_FUZZ_TRYPLAN_H
