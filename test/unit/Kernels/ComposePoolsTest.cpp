//===- ComposePoolsTest.cpp - Pools on a GPU ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GpuStages.h"

#include <gtest/gtest.h>

namespace ax::codegen {
namespace {

/// Shapes of the images and of what a pool makes of them, and its attributes.
struct Windows {
  std::string images, result, attributes;
  /// Of a gradient.
  int numKernels = 2;
};

const Windows windows2d{
    "2x3x9x8x", "2x3x5x4x",
    "kernel [3, 3] strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] "
    "ceil_extra [0, 0]"};

/// Some in the padding and beyond, apart and over each other, with gaps, as
/// large as the image, and larger.
const Windows allWindows[] = {
    windows2d,
    {"3x2x11x", "3x2x11x",
     "kernel [5] strides [1] pads [2, 2] dilations [1] ceil_extra [0]"},
    {"1x4x7x10x", "1x4x4x4x",
     "kernel [2, 3] strides [2, 3] pads [0, 1, 0, 0] dilations [1, 1] "
     "ceil_extra [1, 1]"},
    {"2x2x9x9x", "2x2x5x3x",
     "kernel [3, 3] strides [1, 2] pads [0, 1, 0, 1] dilations [2, 3] "
     "ceil_extra [0, 0]"},
    {"2x5x7x7x", "2x5x1x1x",
     "kernel [7, 7] strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] "
     "ceil_extra [0, 0]"},
    {"1x2x13x13x", "1x2x13x13x",
     "kernel [13, 13] strides [1, 1] pads [6, 6, 6, 6] dilations [1, 1] "
     "ceil_extra [0, 0]"},
    {"1x2x4x5x6x", "1x2x2x2x3x",
     "kernel [2, 3, 2] strides [2, 2, 2] pads [0, 0, 0, 0, 0, 0] "
     "dilations [1, 1, 1] ceil_extra [0, 0, 0]"},
    {"2x2x7x", "2x2x2x",
     "kernel [2] strides [4] pads [0, 0] dilations [1] ceil_extra [0]",
     /*numKernels=*/1},
};

std::string tensor(const std::string &shape, const std::string &type) {
  return "tensor<" + shape + type + ">";
}

/// What `operand` becomes in front of the operation; none: it stays.
std::string made(const std::string &function, const std::string &type) {
  return function.empty() ? ""
                          : "%x = ax.unary " + function + " %a : " + type +
                                " -> " + type + "\n";
}

void checkPool(const std::string &kind, const Windows &windows,
               const std::string &type, const std::string &function = "") {
  std::string from = tensor(windows.images, type);
  checkStage({windows.images + type},
             made(function, from) + "%r = ax.pool " + kind +
                 (function.empty() ? " %a " : " %x ") + windows.attributes +
                 " : " + from + " -> " + tensor(windows.result, type),
             windows.result + type, /*numKernels=*/function.empty() ? 1 : 0,
             type == "f32" ? 1e-5 : 0);
}

void checkMaxGradient(const Windows &windows, const std::string &type,
                      const std::string &function = "") {
  std::string from = tensor(windows.images, type);
  checkStage(
      {windows.images + type, windows.result + type},
      made(function, from) + "%r = ax.max_pool_gradient " +
          (function.empty() ? "%a" : "%x") + ", %b " + windows.attributes +
          " : " + from + ", " + tensor(windows.result, type) + " -> " + from,
      windows.images + type, function.empty() ? windows.numKernels : 0, 0);
}

TEST(ComposePools, EveryWindow) {
  for (const Windows &windows : allWindows) {
    for (std::string kind : {"max", "avg", "sum"})
      checkPool(kind, windows, "f32");
    checkMaxGradient(windows, "f32");
  }
}

TEST(ComposePools, EveryType) {
  for (std::string type : {"f32", "f64", "f16", "bf16"}) {
    for (std::string kind : {"max", "avg", "sum"})
      checkPool(kind, windows2d, type);
    checkMaxGradient(windows2d, type);
  }
  for (std::string type : {"i8", "ui8", "i32", "i64"})
    checkPool("max", windows2d, type);
}

TEST(ComposePools, PadsCountInAMean) {
  Windows counted = windows2d;
  counted.attributes += " {count_include_pad}";
  checkPool("avg", counted, "f32");
}

/// Of equal ones the first has the gradient, and of what is no number the last.
TEST(ComposePools, EqualOnes) {
  for (std::string function : {"floor", "sqrt"})
    for (const Windows &windows : allWindows) {
      checkPool("max", windows, "f32", function);
      checkMaxGradient(windows, "f32", function);
    }
}

/// The gradient of a mean, in front of which all windows divide it.
TEST(ComposePools, Spread) {
  auto checkSpread = [](const std::string &from, const std::string &weight,
                        const std::string &to, const std::string &attributes) {
    checkStage({from},
               "%w = ax.constant dense<0.25> : tensor<" + weight +
                   "> -> tensor<" + weight +
                   ">\n%r = ax.conv_transpose %a, %w " + attributes +
                   " : tensor<" + from + ">, tensor<" + weight +
                   "> -> tensor<" + to + ">",
               to, /*numKernels=*/1, 0);
  };
  checkSpread("2x3x5x4xf32", "3x1x3x3xf32", "2x3x9x8xf32",
              "strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] output_pads "
              "[0, 1] {groups = 3 : i64}");
  checkSpread("2x3x5x4xbf16", "3x1x3x3xbf16", "2x3x9x8xbf16",
              "strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] output_pads "
              "[0, 1] {groups = 3 : i64}");
  checkSpread("1x2x5xf32", "2x1x3xf32", "1x2x14xf32",
              "strides [2] pads [0, 0] dilations [2] output_pads [1] "
              "{groups = 2 : i64}");
  checkSpread("2x4x1x1xf32", "4x1x7x7xf32", "2x4x7x7xf32",
              "strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] output_pads "
              "[0, 0] {groups = 4 : i64}");
}

} // namespace
} // namespace ax::codegen
