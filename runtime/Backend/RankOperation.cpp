//===- RankOperation.cpp - Communication on device memory -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/RankOperation.h"

#include "llvm/ADT/STLExtras.h"

#include <cassert>

namespace ax::rt {

llvm::Expected<std::unique_ptr<RankOperation>>
RankOperation::create(std::unique_ptr<Operation> operation, Device &device,
                      llvm::ArrayRef<Sizes> tensors) {
  std::unique_ptr<RankOperation> made(
      new RankOperation(std::move(operation), device.getHostMapping()));
  auto add = [&](std::vector<Tensor> &side, int64_t bytes) -> llvm::Error {
    Tensor &tensor = side.emplace_back();
    tensor.bytes = bytes;
    if (made->mapping)
      return llvm::Error::success();
    llvm::Expected<std::unique_ptr<PinnedMemory>> copy =
        device.allocatePinned(bytes);
    if (!copy)
      return copy.takeError();
    tensor.copy = std::move(*copy);
    return llvm::Error::success();
  };
  for (const Sizes &sizes : tensors) {
    if (llvm::Error error = add(made->sources, sizes.source))
      return error;
    if (llvm::Error error = add(made->destinations, sizes.destination))
      return error;
  }
  made->from.resize(tensors.size());
  made->to.resize(tensors.size());
  return made;
}

llvm::Expected<std::unique_ptr<StreamOperation>> RankOperation::inPlaceOf(
    llvm::Expected<std::unique_ptr<StreamOperation>> onStream,
    llvm::function_ref<llvm::Expected<std::unique_ptr<Operation>>()> onHost,
    Device &device, llvm::ArrayRef<Sizes> tensors) {
  if (!onStream || *onStream)
    return onStream;
  auto operation = onHost();
  if (!operation)
    return operation.takeError();
  return create(std::move(*operation), device, tensors);
}

llvm::Error RankOperation::start(Stream &stream,
                                 llvm::ArrayRef<DeviceAddress> addresses) {
  assert(addresses.size() == sources.size() + destinations.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    sources[i].address = addresses[i];
    destinations[i].address = addresses[sources.size() + i];
    if (mapping) {
      from[i] = mapping->toHost(sources[i].address);
      to[i] = mapping->toHost(destinations[i].address);
      continue;
    }
    from[i] = sources[i].copy->getData();
    to[i] = destinations[i].copy->getData();
    if (llvm::Error error = stream.download(
            sources[i].address, *sources[i].copy, 0, sources[i].bytes))
      return error;
  }
  // What others will read must be there, and what they will overwrite must have
  // gone up.
  if (llvm::Error error = stream.synchronize())
    return error;
  return operation->start(from, to);
}

llvm::Error RankOperation::finish(Stream &stream) {
  if (llvm::Error error = operation->wait())
    return error;
  if (mapping)
    return llvm::Error::success();
  for (const Tensor &tensor : destinations)
    if (llvm::Error error =
            stream.upload(*tensor.copy, 0, tensor.address, tensor.bytes))
      return error;
  return llvm::Error::success();
}

} // namespace ax::rt
