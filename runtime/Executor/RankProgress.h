//===- RankProgress.h - How far a rank is -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_RANKPROGRESS_H
#define AX_RUNTIME_RANKPROGRESS_H

#include "ax/Runtime/CountingMark.h"

#include <algorithm>
#include <utility>

namespace ax::rt {

/// Which command a rank does, and how many it has begun: those that its device
/// has come to, not those that were put on its streams. The rank's thread
/// writes; any thread reads.
class RankProgress {
public:
  /// These stand in place of a command's index.
  static constexpr int32_t idle = -1, preparing = -2, starting = -3,
                           handingOver = -4;

  llvm::Error create(Device &device) { return mark.create(device); }

  /// The host does the command (or is idle, or preparing), no stream.
  void setOnHost(int32_t command) {
    host.store(pack(++count, command), std::memory_order_relaxed);
    onDevice.store(false, std::memory_order_release);
  }
  /// From here on the device says what is done, of which the stream gets the
  /// first.
  llvm::Error beginRun(Stream &stream) {
    if (llvm::Error error = begin(stream, starting))
      return error;
    onDevice.store(true, std::memory_order_release);
    return llvm::Error::success();
  }
  /// What the stream gets next is of the command.
  llvm::Error begin(Stream &stream, int32_t command) {
    issued = command;
    return mark.set(stream, pack(++count, command));
  }

  /// Around commands that begin on streams which are captured: they count in
  /// launches. Returns how many there are.
  void beginCapture() {
    captured = count;
    mark.beginCapture(pack(count, 0));
  }
  uint64_t endCapture() {
    mark.endCapture();
    return std::exchange(count, captured) - captured;
  }
  /// How many there are so far.
  uint64_t getNumCaptured() const { return count - captured; }
  /// In place of beginRun, before a graph of so many commands is launched, with
  /// the device idle.
  /// Returns what the first counts from (getNumIssued).
  uint64_t beginLaunch(uint64_t number) {
    issued = starting;
    uint64_t first = ++count;
    mark.beginLaunch(pack(first, 0), pack(first, starting));
    onDevice.store(true, std::memory_order_release);
    count += number;
    return first;
  }

  int32_t getCommand() const { return static_cast<int32_t>(get() & mask); }
  /// Which command an error is of, as far as that can be known: errors come
  /// late, so it is the one that the device has come to; before it has come to
  /// any in this run, the one that was put on its streams last. It has come to
  /// none where a run could not begin. For the rank's thread.
  int32_t getFailed() const {
    int32_t reached = getCommand();
    bool hasNotBegun = reached == idle && issued == starting;
    return reached == starting || hasNotBegun ? issued : reached;
  }
  /// What getCount gives when the command that was begun last has been come to.
  /// For the rank's thread.
  uint64_t getNumIssued() const { return count; }
  /// Changes with each command. A device that has not come to the first of a
  /// run has come past those of the run before.
  uint64_t getCount() const {
    return std::max(get(), host.load(std::memory_order_relaxed)) >> bits;
  }

private:
  static constexpr int bits = 32;
  static constexpr uint64_t mask = (uint64_t(1) << bits) - 1;
  static uint64_t pack(uint64_t count, int32_t command) {
    return count << bits | static_cast<uint32_t>(command);
  }
  uint64_t get() const {
    return onDevice.load(std::memory_order_acquire)
               ? mark.get()
               : host.load(std::memory_order_relaxed);
  }

  CountingMark mark;
  uint64_t count = 0;
  /// Before what is captured.
  uint64_t captured = 0;
  int32_t issued = idle;
  std::atomic<uint64_t> host{pack(0, idle)};
  std::atomic<bool> onDevice{false};
};

} // namespace ax::rt

#endif // AX_RUNTIME_RANKPROGRESS_H
