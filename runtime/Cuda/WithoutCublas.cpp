//===- WithoutCublas.cpp - No products where they cannot be built ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudaProducts.h"

#include "ax/Support/Error.h"

namespace ax::rt::cuda {

namespace {

llvm::Error noHeader() {
  return makeError(ExitCode::Unsupported,
                   "this was built without cuBLASLt's header (cublasLt.h "
                   "beside cuda.h)");
}

class NoProducts : public CudaProducts {
public:
  llvm::Expected<std::unique_ptr<CudaOp>> prepare(const MatmulDesc &) override {
    return noHeader();
  }
  llvm::Expected<int64_t> findWorkspace(const MatmulDesc &) override {
    return noHeader();
  }
  void setSpareMemory(int64_t) override {}
};

} // namespace

std::unique_ptr<CudaProducts> makeProducts(const SharedCard &, bool) {
  return std::make_unique<NoProducts>();
}

} // namespace ax::rt::cuda
