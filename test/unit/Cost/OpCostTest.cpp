//===- OpCostTest.cpp - What one operation costs ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/OpCost.h"
#include "ax/Dialect/Ax.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

#include <map>

using namespace ax;

namespace {

/// The bytes that each operation moves, by the last result it has of its kind:
/// on a machine that moves one a second, and multiplies at no cost.
std::map<std::string, double> bytesMoved(llvm::StringRef body) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<AxDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      ("ax.plan @p version 1 { ax.program @main(%w: tensor<4x8x6xi8>, "
       "%s: tensor<4x8xf32>, %i: tensor<100xi64>, %x: tensor<100x6xf32>, "
       "%g: tensor<100x8xf32>) -> tensor<100x8xf32> {" +
       body + "} }")
          .str(),
      &context);
  EXPECT_TRUE(module);
  cost::Machine machine;
  machine.bytesPerSecond = 1;
  machine.flopsPerSecond = machine.narrowFlopsPerSecond = 1e30;
  std::map<std::string, double> found;
  if (module)
    module->walk([&](mlir::Operation *op) {
      found[op->getName().stripDialect().str()] +=
          cost::seconds(op, sharding::Mesh(), machine);
    });
  return found;
}

TEST(OpCost, MatricesThatAreLookedUpAreReadWhereTheyAre) {
  auto bytes = bytesMoved(R"(
    %m = ax.gather %w[%i] axis 0 : tensor<4x8x6xi8>, tensor<100xi64> -> tensor<100x8x6xi8>
    %f = ax.cast %m : tensor<100x8x6xi8> -> tensor<100x8x6xf32>
    %y = ax.dot %x, %f batch [0] x [0] contract [1] x [2] : tensor<100x6xf32>, tensor<100x8x6xf32> -> tensor<100x8xf32>
    ax.return %y : tensor<100x8xf32>)");
  EXPECT_EQ(bytes["gather"], 0);
  EXPECT_EQ(bytes["cast"], 0);
  EXPECT_EQ(bytes["dot"], 4 * 100 * 6 + 4 * 8 * 6 + 4 * 100 * 8);
}

TEST(OpCost, RowsThatAreLookedUpAreCopied) {
  auto bytes = bytesMoved(R"(
    %m = ax.gather %s[%i] axis 0 : tensor<4x8xf32>, tensor<100xi64> -> tensor<100x8xf32>
    ax.return %m : tensor<100x8xf32>)");
  EXPECT_EQ(bytes["gather"], 4 * 4 * 8 + 8 * 100 + 4 * 100 * 8);
}

TEST(OpCost, OuterProductsAreAddedUpAtOnce) {
  auto bytes = bytesMoved(R"(
    %d = ax.dot %g, %x batch [0] x [0] contract [] x [] : tensor<100x8xf32>, tensor<100x6xf32> -> tensor<100x8x6xf32>
    %dw = ax.gather_gradient %d[%i] axis 0 size 4 : tensor<100x8x6xf32>, tensor<100xi64> -> tensor<4x8x6xf32>
    ax.return %g : tensor<100x8xf32>)");
  EXPECT_EQ(bytes["dot"], 4 * 100 * 8 + 4 * 100 * 6);
  EXPECT_EQ(bytes["gather_gradient"], 8 * 100 + 4 * 4 * 8 * 6);
}

} // namespace
