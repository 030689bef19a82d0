//===- CudnnConvolution.cpp - Convolutions by cuDNN -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudaMemory.h"
#include "CudnnConvolutionGraphs.h"
#include "CudnnOps.h"

#include "llvm/Support/MathExtras.h"

namespace ax::rt::cuda {

using namespace convolution;

namespace {

class ConvolutionOp : public CudaOp {
public:
  ConvolutionOp(ConvKind kind, SharedPlan plan)
      : isWeightGradient(kind == ConvKind::WeightGradient),
        plan(std::move(plan)) {
    workspaceBytes =
        this->plan->getWorkspaceBytes() + CudnnPlan::workspaceAlignment;
  }

  llvm::Error execute(CUstream stream, const DeviceAddress *arguments,
                      DeviceAddress workspace) override {
    CUdeviceptr base =
        llvm::alignTo(toCuda(workspace), CudnnPlan::workspaceAlignment);
    llvm::SmallVector<CudnnPlan::Argument, 3> all;
    for (int64_t number :
         {X, isWeightGradient ? Y : W, isWeightGradient ? W : Y})
      all.push_back({number, reinterpret_cast<void *>(toCuda(*arguments++))});
    return plan->execute(stream, all, base);
  }

private:
  bool isWeightGradient;
  SharedPlan plan;
};

} // namespace

std::unique_ptr<CudaOp> makeConvolution(ConvKind kind, SharedPlan plan) {
  return std::make_unique<ConvolutionOp>(kind, std::move(plan));
}

} // namespace ax::rt::cuda
