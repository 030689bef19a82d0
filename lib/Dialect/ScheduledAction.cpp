//===- ScheduledAction.cpp - What schedules put in order ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/ScheduledAction.h"

using namespace ax;

/// The letters, in the order of Action.
static constexpr llvm::StringLiteral letters = "FBWU";

char ax::letterOf(Action action) {
  return letters[static_cast<size_t>(action)];
}

std::optional<Action> ax::parseActionLetter(llvm::StringRef text) {
  size_t place =
      text.size() == 1 ? letters.find(text[0]) : llvm::StringRef::npos;
  if (place == llvm::StringRef::npos)
    return std::nullopt;
  return static_cast<Action>(place);
}

std::string ax::toString(const ScheduledAction &action) {
  std::string text(1, letterOf(action.kind.action));
  if (!action.kind.isOnceAStep())
    text += std::to_string(action.microBatch);
  if (action.kind.part != 0)
    text += "." + std::to_string(action.kind.part);
  return text;
}

std::optional<ScheduledAction> ax::parseAction(llvm::StringRef text) {
  std::optional<Action> parsed = parseActionLetter(text.take_front(1));
  if (!parsed)
    return std::nullopt;
  ScheduledAction action{{*parsed, 0}, 0};
  auto [number, part] = text.drop_front().split('.');
  bool hasPart = text.contains('.');
  if (action.kind.isOnceAStep() ? !number.empty()
                                : number.getAsInteger(10, action.microBatch))
    return std::nullopt;
  if (hasPart && part.getAsInteger(10, action.kind.part))
    return std::nullopt;
  if (action.microBatch < 0 || action.kind.part < 0)
    return std::nullopt;
  return action;
}
