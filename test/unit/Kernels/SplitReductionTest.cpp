//===- SplitReductionTest.cpp - Large reductions in several kernels -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GpuStages.h"

#include <gtest/gtest.h>

namespace ax::codegen {
namespace {

void checkReduce(const std::string &kind, const std::string &shape,
                 const std::string &dims, const std::string &kept,
                 const std::string &type, double tolerance = 0) {
  checkStage({shape + type},
             "%r = ax.reduce " + kind + " %a dims " + dims + " : tensor<" +
                 shape + type + "> -> tensor<" + kept + type + ">",
             kept + type, /*numKernels=*/2, tolerance);
}

TEST(SplitReduction, EveryKind) {
  for (std::string type : {"f32", "f64", "f16", "bf16", "i32", "ui8", "i1"})
    for (std::string kind : {"sum", "max", "min"})
      if (type != "i1" || kind != "sum")
        checkReduce(kind, "65536x", "[0]", "", type, type == "f32" ? 3e-5 : 0);
  checkReduce("prod", "65536x", "[0]", "", "i32");
}

TEST(SplitReduction, EveryPlace) {
  for (std::string type : {"f32", "bf16"}) {
    double tolerance = type == "f32" ? 3e-5 : 0;
    // Rows, of one run of dimensions and of two.
    checkReduce("sum", "2x300x256x", "[1, 2]", "2x", type, tolerance);
    checkReduce("sum", "16x3x4096x", "[0, 2]", "3x", type, tolerance);
    // Columns, of few and of more than a tile.
    checkReduce("sum", "100000x3x", "[0]", "3x", type, tolerance);
    checkReduce("sum", "96x96x40x", "[0, 1]", "40x", type, tolerance);
    checkReduce("sum", "2x8192x24x", "[1]", "2x24x", type, tolerance);
    checkReduce("sum", "4x3x4096x8x", "[0, 2]", "3x8x", type, tolerance);
  }
}

/// Nothing divides it.
TEST(SplitReduction, PrimesStayWhole) {
  checkStage(
      {"100003xf32"},
      "%r = ax.reduce sum %a dims [0] : tensor<100003xf32> -> tensor<f32>",
      "f32", /*numKernels=*/1, 3e-5);
}

/// What makes the elements is done in the first kernel, what is made of the
/// result in the second.
TEST(SplitReduction, BetweenOthers) {
  checkStage({"8192x40xbf16", "8192x1xf32", "1x40xf32"},
             R"(%x = ax.cast %a : tensor<8192x40xbf16> -> tensor<8192x40xf32>
           %y = ax.binary mul %x, %b : tensor<8192x40xf32>, tensor<8192x1xf32> -> tensor<8192x40xf32>
           %s = ax.reduce sum %y dims [0] keep_dims : tensor<8192x40xf32> -> tensor<1x40xf32>
           %r = ax.binary add %c, %s : tensor<1x40xf32>, tensor<1x40xf32> -> tensor<1x40xf32>)",
             "1x40xf32", /*numKernels=*/2, 1e-4);
  // What is larger than the parts is not done by who sums them.
  checkStage(
      {"65536xf32", "3000xf32"},
      R"(%m = ax.binary mul %a, %a : tensor<65536xf32>, tensor<65536xf32> -> tensor<65536xf32>
           %s = ax.reduce sum %m dims [0] : tensor<65536xf32> -> tensor<f32>
           %n = ax.unary sqrt %s : tensor<f32> -> tensor<f32>
           %r = ax.binary div %b, %n : tensor<3000xf32>, tensor<f32> -> tensor<3000xf32>)",
      "3000xf32", /*numKernels=*/3, 0);
}

TEST(SplitReduction, SoftmaxAndNorms) {
  for (std::string type : {"f32", "bf16"}) {
    auto checkRows = [&](const std::string &shape, const std::string &op,
                         int64_t numKernels) {
      std::string tensor = "tensor<" + shape + type + ">";
      checkStage({shape + type},
                 "%r = " + op + " : " + tensor + " -> " + tensor, shape + type,
                 numKernels, type == "f32" ? 2e-5 : 0);
    };
    // Two kernels for each reduction, one for the result.
    checkRows("2x65536x", "ax.softmax %a dim 1", 5);
    checkRows("2x65536x", "ax.softmax %a dim 1 {log}", 5);
    checkRows("2x65536x", "ax.layer_norm %a axis 1 epsilon 1.0e-5", 5);
    checkRows("2x65536x", "ax.rms_norm %a axis 1 epsilon 1.0e-5", 3);
    // Columns, whose sums are one kernel's.
    checkRows("2x100x40x", "ax.softmax %a dim 1", 3);
    checkRows("100x40x", "ax.softmax %a dim 0 {log}", 3);
  }
  // A scale and a bias.
  checkStage(
      {"2x256x256xf32", "256x256xf32"},
      "%r = ax.layer_norm %a scale %b : tensor<256x256xf32> bias %b : "
      "tensor<256x256xf32> axis 1 epsilon 1.0e-5 : tensor<2x256x256xf32> -> "
      "tensor<2x256x256xf32>",
      "2x256x256xf32", /*numKernels=*/5, 2e-5);
}

/// Of equal ones, the first or the last.
TEST(SplitReduction, ArgReduce) {
  for (std::string type : {"i32", "bf16"})
    for (std::string flags : {"", " {last}", " {min}"})
      checkStage({"2x65536x" + type},
                 "%r = ax.arg_reduce %a dim 1" + flags + " : tensor<2x65536x" +
                     type + "> -> tensor<2x1xi64>",
                 "2x1xi64", /*numKernels=*/4, 0);
}

} // namespace
} // namespace ax::codegen
