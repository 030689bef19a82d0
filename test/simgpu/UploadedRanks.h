//===- UploadedRanks.h - Host tensors, exchanged by devices -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_UPLOADEDRANKS_H
#define AX_TEST_UPLOADEDRANKS_H

#include "ax/Runtime/Communicator.h"
#include "ax/Runtime/HostTransfer.h"
#include "ax/Runtime/RankOperation.h"
#include "ax/Support/Error.h"

namespace ax::rt {

/// An operation on memory of a device, between uploads and downloads.
class UploadedOperation : public Operation {
public:
  UploadedOperation(Communicator &communicator, Device &device,
                    std::unique_ptr<StreamOperation> operation)
      : communicator(communicator), operation(std::move(operation)),
        stream(llvm::cantFail(device.createStream())),
        transfer(device, *stream, 1 << 16), device(device) {}
  /// What is still queued uses the memory.
  ~UploadedOperation() override { llvm::consumeError(stream->synchronize()); }

  void addTensor(int64_t sourceBytes, int64_t destinationBytes) {
    tensors.push_back({llvm::cantFail(device.allocate(sourceBytes)),
                       llvm::cantFail(device.allocate(destinationBytes)),
                       nullptr, false});
  }
  llvm::Error start(llvm::ArrayRef<const void *> sources,
                    llvm::ArrayRef<void *> destinations) override {
    std::vector<DeviceAddress> addresses;
    for (size_t i = 0; i < tensors.size(); ++i) {
      Tensor &tensor = tensors[i];
      if (int64_t bytes = tensor.source->getSize())
        if (llvm::Error error =
                transfer.upload(sources[i], tensor.source->getAddress(), bytes))
          return error;
      tensor.to = destinations.empty() ? nullptr : destinations[i];
      tensor.isInPlace = !sources.empty() && tensor.to == sources[i];
      addresses.push_back(tensor.source->getAddress());
    }
    for (Tensor &tensor : tensors)
      addresses.push_back(tensor.getResult().getAddress());
    return operation->start(*stream, addresses);
  }
  llvm::Error wait() override {
    if (llvm::Error error = operation->finish(*stream))
      return error;
    for (Tensor &tensor : tensors)
      if (int64_t bytes = tensor.getResult().getSize(); bytes && tensor.to)
        if (llvm::Error error = transfer.download(
                tensor.getResult().getAddress(), tensor.to, bytes))
          return error;
    return communicator.getLateError();
  }

private:
  struct Tensor {
    std::unique_ptr<DeviceMemory> source, destination;
    void *to = nullptr;
    bool isInPlace = false;
    DeviceMemory &getResult() { return isInPlace ? *source : *destination; }
  };

  Communicator &communicator;
  std::unique_ptr<StreamOperation> operation;
  std::unique_ptr<Stream> stream;
  HostTransfer transfer;
  Device &device;
  std::vector<Tensor> tensors;
};

/// What becomes of operations that a communicator leaves to the host.
enum class Rest {
  OnHost, ///< it does them there
  Staged, ///< they are between a download and an upload, as in runs
};

/// What another one does on memory of a device, for the host's.
class DeviceCommunicator : public Communicator {
public:
  /// Returns what reduces, as codegen gives it to collectives; null for what
  /// does not.
  using FindReduction = std::shared_ptr<const Kernel> (*)(
      const CollectiveSpecs &specs, size_t members);

  DeviceCommunicator(Communicator &inner, Device &device,
                     FindReduction findReduction, Rest rest = Rest::OnHost)
      : inner(inner), device(device), findReduction(findReduction), rest(rest) {
  }

  int32_t getRank() const override { return inner.getRank(); }
  int32_t getSize() const override { return inner.getSize(); }
  llvm::Error
  announceGroups(llvm::ArrayRef<std::vector<int32_t>> groups) override {
    return inner.announceGroups(groups);
  }
  llvm::Expected<std::shared_ptr<Group>>
  createGroup(llvm::ArrayRef<int32_t> ranks) override {
    return inner.createGroup(ranks);
  }
  llvm::Expected<std::unique_ptr<Operation>>
  prepare(const CollectiveSpecs &specs, const std::shared_ptr<Group> &group,
          const std::string &name) override {
    std::shared_ptr<const Kernel> reduction =
        findReduction(specs, static_cast<size_t>(group->getSize()));
    auto made = inner.prepareOnStream(specs, group, name, reduction.get());
    auto onHost = [&] { return inner.prepare(specs, group, name); };
    if (made && !*made && rest == Rest::OnHost) {
      ++numOnHost;
      return onHost();
    }
    std::vector<RankOperation::Sizes> sizes;
    for (const CollectiveSpec &spec : specs)
      sizes.push_back({sourceBytes(spec), destinationBytes(spec)});
    auto adapted = adapt(std::move(made), onHost, sizes);
    if (adapted)
      for (const CollectiveSpec &spec : specs)
        (*adapted)->addTensor(sourceBytes(spec), destinationBytes(spec));
    return adapted;
  }
  llvm::Expected<std::unique_ptr<Operation>>
  prepareSend(int32_t peer, int64_t tag, int64_t bytes,
              const std::string &name) override {
    auto made = adapt(inner.prepareSendOnStream(peer, tag, bytes, name),
                      [&] { return inner.prepareSend(peer, tag, bytes, name); },
                      {{bytes, 0}});
    if (made)
      (*made)->addTensor(bytes, 0);
    return made;
  }
  llvm::Expected<std::unique_ptr<Operation>>
  prepareReceive(int32_t peer, int64_t tag, int64_t bytes,
                 const std::string &name) override {
    auto made =
        adapt(inner.prepareReceiveOnStream(peer, tag, bytes, name),
              [&] { return inner.prepareReceive(peer, tag, bytes, name); },
              {{0, bytes}});
    if (made)
      (*made)->addTensor(0, bytes);
    return made;
  }
  llvm::Error barrier(Group &group) override { return inner.barrier(group); }
  llvm::Error getLateError() const override { return inner.getLateError(); }
  /// How many operations it left to the host.
  int getNumOnHost() const { return numOnHost; }
  void abort(const std::string &reason) override { inner.abort(reason); }
  void stop(const std::string &reason) override { inner.stop(reason); }
  std::string getAbortReason() const override { return inner.getAbortReason(); }

private:
  llvm::Expected<std::unique_ptr<UploadedOperation>>
  adapt(llvm::Expected<std::unique_ptr<StreamOperation>> operation,
        llvm::function_ref<llvm::Expected<std::unique_ptr<Operation>>()> onHost,
        llvm::ArrayRef<RankOperation::Sizes> sizes) {
    if (operation && !*operation) {
      if (rest == Rest::OnHost)
        return makeError(ExitCode::Internal, "no message on a stream");
      ++numOnHost;
      operation =
          RankOperation::inPlaceOf(std::move(operation), onHost, device, sizes);
    }
    if (!operation)
      return operation.takeError();
    return std::make_unique<UploadedOperation>(inner, device,
                                               std::move(*operation));
  }

  Communicator &inner;
  Device &device;
  FindReduction findReduction;
  Rest rest;
  int numOnHost = 0;
};

} // namespace ax::rt

#endif // AX_TEST_UPLOADEDRANKS_H
