//===- ProfilerRange.cpp - What profilers are told of a thread ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/ProfilerRange.h"

#include <atomic>

namespace ax::rt {

static std::atomic<const RangeListener *> theListener{nullptr};

const RangeListener *getRangeListener() {
  return theListener.load(std::memory_order_relaxed);
}

void setRangeListener(const RangeListener *listener) {
  theListener.store(listener, std::memory_order_relaxed);
}

} // namespace ax::rt
