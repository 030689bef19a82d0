//===- GpuStages.h - Stages as kernels on a simulated GPU -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stages are interpreted as written, and composed, split and fused as for a
// GPU: kernels on a simulated one, views by the interpreter.
//
//===----------------------------------------------------------------------===//
#ifndef AX_TEST_UNIT_KERNELS_GPUSTAGES_H
#define AX_TEST_UNIT_KERNELS_GPUSTAGES_H

#include <cstdint>
#include <string>
#include <vector>

namespace ax::codegen {

/// Expects that the stage `body` on %a, %b, ... of the given types becomes so
/// many kernels, which give in its %r what it says, the same bits in several
/// orders of threads. A tolerance of 0 is that of the type, and as many kernels
/// are any number.
void checkStage(const std::vector<std::string> &operands,
                const std::string &body, const std::string &result,
                int64_t numKernels, double tolerance);

} // namespace ax::codegen

#endif // AX_TEST_UNIT_KERNELS_GPUSTAGES_H
