//===- GpuWriter.h - Kernels as what one thread does ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_GPUWRITER_H
#define AX_CODEGEN_KERNELS_GPUWRITER_H

#include "ScalarWriter.h"
#include "ThreadGroups.h"
#include "ax/Support/Target.h"

namespace ax::codegen {

/// A kernel of which every group of threads of a grid does each so-manieth
/// iteration, from its own number on: any number of blocks does all.
/// Parameters are those that kernelFormat::ptx says (ax/Runtime/Program.h).
///
/// A loop that is dealt out is done in turns, thread t of G points t, t + G,
/// ..., and what threads carry becomes one in a fixed order, so that results
/// are the same in each run. The threads of a group do the same iterations, so
/// all of them get to where they meet.
class GpuWriter final : public ScalarWriter {
public:
  /// Into `module`, which is empty.
  GpuWriter(FusionOp fusion, llvm::StringRef symbol, mlir::ModuleOp module,
            unsigned numScalars, const KernelNests &nests,
            const GroupLaunch &launch, const GpuTarget &target);

  void iterations(
      int64_t tiledSize,
      llvm::function_ref<void(Value, std::pair<Value, Value>)> body) final;
  Value expFlushed(Value x) final;
  Value binary(BinaryKind kind, Value x, Value y, mlir::Type type) final;
  Value convert(Value x, mlir::Type from, mlir::Type to) final;
  Value combine(ReduceOpKind kind, Value acc, Value x, mlir::Type type) final;
  void dealtLoop(int64_t count, int64_t together,
                 llvm::function_ref<void(mlir::ValueRange)> body) final;
  Values dealtReduction(llvm::ArrayRef<DealtPoints> points,
                        mlir::ValueRange carried, Combining combining) final;
  MaxAndSum dealtMaxAndSum(llvm::ArrayRef<DealtPoints> points) final;
  void meet() final;

private:
  bool isInWarp() const {
    return !group.isColumn() && group.threads <= warpThreads;
  }
  Value fromWord(Value number);
  Value word(int64_t value);
  Value sharedMemory(llvm::StringRef name, int64_t bytes);
  void setScratch(Value ofCard);
  Values takeTurns(Value begin, int64_t count, mlir::ValueRange carried,
                   LoopBody body);
  Values combineTurns(Value begin, int64_t count, const Combining &combining,
                      size_t width, int64_t terms, LoopBody body);
  Values combinePoints(const DealtPoints &points, const Combining &combining,
                       size_t width);
  Values addToMaxAndSum(mlir::ValueRange maxAndSum, mlir::ValueRange numbers);
  Value combineAll(Value x, const Combining &combining);
  Value combineWarp(Value x, const Combining &combining, int64_t lanes,
                    int64_t step = 1);
  Values combineColumns(mlir::ValueRange own, const Combining &combining);
  Value fromOther(Value x, bool isFirst, int64_t offset);

  ThreadGroup group;
  bool roundsToFloat8, contracts;
  int64_t numIterations, scratchBytes, sharedBytes, threadsPerBlock;
  /// Numbers of this thread in its block, and of its block and all blocks.
  Value thread, block, numBlocks;
  /// The number of this thread in its group, of its group among all groups, and
  /// how many there are.
  Value turn, groupNumber, numGroups;
  /// Of columns, of which some may be beyond the last: whether this one is not.
  Value isActive;
};

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_GPUWRITER_H
