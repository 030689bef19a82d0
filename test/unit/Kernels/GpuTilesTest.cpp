//===- GpuTilesTest.cpp - Operands that lie otherwise than results --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelTestSupport.h"
#include "SimulatedGrid.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

namespace ax::codegen {
namespace {

std::string tensor(const std::string &type) { return "tensor<" + type + ">"; }

FusionText transpose(const std::string &from, const std::string &permutation,
                     const std::string &to) {
  return {{from},
          "%r = ax.transpose %a " + permutation + " : " + tensor(from) +
              " -> " + tensor(to),
          {{"%r", to}}};
}

rt::Kernel compile(const FusionText &text) {
  auto module = parse(text);
  return *llvm::cantFail(testCompiler().compile(fusionOf(*module))).image;
}

/// Whether a block reads a part of an operand before it writes.
bool hasTiles(const FusionText &text) {
  rt::Kernel kernel = compile(text);
  llvm::StringRef code(reinterpret_cast<const char *>(kernel.image.data()));
  return code.contains("ld.shared");
}

TEST(GpuTiles, AreOfWhatLiesOtherwise) {
  EXPECT_TRUE(hasTiles(transpose("64x96xf32", "[1, 0]", "96x64xf32")));
  EXPECT_TRUE(hasTiles(transpose("48x80xbf16", "[1, 0]", "80x48xbf16")));
  EXPECT_TRUE(
      hasTiles(transpose("2x64x7x32xf32", "[0, 2, 3, 1]", "2x7x32x64xf32")));
  // Rows stay as they are; of few columns a row is read as it lies.
  EXPECT_FALSE(
      hasTiles(transpose("2x64x7x32xf32", "[0, 2, 1, 3]", "2x7x64x32xf32")));
  EXPECT_FALSE(hasTiles(transpose("8x100xf32", "[1, 0]", "100x8xf32")));
  EXPECT_FALSE(hasTiles(transpose("33x65xf32", "[1, 0]", "65x33xf32")));
}

/// In each case the same bits in all orders of threads.
TEST(GpuTiles, Transposes) {
  check(transpose("64x96xf32", "[1, 0]", "96x64xf32"));
  check(transpose("96x64xbf16", "[1, 0]", "64x96xbf16"));
  check(transpose("64x32xf64", "[1, 0]", "32x64xf64"));
  check(transpose("64x64xi1", "[1, 0]", "64x64xi1"));
  check(transpose("48x80xf32", "[1, 0]", "80x48xf32"));
  check(transpose("48x16xbf16", "[1, 0]", "16x48xbf16"));
  check(transpose("3x2x64x32xf32", "[1, 0, 3, 2]", "2x3x32x64xf32"));
  check(transpose("2x64x5x32xf32", "[0, 2, 3, 1]", "2x5x32x64xf32"));
  check(transpose("32x3x64xf32", "[2, 1, 0]", "64x3x32xf32"));
  check(transpose("33x65xf32", "[1, 0]", "65x33xf32"));
}

/// Several narrow elements at a time, where they are words.
TEST(GpuTiles, Words) {
  auto checkWords = [](const FusionText &text, bool wanted) {
    rt::Kernel kernel = compile(text);
    llvm::StringRef code(reinterpret_cast<const char *>(kernel.image.data()));
    EXPECT_EQ(code.contains("st.shared.b32"), wanted) << text.body;
    EXPECT_TRUE(code.contains("ld.shared")) << text.body;
    check(text);
  };
  auto part = [](const std::string &type, const std::string &start) {
    return FusionText{
        {"64x68x" + type},
        "%s = ax.slice %a starts [0, " + start + "] steps [1, 1] : " +
            tensor("64x68x" + type) + " -> " + tensor("64x64x" + type) +
            "\n%r = ax.transpose %s [1, 0] : " + tensor("64x64x" + type) +
            " -> " + tensor("64x64x" + type),
        {{"%r", "64x64x" + type}}};
  };
  for (const char *type : {"f8E4M3FN", "ui8", "i1"}) {
    std::string of = std::string("x") + type;
    checkWords(transpose("64x192" + of, "[1, 0]", "192x64" + of), true);
    checkWords(transpose("96x160" + of, "[1, 0]", "160x96" + of), true);
    checkWords(part(type, "4"), true);
    checkWords(part(type, "2"), false);
    checkWords(part(type, "1"), false);
  }
  checkWords(transpose("64x192xbf16", "[1, 0]", "192x64xbf16"), true);
  checkWords(part("bf16", "2"), true);
  checkWords(part("bf16", "1"), false);
}

/// Of many operands, and of few elements, tiles are no larger than others'.
TEST(GpuTiles, SidesOfNarrowElements) {
  auto scratch = [](const FusionText &text) {
    auto module = parse(text);
    FusionOp fusion = fusionOf(*module);
    llvm::cantFail(showNests(fusion, testTarget()));
    std::string nests;
    llvm::raw_string_ostream(nests) << fusion.getNestsAttr();
    return llvm::StringRef(nests)
        .split("threads, ")
        .second.split(' ')
        .first.str();
  };
  EXPECT_EQ(scratch(transpose("4096x2048xui8", "[1, 0]", "2048x4096xui8")),
            "4352");
  EXPECT_EQ(scratch(transpose("256x512xui8", "[1, 0]", "512x256xui8")), "1152");
  EXPECT_EQ(scratch(transpose("4096x2048xbf16", "[1, 0]", "2048x4096xbf16")),
            "8448");
  std::string a = tensor("4096x2048xbf16"), b = tensor("2048x4096xbf16");
  EXPECT_EQ(
      scratch({{"4096x2048xbf16", "4096x2048xbf16"},
               "%0 = ax.transpose %a [1, 0] : " + a + " -> " + b +
                   "\n%1 = ax.transpose %b [1, 0] : " + a + " -> " + b +
                   "\n%r = ax.binary add %0, %1 : " + b + ", " + b + " -> " + b,
               {{"%r", "2048x4096xbf16"}}}),
      "4352");
}

/// A result, and the same in another order of dimensions.
FusionText roundedAndTransposed(const std::string &shape,
                                const std::string &permutation,
                                const std::string &transposed,
                                const std::string &type = "f8E4M3FN") {
  std::string from = shape + "xf32", to = shape + "x" + type,
              moved = transposed + "x" + type;
  return {{from},
          "%s = ax.unary neg %a : " + tensor(from) + " -> " + tensor(from) +
              "\n%q = ax.cast %s : " + tensor(from) + " -> " + tensor(to) +
              "\n%t = ax.transpose %q " + permutation + " : " + tensor(to) +
              " -> " + tensor(moved),
          {{"%q", to}, {"%t", moved}}};
}

/// Of which the operand is read once.
TEST(GpuTiles, ResultsThatLieOtherwise) {
  auto checkTiles = [](const FusionText &text, bool wanted) {
    EXPECT_EQ(hasTiles(text), wanted) << text.body;
    rt::Kernel kernel = compile(text);
    llvm::StringRef code(reinterpret_cast<const char *>(kernel.image.data()));
    EXPECT_EQ(code.count("ld.global"), 1U) << text.body;
    check(text);
  };
  checkTiles(roundedAndTransposed("64x96", "[1, 0]", "96x64"), true);
  checkTiles(roundedAndTransposed("96x64", "[1, 0]", "64x96", "f8E5M2"), true);
  checkTiles(roundedAndTransposed("64x32", "[1, 0]", "32x64", "bf16"), true);
  checkTiles(roundedAndTransposed("64x64", "[1, 0]", "64x64", "f32"), true);
  checkTiles(roundedAndTransposed("48x80", "[1, 0]", "80x48"), true);
  checkTiles(roundedAndTransposed("2x64x96", "[2, 0, 1]", "96x2x64"), true);
  checkTiles(roundedAndTransposed("32x3x64", "[2, 1, 0]", "64x3x32"), true);
  // Rows stay as they are; of few points, or no multiples, there is no tile.
  checkTiles(roundedAndTransposed("2x64x7x32", "[0, 2, 1, 3]", "2x7x64x32"),
             false);
  check(roundedAndTransposed("8x100", "[1, 0]", "100x8"));
  check(roundedAndTransposed("33x65", "[1, 0]", "65x33"));
}

/// What is read in tiles, too; two orders of one result; and one of a kernel of
/// rows, whose results are made one by one.
TEST(GpuTiles, ReadAndWritten) {
  check(
      {{"64x96xf32", "96x64xf32"},
       R"(%b1 = ax.transpose %b [1, 0] : tensor<96x64xf32> -> tensor<64x96xf32>
            %s = ax.binary mul %a, %b1 : tensor<64x96xf32>, tensor<64x96xf32> -> tensor<64x96xf32>
            %q = ax.cast %s : tensor<64x96xf32> -> tensor<64x96xf8E4M3FN>
            %t = ax.transpose %q [1, 0] : tensor<64x96xf8E4M3FN> -> tensor<96x64xf8E4M3FN>)",
       {{"%s", "64x96xf32"},
        {"%q", "64x96xf8E4M3FN"},
        {"%t", "96x64xf8E4M3FN"}}});
  check(
      {{"2x32x64xf32"},
       R"(%q = ax.unary neg %a : tensor<2x32x64xf32> -> tensor<2x32x64xf32>
            %t = ax.transpose %q [2, 0, 1] : tensor<2x32x64xf32> -> tensor<64x2x32xf32>
            %u = ax.transpose %q [0, 2, 1] : tensor<2x32x64xf32> -> tensor<2x64x32xf32>)",
       {{"%t", "64x2x32xf32"}, {"%q", "2x32x64xf32"}, {"%u", "2x64x32xf32"}}});
  check(
      {{"64x64xf32"},
       R"(%s = ax.reduce max %a dims [1] keep_dims : tensor<64x64xf32> -> tensor<64x1xf32>
            %q = ax.binary sub %a, %s : tensor<64x64xf32>, tensor<64x1xf32> -> tensor<64x64xf32>
            %t = ax.transpose %q [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>)",
       {{"%q", "64x64xf32"}, {"%t", "64x64xf32"}}});
}

/// A transpose of a transpose, both of which are results.
TEST(GpuTiles, OneAfterTheOther) {
  check({{"64x32xf32"},
         R"(%q = ax.unary neg %a : tensor<64x32xf32> -> tensor<64x32xf32>
            %t = ax.transpose %q [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
            %u = ax.transpose %t [1, 0] : tensor<32x64xf32> -> tensor<64x32xf32>)",
         {{"%q", "64x32xf32"}, {"%t", "32x64xf32"}, {"%u", "64x32xf32"}}});
}

/// Several tiles, of operands that are no whole tensors, and operands that are
/// read as they lie, or twice.
TEST(GpuTiles, OperandsOfAllKinds) {
  check({{"64x96xf32", "70x64xf32", "32x64xbf16", "32xf32"},
         R"(%t = ax.transpose %a [1, 0] : tensor<64x96xf32> -> tensor<96x64xf32>
            %s = ax.slice %t starts [5, 3] steps [1, 1] : tensor<96x64xf32> -> tensor<64x32xf32>
            %b1 = ax.slice %b starts [3, 32] steps [1, 1] : tensor<70x64xf32> -> tensor<64x32xf32>
            %c1 = ax.cast %c : tensor<32x64xbf16> -> tensor<32x64xf32>
            %c2 = ax.transpose %c1 [1, 0] : tensor<32x64xf32> -> tensor<64x32xf32>
            %0 = ax.binary add %s, %b1 : tensor<64x32xf32>, tensor<64x32xf32> -> tensor<64x32xf32>
            %1 = ax.binary mul %0, %c2 : tensor<64x32xf32>, tensor<64x32xf32> -> tensor<64x32xf32>
            %r = ax.binary sub %1, %d : tensor<64x32xf32>, tensor<32xf32> -> tensor<64x32xf32>
            %q = ax.unary neg %c2 : tensor<64x32xf32> -> tensor<64x32xf32>)",
         {{"%r", "64x32xf32"}, {"%q", "64x32xf32"}}});
  check({{"64x64xf32"},
         R"(%t = ax.transpose %a [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
            %r = ax.binary add %a, %t : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>)",
         {{"%r", "64x64xf32"}}});
  // What is read is decided for each element.
  check(
      {{"60x64xf32", "f32"},
       R"(%p = ax.pad %a value %b : tensor<f32> low [3, 0] high [1, 0] : tensor<60x64xf32> -> tensor<64x64xf32>
            %r = ax.transpose %p [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>)",
       {{"%r", "64x64xf32"}}});
}

/// Neighbours within a thread, of a dimension that the transposed operand
/// lacks, or of several, are no columns of a tile: its rows end where it does.
TEST(GpuTiles, LanesThatAreNoColumns) {
  auto checkElements = [](const FusionText &text) {
    EXPECT_FALSE(hasTiles(text));
    check(text);
  };
  checkElements(
      {{"64x64xf32", "64x64x4xf32"},
       R"(%t = ax.transpose %a [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
            %s = ax.reshape %t : tensor<64x64xf32> -> tensor<64x64x1xf32>
            %r = ax.binary add %s, %b : tensor<64x64x1xf32>, tensor<64x64x4xf32> -> tensor<64x64x4xf32>)",
       {{"%r", "64x64x4xf32"}}});
  checkElements(
      {{"32x64x2x96xf32", "64x96x32x2xf32"},
       R"(%t = ax.transpose %a [1, 3, 0, 2] : tensor<32x64x2x96xf32> -> tensor<64x96x32x2xf32>
            %s = ax.binary add %t, %b : tensor<64x96x32x2xf32>, tensor<64x96x32x2xf32> -> tensor<64x96x32x2xf32>
            %r = ax.binary mul %s, %b : tensor<64x96x32x2xf32>, tensor<64x96x32x2xf32> -> tensor<64x96x32x2xf32>)",
       {{"%r", "64x96x32x2xf32"}}});
  checkElements(
      {{"48x16xf16", "4x16x48x2xf16"},
       R"(%t = ax.transpose %a [1, 0] : tensor<48x16xf16> -> tensor<16x48xf16>
            %s = ax.reshape %t : tensor<16x48xf16> -> tensor<1x16x48x1xf16>
            %r = ax.binary mul %s, %b : tensor<1x16x48x1xf16>, tensor<4x16x48x2xf16> -> tensor<4x16x48x2xf16>)",
       {{"%r", "4x16x48x2xf16"}}});
}

/// Of some neighbours within a thread it is known that they are no padding, of
/// others it is not, before a number of rows and behind one.
TEST(GpuTiles, LanesThatArePaddingInPart) {
  for (const char *bounds :
       {"low [0, 0] high [12, 0]", "low [12, 0] high [0, 0]",
        "low [3, 0] high [9, 0]"}) {
    std::string padded = "%p = ax.pad %a value %b : tensor<i8> " +
                         std::string(bounds) +
                         " : tensor<20x96xi8> -> tensor<32x96xi8>\n";
    FusionText text{{"20x96xi8", "i8"},
                    padded + "%r = ax.transpose %p [1, 0] : tensor<32x96xi8> "
                             "-> tensor<96x32xi8>",
                    {{"%r", "96x32xi8"}}};
    EXPECT_FALSE(hasTiles(text)) << bounds;
    check(text);
  }
  check(
      {{"50x128xbf16", "bf16"},
       R"(%p = ax.pad %a value %b : tensor<bf16> low [0, 0] high [14, 0] : tensor<50x128xbf16> -> tensor<64x128xbf16>
          %r = ax.transpose %p [1, 0] : tensor<64x128xbf16> -> tensor<128x64xbf16>)",
       {{"%r", "128x64xbf16"}}});
}

/// One block does six tiles: it may not read a part before that is there, nor
/// write the next one over it.
TEST(GpuTiles, EachBarrierIsMissed) {
  rt::Kernel kernel = compile(transpose("64x96xf32", "[1, 0]", "96x64xf32"));
  ASSERT_EQ(kernel.iterations, 6);
  ASSERT_EQ(kernel.launch.groupThreads, 256);
  rt::LaunchShape shape = kernel.launch;
  shape.blocks = 1;
  std::vector<float> x(64 * 96), y(x.size()), expected(x.size());
  for (size_t i = 0; i != x.size(); ++i) {
    x[i] = static_cast<float>(i);
    expected[i % 96 * 64 + i / 96] = x[i];
  }
  auto isRight = [&](GridOrder order) {
    llvm::cantFail(runGrid(kernel, shape, {x.data(), y.data()}, {},
                           /*scratch=*/nullptr, order));
    return y == expected;
  };
  auto isMissed = [&](int64_t barrier) {
    for (uint64_t seed = 0; seed != 20; ++seed)
      if (!isRight({seed, barrier}))
        return true;
    return false;
  };
  EXPECT_TRUE(isRight({}));
  EXPECT_TRUE(isMissed(0));
  EXPECT_TRUE(isMissed(1));
  EXPECT_TRUE(isMissed(2));
  // Behind the last tile, there is nothing to wait for.
  EXPECT_FALSE(isMissed(11));
}

/// Likewise, a part may not be written before it is whole, nor the next one
/// put over it.
TEST(GpuTiles, EachBarrierOfWrittenTilesIsMissed) {
  rt::Kernel kernel =
      compile(roundedAndTransposed("64x96", "[1, 0]", "96x64", "f32"));
  rt::LaunchShape shape = kernel.launch;
  shape.blocks = 1;
  std::vector<float> x(64 * 96), y(x.size()), z(x.size()), expected(x.size());
  for (size_t i = 0; i != x.size(); ++i) {
    x[i] = -static_cast<float>(i);
    expected[i % 96 * 64 + i / 96] = static_cast<float>(i);
  }
  auto isMissed = [&](int64_t barrier) {
    for (uint64_t seed = 0; seed != 20; ++seed) {
      llvm::cantFail(runGrid(kernel, shape, {x.data(), y.data(), z.data()}, {},
                             /*scratch=*/nullptr, {seed, barrier}));
      if (z != expected)
        return true;
    }
    return false;
  };
  EXPECT_TRUE(isMissed(0));
  EXPECT_TRUE(isMissed(1));
  EXPECT_TRUE(isMissed(2));
}

} // namespace
} // namespace ax::codegen
