//===- WithoutCublas.cpp - No products where they cannot be built ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudaProducts.h"

#include "ax/Support/Error.h"

namespace ax::rt::cuda {

namespace {

class NoProducts : public CudaProducts {
public:
  llvm::Expected<std::unique_ptr<CudaOp>> prepare(const MatmulDesc &) override {
    return makeError(ExitCode::Unsupported,
                     "this was built without cuBLASLt's header (cublasLt.h "
                     "beside cuda.h)");
  }
  void setSpareMemory(int64_t) override {}
};

} // namespace

std::unique_ptr<CudaProducts> makeProducts(const SharedCard &, bool) {
  return std::make_unique<NoProducts>();
}

} // namespace ax::rt::cuda
