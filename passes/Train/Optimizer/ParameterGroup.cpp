//===- ParameterGroup.cpp - Weights that are trained in another way -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ParameterGroup.h"

#include "../NumberTaker.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

using namespace ax;

llvm::Expected<ParameterGroup> ParameterGroup::parse(llvm::StringRef text) {
  ParameterGroup result;
  result.text = text.str();
  auto [names, options] = text.rsplit(':');
  if (names.empty() || options.empty())
    return makeError(ExitCode::Usage,
                     "give PATTERN|rank<N:lr=...,weight_decay=...");
  for (llvm::StringRef name : llvm::split(names, '|')) {
    if (name.consume_front("rank<")) {
      if (!llvm::to_integer(name, result.belowRank, 10) || result.belowRank < 1)
        return makeError(ExitCode::Usage, "rank< needs a number");
      continue;
    }
    if (llvm::Expected<llvm::GlobPattern> glob =
            llvm::GlobPattern::create(name);
        !glob)
      return makeError(ExitCode::Usage, llvm::toString(glob.takeError()));
    result.patterns.push_back(name.str());
  }
  llvm::Expected<CallExpression> call =
      CallExpression::parse(("group(" + options + ")").str());
  if (!call)
    return call.takeError();
  NumberTaker number(*call);
  number.take("lr", result.learningRate);
  number.take("weight_decay", result.weightDecay);
  if (llvm::Error error = number.finish({}))
    return error;
  return result;
}

bool ParameterGroup::contains(llvm::StringRef name, int64_t rank) const {
  if (rank < belowRank)
    return true;
  return llvm::any_of(patterns, [&](const std::string &pattern) {
    return llvm::cantFail(llvm::GlobPattern::create(pattern)).match(name);
  });
}

llvm::Expected<std::vector<std::string>>
ax::findGroup(PlanOp plan, const ParameterGroup &group) {
  std::vector<std::string> names;
  for (StateOp state : plan.getBody().getOps<StateOp>())
    if (group.contains(state.getSymName(), state.getTensorType().getRank()))
      names.push_back(state.getSymName().str());
  if (names.empty() && !group.patterns.empty())
    return makeErrorf(ExitCode::Usage,
                      "--param-group: no weight is called '{0}'",
                      llvm::join(group.patterns, "|"));
  return names;
}

llvm::Expected<FrozenRows> FrozenRows::parse(llvm::StringRef text) {
  FrozenRows result;
  result.text = text.str();
  auto [name, rows] = text.rsplit('=');
  result.pattern = name.str();
  bool isSound = !name.empty() && !rows.empty();
  for (llvm::StringRef row : llvm::split(rows, ','))
    if (int64_t number; llvm::to_integer(row, number, 10) && number >= 0)
      result.rows.push_back(number);
    else
      isSound = false;
  if (!isSound)
    return makeError(ExitCode::Usage, "give PATTERN=ROW,ROW,...");
  if (auto glob = llvm::GlobPattern::create(name); !glob)
    return makeError(ExitCode::Usage, llvm::toString(glob.takeError()));
  return result;
}

bool FrozenRows::contains(llvm::StringRef name) const {
  return llvm::cantFail(llvm::GlobPattern::create(pattern)).match(name);
}

llvm::Expected<std::vector<StateOp>>
ax::findFrozen(llvm::ArrayRef<StateOp> states, const FrozenRows &frozen) {
  std::vector<StateOp> found;
  for (StateOp state : states) {
    if (!frozen.contains(state.getSymName()))
      continue;
    mlir::RankedTensorType type = state.getTensorType();
    int64_t size = type.getRank() ? type.getDimSize(0) : 0;
    if (int64_t row = *llvm::max_element(frozen.rows); row >= size)
      return makeErrorf(ExitCode::Usage,
                        "--frozen-rows={0}: '{1}' has {2} rows, and no row {3}",
                        frozen.text, state.getSymName(), size, row);
    found.push_back(state);
  }
  if (found.empty())
    return makeErrorf(ExitCode::Usage,
                      "--frozen-rows={0}: no weight that is trained is called "
                      "so",
                      frozen.text);
  return found;
}

std::vector<int64_t> ax::rowsIn(StateOp state, const FrozenRows &frozen) {
  std::vector<int64_t> found = frozen.rows;
  std::optional<DealtAttr> dealt = state.getDealt();
  if (!dealt || dealt->getDim() != 0)
    return found;
  DealtOrder order(dealt->getOrder(),
                   state.getTensorType().getShape().take_front());
  for (int64_t &row : found)
    order.deal(row, 1, [&](int64_t place, int64_t, int64_t) {
      row = place;
      return true;
    });
  return found;
}
