//===- TestCase.h - A model beside an ONNX test case ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXINTERPRET_TESTCASE_H
#define AX_TOOLS_AXINTERPRET_TESTCASE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace ax {

/// Interprets the module's program on the inputs of the folder's test case: a
/// Differs error for each output that is not as there.
llvm::Error checkTestCase(mlir::ModuleOp module, llvm::StringRef folder,
                          double rtol, double atol);

} // namespace ax

#endif // AX_TOOLS_AXINTERPRET_TESTCASE_H
