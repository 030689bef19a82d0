//===- Loss.cpp - Losses as they are written ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../NumberTaker.h"
#include "ax/Passes/Training.h"
#include "ax/Support/Error.h"
#include "ax/Support/Nearest.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ax;

namespace {
struct Named {
  llvm::StringLiteral name;
  Loss::Kind kind;
  /// What the second argument is.
  llvm::StringLiteral second;
};
} // namespace

static constexpr Named losses[] = {
    {"cross_entropy", Loss::Kind::CrossEntropy, "LABELS"},
    {"mse", Loss::Kind::MSE, "TARGET"},
    {"l1", Loss::Kind::L1, "TARGET"},
    {"bce_with_logits", Loss::Kind::BCEWithLogits, "TARGET"},
    {"graph", Loss::Kind::Graph, "mean|sum"}};

llvm::StringRef Loss::name() const {
  return llvm::find_if(losses,
                       [&](const Named &each) { return each.kind == kind; })
      ->name;
}

llvm::Expected<Loss> Loss::parse(llvm::StringRef text) {
  llvm::Expected<CallExpression> call = CallExpression::parse(text);
  if (!call)
    return call.takeError();
  const Named *found = llvm::find_if(
      losses, [&](const Named &each) { return each.name == call->name; });
  if (found == std::end(losses)) {
    auto names = llvm::map_to_vector(
        losses, [](const Named &each) { return llvm::StringRef(each.name); });
    return makeErrorf(
        ExitCode::Usage, "there is no loss '{0}'; there are {1} and {2}{3}",
        call->name, llvm::join(llvm::ArrayRef(names).drop_back(), ", "),
        names.back(), suggestNearest(call->name, names));
  }
  Loss loss;
  loss.kind = found->kind;
  loss.text = text.str();
  NumberTaker number(*call);
  if (loss.kind == Kind::CrossEntropy) {
    number.takeSigned("ignore_index", loss.ignoreIndex);
    number.take("shift", loss.shift);
    number.takeSigned("class_dim", loss.classDim);
    number.take("label_smoothing", loss.labelSmoothing, 0, 1);
  }
  if (llvm::Error error = number.finish({"OUTPUT", found->second}))
    return error;
  loss.output = call->arguments[0];
  loss.target = call->arguments[1];
  if (loss.kind == Kind::Graph && loss.target != "mean" && loss.target != "sum")
    return makeErrorf(ExitCode::Usage, "{0}: '{1}' is neither mean nor sum",
                      call->name, loss.target);
  return loss;
}
