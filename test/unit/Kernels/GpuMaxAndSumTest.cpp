//===- GpuMaxAndSumTest.cpp - Rows that are read once for two numbers -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How often a row is read is in its nests: what is found along with another has
// none. What is computed is compared with the interpreter, and has the same
// bits in all orders of threads.
//
//===----------------------------------------------------------------------===//

#include "KernelTestSupport.h"

#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>
#include <limits>

namespace ax::codegen {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float lowest = std::numeric_limits<float>::lowest();

FusionText softmax(const std::string &type, const std::string &flags = "") {
  return {{type},
          "%r = ax.softmax %a dim 1" + flags + " : tensor<" + type +
              "> -> tensor<" + type + ">",
          {{"%r", type}}};
}

/// What a loss needs of bf16 that lie in longer rows, each number read by
/// operations of its own.
FusionText loss(const std::string &rows, const std::string &from,
                const std::string &to) {
  std::string a = "tensor<" + rows + "x" + from + "xbf16>";
  std::string narrow = "tensor<" + rows + "x" + to + "xbf16>";
  std::string wide = "tensor<" + rows + "x" + to + "xf32>";
  std::string one = rows + "x1xf32", row = "tensor<" + one + ">";
  std::string slice = " = ax.slice %a starts [0, 0] steps [1, 1] : " + a +
                      " -> " + narrow + "\n";
  return {{rows + "x" + from + "xbf16"},
          "%0" + slice + "%1 = ax.cast %0 : " + narrow + " -> " + wide +
              "\n%m = ax.reduce max %1 dims [1] keep_dims : " + wide + " -> " +
              row + "\n%2" + slice + "%3 = ax.cast %2 : " + narrow + " -> " +
              wide + "\n%4 = ax.binary sub %3, %m : " + wide + ", " + row +
              " -> " + wide + "\n%5 = ax.unary exp %4 : " + wide + " -> " +
              wide + "\n%s = ax.reduce sum %5 dims [1] keep_dims : " + wide +
              " -> " + row,
          {{"%m", one}, {"%s", one}}};
}

/// Of reductions how many go over their operand.
int64_t numReads(const FusionText &text) {
  auto module = parse(text);
  FusionOp fusion = fusionOf(*module);
  llvm::cantFail(showNests(fusion, testTarget()));
  return llvm::count_if(fusion.getBody().getOps<ReduceOp>(),
                        [](ReduceOp op) { return op->hasAttr("axl.nests"); });
}

/// A row for each list, which begins with it and goes on with its last number.
HostTensor rowsOf(int64_t length, const std::vector<std::vector<float>> &rows) {
  HostTensor tensor(DType::F32, Shape({int64_t(rows.size()), length}));
  for (auto [r, row] : llvm::enumerate(rows))
    for (int64_t i = 0; i != length; ++i)
      tensor.setDouble(int64_t(r) * length + i,
                       row[std::min<size_t>(size_t(i), row.size() - 1)]);
  return tensor;
}

TEST(GpuMaxAndSum, OneReadForBoth) {
  EXPECT_EQ(numReads(softmax("4x20000xf32")), 1);
  EXPECT_EQ(numReads(softmax("4x20001xf32", " {log}")), 1);
  EXPECT_EQ(numReads(softmax("4x50257xbf16")), 1);
  EXPECT_EQ(numReads(loss("4", "5008", "5001")), 1);
  // Where a block keeps the row, it reads that again; and of f64.
  EXPECT_EQ(numReads(softmax("4x2000xf32")), 2);
  EXPECT_EQ(numReads(softmax("4x20000xf64")), 2);
  // The maximum is another one's, or one of other dimensions, or the sum is of
  // something else.
  std::string max = "%m = ax.reduce max %a dims [1] keep_dims : "
                    "tensor<4x5000xf32> -> tensor<4x1xf32>\n";
  std::string sum = "%s = ax.reduce sum %1 dims [1] keep_dims : "
                    "tensor<4x5000xf32> -> tensor<4x1xf32>\n"
                    "%r = ax.binary add %s, %m : tensor<4x1xf32>, "
                    "tensor<4x1xf32> -> tensor<4x1xf32>";
  auto of = [&](const std::string &from, const std::string &function) {
    return FusionText{
        {"4x5000xf32", "4x5000xf32"},
        max + "%0 = ax.binary sub " + from +
            ", %m : tensor<4x5000xf32>, tensor<4x1xf32> -> "
            "tensor<4x5000xf32>\n%1 = ax.unary " +
            function + " %0 : tensor<4x5000xf32> -> tensor<4x5000xf32>\n" + sum,
        {{"%r", "4x1xf32"}}};
  };
  EXPECT_EQ(numReads(of("%a", "exp")), 1);
  EXPECT_EQ(numReads(of("%b", "exp")), 2);
  EXPECT_EQ(numReads(of("%a", "tanh")), 2);
  for (const char *from : {"%a", "%b"})
    check(of(from, "exp"), {}, 1e-5);
}

TEST(GpuMaxAndSum, Rows) {
  for (const char *type : {"3x20000xf32", "3x20001xf32", "2x13000xf32",
                           "300x12100xf32", "1x50257xf32"})
    for (const char *flags : {"", " {log}"})
      check(softmax(type, flags), {}, 1e-5);
  check(softmax("3x50257xbf16"));
  check(softmax("2x40961xf16", " {log}"));
  check(loss("3", "50264", "50257"), {}, 1e-5);
  check(loss("5", "1000", "999"), {}, 1e-5);
  check(loss("600", "40", "33"), {}, 1e-5);
}

/// Each element is larger than all before, or smaller, so that sums are
/// multiplied often, or never.
TEST(GpuMaxAndSum, InOrder) {
  constexpr int64_t length = 20001;
  HostTensor x(DType::F32, Shape({3, length}));
  for (int64_t i = 0; i != length; ++i) {
    x.setDouble(i, double(i) / 100);
    x.setDouble(length + i, -double(i) / 100);
    x.setDouble(2 * length + i, i % 2 ? 1e30 : -1e30);
  }
  for (const char *flags : {"", " {log}"})
    check(softmax("3x20001xf32", flags), {{0, x}}, 1e-5);
}

/// What has no sum: NaN and infinities, wherever they are.
TEST(GpuMaxAndSum, NoNumbers) {
  constexpr int64_t length = 20001;
  HostTensor x = rowsOf(length, {{-inf},
                                 {nan},
                                 {inf},
                                 {lowest},
                                 {-inf, 1},
                                 {1, -inf},
                                 {inf, 1},
                                 {1, inf, 1},
                                 {nan, 1},
                                 {1, -inf, nan, inf, 1},
                                 {lowest, -inf},
                                 {0}});
  x.setDouble(12 * length - 1, nan);
  x.setDouble(11 * length - 7000, inf);
  for (const char *flags : {"", " {log}"})
    check(softmax("12x20001xf32", flags), {{0, x}}, 1e-5);
}

} // namespace
} // namespace ax::codegen
