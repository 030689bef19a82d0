//===- KernelRowTest.cpp - Reductions, norms, scans, scatter --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelTestSupport.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <gtest/gtest.h>

namespace ax::codegen {
namespace {

const std::vector<std::string> floats = {"f32", "f64", "f16", "bf16"};

TEST(KernelRow, ReduceEveryDim) {
  struct Case {
    const char *dims, *result;
  };
  for (std::string type :
       {"f32", "f64", "f16", "bf16", "i32", "i64", "ui8", "i8"})
    for (const char *kind : {"sum", "max", "min", "prod"})
      for (Case c :
           {Case{"[2]", "3x5x"}, Case{"[1]", "3x7x"}, Case{"[0]", "5x7x"},
            Case{"[0, 2]", "5x"}, Case{"[1, 2]", "3x"}, Case{"[0, 1, 2]", ""},
            Case{"[]", "3x5x7x"}}) {
        if (std::string(kind) == "prod" && type != "f64" && type != "i32")
          continue;
        check({{"3x5x7x" + type},
               std::string("%r = ax.reduce ") + kind + " %a dims " + c.dims +
                   " : tensor<3x5x7x" + type + "> -> tensor<" + c.result +
                   type + ">",
               {{"%r", c.result + type}}},
              {},
              type == "f32"   ? 1e-5
              : type == "f16" ? 4e-3
                              : 0);
      }
  for (const char *kind : {"max", "min"})
    for (const char *dims : {"[1]", "[0]"})
      check({{"9x9xi1"},
             std::string("%r = ax.reduce ") + kind + " %a dims " + dims +
                 " : tensor<9x9xi1> -> tensor<9xi1>",
             {{"%r", "9xi1"}}});
}

// Of more points than a thread of a GPU does alone.
TEST(KernelRow, ReduceManyElements) {
  struct Case {
    const char *shape, *dims, *result;
  };
  for (std::string type :
       {"f32", "f64", "f16", "bf16", "i32", "i64", "ui8", "i8", "i1"})
    for (const char *kind : {"sum", "max", "min"})
      for (Case c :
           {Case{"3x40x37x", "[2]", "3x40x"}, Case{"3x40x37x", "[1]", "3x37x"},
            Case{"40x3x37x", "[0]", "3x37x"}, Case{"40x3x37x", "[0, 2]", "3x"},
            Case{"40x37x", "[0, 1]", ""}, Case{"2x5001x", "[1]", "2x"},
            Case{"1500x9x", "[0]", "9x"},
            Case{"2x16x3x20x5x", "[0, 2, 3]", "16x5x"}}) {
        if (type == "i1" && std::string(kind) == "sum")
          continue;
        check({{c.shape + type},
               std::string("%r = ax.reduce ") + kind + " %a dims " + c.dims +
                   " : tensor<" + c.shape + type + "> -> tensor<" + c.result +
                   type + ">",
               {{"%r", c.result + type}}},
              {},
              type == "f32"   ? 2e-5
              : type == "f16" ? 4e-3
                              : 0);
      }
}

TEST(KernelRow, ReduceKeepsDims) {
  check(
      {{"4x6x33xf32"},
       R"(%s = ax.reduce sum %a dims [2] keep_dims : tensor<4x6x33xf32> -> tensor<4x6x1xf32>
            %r = ax.binary sub %a, %s : tensor<4x6x33xf32>, tensor<4x6x1xf32> -> tensor<4x6x33xf32>)",
       {{"%r", "4x6x33xf32"}, {"%s", "4x6x1xf32"}}},
      {}, 1e-5);
  // Over the middle: accumulators in memory, used along the kept dimension.
  check(
      {{"4x6x33xf32"},
       R"(%s = ax.reduce max %a dims [1] keep_dims : tensor<4x6x33xf32> -> tensor<4x1x33xf32>
            %r = ax.binary sub %a, %s : tensor<4x6x33xf32>, tensor<4x1x33xf32> -> tensor<4x6x33xf32>)",
       {{"%r", "4x6x33xf32"}}});
}

// One term after another, an error would grow with their number: these sums
// would be wrong by 2e-5 and more.
TEST(KernelRow, LongSums) {
  auto tenths = [](std::vector<int64_t> shape) {
    HostTensor tensor(DType::F32, std::move(shape));
    for (int64_t i = 0; i < tensor.numElements(); ++i)
      tensor.setDouble(i, 0.1);
    return tensor;
  };
  auto sum = [&](std::vector<int64_t> shape, const std::string &dims,
                 const std::string &kept) {
    std::string from =
        llvm::join(
            llvm::map_range(shape, [](int64_t n) { return std::to_string(n); }),
            "x") +
        "xf32";
    check({{from},
           "%r = ax.reduce sum %a dims " + dims + " : tensor<" + from +
               "> -> tensor<" + kept + ">",
           {{"%r", kept}}},
          {{0, tenths(shape)}}, 5e-6);
  };
  sum({65536, 3}, "[0]", "3xf32");
  sum({64, 3, 32, 33}, "[0, 2, 3]", "3xf32");
  sum({16, 48, 48, 5}, "[0, 1, 2]", "5xf32");
  sum({2, 9000, 4}, "[1]", "2x4xf32");
  sum({1024, 1024}, "[0, 1]", "f32");
  // Of no divisors.
  sum({65537, 3}, "[0]", "3xf32");
  sum({3, 1009, 37, 2}, "[0, 1, 2]", "2xf32");
  sum({1000003}, "[0]", "f32");
  sum({3, 500009}, "[1]", "3xf32");
  sum({3, 1000000}, "[1]", "3xf32");
  sum({2, 7, 300, 500}, "[1, 2, 3]", "2xf32");
  // A thread of 1024 has thousands.
  sum({3000001}, "[0]", "f32");
  // In blocks that have a number each.
  check({{"2x100000x16xf32", "2x100000x1xf32"},
         "%0 = ax.binary add %a, %b : tensor<2x100000x16xf32>, "
         "tensor<2x100000x1xf32> -> tensor<2x100000x16xf32>\n"
         "%1 = ax.reshape %0 : tensor<2x100000x16xf32> -> "
         "tensor<2x1600000xf32>\n%r = ax.reduce sum %1 dims [1] : "
         "tensor<2x1600000xf32> -> tensor<2xf32>",
         {{"%r", "2xf32"}}},
        {{0, tenths({2, 100000, 16})}, {1, tenths({2, 100000, 1})}}, 5e-6);
}

/// Of rows in blocks that have a number each, whose loops do not become one.
TEST(KernelRow, SumsOfBlocks) {
  for (const char *type : {"f32", "bf16", "f64"})
    for (auto [blocks, length] :
         {std::pair(3, 32), std::pair(64, 8), std::pair(70, 16),
          std::pair(100, 24), std::pair(33, 32), std::pair(64, 64),
          std::pair(17, 128), std::pair(200, 4)}) {
      std::string m = std::to_string(blocks), l = std::to_string(length);
      std::string x = "tensor<5x" + m + "x" + l + "x" + type + ">";
      std::string all = std::to_string(blocks * length);
      check({{"5x" + m + "x" + l + "x" + type, "5x" + m + "x1x" + type},
             "%0 = ax.binary mul %a, %b : " + x + ", tensor<5x" + m + "x1x" +
                 type + "> -> " + x + "\n%1 = ax.reshape %0 : " + x +
                 " -> tensor<5x" + all + "x" + type +
                 ">\n%r = ax.reduce sum %1 dims [1] : tensor<5x" + all + "x" +
                 type + "> -> tensor<5x" + type + ">",
             {{"%r", std::string("5x") + type}}},
            {}, std::string(type) == "f32" ? 1e-4 : 0);
    }
}

// Two sums of blocks, one for each of two neighbours, as of the gradient of a
// scale of each head: each is made in memory of its own.
TEST(KernelRow, SumsOfBlocksOfNeighbours) {
  for (const char *heads : {"2", "3"}) {
    std::string first = std::string("8x16x") + heads + "x8xf32",
                turned = std::string("8x") + heads + "x16x8xf32",
                sums = std::string(heads) + "xf32";
    check({{first, turned},
           "%t = ax.transpose %a [0, 2, 1, 3] : tensor<" + first +
               "> -> tensor<" + turned +
               ">\n%p = ax.binary mul %t, %b : tensor<" + turned +
               ">, tensor<" + turned + "> -> tensor<" + turned +
               ">\n%r = ax.reduce sum %p dims [0, 2, 3] : tensor<" + turned +
               "> -> tensor<" + sums + ">",
           {{"%r", sums}}},
          {}, 1e-5);
  }
}

TEST(KernelRow, Softmax) {
  for (const std::string &type : floats)
    for (const char *dim : {"2", "1", "0"})
      for (const char *log : {"", " {log}"})
        check({{"3x5x19x" + type},
               std::string("%r = ax.softmax %a dim ") + dim + log +
                   " : tensor<3x5x19x" + type + "> -> tensor<3x5x19x" + type +
                   ">",
               {{"%r", "3x5x19x" + type}}},
              {}, type == "f32" ? 5e-6 : 0);
}

TEST(KernelRow, SoftmaxOfManyElements) {
  struct Case {
    const char *shape, *dim;
  };
  for (const std::string &type : floats)
    for (Case c :
         {Case{"5x100x", "1"}, Case{"3x40x50x", "1"}, Case{"3x40x50x", "0"},
          Case{"2x3000x", "1"}, Case{"2x13000x", "1"}})
      check({{c.shape + type},
             std::string("%r = ax.softmax %a dim ") + c.dim + " : tensor<" +
                 c.shape + type + "> -> tensor<" + c.shape + type + ">",
             {{"%r", c.shape + type}}},
            {}, type == "f32" ? 5e-6 : 0);
}

TEST(KernelRow, SoftmaxOfMaskedScores) {
  check({{"2x3x8x17xf32", "8x17xi1"},
         R"(%c = ax.constant dense<0.25> : tensor<f32> -> tensor<f32>
            %n = ax.constant dense<-1.0e9> : tensor<f32> -> tensor<f32>
            %s = ax.binary mul %a, %c : tensor<2x3x8x17xf32>, tensor<f32> -> tensor<2x3x8x17xf32>
            %m = ax.select %b, %s, %n : tensor<8x17xi1>, tensor<2x3x8x17xf32>, tensor<f32> -> tensor<2x3x8x17xf32>
            %r = ax.softmax %m dim 3 : tensor<2x3x8x17xf32> -> tensor<2x3x8x17xf32>
            %t = ax.transpose %r [0, 2, 1, 3] : tensor<2x3x8x17xf32> -> tensor<2x8x3x17xf32>)",
         {{"%t", "2x8x3x17xf32"}}},
        {}, 5e-6);
  // A row with nothing but -inf is NaN, and so is its softmax.
  std::vector<float> values(8, -INFINITY);
  values[0] = 1;
  check({{"2x4xf32"},
         "%r = ax.softmax %a dim 1 : tensor<2x4xf32> -> tensor<2x4xf32>",
         {{"%r", "2x4xf32"}}},
        {{0, HostTensor::fromValues<float>({2, 4}, values)}});
}

TEST(KernelRow, Norms) {
  for (const std::string &type : floats)
    for (const char *op : {"layer_norm", "rms_norm"}) {
      check({{"2x9x70x" + type, "70x" + type, "70x" + type},
             std::string("%r = ax.") + op + " %a scale %b : tensor<70x" + type +
                 "> bias %c : tensor<70x" + type +
                 "> axis 2 epsilon 1.0e-5 : tensor<2x9x70x" + type +
                 "> -> tensor<2x9x70x" + type + ">",
             {{"%r", "2x9x70x" + type}}},
            {},
            type == "f32"   ? 1e-5
            : type == "f64" ? 1e-11
                            : 0);
      check({{"4x3x5x" + type},
             std::string("%r = ax.") + op +
                 " %a axis 1 epsilon 1.0e-5 : tensor<4x3x5x" + type +
                 "> -> tensor<4x3x5x" + type + ">",
             {{"%r", "4x3x5x" + type}}},
            {},
            type == "f32"   ? 1e-5
            : type == "f64" ? 1e-11
                            : 0);
    }
}

TEST(KernelRow, NormOfSumAndWhatLeavesBefore) {
  check(
      {{"6x48xf32", "6x48xf32", "48xf32"},
       R"(%x = ax.binary add %a, %b : tensor<6x48xf32>, tensor<6x48xf32> -> tensor<6x48xf32>
            %g = ax.unary gelu %x : tensor<6x48xf32> -> tensor<6x48xf32>
            %n = ax.layer_norm %g scale %c : tensor<48xf32> axis 1 epsilon 1.0e-5 : tensor<6x48xf32> -> tensor<6x48xf32>)",
       {{"%x", "6x48xf32"}, {"%n", "6x48xf32"}}},
      {}, 1e-5);
}

TEST(KernelRow, ArgReduce) {
  for (std::string type : {"f32", "f16", "i64", "ui8"})
    for (const char *dim : {"0", "1", "2"})
      for (const char *flags : {"", " {min}", " {last}", " {last, min}"}) {
        std::string shape = dim[0] == '0'   ? "1x5x7x"
                            : dim[0] == '1' ? "3x1x7x"
                                            : "3x5x1x";
        check({{"3x5x7x" + type},
               std::string("%m = ax.unary sign %a : tensor<3x5x7x") + type +
                   "> -> tensor<3x5x7x" + type + ">\n%r = ax.arg_reduce %m" +
                   " dim " + dim + flags + " : tensor<3x5x7x" + type +
                   "> -> tensor<" + shape + "i64>",
               {{"%r", shape + "i64"}}});
      }
}

TEST(KernelRow, Cumulative) {
  for (std::string type : {"f32", "f64", "f16", "i32", "i64"})
    for (const char *dim : {"0", "1", "2"})
      for (const char *flags :
           {"", " {exclusive}", " {reverse}", " {exclusive, reverse}"})
        check({{"3x5x4x" + type},
               std::string("%r = ax.cumulative sum %a dim ") + dim + flags +
                   " : tensor<3x5x4x" + type + "> -> tensor<3x5x4x" + type +
                   ">",
               {{"%r", "3x5x4x" + type}}},
              {}, type == "f32" ? 1e-5 : 0);
  for (const char *kind : {"prod", "max", "min"})
    check({{"6x9xf64"},
           std::string("%r = ax.cumulative ") + kind +
               " %a dim 1 : tensor<6x9xf64> -> tensor<6x9xf64>",
           {{"%r", "6x9xf64"}}});
  for (const char *dim : {"0", "1", "2"})
    check({{"4x50x30xf64"},
           std::string("%r = ax.cumulative sum %a dim ") + dim +
               " : tensor<4x50x30xf64> -> tensor<4x50x30xf64>",
           {{"%r", "4x50x30xf64"}}});
  // Inside a larger fusion.
  check({{"6x9xi1"},
         R"(%c = ax.cast %a : tensor<6x9xi1> -> tensor<6x9xi64>
            %s = ax.cumulative sum %c dim 1 : tensor<6x9xi64> -> tensor<6x9xi64>
            %r = ax.binary mul %s, %c : tensor<6x9xi64>, tensor<6x9xi64> -> tensor<6x9xi64>)",
         {{"%r", "6x9xi64"}}});
}

TEST(KernelRow, Scatter) {
  std::mt19937 random(5);
  auto type = [](llvm::ArrayRef<int64_t> shape) {
    return mlir::RankedTensorType::get(
        shape, mlir::IntegerType::get(&testContext(), 64));
  };
  for (const char *kind : {"set", "add", "mul", "max", "min"}) {
    // `set` with equal indices is whatever came last.
    check({{"5x7xf64", "3x4xi64", "3x4xf64"},
           std::string("%r = ax.scatter_elements ") + kind +
               " %a[%b], %c axis 1 : tensor<5x7xf64>, tensor<3x4xi64>, "
               "tensor<3x4xf64> -> tensor<5x7xf64>",
           {{"%r", "5x7xf64"}}},
          {{1, randomIndices(type({3, 4}), 7, random)}});
    check({{"5x6x3xf32", "4x2xi64", "4x3xf32"},
           std::string("%r = ax.scatter_nd ") + kind +
               " %a[%b], %c : tensor<5x6x3xf32>, tensor<4x2xi64>, "
               "tensor<4x3xf32> -> tensor<5x6x3xf32>",
           {{"%r", "5x6x3xf32"}}},
          {{1, randomIndices(type({4, 2}), 5, random)}});
  }
}

// Places that are updated many times, of rows that are long.
TEST(KernelRow, ScatterOfManyElements) {
  std::mt19937 random(6);
  auto type = [](llvm::ArrayRef<int64_t> shape) {
    return mlir::RankedTensorType::get(
        shape, mlir::IntegerType::get(&testContext(), 64));
  };
  for (const char *kind : {"set", "add", "max"}) {
    check({{"9x70xf64", "40x1xi64", "40x70xf64"},
           std::string("%r = ax.scatter_nd ") + kind +
               " %a[%b], %c : tensor<9x70xf64>, tensor<40x1xi64>, "
               "tensor<40x70xf64> -> tensor<9x70xf64>",
           {{"%r", "9x70xf64"}}},
          {{1, randomIndices(type({40, 1}), 9, random)}});
    check({{"9x70xf64", "40x60xi64", "40x60xf64"},
           std::string("%r = ax.scatter_elements ") + kind +
               " %a[%b], %c axis 0 : tensor<9x70xf64>, tensor<40x60xi64>, "
               "tensor<40x60xf64> -> tensor<9x70xf64>",
           {{"%r", "9x70xf64"}}},
          {{1, randomIndices(type({40, 60}), 9, random)}});
  }
}

// On a GPU, parts of the result are done by blocks of their own; they may end
// within a row, and there may be no such parts.
TEST(KernelRow, ScatterInParts) {
  std::mt19937 random(7);
  auto type = [](llvm::ArrayRef<int64_t> shape) {
    return mlir::RankedTensorType::get(
        shape, mlir::IntegerType::get(&testContext(), 64));
  };
  for (std::string element : {"f32", "bf16", "i32"})
    for (int64_t rows : {256, 251, 7})
      for (int64_t columns : {48, 31, 1})
        for (std::string kind : {"set", "add", "min"}) {
          // Each sum is rounded to the type of the result.
          double tolerance = element == "bf16" && kind == "add" ? 0.1 : 0;
          std::string result = std::to_string(rows) + "x" +
                               std::to_string(columns) + "x" + element;
          std::string updates = "60x" + std::to_string(columns) + "x";
          check({{result, "60x1xi64", updates + element},
                 "%r = ax.scatter_nd " + kind + " %a[%b], %c : tensor<" +
                     result + ">, tensor<60x1xi64>, tensor<" + updates +
                     element + "> -> tensor<" + result + ">",
                 {{"%r", result}}},
                {{1, randomIndices(type({60, 1}), std::min<int64_t>(rows, 9),
                                   random)}},
                tolerance);
          check({{result, updates + "i64", updates + element},
                 "%r = ax.scatter_elements " + kind +
                     " %a[%b], %c axis 0 : " + "tensor<" + result +
                     ">, tensor<" + updates + "i64>, tensor<" + updates +
                     element + "> -> tensor<" + result + ">",
                 {{"%r", result}}},
                {{1, randomIndices(type({60, columns}), rows, random)}},
                tolerance);
        }
  // Parts of few rows have some columns each, which may not divide them; and
  // columns that are many have threads of their own.
  for (std::string columns : {"9000", "9001"}) {
    std::string result = "2x" + columns + "xf32", some = "5x" + columns + "x";
    check({{result, "5x1xi64", some + "f32"},
           "%r = ax.scatter_nd add %a[%b], %c : tensor<" + result +
               ">, tensor<5x1xi64>, tensor<" + some + "f32> -> tensor<" +
               result + ">",
           {{"%r", result}}},
          {{1, randomIndices(type({5, 1}), 2, random)}}, 1e-6);
    check({{result, "5x70xi64", "5x70xf32"},
           "%r = ax.scatter_elements add %a[%b], %c axis 0 : tensor<" + result +
               ">, tensor<5x70xi64>, tensor<5x70xf32> -> tensor<" + result +
               ">",
           {{"%r", result}}},
          {{1, randomIndices(type({5, 70}), 2, random)}}, 1e-6);
  }
  // Nothing is updated.
  check(
      {{"64x40xf32", "0x1xi64", "0x40xf32"},
       R"(%r = ax.scatter_nd add %a[%b], %c : tensor<64x40xf32>, tensor<0x1xi64>, tensor<0x40xf32> -> tensor<64x40xf32>)",
       {{"%r", "64x40xf32"}}});
  check(
      {{"3000xf32", "0xi64", "0xf32"},
       R"(%r = ax.scatter_elements add %a[%b], %c axis 0 : tensor<3000xf32>, tensor<0xi64>, tensor<0xf32> -> tensor<3000xf32>)",
       {{"%r", "3000xf32"}}});
  // Rows are the last dimension, or one in the middle.
  check(
      {{"40x300xf32", "33x50xi64", "33x50xf32"},
       R"(%r = ax.scatter_elements set %a[%b], %c axis 1 : tensor<40x300xf32>, tensor<33x50xi64>, tensor<33x50xf32> -> tensor<40x300xf32>)",
       {{"%r", "40x300xf32"}}},
      {{1, randomIndices(type({33, 50}), 300, random)}});
  check(
      {{"5x70x20xf32", "4x50x17xi64", "4x50x17xf32"},
       R"(%r = ax.scatter_elements set %a[%b], %c axis 1 : tensor<5x70x20xf32>, tensor<4x50x17xi64>, tensor<4x50x17xf32> -> tensor<5x70x20xf32>)",
       {{"%r", "5x70x20xf32"}}},
      {{1, randomIndices(type({4, 50, 17}), 70, random)}});
  // Updates are looked at in rounds, the last of which is not full.
  check(
      {{"64x40xf32", "90x101x1xi64", "90x101x40xf32"},
       R"(%r = ax.scatter_nd set %a[%b], %c : tensor<64x40xf32>, tensor<90x101x1xi64>, tensor<90x101x40xf32> -> tensor<64x40xf32>)",
       {{"%r", "64x40xf32"}}},
      {{1, randomIndices(type({90, 101, 1}), 64, random)}});
  check(
      {{"3000xf32", "9000xi64", "9000xf32"},
       R"(%r = ax.scatter_elements set %a[%b], %c axis 0 : tensor<3000xf32>, tensor<9000xi64>, tensor<9000xf32> -> tensor<3000xf32>)",
       {{"%r", "3000xf32"}}},
      {{1, randomIndices(type({9000}), 3000, random)}});
  // What makes the operand, indices and updates is in the same kernel.
  check({{"64x24xf32", "50xi32", "50x24xf32"},
         R"(%o = ax.unary neg %a : tensor<64x24xf32> -> tensor<64x24xf32>
            %j = ax.cast %b : tensor<50xi32> -> tensor<50xi64>
            %k = ax.reshape %j : tensor<50xi64> -> tensor<50x1xi64>
            %u = ax.unary exp %c : tensor<50x24xf32> -> tensor<50x24xf32>
            %r = ax.scatter_nd add %o[%k], %u : tensor<64x24xf32>, tensor<50x1xi64>, tensor<50x24xf32> -> tensor<64x24xf32>)",
         {{"%r", "64x24xf32"}}},
        {}, 1e-5);
  // A row that all of the updates need is not computed for each part.
  check(
      {{"64x24xf32", "50x1xi64", "50x24xf32"},
       R"(%s = ax.cumulative sum %c dim 0 : tensor<50x24xf32> -> tensor<50x24xf32>
            %r = ax.scatter_nd add %a[%b], %s : tensor<64x24xf32>, tensor<50x1xi64>, tensor<50x24xf32> -> tensor<64x24xf32>)",
       {{"%r", "64x24xf32"}}},
      {{1, randomIndices(type({50, 1}), 64, random)}}, 1e-4);
}

TEST(KernelRow, RowsAreDealtOut) {
  auto module = parse({{"12x40xf32"},
                       "%r = ax.softmax %a dim 1 : tensor<12x40xf32> -> "
                       "tensor<12x40xf32>",
                       {{"%r", "12x40xf32"}}});
  CompiledKernel kernel =
      llvm::cantFail(testCompiler().compile(fusionOf(*module)));
  EXPECT_EQ(kernel.signature.outerCount, 12);
  // exp is kept for the row, not for the tensor.
  EXPECT_LE(kernel.signature.scratchBytes, 40 * 4 + 63);
  module = parse({{"64x40xf32"},
                  "%r = ax.unary gelu %a : tensor<64x40xf32> -> "
                  "tensor<64x40xf32>",
                  {{"%r", "64x40xf32"}}});
  kernel = llvm::cantFail(testCompiler().compile(fusionOf(*module)));
  // A thread of a GPU does four neighbours.
  int64_t lanes = testTarget().getGpu() ? 4 : 1;
  EXPECT_EQ(kernel.signature.outerCount, 64 * 40 / lanes);
  EXPECT_EQ(kernel.signature.scratchBytes, 0);
}

} // namespace
} // namespace ax::codegen
