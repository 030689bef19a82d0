//===- GpuBesideTest.cpp - Reductions that are found along with results ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What has loops of its own says so in its nests: what is found along with
// another has none.
//
//===----------------------------------------------------------------------===//

#include "KernelTestSupport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <gtest/gtest.h>
#include <limits>

namespace ax::codegen {
namespace {

/// Of rows x what is twice as much, cast, and a reduction of |x|.
FusionText rounded(const std::string &rows, int64_t length,
                   const std::string &from, const std::string &to,
                   const std::string &kind = "max") {
  std::string shape = rows + "x" + std::to_string(length) + "x";
  std::string x = "tensor<" + shape + from + ">";
  return {{shape + from},
          "%0 = ax.unary abs %a : " + x + " -> " + x + "\n%m = ax.reduce " +
              kind + " %0 dims [" +
              std::to_string(llvm::StringRef(rows).count('x') + 1) +
              "] : " + x + " -> tensor<" + rows + "x" + from +
              ">\n%1 = ax.binary add %a, %a : " + x + ", " + x + " -> " + x +
              "\n%q = ax.cast %1 : " + x + " -> tensor<" + shape + to + ">",
          {{"%m", rows + "x" + from}, {"%q", shape + to}}};
}

/// Whether the reduction goes over its operand by itself.
bool hasLoops(const FusionText &text) {
  auto module = parse(text);
  FusionOp fusion = fusionOf(*module);
  llvm::cantFail(showNests(fusion, testTarget()));
  return llvm::any_of(fusion.getBody().getOps<ReduceOp>(),
                      [](ReduceOp op) { return op->hasAttr("axl.nests"); });
}

TEST(GpuBeside, OneLoopForBoth) {
  // By a warp, by a block, by a large one; with lanes that begin anywhere; and
  // short rows, by a thread.
  for (int64_t length : {100, 128, 600, 4096, 4097, 20001, 9})
    EXPECT_FALSE(hasLoops(rounded("300", length, "f32", "f8E4M3FN"))) << length;
  EXPECT_FALSE(hasLoops(rounded("2x150", 640, "bf16", "f8E5M2")));
  EXPECT_FALSE(hasLoops(rounded("300", 640, "f32", "bf16", "sum")));
  // What is made of the result is in no loop with it; nor are columns.
  FusionText needed = rounded("300", 600, "f32", "bf16");
  needed.body += "\n%n = ax.unary neg %m : tensor<300xf32> -> tensor<300xf32>";
  needed.results.push_back({"%n", "300xf32"});
  EXPECT_TRUE(hasLoops(needed));
  EXPECT_TRUE(
      hasLoops({{"300x600xf32"},
                "%m = ax.reduce max %a dims [0] : tensor<300x600xf32> -> "
                "tensor<600xf32>\n%q = ax.cast %a : tensor<300x600xf32> -> "
                "tensor<300x600xbf16>",
                {{"%m", "600xf32"}, {"%q", "300x600xbf16"}}}));
}

TEST(GpuBeside, Rows) {
  for (int64_t length : {9, 100, 128, 600, 4096, 4097, 20001})
    for (const char *to : {"f8E4M3FN", "f8E5M2", "bf16"})
      check(rounded("30", length, "f32", to));
  for (const char *kind : {"max", "min", "sum"})
    for (const char *from : {"f32", "bf16", "f16", "i32"})
      check(rounded("2x15", 640, from, "f32", kind), {},
            std::string(kind) == "sum" ? 1e-4 : 0);
}

/// Two reductions, of which one is found along with the results.
TEST(GpuBeside, Several) {
  FusionText text = rounded("30", 640, "f32", "bf16");
  text.body += "\n%s = ax.reduce sum %a dims [1] : tensor<30x640xf32> -> "
               "tensor<30xf32>";
  text.results.push_back({"%s", "30xf32"});
  check(text, {}, 1e-4);
}

/// Of a norm's rows, which are known when the norm is.
TEST(GpuBeside, OfWhatRowsAreMadeOf) {
  std::string x = "tensor<40x768xf32>";
  check({{"40x768xf32"},
         "%n = ax.rms_norm %a axis 1 epsilon 1.0e-5 : " + x + " -> " + x +
             "\n%0 = ax.unary abs %n : " + x + " -> " + x +
             "\n%m = ax.reduce max %0 dims [1] : " + x +
             " -> tensor<40xf32>\n%q = ax.cast %n : " + x +
             " -> tensor<40x768xf8E4M3FN>",
         {{"%m", "40xf32"}, {"%q", "40x768xf8E4M3FN"}}},
        {}, 1e-5);
}

TEST(GpuBeside, NoNumbers) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  HostTensor x(DType::F32, Shape({30, 4097}));
  for (int64_t row = 0; row != 30; ++row) {
    x.setDouble(row * 4097 + row * 100, row % 3 == 0 ? inf : -inf);
    if (row % 2 == 0)
      x.setDouble(row * 4097 + 4096 - row, nan);
  }
  check(rounded("30", 4097, "f32", "f8E4M3FN"), {{0, x}});
}

} // namespace
} // namespace ax::codegen
