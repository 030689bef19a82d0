//===- ScheduledAction.h - What schedules put in order ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_SCHEDULEDACTION_H
#define AX_DIALECT_SCHEDULEDACTION_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

namespace ax {

/// Weights are those gradients of weights that are not made in the backward
/// action. All but the update are done once for each micro-batch. What depends
/// on another action of the same micro-batch depends on one of before it here.
enum class Action { Forward, Backward, Weights, Update };

/// Returns the letter that plans write: `F`, `B`, `W`, `U`.
char letterOf(Action action);
/// Returns the action of a letter; nothing for what is no such letter.
std::optional<Action> parseActionLetter(llvm::StringRef text);

/// `part` numbers the lists of one kind on one pipeline coordinate.
struct ActionKind {
  Action action = Action::Forward;
  int64_t part = 0;

  bool isOnceAStep() const { return action == Action::Update; }
  bool operator==(const ActionKind &o) const {
    return action == o.action && part == o.part;
  }
  bool operator<(const ActionKind &o) const {
    return std::tie(action, part) < std::tie(o.action, o.part);
  }
};

struct ScheduledAction {
  ActionKind kind;
  int64_t microBatch = 0;
};

/// `F3`; `B0.1`: of part 1; `U`.
std::string toString(const ScheduledAction &action);
std::optional<ScheduledAction> parseAction(llvm::StringRef text);

} // namespace ax

#endif // AX_DIALECT_SCHEDULEDACTION_H
