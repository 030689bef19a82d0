//===- CountingMark.h - A mark whose numbers go on in graphs ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A graph sets a mark to the same numbers in each launch. Numbers that go on
// from one launch to the next are those, counted from what the host says at the
// launch.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_COUNTINGMARK_H
#define AX_RUNTIME_COUNTINGMARK_H

#include "ax/Runtime/Device.h"

namespace ax::rt {

/// One thread sets it; any thread reads.
class CountingMark {
public:
  llvm::Error create(Device &device);

  uint64_t get() const {
    // What a launch counts from is there before its first number.
    uint64_t from = base.load(std::memory_order_acquire);
    return from + mark->get();
  }
  llvm::Error set(Stream &stream, uint64_t number) {
    return stream.set(*mark, number - origin);
  }

  /// Numbers that are set from now on are captured, of graphs that count from
  /// `from` as yet.
  void beginCapture(uint64_t from) { origin = from; }
  void endCapture() { origin = base.load(std::memory_order_relaxed); }
  /// The next launch counts from `from`; until it sets one, the number is
  /// `number`, which is not less. No stream has anything to set.
  void beginLaunch(uint64_t from, uint64_t number) {
    mark->reset(number - from);
    base.store(from, std::memory_order_release);
    origin = from;
  }

private:
  std::unique_ptr<Mark> mark;
  std::atomic<uint64_t> base{0};
  /// What numbers are set from.
  uint64_t origin = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_COUNTINGMARK_H
