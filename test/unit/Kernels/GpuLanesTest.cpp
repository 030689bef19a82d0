//===- GpuLanesTest.cpp - Threads of a GPU that do several neighbours -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// That accesses become one is the backend's to say: it is looked at in the text
// that it makes. What is computed is compared with the interpreter.
//
//===----------------------------------------------------------------------===//

#include "KernelTestSupport.h"

#include "llvm/ADT/StringExtras.h"

#include <gtest/gtest.h>
#include <set>

namespace ax::codegen {
namespace {

std::string tensor(const std::string &type) { return "tensor<" + type + ">"; }

FusionText unary(const std::string &kind, const std::string &type) {
  return {{type},
          "%r = ax.unary " + kind + " %a : " + tensor(type) + " -> " +
              tensor(type),
          {{"%r", type}}};
}

FusionText cast(const std::string &from, const std::string &to) {
  return {{from},
          "%r = ax.cast %a : " + tensor(from) + " -> " + tensor(to),
          {{"%r", to}}};
}

FusionText softmax(const std::string &type) {
  return {{type},
          "%r = ax.softmax %a dim 1 : " + tensor(type) + " -> " + tensor(type),
          {{"%r", type}}};
}

FusionText layerNorm(const std::string &type) {
  return {{type},
          "%r = ax.layer_norm %a axis 1 epsilon 1.0e-5 : " + tensor(type) +
              " -> " + tensor(type),
          {{"%r", type}}};
}

/// 64 columns of 64 rows.
FusionText slice(int64_t first, const std::string &from) {
  return {{from},
          "%r = ax.slice %a starts [0, " + std::to_string(first) +
              "] steps [1, 1] : " + tensor(from) + " -> tensor<64x64xf32>",
          {{"%r", "64x64xf32"}}};
}

/// Accesses of the card's memory, each kind once, in alphabetical order.
std::string accessesOf(const FusionText &text) {
  auto module = parse(text);
  CompiledKernel kernel =
      llvm::cantFail(testCompiler().compile(fusionOf(*module)));
  llvm::StringRef ptx(
      reinterpret_cast<const char *>(kernel.image->image.data()));
  std::set<std::string> kinds;
  llvm::SmallVector<llvm::StringRef> lines;
  ptx.split(lines, '\n');
  for (llvm::StringRef line : lines) {
    llvm::StringRef instruction = line.trim().split(' ').first.rtrim();
    if (instruction.consume_front("ld.global."))
      kinds.insert("ld " + instruction.split('\t').first.str());
    else if (instruction.consume_front("st.global."))
      kinds.insert("st " + instruction.split('\t').first.str());
  }
  return llvm::join(kinds, ", ");
}

TEST(GpuLanes, AccessesAreOfSixteenBytes) {
  EXPECT_EQ(accessesOf(unary("gelu", "64x4096xf32")), "ld v4.b32, st v4.b32");
  EXPECT_EQ(accessesOf(unary("neg", "64x4096xbf16")), "ld v4.b32, st v4.b32");
  EXPECT_EQ(accessesOf(unary("neg", "64x4096xf64")), "ld v2.b64, st v2.b64");
  EXPECT_EQ(accessesOf(softmax("64x512xf32")), "ld v4.b32, st v4.b32");
  EXPECT_EQ(accessesOf(softmax("64x4096xf32")), "ld v4.b32, st v4.b32");
  EXPECT_EQ(accessesOf(layerNorm("64x4096xf32")), "ld v4.b32, st v4.b32");
  EXPECT_EQ(accessesOf(layerNorm("64x16384xbf16")), "ld v4.b32, st v4.b32");
}

/// The widest type has 16 bytes, so that neighbours leave no gaps.
TEST(GpuLanes, OfSeveralTypes) {
  EXPECT_EQ(accessesOf(cast("64x64xbf16", "64x64xf32")),
            "ld v4.b16, st v4.b32");
  EXPECT_EQ(accessesOf(cast("64x64xf32", "64x64xi64")), "ld v2.b32, st v2.b64");
}

/// Of what is not aligned, or of sizes that do not divide, there are smaller
/// accesses or none; others of the kernel may have theirs.
TEST(GpuLanes, OfWhatIsNotAligned) {
  EXPECT_EQ(accessesOf(unary("neg", "63x62xf32")), "ld v2.b32, st v2.b32");
  EXPECT_EQ(accessesOf(unary("neg", "63x61xf32")), "ld b32, st b32");
  EXPECT_EQ(accessesOf(slice(8, "64x80xf32")), "ld v4.b32, st v4.b32");
  EXPECT_EQ(accessesOf(slice(6, "64x80xf32")), "ld v2.b32, st v4.b32");
  EXPECT_EQ(accessesOf(slice(1, "64x80xf32")), "ld b32, ld v2.b32, st v4.b32");
  EXPECT_EQ(accessesOf(slice(0, "64x81xf32")), "ld b32, st v4.b32");
}

/// Long rows that begin anywhere, or end anywhere, have lanes from the first
/// multiple of 16 bytes on, and single elements before and behind.
TEST(GpuLanes, OfLongRowsThatAreNotAligned) {
  for (const char *type : {"7x90001xf32", "8x90001xf32", "7x90003xf32"}) {
    EXPECT_EQ(accessesOf(layerNorm(type)),
              "ld b32, ld v4.b32, st b32, st v4.b32");
    check(layerNorm(type), {}, 1e-5);
  }
  EXPECT_EQ(accessesOf(layerNorm("7x180001xbf16")),
            "ld b16, ld v4.b32, st b16, st v4.b32");
  for (const char *type : {"3x180001xbf16", "3x40006xbf16", "3x20001xf64"})
    check(layerNorm(type), {}, 1.6e-2);
  // From the third, from the first of a longer one, and a single row.
  for (auto [from, first] :
       {std::pair("5x20006xf32", "2"), std::pair("5x20008xf32", "0"),
        std::pair("1x20005xf32", "2")}) {
    std::string rows(1, from[0]), result = rows + "xf32";
    std::string part = rows + "x20001xf32";
    FusionText text = {
        {from},
        "%0 = ax.slice %a starts [0, " + std::string(first) +
            "] steps [1, 1] : " + tensor(from) + " -> " + tensor(part) +
            "\n%r = ax.reduce sum %0 dims [1] : " + tensor(part) + " -> " +
            tensor(result),
        {{"%r", result}}};
    EXPECT_EQ(accessesOf(text), "ld b32, ld v4.b32, st b32") << from;
    check(text, {}, 1e-4);
  }
}

FusionText columns(const std::string &kind, const std::string &shape,
                   const std::string &kept, const std::string &type) {
  return {{shape + type},
          "%r = ax.reduce " + kind + " %a dims [0] : " + tensor(shape + type) +
              " -> " + tensor(kept + type),
          {{"%r", kept + type}}};
}

/// A thread sums columns that are next to each other.
TEST(GpuLanes, Columns) {
  for (const char *type : {"f32", "f16", "bf16"})
    EXPECT_EQ(accessesOf(columns("sum", "512x1024x", "1024x", type)),
              "ld v4.b32, st v4.b32");
  EXPECT_EQ(accessesOf(columns("sum", "512x1024x", "1024x", "f64")),
            "ld v2.b64, st v2.b64");
  EXPECT_EQ(accessesOf(columns("sum", "512x1026x", "1026x", "f32")),
            "ld v2.b32, st v2.b32");
  EXPECT_EQ(accessesOf(columns("sum", "512x1025x", "1025x", "f32")),
            "ld b32, st b32");
  // Fewer of few columns, so that threads read whole lines.
  EXPECT_EQ(accessesOf(columns("sum", "512x16x", "16x", "f32")),
            "ld v2.b32, st v2.b32");
  for (const char *type : {"f32", "f64", "f16", "bf16", "i32", "ui8"})
    for (const char *kind : {"sum", "max", "min"})
      for (auto [rows, kept] :
           {std::pair("16x", "64x"), std::pair("100x", "72x"),
            std::pair("517x", "40x"), std::pair("2000x", "1000x")})
        check(columns(kind, std::string(rows) + kept, kept, type), {},
              std::string(type) == "f32" ? 3e-5 : 0);
  check(columns("sum", "300x33x", "33x", "f32"), {}, 1e-5);
}

/// Sums of several operands, which need each other, and results of all rows.
TEST(GpuLanes, ColumnsTogether) {
  check({{"200x64xbf16", "200x1xf32", "64xf32", "200x64xf32"},
         R"(%0 = ax.cast %a : tensor<200x64xbf16> -> tensor<200x64xf32>
            %1 = ax.binary mul %0, %b : tensor<200x64xf32>, tensor<200x1xf32> -> tensor<200x64xf32>
            %2 = ax.binary sub %1, %c : tensor<200x64xf32>, tensor<64xf32> -> tensor<200x64xf32>
            %3 = ax.binary mul %2, %d : tensor<200x64xf32>, tensor<200x64xf32> -> tensor<200x64xf32>
            %4 = ax.reduce sum %3 dims [0] : tensor<200x64xf32> -> tensor<64xf32>
            %5 = ax.reduce sum %2 dims [0] : tensor<200x64xf32> -> tensor<64xf32>
            %r = ax.binary add %4, %c : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
            %s = ax.cast %5 : tensor<64xf32> -> tensor<64xbf16>)",
         {{"%r", "64xf32"}, {"%s", "64xbf16"}}},
        {}, 1.6e-2);
  for (const char *type : {"200x64xf32", "200x128xbf16", "33x40xf32"}) {
    check({{type},
           "%r = ax.softmax %a dim 0 : " + tensor(type) + " -> " + tensor(type),
           {{"%r", type}}},
          {}, 1.6e-2);
  }
  // Dimensions around them.
  check({{"3x96x4x40xf32"},
         "%r = ax.reduce sum %a dims [1] keep_dims : tensor<3x96x4x40xf32> -> "
         "tensor<3x1x4x40xf32>",
         {{"%r", "3x1x4x40xf32"}}},
        {}, 1e-5);
  check({{"3x96x4x40xf32"},
         "%r = ax.reduce sum %a dims [0, 2] : tensor<3x96x4x40xf32> -> "
         "tensor<96x40xf32>",
         {{"%r", "96x40xf32"}}},
        {}, 1e-5);
}

/// Sums that need nothing of each other are made in one loop, up to four of a
/// kind. Their parts of all warps are in a block's memory by turns; so are
/// those of others behind them, which are fewer.
FusionText sumsOfColumns(const std::string &rows, const std::string &columns) {
  std::string shape = rows + "x" + columns, x = tensor(shape + "xbf16"),
              wide = tensor(shape + "xf32"), sum = tensor(columns + "xf32");
  std::string body = "%x = ax.cast %a : " + x + " -> " + wide +
                     "\n%y = ax.cast %b : " + x + " -> " + wide;
  auto binary = [&](const char *result, const char *kind, const char *operands,
                    const std::string &second) {
    body += "\n%" + std::string(result) + " = ax.binary " + kind + " " +
            operands + " : " + wide + ", " + second + " -> " + wide;
  };
  auto reduce = [&](const char *result, const char *kind, const char *operand) {
    body += "\n%" + std::string(result) + " = ax.reduce " + kind + " %" +
            operand + " dims [0] : " + wide + " -> " + sum;
  };
  binary("xy", "mul", "%x, %y", wide);
  binary("xc", "sub", "%x, %c", sum);
  binary("yc", "mul", "%y, %c", sum);
  reduce("s0", "sum", "x");
  reduce("s1", "sum", "xy");
  reduce("s2", "sum", "xc");
  reduce("s3", "sum", "yc");
  reduce("s4", "sum", "y");
  reduce("m", "max", "xy");
  // Behind the first of them.
  binary("x0", "add", "%x, %s0", sum);
  reduce("s5", "sum", "x0");
  FusionText text{
      {shape + "xbf16", shape + "xbf16", columns + "xf32"}, body, {}};
  for (const char *result : {"%s0", "%s1", "%s2", "%s3", "%s4", "%m", "%s5"})
    text.results.push_back({result, columns + "xf32"});
  return text;
}

TEST(GpuLanes, ColumnsInOneLoop) {
  check(sumsOfColumns("512", "256"), {}, 1e-4);
  check(sumsOfColumns("75", "40"), {}, 1e-4);
  // Blocks of 16 warps, each with 32 threads that have eight columns.
  check(sumsOfColumns("64", "32768"), {}, 1e-4);
}

/// A vector times rows of `type`, each of which has a scale.
FusionText timesBytes(int64_t rows, int64_t length, const std::string &type) {
  std::string n = std::to_string(rows), k = std::to_string(length);
  std::string x = tensor(n + "x" + k + "xf32"), scale = tensor(n + "x1xf32");
  return {{n + "x" + k + "x" + type, n + "x1xf32", "1x" + k + "xf32"},
          "%0 = ax.cast %a : " + tensor(n + "x" + k + "x" + type) + " -> " + x +
              "\n%1 = ax.binary mul %0, %b : " + x + ", " + scale + " -> " + x +
              "\n%2 = ax.binary mul %1, %c : " + x + ", " +
              tensor("1x" + k + "xf32") + " -> " + x +
              "\n%r = ax.reduce sum %2 dims [1] : " + x + " -> " +
              tensor(n + "xf32"),
          {{"%r", n + "xf32"}}};
}

/// The same of four bits, two in a byte, in blocks that have scales.
FusionText timesFourBits(int64_t rows, int64_t blocks, int64_t block) {
  std::string n = std::to_string(rows), m = std::to_string(blocks);
  std::string half = std::to_string(block / 2), all = std::to_string(block);
  std::string bytes = n + "x" + m + "x" + half + "xui8",
              pairs = n + "x" + m + "x" + half + "x2xui8",
              numbers = n + "x" + m + "x" + all + "xf32",
              vector = "1x" + m + "x" + all + "xf32";
  return {
      {bytes, n + "x" + m + "x1xf32", vector},
      "%c0 = ax.constant dense<[0, 4]> : tensor<2xui8> -> tensor<2xui8>\n"
      "%c1 = ax.constant dense<15> : tensor<ui8> -> tensor<ui8>\n"
      "%0 = ax.reshape %a : " +
          tensor(bytes) + " -> " + tensor(n + "x" + m + "x" + half + "x1xui8") +
          "\n%1 = ax.binary shr %0, %c0 : " +
          tensor(n + "x" + m + "x" + half + "x1xui8") + ", tensor<2xui8> -> " +
          tensor(pairs) + "\n%2 = ax.binary bit_and %1, %c1 : " +
          tensor(pairs) + ", tensor<ui8> -> " + tensor(pairs) +
          "\n%3 = ax.reshape %2 : " + tensor(pairs) + " -> " +
          tensor(n + "x" + m + "x" + all + "xui8") + "\n%4 = ax.cast %3 : " +
          tensor(n + "x" + m + "x" + all + "xui8") + " -> " + tensor(numbers) +
          "\n%5 = ax.binary mul %4, %b : " + tensor(numbers) + ", " +
          tensor(n + "x" + m + "x1xf32") + " -> " + tensor(numbers) +
          "\n%6 = ax.binary mul %5, %c : " + tensor(numbers) + ", " +
          tensor(vector) + " -> " + tensor(numbers) +
          "\n%r = ax.reduce sum %6 dims [1, 2] : " + tensor(numbers) + " -> " +
          tensor(n + "xf32"),
      {{"%r", n + "xf32"}}};
}

/// Bytes of a row are read 16 at a time, whatever all rows are multiplied with.
TEST(GpuLanes, BytesTimesAVector) {
  for (const char *type : {"i8", "ui8", "f8E4M3FN"})
    EXPECT_EQ(accessesOf(timesBytes(2048, 4096, type)),
              "ld b32, ld v4.b32, st b32");
  EXPECT_EQ(accessesOf(timesFourBits(2048, 128, 32)),
            "ld b32, ld v4.b32, st b32");
  EXPECT_EQ(accessesOf(timesFourBits(2048, 16, 128)),
            "ld b32, ld v4.b32, st b32");
  // Of two blocks, which have a scale each.
  EXPECT_EQ(accessesOf(timesFourBits(2048, 128, 16)),
            "ld v2.b32, ld v4.b32, st b32");
  for (auto [rows, length] :
       {std::pair(40, 4096), std::pair(1100, 512), std::pair(3, 20000),
        std::pair(7, 1000), std::pair(5, 1001)})
    for (const char *type : {"i8", "f8E4M3FN"})
      check(timesBytes(rows, length, type), {}, 1e-3);
  for (auto [rows, blocks, block] :
       {std::tuple(40, 64, 32), std::tuple(1100, 8, 64), std::tuple(6, 100, 16),
        std::tuple(9, 3, 128), std::tuple(5, 7, 2)})
    check(timesFourBits(rows, blocks, block), {}, 1e-3);
}

/// In each case the same bits in all orders of threads.
TEST(GpuLanes, Elements) {
  for (const char *type :
       {"64x96xf32", "63x62xf32", "63x61xf32", "5x7x16xbf16", "3x10xf16",
        "33x6xf64", "4xf32", "1x12xf32", "2x2x2xf32", "8x6xf32"})
    check(unary("gelu", type), {}, 1.6e-2);
  for (auto [from, to] :
       {std::pair("9x40xbf16", "9x40xf32"), std::pair("9x40xf32", "9x40xbf16"),
        std::pair("9x40xf32", "9x40xi64"), std::pair("9x48xi1", "9x48xbf16")})
    check(cast(from, to));
  for (int64_t first : {0, 1, 2, 4, 8})
    check(slice(first, "64x81xf32"));
}

/// Operands that lie otherwise, or are the same for neighbours, in one kernel.
TEST(GpuLanes, OperandsThatLieOtherwise) {
  check({{"24x16xf32", "16x24xf32", "16xf32", "24x1xf32", "f32"},
         R"(%t = ax.transpose %b [1, 0] : tensor<16x24xf32> -> tensor<24x16xf32>
            %0 = ax.binary add %a, %t : tensor<24x16xf32>, tensor<24x16xf32> -> tensor<24x16xf32>
            %1 = ax.binary mul %0, %c : tensor<24x16xf32>, tensor<16xf32> -> tensor<24x16xf32>
            %2 = ax.binary sub %1, %d : tensor<24x16xf32>, tensor<24x1xf32> -> tensor<24x16xf32>
            %r = ax.binary max %2, %e : tensor<24x16xf32>, tensor<f32> -> tensor<24x16xf32>
            %s = ax.cast %2 : tensor<24x16xf32> -> tensor<24x16xbf16>)",
         {{"%r", "24x16xf32"}, {"%s", "24x16xbf16"}}});
  // Last first.
  check({{"8x24xf32"},
         "%r = ax.slice %a starts [0, 23] steps [1, -1] : "
         "tensor<8x24xf32> -> tensor<8x24xf32>",
         {{"%r", "8x24xf32"}}});
  // Four neighbours are of both.
  check({{"8x6xf32", "8x10xf32"},
         "%r = ax.concat %a, %b dim 1 : tensor<8x6xf32>, tensor<8x10xf32> -> "
         "tensor<8x16xf32>",
         {{"%r", "8x16xf32"}}});
}

TEST(GpuLanes, Rows) {
  for (const char *type :
       {"9x8xf32", "9x100xf32", "9x102xf32", "9x101xf32", "3x600xf32",
        "2x768xbf16", "2x4096xbf16", "2x5000xf32", "2x20000xf32"}) {
    check(softmax(type), {}, 1.6e-2);
    check(layerNorm(type), {}, 1.6e-2);
  }
  // A row is read from the third element on.
  check(
      {{"7x83xf32"},
       R"(%0 = ax.slice %a starts [0, 3] steps [1, 1] : tensor<7x83xf32> -> tensor<7x80xf32>
            %r = ax.softmax %0 dim 1 : tensor<7x80xf32> -> tensor<7x80xf32>)",
       {{"%r", "7x80xf32"}}});
}

} // namespace
} // namespace ax::codegen
