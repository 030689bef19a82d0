//===- Functions.cpp - Kinds of functions and what is known of them -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/Ax.h"
#include "ax/Dialect/UnaryFunctions.h"

using namespace mlir;
using namespace ax;

#include "ax/Dialect/AxEnums.cpp.inc"

const UnaryFacts &ax::factsOf(UnaryKind kind) {
  static constexpr auto facts =
      tabulateUnary<UnaryFacts>([](auto function) { return function.facts; });
  return facts[static_cast<uint32_t>(kind)];
}
