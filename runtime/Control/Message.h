//===- Message.h - What goes over the control channel -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CONTROL_MESSAGE_H
#define AX_RUNTIME_CONTROL_MESSAGE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ax::rt::control {

enum class MessageKind : uint8_t {
  /// To process 0, first: who it is (`number`), of how many (`detail`), its
  /// host
  /// (`name`), and in turns names and values in which all are to be equal.
  Hello,
  /// From process 0, when all have said so, with its host (`name`).
  Welcome,
  /// Both ways: the last exchange (`number`, `name`), and in `text` what the
  /// process does.
  Heartbeat,
  /// To process 0: `number` it has, `detail` its ExchangeKind, `name`, `text`
  /// the value.
  Exchange,
  /// From process 0: `number`, and in `list` what the exchange returns; of an
  /// AllGather in runs.
  Result,
  /// To process 0: `text` is why the job should end. From it: why it does, of
  /// process `number`, with exit code `detail`.
  Abort,
  /// Both ways: nothing comes after it. It is answered by another one.
  Goodbye,
};

enum class ExchangeKind : uint8_t { AllGather, Gather, Broadcast, Barrier };

struct Message {
  MessageKind kind = MessageKind::Heartbeat;
  uint64_t number = 0;
  uint64_t detail = 0;
  std::string name = {};
  std::string text = {};
  std::vector<std::string> list = {};

  std::string encode() const;
  /// Nothing of what `encode` did not make.
  static std::optional<Message> decode(llvm::StringRef bytes);
};

/// What processes give, in runs: a number and a value in turns. Where all give
/// the same, as they do at each step, a result does not grow with the
/// processes, to each of which it goes.
std::vector<std::string> packRuns(llvm::ArrayRef<std::string> values);
/// The values, or nothing where they are not `count`.
std::optional<std::vector<std::string>>
unpackRuns(llvm::ArrayRef<std::string> runs, size_t count);

/// The largest message, in bytes: what processes agree on is small, and what
/// does not come from them is dropped before it takes memory.
inline constexpr int64_t largestMessage = 64 << 20;

} // namespace ax::rt::control

#endif // AX_RUNTIME_CONTROL_MESSAGE_H
