//===- KernelTestSupport.h - A fusion against the interpreter ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_UNIT_KERNELS_KERNELTESTSUPPORT_H
#define AX_TEST_UNIT_KERNELS_KERNELTESTSUPPORT_H

#include "ax/Codegen/Kernel.h"
#include "ax/Support/HostTensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <random>

namespace ax::codegen {

mlir::MLIRContext &testContext();
/// What kernels are compiled for; a program of tests has one.
const Target &testTarget();
KernelCompiler &testCompiler();

/// A fusion with operands %a, %b, ... of the given types, the body, and the
/// named results. "f32" means a scalar tensor.
struct FusionText {
  std::vector<std::string> operands; // "4x8xf32"
  std::string body;
  std::vector<std::pair<std::string, std::string>> results; // %name, type
};
mlir::OwningOpRef<mlir::ModuleOp> parse(const FusionText &text);
FusionOp fusionOf(mlir::ModuleOp module);

/// Runs in `pieces` parts, or for a GPU of several pieces on few blocks, with
/// guards around every buffer that must survive. `seed`: of the order in which
/// the threads of a GPU run.
std::vector<HostTensor> runKernel(const CompiledKernel &kernel, FusionOp fusion,
                                  llvm::ArrayRef<HostTensor> operands,
                                  int64_t pieces = 1,
                                  llvm::ArrayRef<int64_t> scalars = {},
                                  uint64_t seed = 0);
std::vector<HostTensor> interpretFusion(FusionOp fusion,
                                        llvm::ArrayRef<HostTensor> operands);

/// Values that suit `type`: floats in [-3, 3], integers in [-20, 20] or
/// [0, 40], mixed bools.
HostTensor randomTensor(mlir::RankedTensorType type, std::mt19937 &random);
/// Indices below `bound`, negative ones too.
HostTensor randomIndices(mlir::RankedTensorType type, int64_t bound,
                         std::mt19937 &random);

/// |difference| <= tolerance * max(1, |expected|) in every element (both NaN
/// counts as equal), identical for integers.
void expectClose(const HostTensor &actual, const HostTensor &expected,
                 double tolerance, const std::string &what);
/// Absolute and relative tolerance for results of this type.
double toleranceOf(DType type);

/// Compiles, runs on random operands in one and in three pieces, compares; for
/// a GPU in several orders of its threads, which are to give the same bits.
/// Operands given in `fixed` (by position) are not random.
void check(const FusionText &text,
           const std::vector<std::pair<size_t, HostTensor>> &fixed = {},
           double tolerance = 0);

} // namespace ax::codegen

#endif // AX_TEST_UNIT_KERNELS_KERNELTESTSUPPORT_H
