//===- WithoutCudnn.cpp - What cuDNN would do, without its header ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudaDnn.h"

#include "ax/Support/Error.h"

namespace ax::rt::cuda {

namespace {

llvm::Error noHeader() {
  return makeError(ExitCode::Unsupported, whyNoCudnn());
}

class NoDnn : public CudaDnn {
public:
  llvm::Expected<std::unique_ptr<CudaOp>>
  prepare(const AttentionDesc &) override {
    return noHeader();
  }
  llvm::Expected<std::unique_ptr<CudaOp>>
  prepare(const AttentionGradientDesc &) override {
    return noHeader();
  }
  llvm::Expected<std::unique_ptr<CudaOp>> prepare(const ConvDesc &) override {
    return noHeader();
  }
};

} // namespace

std::string whyNoCudnn() {
  return "this was built without cuDNN's header (cudnn_graph.h beside cuda.h)";
}

std::unique_ptr<CudaDnn> makeDnn(const SharedCard &, const DeviceOptions &) {
  return std::make_unique<NoDnn>();
}

} // namespace ax::rt::cuda
