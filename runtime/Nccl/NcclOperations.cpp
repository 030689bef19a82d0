//===- NcclOperations.cpp - Exchanges that NCCL does ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "NcclOperations.h"

#include "ax/Runtime/DeviceAccess.h"

#include "llvm/Support/ErrorHandling.h"

namespace ax::rt::nccl {

namespace {

ncclDataType_t toNccl(DType type) {
  switch (type) {
  case DType::F32:
    return ncclFloat32;
  case DType::F64:
    return ncclFloat64;
  case DType::F16:
    return ncclFloat16;
  case DType::BF16:
    return ncclBfloat16;
  case DType::I8:
    return ncclInt8;
  case DType::I32:
    return ncclInt32;
  case DType::I64:
    return ncclInt64;
  case DType::U8:
  case DType::Bool:
    return ncclUint8;
  case DType::U32:
    return ncclUint32;
  case DType::U64:
    return ncclUint64;
  case DType::I16:
  case DType::U16:
  case DType::F8E4M3FN:
  case DType::F8E5M2:
    break;
  }
  llvm_unreachable("no type that can be reduced");
}

ncclRedOp_t toNccl(sharding::ReduceKind kind) {
  switch (kind) {
  case sharding::ReduceKind::Sum:
    return ncclSum;
  case sharding::ReduceKind::Max:
    return ncclMax;
  case sharding::ReduceKind::Min:
    return ncclMin;
  }
  llvm_unreachable("unknown reduction");
}

/// What collectives and messages have alike: the tensors are other streams',
/// and the wire does the work.
class NcclOperation : public StreamOperation {
public:
  NcclOperation(RankLink rank, std::shared_ptr<NcclComm> comm)
      : world(std::move(rank.world)), link(std::move(rank.link)),
        comm(std::move(comm)) {}

  // Of graphs on one card nobody says that they run at the same time: on an
  // H100 ranks waited for each other for ever.
  bool canCapture() const override { return !world->sharesCards(); }
  bool setObserver(StreamObserver &given) override {
    observer = &given;
    return true;
  }

  llvm::Error prepare() {
    for (std::unique_ptr<Event> *event : {&isReady, &isDone}) {
      auto made = link->getDevice().createEvent();
      if (!made)
        return made.takeError();
      *event = std::move(*made);
    }
    return llvm::Error::success();
  }

protected:
  /// The tensors may be used where `stream` is now.
  llvm::Error take(Stream &stream) { return stream.record(*isReady); }
  /// What `stream` gets next comes behind the work.
  llvm::Error give(Stream &stream) { return stream.wait(*isDone); }
  /// What the wire gets next comes behind the streams' work.
  llvm::Error enter() {
    Stream &wire = link->getWire();
    if (llvm::Error error = wire.wait(*isReady))
      return error;
    return observer ? observer->begin(wire) : llvm::Error::success();
  }
  /// What the wire has now is the work.
  llvm::Error leave() {
    Stream &wire = link->getWire();
    if (observer)
      if (llvm::Error error = observer->end(wire))
        return error;
    return wire.record(*isDone);
  }

  std::shared_ptr<NcclWorld> world;
  std::shared_ptr<NcclLink> link;
  std::shared_ptr<NcclComm> comm;
  std::shared_ptr<Description> description = std::make_shared<Description>();

private:
  StreamObserver *observer = nullptr;
  std::unique_ptr<Event> isReady, isDone;
};

class NcclCollective : public NcclOperation {
public:
  using NcclOperation::NcclOperation;

  void plan(const CollectiveSpecs &specs, int32_t index,
            const std::string &name) {
    const std::vector<int32_t> &ranks = comm->attendance->ranks;
    description->text = toString(specs) + " '" + name + "'";
    description->attendance = comm->attendance;
    description->index = static_cast<size_t>(index);
    for (int32_t rank : ranks)
      if (rank != link->getRank())
        description->others.push_back(rank);
    int64_t scratchBytes = 0;
    for (const CollectiveSpec &spec : specs) {
      plans.push_back(planNccl(spec, static_cast<int32_t>(ranks.size()), index,
                               scratchBytes));
      scratchBytes += plans.back().scratchBytes;
    }
    hasScratch = scratchBytes > 0;
    link->reserveScratch(scratchBytes);
    // They have these in common.
    reduction = toNccl(specs.front().reduce);
    type =
        reduces(specs.front().kind) ? toNccl(specs.front().dtype) : ncclUint8;
  }

  llvm::Error start(Stream &stream,
                    llvm::ArrayRef<DeviceAddress> addresses) override {
    DeviceAddress scratch;
    if (hasScratch) {
      auto found = link->getScratch();
      if (!found)
        return found.takeError();
      scratch = *found;
    }
    if (llvm::Error error = take(stream))
      return error;
    if (llvm::Error error = enter())
      return error;
    auto addressOf = [&](size_t part, Place place) {
      DeviceAddress begin = place.where == Where::Source ? addresses[part]
                            : place.where == Where::Destination
                                ? addresses[plans.size() + part]
                                : scratch;
      return begin + place.offset;
    };
    auto copy = [&](std::vector<Copying> NcclPlan::*copies) -> llvm::Error {
      for (size_t i = 0; i < plans.size(); ++i)
        for (const Copying &each : plans[i].*copies)
          if (llvm::Error error = link->getWire().copyStrided(
                  each.box, addressOf(i, each.from), addressOf(i, each.to)))
            return error;
      return llvm::Error::success();
    };
    llvm::Error error = link->issue(
        description,
        [&]() -> llvm::Error {
          for (size_t i = 0; i < plans.size(); ++i)
            for (const Clearing &each : plans[i].clearings)
              if (llvm::Error error = link->getWire().clear(
                      addressOf(i, each.place), each.bytes))
                return error;
          return copy(&NcclPlan::copiesBefore);
        },
        [&](const Nccl &library, CUstream_st *wire) -> llvm::Error {
          for (size_t i = 0; i < plans.size(); ++i)
            for (const Call &each : plans[i].calls)
              if (llvm::Error error =
                      makeCall(library, wire, each,
                               DeviceAccess::pointer(addressOf(i, each.from)),
                               DeviceAccess::pointer(addressOf(i, each.to))))
                return error;
          return llvm::Error::success();
        },
        [&] { return copy(&NcclPlan::copiesBehind); });
    return error ? std::move(error) : leave();
  }
  llvm::Error finish(Stream &stream) override { return give(stream); }

private:
  llvm::Error makeCall(const Nccl &library, CUstream_st *wire, const Call &call,
                       const void *from, void *to) const {
    auto count = static_cast<size_t>(call.count);
    switch (call.kind) {
    case CallKind::AllReduce:
      return library.call(&Nccl::ncclAllReduce, from, to, count, type,
                          reduction, comm->handle.load(), wire);
    case CallKind::AllGather:
      return library.call(&Nccl::ncclAllGather, from, to, count, ncclUint8,
                          comm->handle.load(), wire);
    case CallKind::ReduceScatter:
      return library.call(&Nccl::ncclReduceScatter, from, to, count, type,
                          reduction, comm->handle.load(), wire);
    case CallKind::Send:
      return library.call(&Nccl::ncclSend, from, count, ncclUint8, call.peer,
                          comm->handle.load(), wire);
    case CallKind::Receive:
      return library.call(&Nccl::ncclRecv, to, count, ncclUint8, call.peer,
                          comm->handle.load(), wire);
    }
    llvm_unreachable("unknown call");
  }

  /// Of each tensor.
  std::vector<NcclPlan> plans;
  bool hasScratch = false;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t reduction = ncclSum;
};

/// A send, or a receive.
class NcclMessage : public NcclOperation {
public:
  NcclMessage(RankLink rank, std::shared_ptr<NcclComm> commIn, int32_t peer,
              bool isSend, int64_t bytes, const std::string &name)
      : NcclOperation(std::move(rank), std::move(commIn)), peer(peer),
        isSend(isSend), bytes(bytes) {
    description->text = (isSend ? "send '" : "receive '") + name + "'";
    description->others = {peer};
  }

  llvm::Error start(Stream &stream,
                    llvm::ArrayRef<DeviceAddress> addresses) override {
    tensor = isSend ? addresses.front() : addresses.back();
    if (llvm::Error error = take(stream))
      return error;
    if (llvm::Error error = enter())
      return error;
    auto nothing = [] { return llvm::Error::success(); };
    if (llvm::Error error = link->issue(
            description, nothing,
            [&](const Nccl &library, CUstream_st *wire) {
              return makeCall(library, wire);
            },
            nothing))
      return error;
    return leave();
  }
  llvm::Error finish(Stream &stream) override { return give(stream); }

private:
  llvm::Error makeCall(const Nccl &library, CUstream_st *wire) const {
    if (bytes == 0)
      return llvm::Error::success();
    void *data = DeviceAccess::pointer(tensor);
    auto count = static_cast<size_t>(bytes);
    return isSend
               ? library.call(&Nccl::ncclSend, static_cast<const void *>(data),
                              count, ncclUint8, peer, comm->handle.load(), wire)
               : library.call(&Nccl::ncclRecv, data, count, ncclUint8, peer,
                              comm->handle.load(), wire);
  }

  int32_t peer;
  bool isSend;
  int64_t bytes;
  DeviceAddress tensor;
};

} // namespace

llvm::Expected<std::unique_ptr<StreamOperation>>
makeNcclCollective(RankLink rank, std::shared_ptr<NcclComm> comm, int32_t index,
                   const CollectiveSpecs &specs, const std::string &name) {
  auto made =
      std::make_unique<NcclCollective>(std::move(rank), std::move(comm));
  if (llvm::Error error = made->prepare())
    return error;
  made->plan(specs, index, name);
  return made;
}

llvm::Expected<std::unique_ptr<StreamOperation>>
makeNcclMessage(RankLink rank, std::shared_ptr<NcclComm> comm, int32_t peer,
                bool isSend, int64_t bytes, const std::string &name) {
  auto made = std::make_unique<NcclMessage>(std::move(rank), std::move(comm),
                                            peer, isSend, bytes, name);
  if (llvm::Error error = made->prepare())
    return error;
  return made;
}

} // namespace ax::rt::nccl
