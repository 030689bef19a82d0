//===- KernelElementTest.cpp - Pulled operations --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelTestSupport.h"

#include "ax/Dialect/FunctionFacts.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Parser/Parser.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <set>

namespace ax::codegen {
namespace {

const std::vector<std::string> floats = {"f32", "f64", "f16", "bf16"};
const std::vector<std::string> integers = {"i8",  "i16",  "i32",  "i64",
                                           "ui8", "ui16", "ui32", "ui64"};

/// Of numbers from -3 to 3, of floats where the function is defined.
void checkUnary(UnaryKind kind, const std::string &type) {
  const UnaryFacts &facts = factsOf(kind);
  std::string t = "tensor<5x7x" + type + ">", body, x = "%a";
  auto affine = [&](const std::string &op, double by) {
    std::string y = x + "x";
    body += y + "c = ax.constant dense<" + std::to_string(by) + "> : tensor<" +
            type + "> -> tensor<" + type + ">\n" + y + " = ax.binary " + op +
            " " + x + ", " + y + "c : " + t + ", tensor<" + type + "> -> " + t +
            "\n";
    x = y;
  };
  if (facts.operands == FunctionOperands::Floats) {
    affine("mul", (facts.high - facts.low) / 6);
    affine("add", (facts.high + facts.low) / 2);
  }
  std::string r = facts.givesBools ? "i1" : type;
  body += "%r = ax.unary " + stringifyUnaryKind(kind).str() + " " + x + " : " +
          t + " -> tensor<5x7x" + r + ">";
  check({{"5x7x" + type}, body, {{"%r", "5x7x" + r}}});
}

TEST(KernelElement, Unary) {
  for (uint32_t i = 0; i <= getMaxEnumValForUnaryKind(); ++i) {
    auto kind = static_cast<UnaryKind>(i);
    FunctionOperands operands = factsOf(kind).operands;
    if (operands == FunctionOperands::Floats ||
        operands == FunctionOperands::Numbers)
      for (const std::string &type : floats)
        checkUnary(kind, type);
    if (operands == FunctionOperands::Numbers ||
        operands == FunctionOperands::Integers)
      for (const std::string &type : integers)
        checkUnary(kind, type);
    if (operands == FunctionOperands::Integers ||
        operands == FunctionOperands::Bools)
      checkUnary(kind, "i1");
  }
}

/// What says that it fuses, in a kernel of its own.
TEST(KernelElement, WhatFusesHasAnEmitter) {
  const char *folder = std::getenv("AX_TEST_DIR");
  ASSERT_NE(folder, nullptr);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(
      std::string(folder) + "/lit/dialect/examples.mlir", &testContext());
  ASSERT_TRUE(module);
  std::set<llvm::StringRef> tested;
  for (mlir::Operation &op :
       llvm::make_early_inc_range(module->getBody()->getOperations())) {
    if (!canFuse(&op))
      continue;
    tested.insert(op.getName().getStringRef());
    mlir::OpBuilder builder(&op);
    auto fusion = FusionOp::create(builder, op.getLoc(), op.getResultTypes(),
                                   op.getOperands());
    mlir::Block &body = fusion.getBody().emplaceBlock();
    mlir::IRMapping mapping;
    for (mlir::Value operand : op.getOperands())
      mapping.map(operand, body.addArgument(operand.getType(), op.getLoc()));
    builder.setInsertionPointToEnd(&body);
    mlir::Operation *inner = builder.clone(op, mapping);
    LocalYieldOp::create(builder, op.getLoc(), inner->getResults());
    EXPECT_TRUE(bool(testCompiler().compile(fusion)))
        << op.getName().getStringRef().str();
  }
  for (mlir::RegisteredOperationName op :
       testContext().getRegisteredOperationsByDialect("ax"))
    if (op.hasTrait<ElementwiseLike>() || op.hasTrait<ViewLike>() ||
        op.hasTrait<FusesByElement>() || op.hasTrait<FusesByRow>()) {
      EXPECT_TRUE(tested.count(op.getStringRef())) << op.getStringRef().str();
    }
}

void checkBinary(const std::string &kind, const std::string &type) {
  std::string body = "%r = ax.binary " + kind + " %a, %b : tensor<6x1x9x" +
                     type + ">, tensor<4x1x" + type + "> -> tensor<6x4x9x" +
                     type + ">";
  check({{"6x1x9x" + type, "4x1x" + type}, body, {{"%r", "6x4x9x" + type}}});
}

TEST(KernelElement, BinaryBroadcasts) {
  for (const std::string &type : floats)
    for (const char *kind : {"add", "sub", "mul", "max", "min", "div"})
      checkBinary(kind, type);
  for (const char *kind : {"floor_mod", "trunc_mod", "pow"})
    checkBinary(kind, "f32");
  for (const std::string &type : integers)
    for (const char *kind : {"add", "sub", "mul", "max", "min", "bit_and",
                             "bit_or", "bit_xor", "pow"})
      checkBinary(kind, type);
  for (const char *kind : {"logical_and", "logical_or", "logical_xor"})
    checkBinary(kind, "i1");
}

TEST(KernelElement, IntegerDivisionAndShifts) {
  for (const std::string &type : integers) {
    std::string t = "tensor<40x" + type + ">";
    for (const char *kind : {"div", "floor_mod", "trunc_mod"})
      check({{"40x" + type, "40x" + type},
             "%o = ax.constant dense<1> : " + t + " -> " + t +
                 "\n%n = ax.binary bit_or %b, %o : " + t + ", " + t + " -> " +
                 t + "\n%r = ax.binary " + kind + " %a, %n : " + t + ", " + t +
                 " -> " + t,
             {{"%r", "40x" + type}}});
  }
  for (const char *type : {"ui8", "ui16", "ui32", "ui64"})
    for (const char *kind : {"shl", "shr"})
      check({{std::string("40x") + type},
             std::string("%c = ax.constant dense<5> : tensor<") + type +
                 "> -> tensor<" + type + ">\n%r = ax.binary " + kind +
                 " %a, %c : tensor<40x" + type + ">, tensor<" + type +
                 "> -> tensor<40x" + type + ">",
             {{"%r", std::string("40x") + type}}});
}

TEST(KernelElement, ComparesAndSelects) {
  for (std::string type :
       {"f32", "f64", "f16", "bf16", "i8", "ui8", "i32", "i64", "ui64"})
    for (const char *kind : {"eq", "ne", "lt", "le", "gt", "ge"}) {
      std::string t = "tensor<8x5x" + type + ">", v = "tensor<5x" + type + ">";
      check({{"8x5x" + type, "5x" + type},
             std::string("%c = ax.compare ") + kind + " %a, %b : " + t + ", " +
                 v + " -> tensor<8x5xi1>\n" +
                 "%r = ax.select %c, %a, %b : tensor<8x5xi1>, " + t + ", " + v +
                 " -> " + t,
             {{"%r", "8x5x" + type}, {"%c", "8x5xi1"}}});
    }
}

TEST(KernelElement, Casts) {
  std::vector<std::string> types = floats;
  types.insert(types.end(), integers.begin(), integers.end());
  types.push_back("i1");
  for (const std::string &from : types)
    for (const std::string &to : types)
      check(
          {{"33x" + from},
           "%r = ax.cast %a : tensor<33x" + from + "> -> tensor<33x" + to + ">",
           {{"%r", "33x" + to}}});
}

TEST(KernelElement, MovesElements) {
  // Head split of a fused qkv weight's output, and back.
  check(
      {{"2x6x24xf32"},
       R"(%s = ax.slice %a starts [0, 0, 8] steps [1, 1, 1] : tensor<2x6x24xf32> -> tensor<2x6x8xf32>
            %h = ax.reshape %s : tensor<2x6x8xf32> -> tensor<2x6x2x4xf32>
            %t = ax.transpose %h [0, 2, 1, 3] : tensor<2x6x2x4xf32> -> tensor<2x2x6x4xf32>
            %u = ax.transpose %t [0, 2, 1, 3] : tensor<2x2x6x4xf32> -> tensor<2x6x2x4xf32>
            %m = ax.reshape %u : tensor<2x6x2x4xf32> -> tensor<2x6x8xf32>)",
       {{"%t", "2x2x6x4xf32"}, {"%m", "2x6x8xf32"}}});
  // Sizes that do not divide each other.
  check({{"6x10xf32"},
         R"(%x = ax.reshape %a : tensor<6x10xf32> -> tensor<4x15xf32>
            %r = ax.transpose %x [1, 0] : tensor<4x15xf32> -> tensor<15x4xf32>)",
         {{"%r", "15x4xf32"}}});
  // In tiles, the last one with fewer elements.
  for (const char *element : {"f32", "f16", "i64", "i1"}) {
    std::string from = std::string("3x70x131x") + element,
                to = std::string("3x131x70x") + element;
    check({{from},
           "%r = ax.transpose %a [0, 2, 1] : tensor<" + from + "> -> tensor<" +
               to + ">",
           {{"%r", to}}});
  }
  check(
      {{"1x70x5x15xf32", "1x5x15x70xf32"},
       R"(%t = ax.transpose %a [0, 2, 3, 1] : tensor<1x70x5x15xf32> -> tensor<1x5x15x70xf32>
            %s = ax.binary sub %t, %b : tensor<1x5x15x70xf32>, tensor<1x5x15x70xf32> -> tensor<1x5x15x70xf32>
            %u = ax.reshape %s : tensor<1x5x15x70xf32> -> tensor<75x70xf32>)",
       {{"%s", "1x5x15x70xf32"}, {"%u", "75x70xf32"}}});
  check(
      {{"7x9xf32"},
       R"(%r = ax.slice %a starts [6, 1] steps [-2, 3] : tensor<7x9xf32> -> tensor<4x3xf32>)",
       {{"%r", "4x3xf32"}}});
  check({{"3x1xi1"},
         R"(%r = ax.broadcast %a : tensor<3x1xi1> -> tensor<2x3x4xi1>)",
         {{"%r", "2x3x4xi1"}}});
  check({{},
         R"(%i = ax.iota dim 1 : tensor<3x5xi64>
            %j = ax.iota dim 0 : tensor<3x5xi64>
            %r = ax.compare le %i, %j : tensor<3x5xi64>, tensor<3x5xi64> -> tensor<3x5xi1>
            %f = ax.iota dim 1 : tensor<3x5xbf16>)",
         {{"%r", "3x5xi1"}, {"%f", "3x5xbf16"}}});
}

TEST(KernelElement, Constants) {
  check(
      {{"2x3xf32"},
       R"(%c = ax.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32> -> tensor<2x3xf32>
            %d = ax.constant dense<[true, false, true]> : tensor<3xi1> -> tensor<3xi1>
            %r = ax.select %d, %c, %a : tensor<3xi1>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>)",
       {{"%r", "2x3xf32"}}});
  check(
      {{"4xui8"},
       R"(%c = ax.constant dense<[1, 200, 3, 255]> : tensor<4xui8> -> tensor<4xui8>
            %r = ax.binary max %c, %a : tensor<4xui8>, tensor<4xui8> -> tensor<4xui8>)",
       {{"%r", "4xui8"}}});
}

TEST(KernelElement, Concat) {
  // Rotary embedding: the halves of the last dimension change places.
  check(
      {{"2x5x3x16xf32", "5x1x16xf32"},
       R"(%x1 = ax.slice %a starts [0, 0, 0, 0] steps [1, 1, 1, 1] : tensor<2x5x3x16xf32> -> tensor<2x5x3x8xf32>
            %x2 = ax.slice %a starts [0, 0, 0, 8] steps [1, 1, 1, 1] : tensor<2x5x3x16xf32> -> tensor<2x5x3x8xf32>
            %n = ax.unary neg %x2 : tensor<2x5x3x8xf32> -> tensor<2x5x3x8xf32>
            %c = ax.concat %n, %x1 dim 3 : tensor<2x5x3x8xf32>, tensor<2x5x3x8xf32> -> tensor<2x5x3x16xf32>
            %p = ax.binary mul %c, %b : tensor<2x5x3x16xf32>, tensor<5x1x16xf32> -> tensor<2x5x3x16xf32>
            %r = ax.binary add %a, %p : tensor<2x5x3x16xf32>, tensor<2x5x3x16xf32> -> tensor<2x5x3x16xf32>)",
       {{"%r", "2x5x3x16xf32"}}});
  check(
      {{"3x2xi64", "1x2xi64", "4x2xi64"},
       R"(%r = ax.concat %a, %b, %c dim 0 : tensor<3x2xi64>, tensor<1x2xi64>, tensor<4x2xi64> -> tensor<8x2xi64>)",
       {{"%r", "8x2xi64"}}});
  // Concatenated along what a later reshape cuts up.
  check(
      {{"4x6xf32", "4x6xf32"},
       R"(%c = ax.concat %a, %b dim 1 : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<4x12xf32>
            %r = ax.reshape %c : tensor<4x12xf32> -> tensor<16x3xf32>)",
       {{"%r", "16x3xf32"}}});
  // The address of an element is one of an operand's or of a table's.
  check(
      {{"2x3xf32"},
       R"(%c = ax.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32> -> tensor<2x2xf32>
            %r = ax.concat %a, %c, %a dim 1 : tensor<2x3xf32>, tensor<2x2xf32>, tensor<2x3xf32> -> tensor<2x8xf32>)",
       {{"%r", "2x8xf32"}}});
  // Of many, each has a piece of the loop to itself, or some share one.
  std::string many = "%c = ax.concat ", types;
  for (int i = 0; i < 14; ++i) {
    many += i == 0 ? "%a" : i % 2 ? ", %b" : ", %a";
    types += std::string(i == 0 ? "" : ", ") +
             (i % 2 ? "tensor<3x5xf32>" : "tensor<3x2xf32>");
  }
  many += " dim 1 : " + types + " -> tensor<3x49xf32>\n";
  for (const char *more :
       {"%r = ax.unary neg %c : tensor<3x49xf32> -> tensor<3x49xf32>",
        R"(%d = ax.unary neg %c : tensor<3x49xf32> -> tensor<3x49xf32>
           %e = ax.unary exp %d : tensor<3x49xf32> -> tensor<3x49xf32>
           %r = ax.binary mul %e, %d : tensor<3x49xf32>, tensor<3x49xf32> -> tensor<3x49xf32>)"})
    check({{"3x2xf32", "3x5xf32"}, many + more, {{"%r", "3x49xf32"}}});
}

TEST(KernelElement, Pad) {
  check(
      {{"3x4xf32", "f32"},
       R"(%r = ax.pad %a value %b : tensor<f32> low [1, 2] high [0, 3] : tensor<3x4xf32> -> tensor<4x9xf32>)",
       {{"%r", "4x9xf32"}}});
  for (const char *mode : {"edge", "reflect", "wrap"})
    check({{"3x8xf32"},
           "%r = ax.pad %a low [1, 4] high [2, 5] {mode = #ax<pad_mode " +
               std::string(mode) + ">} : tensor<3x8xf32> -> tensor<6x17xf32>",
           {{"%r", "6x17xf32"}}});
}

TEST(KernelElement, Gathers) {
  std::mt19937 random(3);
  auto type = [](llvm::ArrayRef<int64_t> shape, unsigned width) {
    return mlir::RankedTensorType::get(
        shape, mlir::IntegerType::get(&testContext(), width));
  };
  check(
      {{"11x6xf32", "2x5xi64"},
       R"(%r = ax.gather %a[%b] axis 0 : tensor<11x6xf32>, tensor<2x5xi64> -> tensor<2x5x6xf32>)",
       {{"%r", "2x5x6xf32"}}},
      {{1, randomIndices(type({2, 5}, 64), 11, random)}});
  check(
      {{"3x7x2xf16", "4xi32"},
       R"(%r = ax.gather %a[%b] axis 1 : tensor<3x7x2xf16>, tensor<4xi32> -> tensor<3x4x2xf16>)",
       {{"%r", "3x4x2xf16"}}},
      {{1, randomIndices(type({4}, 32), 7, random)}});
  check(
      {{"3x7xf32", "3x9xi64"},
       R"(%r = ax.gather_elements %a[%b] axis 1 : tensor<3x7xf32>, tensor<3x9xi64> -> tensor<3x9xf32>)",
       {{"%r", "3x9xf32"}}},
      {{1, randomIndices(type({3, 9}, 64), 7, random)}});
  check(
      {{"2x5x5x3xf32", "2x4x2xi64"},
       R"(%r = ax.gather_nd %a[%b] batch_dims 1 : tensor<2x5x5x3xf32>, tensor<2x4x2xi64> -> tensor<2x4x3xf32>)",
       {{"%r", "2x4x3xf32"}}},
      {{1, randomIndices(type({2, 4, 2}, 64), 5, random)}});
}

TEST(KernelElement, DynamicSlice) {
  for (int64_t start : {-2, 0, 3, 6, 100})
    check(
        {{"8x5xf32", "i64", "i64"},
         R"(%r = ax.dynamic_slice %a[%b, %c] : tensor<8x5xf32>, tensor<i64>, tensor<i64> -> tensor<4x5xf32>)",
         {{"%r", "4x5xf32"}}},
        {{1, HostTensor::scalar<int64_t>(start)},
         {2, HostTensor::scalar<int64_t>(0)}});
}

/// A bias is found through the window's start, a reshape and a remainder.
TEST(KernelElement, DynamicSliceOfSum) {
  for (int64_t start : {std::numeric_limits<int64_t>::min(), int64_t(0),
                        int64_t(2), std::numeric_limits<int64_t>::max()})
    check(
        {{"2x4x288xf32", "288xf32", "i64", "i64"},
         R"(%s = ax.binary add %a, %b : tensor<2x4x288xf32>, tensor<288xf32> -> tensor<2x4x288xf32>
%h = ax.reshape %s : tensor<2x4x288xf32> -> tensor<2x4x3x3x32xf32>
%r = ax.dynamic_slice %h[%d, %d, %d, %c, %d] : tensor<2x4x3x3x32xf32>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64> -> tensor<2x4x3x2x32xf32>)",
         {{"%r", "2x4x3x2x32xf32"}}},
        {{2, HostTensor::scalar<int64_t>(start)},
         {3, HostTensor::scalar<int64_t>(0)}});
}

} // namespace
} // namespace ax::codegen
