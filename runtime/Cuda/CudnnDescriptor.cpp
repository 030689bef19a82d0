//===- CudnnDescriptor.cpp - Descriptors and plans of cuDNN ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudnnGraph.h"

namespace ax::rt::cuda {

llvm::Expected<std::unique_ptr<CudnnDescriptor>>
CudnnDescriptor::create(const SharedCudnn &cudnn,
                        cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  if (llvm::Error error = cudnn->getLibrary().call(
          &Cudnn::cudnnBackendCreateDescriptor, type, &made))
    return error;
  return std::make_unique<CudnnDescriptor>(cudnn, made);
}

CudnnDescriptor::~CudnnDescriptor() {
  // A plan's kernels are of the card's context.
  llvm::consumeError(cudnn->enter());
  llvm::consumeError(cudnn->getLibrary().call(
      &Cudnn::cudnnBackendDestroyDescriptor, descriptor));
}

llvm::Error CudnnDescriptor::setRaw(cudnnBackendAttributeName_t name,
                                    cudnnBackendAttributeType_t type,
                                    int64_t count, const void *values) {
  return cudnn->getLibrary().call(&Cudnn::cudnnBackendSetAttribute, descriptor,
                                  name, type, count, values);
}

llvm::Error CudnnDescriptor::finalize() {
  return cudnn->getLibrary().call(&Cudnn::cudnnBackendFinalize, descriptor);
}

llvm::Expected<int64_t>
CudnnDescriptor::getNumber(cudnnBackendAttributeName_t name) const {
  int64_t number = 0, count = 0;
  if (llvm::Error error = cudnn->getLibrary().call(
          &Cudnn::cudnnBackendGetAttribute, descriptor, name, CUDNN_TYPE_INT64,
          int64_t(1), &count, static_cast<void *>(&number)))
    return error;
  return number;
}

llvm::Expected<std::string>
CudnnDescriptor::getText(cudnnBackendAttributeName_t name) const {
  int64_t size = 0;
  auto get = [&](int64_t most, void *to) {
    return cudnn->getLibrary().call(&Cudnn::cudnnBackendGetAttribute,
                                    descriptor, name, CUDNN_TYPE_CHAR, most,
                                    &size, to);
  };
  if (llvm::Error error = get(0, nullptr))
    return error;
  std::string text(static_cast<size_t>(size), '\0');
  if (llvm::Error error = get(size, text.data()))
    return error;
  return text;
}

llvm::Error CudnnPlan::execute(CUstream stream,
                               llvm::ArrayRef<Argument> arguments,
                               CUdeviceptr workspace) const {
  auto pack =
      CudnnDescriptor::create(cudnn, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  if (!pack)
    return pack.takeError();
  llvm::SmallVector<int64_t> numbers;
  llvm::SmallVector<void *> places;
  for (const Argument &argument : arguments) {
    numbers.push_back(argument.number);
    places.push_back(argument.at);
  }
  void *scratch = reinterpret_cast<void *>(workspace);
  CudnnDescriptor &all = **pack;
  if (llvm::Error error = all.set<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                                           CUDNN_TYPE_INT64, numbers))
    return error;
  if (llvm::Error error = all.set<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                          CUDNN_TYPE_VOID_PTR, places))
    return error;
  if (llvm::Error error = all.set<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                                          CUDNN_TYPE_VOID_PTR, scratch))
    return error;
  if (llvm::Error error = all.finalize())
    return error;
  return cudnn->execute(plan->get(), all.get(), stream);
}

} // namespace ax::rt::cuda
