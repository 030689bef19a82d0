//===- DirectPeer.cpp - What threads can do at best -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DirectPeer.h"

#include <algorithm>
#include <cstring>

namespace ax {

namespace {

/// What a rank has shown the others; read when a barrier is behind that.
struct Shown {
  const float *source = nullptr;
  float *destination = nullptr;
};
using AllShown = std::vector<Shown>;

class DirectPeer : public Peer {
public:
  DirectPeer(std::shared_ptr<AllShown> all, int32_t rank)
      : all(std::move(all)), rank(rank) {}

  void begin(CaseKind newKind, const float *source, float *destination,
             int64_t newCount) override {
    kind = newKind;
    count = newCount;
    (*all)[static_cast<size_t>(rank)] = {source, destination};
  }
  llvm::Error run() override;

private:
  int32_t numRanks() const { return static_cast<int32_t>(all->size()); }
  const Shown &of(int32_t other) const {
    return (*all)[static_cast<size_t>(other)];
  }
  /// `floats` of another rank's source, to this one's destination.
  void copy(int32_t from, int64_t at, int64_t to, int64_t floats) const {
    std::memcpy(of(rank).destination + to, of(from).source + at,
                static_cast<size_t>(floats) * sizeof(float));
  }
  /// Adds floats begin .. end of all sources; fn(where, sums, how many) takes
  /// them.
  template <typename Fn>
  void add(int64_t begin, int64_t end, Fn &&fn) const {
    constexpr int64_t blockSize = 1024;
    float sums[blockSize];
    for (int64_t at = begin; at < end; at += blockSize) {
      int64_t size = std::min(blockSize, end - at);
      std::copy_n(of(0).source + at, size, sums);
      for (int32_t other = 1; other < numRanks(); ++other)
        addTo(sums, of(other).source + at, size);
      fn(at, sums, static_cast<size_t>(size) * sizeof(float));
    }
  }
  // What chooses among them runs before ThreadSanitizer is there, and calls it.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
  static void addTo(float *sums, const float *others, int64_t size) {
    for (int64_t i = 0; i < size; ++i)
      sums[i] += others[i];
  }

  std::shared_ptr<AllShown> all;
  int32_t rank;
  CaseKind kind = CaseKind::AllReduce;
  int64_t count = 0;
};

/// Each element is moved once: a rank reduces its slice for all.
llvm::Error DirectPeer::run() {
  int64_t part = count / numRanks(), begin = rank * part;
  float *mine = of(rank).destination;
  switch (kind) {
  case CaseKind::AllReduce:
    add(begin, begin + part, [&](int64_t at, const float *sums, size_t bytes) {
      for (int32_t i = 0; i < numRanks(); ++i)
        std::memcpy(of((rank + i) % numRanks()).destination + at, sums, bytes);
    });
    break;
  case CaseKind::ReduceScatter:
    add(begin, begin + part, [&](int64_t at, const float *sums, size_t bytes) {
      std::memcpy(mine + at - begin, sums, bytes);
    });
    break;
  case CaseKind::AllGather:
    for (int32_t other = 0; other < numRanks(); ++other)
      copy(other, 0, other * count, count);
    break;
  case CaseKind::AllToAll:
    for (int32_t other = 0; other < numRanks(); ++other)
      copy(other, begin, other * part, part);
    break;
  case CaseKind::Broadcast:
    copy(0, 0, 0, count);
    break;
  case CaseKind::Permute:
  case CaseKind::SendReceive:
    copy((rank + numRanks() - 1) % numRanks(), 0, 0, count);
  }
  return llvm::Error::success();
}

} // namespace

std::vector<std::unique_ptr<Peer>> createDirectPeers(int32_t ranks) {
  auto all = std::make_shared<AllShown>(static_cast<size_t>(ranks));
  std::vector<std::unique_ptr<Peer>> peers;
  for (int32_t rank = 0; rank < ranks; ++rank)
    peers.push_back(std::make_unique<DirectPeer>(all, rank));
  return peers;
}

} // namespace ax
