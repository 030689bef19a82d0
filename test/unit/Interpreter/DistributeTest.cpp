//===- DistributeTest.cpp - Parts of tensors and their whole --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Interpreter/Distribute.h"

#include "ax/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace ax;
using namespace ax::interpreter;
using namespace ax::sharding;

static HostTensor numbers(Shape shape) {
  HostTensor tensor(DType::F32, std::move(shape));
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.setDouble(i, static_cast<double>(i + 1));
  return tensor;
}

static std::vector<Part> partsOf(const HostTensor &global, const Layout &layout,
                                 const Mesh &mesh) {
  std::vector<Part> parts;
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank)
    for (int64_t slice = 0; slice < mesh.numTimeSlices(); ++slice) {
      std::vector<int64_t> at = mesh.coordinates(rank, slice);
      parts.push_back(
          {at, localPart(global, layout, mesh, at, Padding::Poison)});
    }
  return parts;
}

static const Mesh
    mesh({{"row", 2, false}, {"col", 3, false}, {"micro", 2, true}});

TEST(Distribute, PaddingIsPoisonOrZero) {
  Layout layout = canonicalize(
      Layout{{DimLayout::split(4, {mesh.whole("col")})}, {}, ReduceKind::Sum});
  HostTensor global = numbers({4});
  std::vector<int64_t> last = {0, 2, 0};
  HostTensor part = localPart(global, layout, mesh, last, Padding::Poison);
  ASSERT_EQ(part.numElements(), 2);
  EXPECT_TRUE(std::isnan(part.getDouble(0)));
  part = localPart(global, layout, mesh, last, Padding::Zero);
  EXPECT_EQ(part.getDouble(0), 0);
  std::vector<int64_t> middle = {0, 1, 0};
  part = localPart(global, layout, mesh, middle, Padding::Poison);
  EXPECT_EQ(part.getDouble(0), 3);
  EXPECT_EQ(part.getDouble(1), 4);
}

TEST(Distribute, PartsMakeTheWholeAgain) {
  HostTensor global = numbers({4, 7});
  for (const SubAxes &partial : {SubAxes{}, SubAxes{mesh.whole("col")}})
    for (ReduceKind kind :
         {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min}) {
      Layout layout =
          canonicalize(Layout{{DimLayout::split(4, {mesh.whole("micro")}),
                               DimLayout::split(7, {mesh.whole("row")})},
                              partial,
                              kind});
      auto whole = assemble(partsOf(global, layout, mesh), layout, mesh);
      ASSERT_TRUE(static_cast<bool>(whole));
      EXPECT_TRUE(whole->isIdentical(global));
    }
}

TEST(Distribute, ReplicasThatDifferAreFound) {
  Layout layout = Layout::replicated({3});
  std::vector<Part> parts = partsOf(numbers({3}), layout, mesh);
  parts[4].tensor.setDouble(1, 2.0000002);
  auto whole = assemble(parts, layout, mesh);
  ASSERT_FALSE(static_cast<bool>(whole));
  EXPECT_NE(describeError(whole.takeError()).message.find("rank 2"),
            std::string::npos);
}

TEST(Distribute, MissingPartsAreFound) {
  Layout layout = canonicalize(
      Layout{{DimLayout::split(4, {mesh.whole("row")})}, {}, ReduceKind::Sum});
  std::vector<Part> parts = partsOf(numbers({4}), layout, mesh);
  llvm::erase_if(parts, [](const Part &p) { return p.coordinates[0] == 1; });
  auto whole = assemble(parts, layout, mesh);
  ASSERT_FALSE(static_cast<bool>(whole));
  EXPECT_EQ(describeError(whole.takeError()).code, ExitCode::Internal);
}
