//===- UpdateRule.cpp - Optimizers by name --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "UpdateRule.h"

#include "ax/Passes/Training.h"
#include "ax/Support/Error.h"
#include "ax/Support/Nearest.h"

#include "llvm/ADT/StringExtras.h"

using namespace ax;

namespace ax {
// A function of each file in Rules/.
#define AX_FILE(Name) void add##Name(UpdateRules &rules);
#include "UpdateRules.inc"
#undef AX_FILE
} // namespace ax

UpdateRule::~UpdateRule() = default;

const UpdateRules &UpdateRules::get() {
  static const UpdateRules all = [] {
    UpdateRules rules;
#define AX_FILE(Name) add##Name(rules);
#include "UpdateRules.inc"
#undef AX_FILE
    return rules;
  }();
  return all;
}

std::vector<llvm::StringRef> UpdateRules::names() const {
  std::vector<llvm::StringRef> names;
  for (const auto &[name, maker] : makers)
    names.push_back(name);
  return names;
}

std::vector<llvm::StringRef> ax::optimizerNames() {
  return UpdateRules::get().names();
}

llvm::Expected<std::unique_ptr<UpdateRule>>
UpdateRules::parse(llvm::StringRef text) const {
  llvm::Expected<CallExpression> call = CallExpression::parse(text);
  if (!call)
    return call.takeError();
  auto found = makers.find(call->name);
  if (found == makers.end()) {
    return makeErrorf(
        ExitCode::Usage, "there is no optimizer '{0}', but {1}{2}", call->name,
        llvm::join(names(), ", "), suggestNearest(call->name, names()));
  }
  std::unique_ptr<UpdateRule> rule = found->second();
  NumberTaker number(*call);
  number.take("lr", rule->learningRate);
  number.take("weight_decay", rule->weightDecay);
  rule->takeOptions(number);
  if (llvm::Error error = number.finish({}))
    return error;
  if (llvm::Error error = rule->checkOptions())
    return error;
  rule->text = number.describe();
  return rule;
}
