//===- UnaryGradients.cpp - Gradients of functions of one element ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Gradients/GradientBuilder.h"

#include "ax/Dialect/UnaryFunctions.h"

using namespace mlir;
using namespace ax;

Value ax::unaryGradient(TensorBuilder &g, UnaryKind kind, Value x, Value y,
                        Value dy) {
  using Gradient = Value (*)(TensorBuilder &, Value x, Value y, Value dy);
  static constexpr auto gradients =
      tabulateUnary<Gradient>([](auto function) -> Gradient {
        using Function = decltype(function);
        if constexpr (std::is_same_v<decltype(Function::gradient),
                                     const NoGradient>)
          return [](TensorBuilder &, Value, Value, Value) { return Value(); };
        else
          return [](TensorBuilder &g, Value x, Value y, Value dy) -> Value {
            return Function::gradient(g, x, y, dy);
          };
      });
  return gradients[static_cast<uint32_t>(kind)](g, x, y, dy);
}
