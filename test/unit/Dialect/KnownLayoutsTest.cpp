//===- KnownLayoutsTest.cpp - What is remembered is of one mesh -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/Ax.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <thread>

using namespace mlir;

namespace ax {

static MLIRContext &testContext() {
  static MLIRContext context;
  context.loadDialect<AxDialect>();
  return context;
}

static RankedTensorType typeOf(llvm::StringRef text) {
  return cast<RankedTensorType>(parseType(text, &testContext()));
}

static sharding::Mesh meshOf(int64_t row, int64_t col) {
  return sharding::Mesh({{"row", row}, {"col", col}});
}

TEST(KnownLayouts, AreOfOneMesh) {
  RankedTensorType type =
      typeOf("tensor<8x24xf16, #ax.layout<[{row}, {}], partial sum {col}>>");
  // Meshes that are equal, and others between them.
  for (int round = 0; round < 2; ++round)
    for (int64_t rows : {2, 4, 8}) {
      sharding::Layout layout = getLayout(type, meshOf(rows, 3));
      EXPECT_EQ(layout.localShape(), (std::vector<int64_t>{8 / rows, 24}));
      EXPECT_EQ(layout.partial.front().size, 3);
      // An addend is wide.
      EXPECT_EQ(localPartType(type, meshOf(rows, 3)),
                RankedTensorType::get({8 / rows, 24},
                                      Float32Type::get(&testContext())));
    }
  EXPECT_EQ(&getLayout(type, meshOf(2, 3)), &getLayout(type, meshOf(2, 3)));
}

TEST(KnownLayouts, AreOfOneShape) {
  EXPECT_EQ(
      getLayout(typeOf("tensor<8xf32, #ax.layout<[{row}]>>"), meshOf(2, 1))
          .localShape(),
      std::vector<int64_t>{4});
  EXPECT_EQ(
      getLayout(typeOf("tensor<6xf32, #ax.layout<[{row}]>>"), meshOf(2, 1))
          .localShape(),
      std::vector<int64_t>{3});
  EXPECT_EQ(getLayout(typeOf("tensor<6xf32>"), meshOf(2, 1)).localShape(),
            std::vector<int64_t>{6});
}

TEST(KnownLayouts, ThreadsHaveTheirOwn) {
  RankedTensorType type = typeOf("tensor<16xf32, #ax.layout<[{row}]>>");
  std::vector<std::thread> threads;
  for (int64_t rows : {2, 4, 8, 16})
    threads.emplace_back([=] {
      for (int i = 0; i < 100; ++i)
        EXPECT_EQ(getLayout(type, meshOf(rows, 1)).localShape().front(),
                  16 / rows);
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// What verification says of a sum over col on this mesh; empty: nothing.
static std::string faultOn(llvm::StringRef mesh) {
  std::string text;
  ScopedDiagnosticHandler handler(&testContext(), [&](Diagnostic &diagnostic) {
    text += diagnostic.str();
    return success();
  });
  std::string plan = ("ax.plan @p version 1 { ax.mesh " + mesh + R"(
    ax.program @main(%x: tensor<8x8xf32, #ax.layout<[2{row} * 4, {}], partial sum {col}>>)
        -> tensor<8x8xf32, #ax.layout<[2{row} * 4, {}]>> {
      %0 = ax.all_reduce %x over {col} : tensor<8x8xf32, #ax.layout<[2{row} * 4, {}], partial sum {col}>> -> tensor<8x8xf32, #ax.layout<[2{row} * 4, {}]>>
      ax.return %0 : tensor<8x8xf32, #ax.layout<[2{row} * 4, {}]>>
    } })")
                         .str();
  parseSourceString<ModuleOp>(plan, &testContext());
  return text;
}

TEST(KnownLayouts, WhatIsSoundOnOneMeshIsCheckedOnAnother) {
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(faultOn("[row = 2, col = 2]"), "");
    EXPECT_NE(faultOn("[row = 3, col = 2]").find("does not divide"),
              std::string::npos);
    EXPECT_NE(faultOn("[row = 2]").find("no axis 'col'"), std::string::npos);
  }
}

} // namespace ax
