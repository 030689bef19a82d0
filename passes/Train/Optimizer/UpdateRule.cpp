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
  for (const auto &[name, entry] : entries)
    names.push_back(name);
  return names;
}

std::vector<llvm::StringRef> ax::optimizerNames() {
  return UpdateRules::get().names();
}

Optimizer::Optimizer() : Optimizer(llvm::cantFail(parse("adamw"))) {}

llvm::Expected<Optimizer> Optimizer::parse(llvm::StringRef text) {
  llvm::Expected<CallExpression> call = CallExpression::parse(text);
  if (!call)
    return call.takeError();
  const UpdateRules::Entry *entry = UpdateRules::get().find(call->name);
  if (!entry)
    return makeErrorf(ExitCode::Usage,
                      "there is no optimizer '{0}', but {1}{2}", call->name,
                      llvm::join(optimizerNames(), ", "),
                      suggestNearest(call->name, optimizerNames()));
  std::shared_ptr<UpdateRule> rule = entry->make();
  NumberTaker number(*call);
  number.take("lr", rule->learningRate);
  number.take("weight_decay", rule->weightDecay);
  rule->takeOptions(number);
  if (llvm::Error error = number.finish({}))
    return error;
  if (llvm::Error error = rule->checkOptions())
    return error;
  rule->text = number.describe();
  return Optimizer(text, [rule, entry] { return entry->copy(*rule); });
}

std::unique_ptr<UpdateRule> Optimizer::makeRule() const { return make(); }
