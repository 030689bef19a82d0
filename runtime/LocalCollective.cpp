//===- LocalCollective.cpp - Collectives over shared memory ---------------===//
//
// Every member publishes the address of its source, and reads what it needs
// straight from the others'.
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
//===----------------------------------------------------------------------===//

#include "CollectivePieces.h"
#include "LocalWorld.h"
#include "VectorKernels.h"

#include "ax/Support/Error.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstring>

namespace ax::rt {

namespace {

/// Up to here copying costs less than waiting for the readers.
constexpr int64_t stagedBytes = 16 << 10;
constexpr size_t alignment = 64;
/// Slices of an all-reduce start at multiples of this many elements, so that
/// no two members write to one cache line.
constexpr int64_t sliceUnit = 64;

class LocalCollective : public Operation {
public:
  LocalCollective(std::shared_ptr<LocalWorld> world, int32_t rank,
                  std::shared_ptr<Group> group,
                  std::shared_ptr<LocalCollectiveState> state);

  llvm::Error start(const void *source, void *destination) override;
  llvm::Error wait() override;

private:
  int32_t numMembers() const { return group->getSize(); }
  LocalMember &member(int32_t index) const {
    return state->members[static_cast<size_t>(index)];
  }
  LocalMember &self() const { return member(group->getIndex()); }
  const CollectiveSpec &spec() const { return state->spec; }

  void addScratch(int64_t bytes);
  void waitForAll(WaitWord LocalMember::*word, llvm::Error &error);
  void runPieces();
  /// Elements begin .. end of all sources, to `destinations`.
  void reduceRange(int64_t begin, int64_t end,
                   llvm::MutableArrayRef<void *> destinations);
  void reduceSlice();
  /// Element range that member `index` reduces.
  std::pair<int64_t, int64_t> slice(int32_t index) const;

  std::shared_ptr<LocalWorld> world;
  int32_t rank;
  std::shared_ptr<Group> group;
  std::shared_ptr<LocalCollectiveState> state;
  CollectivePlan plan;
  ReduceFn reduce = nullptr;
  int64_t numElements = 0;
  bool staged = false;
  uint32_t runs = 0;
  uint8_t *destination = nullptr;
  /// One entry per member, filled in each run.
  std::vector<const uint8_t *> sources;
  std::vector<const void *> operands;
  std::vector<void *> results;
};

LocalCollective::LocalCollective(std::shared_ptr<LocalWorld> worldIn,
                                 int32_t rank, std::shared_ptr<Group> groupIn,
                                 std::shared_ptr<LocalCollectiveState> stateIn)
    : world(std::move(worldIn)), rank(rank), group(std::move(groupIn)),
      state(std::move(stateIn)),
      plan(planCollective(state->spec, group->getSize(), group->getIndex())),
      sources(static_cast<size_t>(group->getSize())),
      operands(static_cast<size_t>(group->getSize())),
      results(static_cast<size_t>(group->getSize())) {
  reduce = vectorKernels().reduce[static_cast<int>(spec().reduce)]
                                 [static_cast<int>(spec().dtype)];
  int64_t bytes = sourceBytes(spec());
  numElements = bytes / byteSize(spec().dtype);
  staged = bytes <= stagedBytes;
  if (staged)
    addScratch(2 * static_cast<int64_t>(llvm::alignTo(bytes, alignment)));
}

void LocalCollective::addScratch(int64_t bytes) {
  LocalMember &me = self();
  me.scratch.resize(static_cast<size_t>(bytes) + alignment);
  auto address = reinterpret_cast<uintptr_t>(me.scratch.data());
  me.alignedScratch =
      me.scratch.data() + (llvm::alignTo(address, alignment) - address);
}

std::pair<int64_t, int64_t> LocalCollective::slice(int32_t index) const {
  int64_t units = (numElements + sliceUnit - 1) / sliceUnit;
  auto start = [&](int64_t i) {
    return std::min(numElements, units * i / numMembers() * sliceUnit);
  };
  return {start(index), start(index + 1)};
}

llvm::Error LocalCollective::start(const void *source, void *to) {
  LocalMember &me = self();
  ++runs;
  destination = static_cast<uint8_t *>(to);
  const void *published = source;
  if (staged) {
    auto bytes = static_cast<size_t>(sourceBytes(spec()));
    uint8_t *copy =
        me.alignedScratch + (runs % 2) * llvm::alignTo(bytes, alignment);
    if (bytes)
      std::memcpy(copy, source, bytes);
    published = copy;
  }
  me.sources[runs % 2] = published;
  me.destination = destination;
  me.ready.set(runs);
  return llvm::Error::success();
}

void LocalCollective::waitForAll(WaitWord LocalMember::*word,
                                 llvm::Error &error) {
  for (int32_t i = 0; i < numMembers() && !error; ++i) {
    WaitResult result = (member(i).*word).waitFor(runs, world->getPolicy());
    if (result != WaitResult::Reached)
      error = world->waitError(result, rank,
                               group->getRanks()[static_cast<size_t>(i)],
                               toString(spec()) + " '" + state->name + "'");
  }
}

llvm::Error LocalCollective::wait() {
  llvm::Error error = llvm::Error::success();
  waitForAll(&LocalMember::ready, error);
  if (error)
    return error;
  for (int32_t i = 0; i < numMembers(); ++i)
    sources[static_cast<size_t>(i)] =
        static_cast<const uint8_t *>(member(i).sources[runs % 2]);
  if (spec().kind != CollectiveKind::AllReduce) {
    runPieces();
  } else if (staged) {
    void *to = destination;
    reduceRange(0, numElements, to);
  } else {
    reduceSlice();
  }
  if (staged)
    return llvm::Error::success();
  self().done.set(runs);
  waitForAll(&LocalMember::done, error);
  return error;
}

void LocalCollective::runPieces() {
  if (plan.zeroFirst)
    std::memset(destination, 0, static_cast<size_t>(destinationBytes(spec())));
  for (const CollectivePiece &piece : plan.pieces) {
    if (spec().kind != CollectiveKind::ReduceScatter) {
      piece.box.copy(sources[static_cast<size_t>(piece.peer)], destination);
      continue;
    }
    int64_t size = byteSize(spec().dtype);
    piece.box.forEachRun([&](int64_t from, int64_t to, int64_t bytes) {
      void *address = destination + to;
      reduceRange(from / size, (from + bytes) / size, address);
    });
  }
}

void LocalCollective::reduceRange(int64_t begin, int64_t end,
                                  llvm::MutableArrayRef<void *> destinations) {
  int64_t size = byteSize(spec().dtype);
  for (size_t i = 0; i < sources.size(); ++i)
    operands[i] = sources[i] + begin * size;
  reduce(operands.data(), numMembers(), destinations.data(),
         static_cast<int32_t>(destinations.size()), end - begin);
}

void LocalCollective::reduceSlice() {
  auto [begin, end] = slice(group->getIndex());
  int64_t offset = begin * byteSize(spec().dtype);
  // Each member starts with its own destination, so that they do not all write
  // to the same one.
  for (int32_t i = 0; i < numMembers(); ++i) {
    int32_t to = (group->getIndex() + i) % numMembers();
    results[static_cast<size_t>(i)] =
        static_cast<uint8_t *>(member(to).destination) + offset;
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
