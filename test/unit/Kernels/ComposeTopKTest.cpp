//===- ComposeTopKTest.cpp - The largest elements on a GPU ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GpuStages.h"

#include <gtest/gtest.h>

namespace ax::codegen {
namespace {

/// Indices, and values, of the first three of `size` along a dimension of
/// [3, size, 5], after `first` was done to them.
void checkTopK(const std::string &type, int64_t size, const std::string &flags,
               const std::string &function = "") {
  std::string from = "3x" + std::to_string(size) + "x5x" + type,
              values = "3x3x5x" + type, indices = "3x3x5xi64";
  std::string first, operand = "%a";
  if (!function.empty()) {
    operand = "%x";
    first = "%x = ax.unary " + function + " %a : tensor<" + from +
            "> -> tensor<" + from + ">\n";
  }
  auto chosen = [&](const std::string &names) {
    return first + names + " = ax.top_k " + operand + " k 3 dim 1" + flags +
           " : tensor<" + from + "> -> tensor<" + values + ">, tensor<" +
           indices + ">";
  };
  checkStage({from}, chosen("%v, %r"), indices,
             /*numKernels=*/function.empty() ? 2 : 0, 0);
  // What is no number equals nothing, and is looked for by its index.
  if (function != "sqrt")
    checkStage({from}, chosen("%r, %i"), values,
               /*numKernels=*/function.empty() ? 3 : 0, 0);
}

TEST(ComposeTopK, EveryType) {
  for (std::string type : {"f32", "f64", "f16", "bf16", "i64", "i32", "ui8"})
    for (std::string flags : {"", " {smallest}"})
      checkTopK(type, 37, flags);
}

/// Rows that a block does together, and the shortest.
TEST(ComposeTopK, EverySize) {
  for (int64_t size : {3, 128, 300})
    checkTopK("f32", size, "");
}

TEST(ComposeTopK, EqualOnesKeepTheirOrder) {
  for (std::string flags : {"", " {smallest}"})
    checkTopK("f32", 37, flags, "floor");
}

/// The roots of negative numbers are the largest.
TEST(ComposeTopK, WhatIsNoNumber) {
  for (std::string flags : {"", " {smallest}"})
    checkTopK("f32", 37, flags, "sqrt");
}

} // namespace
} // namespace ax::codegen
