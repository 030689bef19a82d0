//===- CardRates.cpp - How fast a card moves bytes ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels are held against. Lines that begin with `rate:` go into the
// report's tables.
//
//===----------------------------------------------------------------------===//

#include "CardTest.h"
#include "DeviceSuite.h"

#include <algorithm>
#include <cstdio>
#include <functional>

using namespace ax;
using namespace ax::rt;

namespace {

class CardRates : public ::testing::Test {
protected:
  void SetUp() override {
    if (std::string why = whyNoCard(); !why.empty())
      GTEST_SKIP() << why;
    devices = card.create(1);
    devices[0]->attachThread();
    rank.emplace(*devices[0]);
    // A tenth of what is free, at most: others may use the card, too.
    constexpr int64_t most = int64_t(1) << 30;
    MemorySize memory = llvm::cantFail(devices[0]->getMemorySize());
    bytes = std::min(most, memory.free / 10) & ~int64_t(255);
  }

  /// Tells the rate of the fastest of some times that `work` was done, of which
  /// each moves so many bytes.
  void measure(const char *what, int64_t moved,
               const std::function<llvm::Error()> &work) {
    auto begin = llvm::cantFail(devices[0]->createEvent(/*isTimed=*/true));
    auto end = llvm::cantFail(devices[0]->createEvent(/*isTimed=*/true));
    double best = 0;
    for (int i = 0; i < 5; ++i) {
      llvm::cantFail(rank->stream->record(*begin));
      llvm::cantFail(work());
      llvm::cantFail(rank->stream->record(*end));
      llvm::cantFail(rank->stream->synchronize());
      std::chrono::duration<double> seconds =
          llvm::cantFail(end->since(*begin));
      ASSERT_GT(seconds.count(), 0);
      best = std::max(best, static_cast<double>(moved) / seconds.count());
    }
    std::printf("rate: | %s | %.1f |\n", what, 1e-9 * best);
  }

  DeviceBackend card{"Card", "cuda"};
  std::vector<std::unique_ptr<Device>> devices;
  std::optional<TestRank> rank;
  int64_t bytes = 0;
};

TEST_F(CardRates, MemoryOfTheCard) {
  auto from = llvm::cantFail(devices[0]->allocateZeroed(bytes));
  auto to = llvm::cantFail(devices[0]->allocate(bytes));
  measure("copy on the card, read and written", 2 * bytes, [&] {
    return rank->copy(*rank->stream, from->getAddress(), to->getAddress(),
                      bytes);
  });
  measure("clear", bytes,
          [&] { return rank->stream->clear(to->getAddress(), bytes); });
}

TEST_F(CardRates, PinnedMemoryOfTheHost) {
  auto memory = llvm::cantFail(devices[0]->allocate(bytes));
  auto pinned = llvm::cantFail(devices[0]->allocatePinned(bytes));
  std::memset(pinned->getData(), 1, static_cast<size_t>(bytes));
  measure("up from pinned memory", bytes, [&] {
    return rank->stream->upload(*pinned, 0, memory->getAddress(), bytes);
  });
  measure("down to pinned memory", bytes, [&] {
    return rank->stream->download(memory->getAddress(), *pinned, 0, bytes);
  });
}

} // namespace
