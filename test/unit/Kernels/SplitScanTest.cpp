//===- SplitScanTest.cpp - Long running sums in several kernels -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GpuStages.h"

#include <gtest/gtest.h>

namespace ax::codegen {
namespace {

/// In so many kernels: one for each part of each step, which are the running
/// sums of parts, and their sums, and one that adds both.
void checkScan(const std::string &op, const std::string &shape,
               const std::string &type, int64_t numKernels,
               double tolerance = 0) {
  size_t at = op.find(" dim");
  std::string tensor = "tensor<" + shape + type + ">";
  checkStage({shape + type},
             "%r = ax.cumulative " + op.substr(0, at) + " %a" + op.substr(at) +
                 " : " + tensor + " -> " + tensor,
             shape + type, numKernels, tolerance);
}

TEST(SplitScan, EveryKind) {
  for (std::string type : {"f32", "f64", "f16", "bf16", "i32", "i64"}) {
    double tolerance = type == "f32" ? 3e-5 : 0;
    for (std::string kind : {"sum", "max", "min"})
      for (std::string flags :
           {"", " {exclusive}", " {reverse}", " {exclusive, reverse}"})
        if (kind == "sum" || flags != " {exclusive}")
          checkScan(kind + " dim 1" + flags, "3x1024x", type, 4, tolerance);
  }
  checkScan("prod dim 0", "512x", "i32", 4);
}

TEST(SplitScan, EveryPlace) {
  // In more steps, of columns, and where nothing divides the size.
  checkScan("sum dim 0", "65536x", "i64", 0);
  checkScan("sum dim 0", "65536x", "f32", 0, 3e-5);
  checkScan("sum dim 1", "2x2048x24x", "f32", 0, 3e-5);
  checkScan("sum dim 0 {exclusive, reverse}", "1009x3x", "i32", 0);
  checkScan("sum dim 0 {reverse}", "1009x", "f32", 0, 3e-5);
}

/// What makes the elements is done by both that read them.
TEST(SplitScan, BetweenOthers) {
  checkStage({"40x37xi1"},
             R"(%f = ax.reshape %a : tensor<40x37xi1> -> tensor<1480xi1>
           %i = ax.cast %f : tensor<1480xi1> -> tensor<1480xi64>
           %s = ax.cumulative sum %i dim 0 : tensor<1480xi64> -> tensor<1480xi64>
           %m = ax.constant dense<-1> : tensor<i64> -> tensor<i64>
           %t = ax.binary add %s, %m : tensor<1480xi64>, tensor<i64> -> tensor<1480xi64>
           %r = ax.select %f, %t, %m : tensor<1480xi1>, tensor<1480xi64>, tensor<i64> -> tensor<1480xi64>)",
             "1480xi64", /*numKernels=*/4, 0);
}

} // namespace
} // namespace ax::codegen
