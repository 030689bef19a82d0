//===- HostOp.cpp - What a device lacks, done by the host -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "HostOp.h"

#include <cassert>
#include <cstring>

namespace ax::rt {

static bool hasGaps(const TensorDesc &tensor) {
  return tensor.spanBytes() != tensor.numElements() * byteSize(tensor.dtype);
}

/// Copies the elements of a view to their places in other memory.
static void copyElements(const TensorDesc &view, size_t dim, const char *from,
                         char *to) {
  int64_t bytes = byteSize(view.dtype);
  if (dim == view.sizes.size()) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  if (dim + 1 == view.sizes.size() && view.strides[dim] == 1) {
    std::memcpy(to, from, static_cast<size_t>(view.sizes[dim] * bytes));
    return;
  }
  for (int64_t i = 0; i < view.sizes[dim]; ++i) {
    int64_t offset = i * view.strides[dim] * bytes;
    copyElements(view, dim + 1, from + offset, to + offset);
  }
}

llvm::Expected<std::unique_ptr<HostOp>>
HostOp::create(const LibraryDesc &desc, const ConstantOperand &constant,
               Device &device, Stream &stream, Device &host) {
  const HostMapping *mapping = host.getHostMapping();
  assert(mapping && "a device that works on the host's memory");
  auto made = std::make_unique<HostOp>();
  int count = numArguments(desc);
  for (int i = 0; i < count; ++i) {
    TensorDesc tensor = argumentDesc(desc, i);
    Argument &argument = made->arguments.emplace_back();
    argument.tensor = tensor;
    argument.isWritten = i >= count - numResults(desc);
    argument.isRead = !argument.isWritten;
    if (argument.isWritten && hasGaps(tensor)) {
      auto around = device.allocatePinned(tensor.spanBytes());
      if (!around)
        return around.takeError();
      argument.around = std::move(*around);
    }
    auto copy = device.allocatePinned(tensor.spanBytes());
    if (!copy)
      return copy.takeError();
    argument.copy = std::move(*copy);
    made->addresses.push_back(mapping->toDevice(argument.copy->getData()));
  }
  ConstantOperand inHost = constant;
  int packed = packedArgument(desc);
  if (constant.data) {
    Argument &argument = made->arguments[static_cast<size_t>(packed)];
    if (llvm::Error error = stream.download(constant.data, *argument.copy, 0,
                                            argument.copy->getSize()))
      return error;
    if (llvm::Error error = stream.synchronize())
      return error;
    inHost.data = made->addresses[static_cast<size_t>(packed)];
    // It is there now, and does not change.
    argument.isRead = false;
  }
  auto op = host.prepare(desc, inHost);
  if (!op)
    return op.takeError();
  made->op = std::move(*op);
  // What was packed is not needed in its plain form any more.
  if (constant.data && !made->readsConstant()) {
    made->arguments[static_cast<size_t>(packed)].copy.reset();
    made->addresses[static_cast<size_t>(packed)] = {};
  }
  auto hostStream = host.createStream();
  if (!hostStream)
    return hostStream.takeError();
  made->hostStream = std::move(*hostStream);
  auto workspace = host.allocate(made->op->getWorkspaceBytes());
  if (!workspace)
    return workspace.takeError();
  made->workspace = std::move(*workspace);
  return made;
}

llvm::Error HostOp::execute(Stream &stream, const DeviceAddress *given) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (const Argument &argument = arguments[i]; argument.isRead)
      if (llvm::Error error = stream.download(given[i], *argument.copy, 0,
                                              argument.copy->getSize()))
        return error;
  if (llvm::Error error = stream.synchronize())
    return error;
  // What is wrong with the numbers is told when results are up, as those go on.
  llvm::Error fault =
      hostStream->execute(*op, addresses.data(), workspace->getAddress());
  for (size_t i = 0; i < arguments.size(); ++i)
    if (const Argument &argument = arguments[i]; argument.isWritten)
      if (llvm::Error error = upload(stream, argument, given[i]))
        return llvm::joinErrors(std::move(fault), std::move(error));
  return fault;
}

llvm::Error HostOp::upload(Stream &stream, const Argument &argument,
                           DeviceAddress to) {
  PinnedMemory &copy = *argument.copy;
  if (!argument.around)
    return stream.upload(copy, 0, to, copy.getSize());
  PinnedMemory &around = *argument.around;
  if (llvm::Error error = stream.download(to, around, 0, around.getSize()))
    return error;
  if (llvm::Error error = stream.synchronize())
    return error;
  copyElements(argument.tensor, 0, static_cast<const char *>(copy.getData()),
               static_cast<char *>(around.getData()));
  return stream.upload(around, 0, to, around.getSize());
}

} // namespace ax::rt
