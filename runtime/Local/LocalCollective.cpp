//===- LocalCollective.cpp - Collectives over shared memory ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every member publishes the address of its source, and reads what it needs
// straight from the others'.
//
// Several tensors are published, and waited for, as one.
//
// Small sources are copied aside first, and the copy is published: once all
// have published, nobody needs to wait for readers. There are two such copies,
// for even and odd runs: who publishes run n + 2 has finished run n + 1, for
// which everybody had published, and so finished reading run n.
//
// Large ones are read in place, and all wait at the end until every member is
// done. In an all-reduce member i reduces the i-th slice of all sources and
// writes it to every destination, so that each element is moved once. (A source
// that is a destination too is safe: nobody else reads its i-th slice.)
//
// Memory order. Nothing here is atomic but the WaitWords `ready` and `done`,
// each written by its member alone; set() releases and a successful wait
// acquires. So
//  - who has seen ready >= n of a member sees what this wrote before: the
//    addresses of run n, and the bytes of its source or copy;
//  - who has seen done >= n of all sees what they wrote into its destination,
//    and knows that nobody looks at its source any more.
//
// What the next runs overwrite is read no more. Where all wait at the end that
// is so from then on. Staged, a member may be slow in run n while others have
// started n + 1, but not n + 2: therefore addresses and copies are there twice.
// `destinations` are there once, as others write to them in large all-reduces
// alone, at whose end all wait.
//
// An example, staged, members A and B, of which B is slow:
//
//   A: copy 1, ready 1 . see B's ready 1, read . copy 2, ready 2 . waits for B
//   B: copy 1, ready 1 ............ see A's ready 2 (>= 1), read A's copy 1 ...
//
// B reads run 1 of A while A has written run 2: into the other copy. A's run 3
// would overwrite copy 1, but A ends run 2 only when B's ready is 2, which B
// sets behind its last read of run 1, and set() releases: these reads see
// nothing of run 3. Release and acquire are enough, as each member looks at
// every other one's own word and learns nothing through a third. (WaitWord
// itself uses stronger orders, to put a waiter to sleep.)
//
//===----------------------------------------------------------------------===//

#include "LocalWorld.h"
#include "ax/Runtime/CollectivePieces.h"
#include "ax/Runtime/VectorKernels.h"

#include "ax/Support/Error.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstring>

namespace ax::rt {

namespace {

/// Up to so many bytes, copying costs less than waiting for the readers.
constexpr int64_t stagedBytes = 16 << 10;
constexpr size_t alignment = 64;

class LocalCollective : public Operation {
public:
  LocalCollective(std::shared_ptr<LocalWorld> world, int32_t rank,
                  std::shared_ptr<Group> group,
                  std::shared_ptr<LocalCollectiveState> state);

  llvm::Error start(llvm::ArrayRef<const void *> from,
                    llvm::ArrayRef<void *> to) override;
  llvm::Error wait() override;

private:
  int32_t numMembers() const { return group->getSize(); }
  LocalMember &member(int32_t index) const {
    return state->members[static_cast<size_t>(index)];
  }
  LocalMember &self() const { return member(group->getIndex()); }
  size_t numParts() const { return parts.size(); }
  const CollectiveSpec &common() const { return state->specs.front(); }

  void addScratch(int64_t bytes);
  void waitForAll(WaitWord LocalMember::*word, llvm::Error &error);
  /// One tensor, for this member.
  struct Part {
    CollectivePlan plan;
    int64_t numElements = 0, sourceBytes = 0, destinationBytes = 0;
    /// Where its copy begins among the copies.
    int64_t offset = 0;
    uint8_t *destination = nullptr;
  };
  void runPart(size_t number);
  void runPieces(const Part &part);
  /// Elements begin .. end of all sources, to `destinations`.
  void reduceRange(int64_t begin, int64_t end,
                   llvm::MutableArrayRef<void *> destinations);
  void reduceSlice(size_t number);

  std::shared_ptr<LocalWorld> world;
  int32_t rank;
  std::shared_ptr<Group> group;
  std::shared_ptr<LocalCollectiveState> state;
  ReduceFn reduce = nullptr;
  bool staged = false;
  int64_t copyBytes = 0;
  uint32_t runs = 0;
  std::vector<Part> parts;
  /// One entry per member, filled for each tensor of each run.
  std::vector<const uint8_t *> sources;
  std::vector<const void *> operands;
  std::vector<void *> results;
};

LocalCollective::LocalCollective(std::shared_ptr<LocalWorld> worldIn,
                                 int32_t rank, std::shared_ptr<Group> groupIn,
                                 std::shared_ptr<LocalCollectiveState> stateIn)
    : world(std::move(worldIn)), rank(rank), group(std::move(groupIn)),
      state(std::move(stateIn)), sources(static_cast<size_t>(group->getSize())),
      operands(static_cast<size_t>(group->getSize())),
      results(static_cast<size_t>(group->getSize())) {
  reduce = vectorKernels().reduce[static_cast<int>(common().reduce)]
                                 [static_cast<int>(common().dtype)];
  int64_t bytes = 0;
  for (const CollectiveSpec &spec : state->specs) {
    Part &part = parts.emplace_back();
    part.plan = planCollective(spec, group->getSize(), group->getIndex());
    part.sourceBytes = sourceBytes(spec);
    part.destinationBytes = destinationBytes(spec);
    part.numElements = part.sourceBytes / byteSize(spec.dtype);
    part.offset = copyBytes;
    copyBytes += static_cast<int64_t>(
        llvm::alignTo(static_cast<uint64_t>(part.sourceBytes), alignment));
    bytes += part.sourceBytes;
  }
  staged = bytes <= stagedBytes;
  if (staged)
    addScratch(2 * copyBytes);
  for (std::vector<const void *> &published : self().sources)
    published.resize(numParts());
  self().destinations.resize(numParts());
}

void LocalCollective::addScratch(int64_t bytes) {
  LocalMember &me = self();
  me.scratch.resize(static_cast<size_t>(bytes) + alignment);
  auto address = reinterpret_cast<uintptr_t>(me.scratch.data());
  me.alignedScratch =
      me.scratch.data() + (llvm::alignTo(address, alignment) - address);
}

llvm::Error LocalCollective::start(llvm::ArrayRef<const void *> from,
                                   llvm::ArrayRef<void *> to) {
  LocalMember &me = self();
  ++runs;
  for (size_t i = 0; i < numParts(); ++i) {
    Part &part = parts[i];
    const void *published = from[i];
    if (staged) {
      uint8_t *copy = me.alignedScratch + (runs % 2) * copyBytes + part.offset;
      if (part.sourceBytes)
        std::memcpy(copy, from[i], static_cast<size_t>(part.sourceBytes));
      published = copy;
    }
    part.destination = static_cast<uint8_t *>(to[i]);
    me.sources[runs % 2][i] = published;
    me.destinations[i] = part.destination;
  }
  me.ready.set(runs);
  return llvm::Error::success();
}

void LocalCollective::waitForAll(WaitWord LocalMember::*word,
                                 llvm::Error &error) {
  for (int32_t i = 0; i < numMembers() && !error; ++i) {
    WaitResult result = (member(i).*word).waitFor(runs, world->getPolicy());
    if (result != WaitResult::Reached)
      error = world->waitError(
          result, rank, group->getRanks()[static_cast<size_t>(i)],
          toString(state->specs) + " '" + state->name + "'");
  }
}

llvm::Error LocalCollective::wait() {
  llvm::Error error = llvm::Error::success();
  waitForAll(&LocalMember::ready, error);
  if (error)
    return error;
  for (size_t i = 0; i < numParts(); ++i)
    runPart(i);
  if (staged)
    return llvm::Error::success();
  self().done.set(runs);
  waitForAll(&LocalMember::done, error);
  return error;
}

void LocalCollective::runPart(size_t number) {
  for (int32_t i = 0; i < numMembers(); ++i)
    sources[static_cast<size_t>(i)] =
        static_cast<const uint8_t *>(member(i).sources[runs % 2][number]);
  Part &part = parts[number];
  if (common().kind != CollectiveKind::AllReduce) {
    runPieces(part);
  } else if (staged) {
    void *to = part.destination;
    reduceRange(0, part.numElements, to);
  } else {
    reduceSlice(number);
  }
}

void LocalCollective::runPieces(const Part &part) {
  if (part.plan.zeroFirst)
    std::memset(part.destination, 0,
                static_cast<size_t>(part.destinationBytes));
  for (const CollectivePiece &piece : part.plan.pieces) {
    if (common().kind != CollectiveKind::ReduceScatter) {
      piece.box.copy(sources[static_cast<size_t>(piece.peer)],
                     part.destination);
      continue;
    }
    int64_t size = byteSize(common().dtype);
    piece.box.forEachRun([&](int64_t from, int64_t to, int64_t bytes) {
      void *address = part.destination + to;
      reduceRange(from / size, (from + bytes) / size, address);
    });
  }
}

void LocalCollective::reduceRange(int64_t begin, int64_t end,
                                  llvm::MutableArrayRef<void *> destinations) {
  int64_t size = byteSize(common().dtype);
  for (size_t i = 0; i < sources.size(); ++i)
    operands[i] = sources[i] + begin * size;
  reduce(operands.data(), numMembers(), destinations.data(),
         static_cast<int32_t>(destinations.size()), end - begin);
}

void LocalCollective::reduceSlice(size_t number) {
  auto [begin, end] =
      sliceOf(parts[number].numElements, numMembers(), group->getIndex());
  int64_t offset = begin * byteSize(common().dtype);
  // Each member starts with its own destination, so that they do not all write
  // to the same one.
  for (int32_t i = 0; i < numMembers(); ++i) {
    int32_t to = (group->getIndex() + i) % numMembers();
    results[static_cast<size_t>(i)] =
        static_cast<uint8_t *>(member(to).destinations[number]) + offset;
  }
  reduceRange(begin, end, results);
}

} // namespace

std::unique_ptr<Operation>
makeLocalCollective(std::shared_ptr<LocalWorld> world, int32_t rank,
                    std::shared_ptr<Group> group,
                    std::shared_ptr<LocalCollectiveState> state) {
  return std::make_unique<LocalCollective>(std::move(world), rank,
                                           std::move(group), std::move(state));
}

} // namespace ax::rt
