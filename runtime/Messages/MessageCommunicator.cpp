//===- MessageCommunicator.cpp - Ranks that are processes -----------------===//
//---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "MessageLink.h"

#include "ax/Runtime/MessageCommunicator.h"
#include "ax/Support/Error.h"

#include <algorithm>
#include <set>

namespace ax::rt::messages {

namespace {

class Message : public Operation {
public:
  Message(std::shared_ptr<MessageLink> link, Batch batch, bool isSend,
          std::string name)
      : link(std::move(link)), batch(std::move(batch)), isSend(isSend),
        name(std::move(name)) {}

  llvm::Error start(llvm::ArrayRef<const void *> sources,
                    llvm::ArrayRef<void *> destinations) override {
    void *address =
        isSend ? const_cast<void *>(sources.front()) : destinations.front();
    return link->start(batch, address, [&] { return describe(); });
  }
  llvm::Error wait() override {
    return link->wait(batch, [&] { return describe(); });
  }

private:
  std::string describe() const {
    return (isSend ? "send '" : "receive '") + name + "'";
  }

  std::shared_ptr<MessageLink> link;
  Batch batch;
  bool isSend;
  std::string name;
};

class MessageCommunicator : public Communicator {
public:
  explicit MessageCommunicator(std::shared_ptr<MessageLink> link)
      : link(std::move(link)) {}

  int32_t getRank() const override { return link->getRank(); }
  int32_t getSize() const override { return link->getSize(); }

  llvm::Expected<std::shared_ptr<Group>>
  createGroup(llvm::ArrayRef<int32_t> ranks) override {
    std::set<int32_t> distinct(ranks.begin(), ranks.end());
    const auto *mine = std::find(ranks.begin(), ranks.end(), getRank());
    if (mine == ranks.end() || distinct.size() != ranks.size() ||
        *distinct.begin() < 0 || *distinct.rbegin() >= getSize())
      return makeErrorf(ExitCode::RunFailed, "rank {0}: impossible group",
                        getRank());
    auto state = link->joinGroup(ranks.vec());
    if (!state)
      return state.takeError();
    return std::make_shared<MessageGroup>(
        ranks.vec(), static_cast<int32_t>(mine - ranks.begin()),
        std::move(*state));
  }

  llvm::Expected<std::unique_ptr<Operation>>
  prepare(const CollectiveSpecs &specs, const std::shared_ptr<Group> &group,
          const std::string &name) override {
    if (std::string fault = findFault(specs, group->getSize()); !fault.empty())
      return makeErrorf(ExitCode::RunFailed, "rank {0}: '{1}' ({2}): {3}",
                        getRank(), name, specs.empty() ? "" : toString(specs),
                        fault);
    return makeMessageCollective(
        link, std::static_pointer_cast<MessageGroup>(group), specs, name);
  }

  llvm::Expected<std::unique_ptr<Operation>>
  prepareSend(int32_t peer, int64_t tag, int64_t bytes,
              const std::string &name) override {
    return prepareMessage(true, peer, tag, bytes, name);
  }
  llvm::Expected<std::unique_ptr<Operation>>
  prepareReceive(int32_t peer, int64_t tag, int64_t bytes,
                 const std::string &name) override {
    return prepareMessage(false, peer, tag, bytes, name);
  }

  llvm::Error barrier(Group &group) override {
    auto describe = [] { return std::string("barrier"); };
    const Batch &batch = static_cast<MessageGroup &>(group).state->barrier;
    void *nothing = nullptr;
    if (llvm::Error error = link->start(batch, nothing, describe))
      return error;
    return link->wait(batch, describe);
  }

  void abort(const std::string &reason) override { link->abort(reason); }
  void stop(const std::string &reason) override { link->stop(reason); }
  std::string getAbortReason() const override { return link->getAbortReason(); }

private:
  llvm::Expected<std::unique_ptr<Operation>>
  prepareMessage(bool isSend, int32_t peer, int64_t tag, int64_t bytes,
                 const std::string &name) {
    if (peer < 0 || peer >= getSize() || bytes < 0 || tag < 0 ||
        tag > INT32_MAX)
      return makeErrorf(ExitCode::RunFailed,
                        "rank {0}: '{1}': no messages with rank {2}", getRank(),
                        name, peer);
    BatchBuilder builder;
    if (isSend)
      builder.addSend(peer, static_cast<int32_t>(tag), 0, 0, bytes);
    else
      builder.addReceive(peer, static_cast<int32_t>(tag), 0, 0, bytes);
    auto batch = Batch::create(link->getCarrier(), link->getMessages(),
                               std::move(builder));
    if (!batch)
      return batch.takeError();
    return std::make_unique<Message>(link, std::move(*batch), isSend, name);
  }

  std::shared_ptr<MessageLink> link;
};

} // namespace

} // namespace ax::rt::messages

namespace ax::rt {

using namespace messages;

llvm::Expected<std::unique_ptr<Communicator>>
createMessageCommunicator(const AxMessageTable &carrier,
                          const ProcessPlace &place, int32_t numRanks,
                          const CommunicatorOptions &options) {
  if (place.process >= numRanks || numRanks > place.numProcesses)
    return makeErrorf(
        ExitCode::Usage,
        "process {0} of {1} cannot be one of {2} ranks; start one "
        "process for each rank",
        place.process, place.numProcesses, numRanks);
  auto link = MessageLink::create(carrier, place, numRanks, options);
  if (!link)
    return link.takeError();
  return std::make_unique<MessageCommunicator>(std::move(*link));
}

llvm::Error checkProcesses(llvm::StringRef name, const ProcessPlace &place,
                           int32_t numRanks,
                           const CommunicatorOptions &options) {
  if (options.ranks == std::vector<int32_t>{place.process} &&
      numRanks == place.numProcesses)
    return llvm::Error::success();
  return makeErrorf(ExitCode::Usage,
                    "{0} processes run {1} ranks: communicator '{2}' needs one "
                    "process for each rank",
                    place.numProcesses, numRanks, name);
}

} // namespace ax::rt
