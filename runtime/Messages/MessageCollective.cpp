//===- MessageCollective.cpp - Collectives by messages --------------------===//
//------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every element is moved straight from its source to its destination, where
// nothing is reduced. Who carries it is told of the places at both ends: MPI by
// datatypes. What a member has itself it copies.
//
// What is reduced goes to who reduces it, which keeps what others send until
// all has come, and reduces it in the order of the group, as communicator
// `local` does: the results have the same bits. Of a small all-reduce of few
// members everybody gets everything and reduces all; of others member i gets
// and reduces the i-th slice, and sends the result to all others.
//
//===----------------------------------------------------------------------===//

#include "MessageLink.h"

#include "ax/Runtime/CollectivePieces.h"
#include "ax/Runtime/HostMemory.h"
#include "ax/Runtime/VectorKernels.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstring>

namespace ax::rt::messages {

namespace {

/// Up to so many bytes everybody gets everything: one step in place of two.
/// What that is together grows with the square of the members, of which at most
/// so many do it, each with so many bytes for all others.
constexpr int64_t exchangedBytes = 16 << 10, mostBytesSent = 48 << 10;
constexpr int32_t mostExchanging = 16;
/// Slices are not smaller, so that a small tensor is not reduced by many.
constexpr int64_t leastSlice = 1 << 10;
/// Operations with more bytes go on while the program computes only if somebody
/// drives them; others have left by then.
constexpr int64_t drivenBytes = 4 << 10;
/// A program that comes back later has not been waiting.
constexpr auto overlapTime = std::chrono::microseconds(50);
constexpr int64_t alignment = 64;

int64_t align(int64_t bytes) {
  return static_cast<int64_t>(
      llvm::alignTo(static_cast<uint64_t>(bytes), alignment));
}

/// [begin, end) of bytes at both ends.
StridedBox makeRun(int64_t begin, int64_t end) {
  StridedBox box(1);
  box.sourceOffset = box.destinationOffset = begin;
  box.addDim(end - begin, 1, 1);
  box.finish();
  return box;
}

class MessageCollective : public Operation {
public:
  MessageCollective(std::shared_ptr<MessageLink> link,
                    std::shared_ptr<MessageGroup> group, CollectiveSpecs specs,
                    std::string name);
  ~MessageCollective() override;
  llvm::Error prepare();

  llvm::Error start(llvm::ArrayRef<const void *> sources,
                    llvm::ArrayRef<void *> destinations) override;
  llvm::Error wait() override;

private:
  /// One tensor, for this member.
  struct Part {
    /// What this member copies of its own source; of a reduction, what it
    /// reduces.
    StridedBox own;
    bool zeroFirst = false;
    int64_t destinationBytes = 0;
    /// Where others' sources come, for each one `stride` bytes.
    int64_t offset = 0, stride = 0;
  };

  int32_t numMembers() const { return group->getSize(); }
  int32_t self() const { return group->getIndex(); }
  int32_t rankOf(int32_t member) const {
    return group->getRanks()[static_cast<size_t>(member)];
  }
  int32_t tagOf(int32_t later, int32_t member) const {
    return group->state->tagOf(step + later, member);
  }
  CollectiveKind kind() const { return specs.front().kind; }
  std::string describe() const { return toString(specs) + " '" + name + "'"; }
  // Numbers of addresses: sources, destinations, and the memory for what is to
  // be reduced.
  size_t sourceOf(size_t part) const { return part; }
  size_t destinationOf(size_t part) const { return specs.size() + part; }
  size_t scratchBuffer() const { return 2 * specs.size(); }

  void addExchange(size_t number, BatchBuilder &batch);
  void addReduction(size_t number, BatchBuilder &first, BatchBuilder &second);
  bool isExchanged() const;
  /// What `member` reduces of a tensor.
  StridedBox reducedBy(const CollectiveSpec &spec, int32_t member) const;
  void reducePart(size_t number);

  std::shared_ptr<MessageLink> link;
  std::shared_ptr<MessageGroup> group;
  CollectiveSpecs specs;
  std::string name;
  /// Of its first step's messages; see GroupState.
  int32_t step;
  ReduceFn reduce = nullptr;
  /// An all-reduce in slices has two steps.
  bool inSlices = false;
  int64_t numBytes = 0;
  std::vector<Part> parts;
  Batch firstStep, secondStep;
  HostMemory scratch;
  int64_t scratchBytes = 0;
  std::vector<void *> buffers;
  /// One for each member, filled for each run of elements.
  std::vector<const void *> operands;

  using Clock = std::chrono::steady_clock;
  Clock::time_point startTime;
  /// The program has come back late before.
  bool overlaps = false;
};

MessageCollective::MessageCollective(std::shared_ptr<MessageLink> linkIn,
                                     std::shared_ptr<MessageGroup> groupIn,
                                     CollectiveSpecs specsIn,
                                     std::string nameIn)
    : link(std::move(linkIn)), group(std::move(groupIn)),
      specs(std::move(specsIn)), name(std::move(nameIn)),
      step(group->state->nextStep),
      operands(static_cast<size_t>(group->getSize())) {
  group->state->nextStep += 2;
  for (const CollectiveSpec &spec : specs)
    numBytes += sourceBytes(spec);
  inSlices = kind() == CollectiveKind::AllReduce && !isExchanged();
  if (reduces(kind()))
    reduce = vectorKernels().reduce[static_cast<int>(specs.front().reduce)]
                                   [static_cast<int>(specs.front().dtype)];
}

MessageCollective::~MessageCollective() {
  bool isWritten = firstStep.giveUp();
  isWritten |= secondStep.giveUp();
  // It is never given back: after a failure another process may still send, and
  // what lies there next would be overwritten.
  if (isWritten)
    new HostMemory(std::move(scratch));
}

llvm::Error MessageCollective::prepare() {
  BatchBuilder first, second;
  for (size_t i = 0; i < specs.size(); ++i) {
    Part &part = parts.emplace_back();
    part.destinationBytes = destinationBytes(specs[i]);
    if (reduces(kind()))
      addReduction(i, first, second);
    else
      addExchange(i, first);
  }
  auto memory = HostMemory::allocate(scratchBytes);
  if (!memory)
    return memory.takeError();
  scratch = std::move(*memory);
  buffers.resize(2 * specs.size() + 1);
  buffers[scratchBuffer()] = scratch.getData();
  auto make = [&](BatchBuilder builder, Batch &batch) -> llvm::Error {
    auto made = Batch::create(link->getCarrier(), link->getGroupMessages(),
                              std::move(builder));
    if (!made)
      return made.takeError();
    batch = std::move(*made);
    return llvm::Error::success();
  };
  if (llvm::Error error = make(std::move(first), firstStep))
    return error;
  return make(std::move(second), secondStep);
}

/// Messages of two members are matched in their order: that of the tensors, as
/// there is at most one for each.
void MessageCollective::addExchange(size_t number, BatchBuilder &batch) {
  Part &part = parts[number];
  const CollectiveSpec &spec = specs[number];
  CollectivePlan plan = planCollective(spec, numMembers(), self());
  part.zeroFirst = plan.zeroFirst;
  // There is nothing to copy unless a piece says so.
  part.own = makeRun(0, 0);
  for (const CollectivePiece &piece : plan.pieces) {
    if (piece.peer == self())
      part.own = piece.box;
    else
      batch.addReceive(rankOf(piece.peer), tagOf(0, piece.peer),
                       destinationOf(number), piece.box);
  }
  for (int32_t i = 1; i < numMembers(); ++i) {
    int32_t to = (self() + i) % numMembers();
    for (const CollectivePiece &piece :
         planCollective(spec, numMembers(), to).pieces)
      if (piece.peer == self())
        batch.addSend(rankOf(to), tagOf(0, to), sourceOf(number), piece.box);
  }
}

/// Whether all of an all-reduce goes from everybody to everybody.
bool MessageCollective::isExchanged() const {
  return numBytes <= exchangedBytes && numMembers() <= mostExchanging &&
         numBytes * (numMembers() - 1) <= mostBytesSent;
}

StridedBox MessageCollective::reducedBy(const CollectiveSpec &spec,
                                        int32_t member) const {
  if (kind() == CollectiveKind::ReduceScatter) {
    CollectivePlan plan = planCollective(spec, numMembers(), member);
    return plan.pieces.empty() ? makeRun(0, 0) : plan.pieces.front().box;
  }
  int64_t size = byteSize(spec.dtype), bytes = sourceBytes(spec);
  if (!inSlices)
    return makeRun(0, bytes);
  auto numSlices = static_cast<int32_t>(
      std::clamp<int64_t>(bytes / leastSlice, 1, numMembers()));
  if (member >= numSlices)
    return makeRun(0, 0);
  auto [begin, end] = sliceOf(bytes / size, numSlices, member);
  return makeRun(begin * size, end * size);
}

void MessageCollective::addReduction(size_t number, BatchBuilder &first,
                                     BatchBuilder &second) {
  Part &part = parts[number];
  const CollectiveSpec &spec = specs[number];
  part.own = reducedBy(spec, self());
  part.zeroFirst = kind() == CollectiveKind::ReduceScatter &&
                   planCollective(spec, numMembers(), self()).zeroFirst;
  int64_t bytes = part.own.isEmpty() ? 0 : part.own.numBytes();
  part.offset = scratchBytes;
  part.stride = align(bytes);
  scratchBytes += part.stride * numMembers();
  for (int32_t i = 1; i < numMembers(); ++i) {
    int32_t to = (self() + i) % numMembers();
    int32_t from = (self() + numMembers() - i) % numMembers();
    if (bytes)
      first.addReceive(rankOf(from), tagOf(0, from), scratchBuffer(),
                       part.offset + from * part.stride, bytes);
    first.addSend(rankOf(to), tagOf(0, to), sourceOf(number),
                  reducedBy(spec, to));
    if (!inSlices)
      continue;
    second.addReceive(rankOf(from), tagOf(1, from), destinationOf(number),
                      reducedBy(spec, from));
    second.addSend(rankOf(to), tagOf(1, to), destinationOf(number), part.own);
  }
}

llvm::Error MessageCollective::start(llvm::ArrayRef<const void *> sources,
                                     llvm::ArrayRef<void *> destinations) {
  for (size_t i = 0; i < specs.size(); ++i) {
    buffers[sourceOf(i)] = const_cast<void *>(sources[i]);
    buffers[destinationOf(i)] = destinations[i];
    if (parts[i].zeroFirst)
      std::memset(destinations[i], 0,
                  static_cast<size_t>(parts[i].destinationBytes));
  }
  if (llvm::Error error =
          link->start(firstStep, buffers, [&] { return describe(); }))
    return error;
  if (overlaps)
    return link->beginOverlap();
  if (numBytes > drivenBytes)
    startTime = Clock::now();
  return llvm::Error::success();
}

llvm::Error MessageCollective::wait() {
  auto describeThis = [&] { return describe(); };
  if (overlaps)
    link->endOverlap();
  else if (numBytes > drivenBytes)
    overlaps = Clock::now() - startTime > overlapTime;
  if (!reduce)
    for (size_t i = 0; i < specs.size(); ++i)
      parts[i].own.copy(buffers[sourceOf(i)], buffers[destinationOf(i)]);
  if (llvm::Error error = link->wait(firstStep, describeThis))
    return error;
  if (!reduce)
    return llvm::Error::success();
  for (size_t i = 0; i < specs.size(); ++i)
    reducePart(i);
  if (!inSlices)
    return llvm::Error::success();
  if (llvm::Error error = link->start(secondStep, buffers, describeThis))
    return error;
  return link->wait(secondStep, describeThis);
}

void MessageCollective::reducePart(size_t number) {
  const Part &part = parts[number];
  int64_t size = byteSize(specs[number].dtype);
  const auto *source = static_cast<const uint8_t *>(buffers[sourceOf(number)]);
  auto *destination = static_cast<uint8_t *>(buffers[destinationOf(number)]);
  const uint8_t *others =
      static_cast<const uint8_t *>(buffers[scratchBuffer()]) + part.offset;
  // Others' runs lie one after another.
  int64_t dense = 0;
  part.own.forEachRun([&](int64_t from, int64_t to, int64_t bytes) {
    for (int32_t i = 0; i < numMembers(); ++i)
      operands[static_cast<size_t>(i)] =
          i == self() ? source + from : others + i * part.stride + dense;
    void *result = destination + to;
    reduce(operands.data(), numMembers(), &result, 1, bytes / size);
    dense += bytes;
  });
}

} // namespace

llvm::Expected<std::unique_ptr<Operation>>
makeMessageCollective(std::shared_ptr<MessageLink> link,
                      std::shared_ptr<MessageGroup> group,
                      const CollectiveSpecs &specs, const std::string &name) {
  auto made = std::make_unique<MessageCollective>(
      std::move(link), std::move(group), specs, name);
  if (llvm::Error error = made->prepare())
    return error;
  return made;
}

} // namespace ax::rt::messages
