//===- LayoutTest.cpp - Meshes, layouts, digits ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Sharding/Digits.h"
#include "ax/Sharding/LayoutText.h"

#include <gtest/gtest.h>

#include <set>

using namespace ax::sharding;

namespace {

Mesh testMesh() {
  return Mesh({{"data", 2}, {"row", 3}, {"col", 4}, {"micro", 5, true}});
}

Layout parsed(const std::string &text, const std::vector<int64_t> &shape) {
  ParsedLayout result = parseLayout(text, shape, testMesh());
  EXPECT_TRUE(result.layout) << text << ": " << result.fault;
  return result.layout.value_or(Layout::replicated(shape));
}

std::string roundTrip(const std::string &text,
                      const std::vector<int64_t> &shape) {
  return toString(parsed(text, shape), testMesh());
}

TEST(Mesh, RanksAreMixedRadix) {
  Mesh mesh = testMesh();
  EXPECT_EQ(mesh.numRanks(), 24);
  EXPECT_EQ(mesh.numTimeSlices(), 5);
  EXPECT_EQ(mesh.coordinates(23, 3), (std::vector<int64_t>{1, 2, 3, 3}));
  EXPECT_EQ(mesh.coordinates(5), (std::vector<int64_t>{0, 1, 1, 0}));
  for (int64_t rank = 0; rank < 24; ++rank)
    EXPECT_EQ(mesh.rankOf(mesh.coordinates(rank, 2)), rank);
}

TEST(Mesh, SubAxisDigits) {
  Mesh mesh = testMesh();
  std::vector<int64_t> place = {1, 2, 2, 0};
  EXPECT_EQ(mesh.index({{"col", 1, 2}}, place), 1);
  EXPECT_EQ(mesh.index({{"col", 2, 2}}, place), 0);
  EXPECT_EQ(mesh.index({{"data", 1, 2}, {"row", 1, 3}}, place), 5);
  EXPECT_TRUE(overlap(SubAxis{"col", 1, 4}, SubAxis{"col", 2, 2}));
  EXPECT_FALSE(overlap(SubAxis{"col", 1, 2}, SubAxis{"col", 2, 2}));
  EXPECT_FALSE(overlap(SubAxis{"col", 1, 2}, SubAxis{"row", 1, 3}));
}

TEST(Mesh, GroupsArePartition) {
  Mesh mesh = testMesh();
  EXPECT_EQ(mesh.group({mesh.whole("col")}, 5),
            (std::vector<int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(mesh.group({{"col", 2, 2}}, 5), (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(mesh.group({{"col", 1, 2}}, 5), (std::vector<int64_t>{5, 7}));
  EXPECT_EQ(mesh.group({{"col", 2, 2}, {"data", 1, 2}}, 5),
            (std::vector<int64_t>{4, 16, 5, 17}));
  std::set<int64_t> seen;
  for (int64_t rank = 0; rank < 24; ++rank)
    for (int64_t member : mesh.group({mesh.whole("row")}, rank))
      seen.insert(member);
  EXPECT_EQ(seen.size(), 24u);
}

TEST(Layout, TextRoundTrips) {
  for (const char *text :
       {"[{data, micro}, {}, {col}]", "[{}, 3 * 2560{col:(1)2}, {}]",
        "[{}, {}, {}], partial sum {row}",
        "[{col:(2)2}, {}, {}], partial max {data}"})
    EXPECT_EQ(roundTrip(text, {8, 7680, 50257}), text);
}

TEST(Layout, CanonicalFormMerges) {
  EXPECT_EQ(roundTrip("[3 * 8{col} * 64]", {1536}), "[3 * 512{col}]");
  EXPECT_EQ(roundTrip("[8{col} * 3 * 64]", {1536}), "[{col}]");
  EXPECT_EQ(roundTrip("[4{col} * 6{data}]", {24}), "[{col, data}]");
  EXPECT_EQ(roundTrip("[8{col} * 6{data}]", {48}), "[8{col} * 6{data}]");
  EXPECT_EQ(roundTrip("[1 * 24{col:(1)2, col:(2)2}]", {24}), "[{col}]");
  EXPECT_EQ(roundTrip("[{col:(2)2, col:(1)2}]", {24}),
            "[{col:(2)2, col:(1)2}]");
  EXPECT_EQ(roundTrip("[{}], partial sum {col:(2)2, col:(1)2}", {24}),
            "[{}], partial sum {col}");
}

TEST(Layout, FaultsAreNamed) {
  auto fault = [](const std::string &text, std::vector<int64_t> shape) {
    return parseLayout(text, shape, testMesh()).fault;
  };
  EXPECT_NE(fault("[{tube}]", {8}).find("no axis 'tube'"), std::string::npos);
  EXPECT_NE(fault("[{col}, {col:(2)2}]", {8, 8}).find("used twice"),
            std::string::npos);
  EXPECT_NE(fault("[{col}], partial sum {col}", {8}).find("used twice"),
            std::string::npos);
  EXPECT_NE(fault("[3 * 4]", {8}).find("multiply"), std::string::npos);
  EXPECT_NE(fault("[3{data} * 4]", {12}).find("does not divide"),
            std::string::npos);
  EXPECT_NE(fault("[{col:(1)3}]", {12}).find("no digit"), std::string::npos);
  EXPECT_NE(fault("[{col}]", {0}).find("empty"), std::string::npos);
  EXPECT_NE(fault("[{col}", {8}), "");
  EXPECT_NE(fault("[{col}] x", {8}), "");
  EXPECT_NE(fault("[99999999999999999999]", {8}), "");
  EXPECT_NE(fault("[4611686018427387904 * 4]", {0}), "");
  EXPECT_NE(fault("[{}, {}]", {8}).find("dimensions"), std::string::npos);
}

TEST(Layout, UnevenExtents) {
  Layout layout = parsed("[{col}]", {10});
  EXPECT_EQ(layout.localShape(), (std::vector<int64_t>{3}));
  const Factor &factor = layout.dims[0].factors[0];
  EXPECT_EQ(factor.validSize(2), 3);
  EXPECT_EQ(factor.validSize(3), 1);
  EXPECT_EQ(parsed("[{col}]", {5}).dims[0].factors[0].validSize(3), 0);
}

/// Every element is held by as many ranks as there are of replicated axes.
TEST(Layout, GlobalIndexCoversTheTensor) {
  Mesh mesh = testMesh();
  std::vector<int64_t> shape = {4, 24};
  for (const char *text :
       {"[{data}, {col}]", "[{}, 2 * 12{col}]", "[{col:(2)2}, 3 * 8{data}]",
        "[{row}, {data, col}]", "[{data}, 2 * 6{row} * 2{col:(1)2}]"}) {
    Layout layout = parsed(text, shape);
    std::vector<int> held(96);
    std::vector<int64_t> local = layout.localShape();
    for (int64_t rank = 0; rank < mesh.numRanks(); ++rank)
      for (int64_t i = 0; i < local[0]; ++i)
        for (int64_t j = 0; j < local[1]; ++j)
          if (auto g =
                  globalIndex(layout, mesh, mesh.coordinates(rank), {i, j}))
            ++held[(*g)[0] * 24 + (*g)[1]];
    for (int count : held)
      EXPECT_EQ(count, 24 / numParts(layout.usedAxes())) << text;
  }
}

TEST(Digits, DivideCutsSubAxes) {
  Mesh mesh = testMesh();
  auto show = [&](const std::string &text, int64_t size,
                  std::vector<int64_t> sizes) {
    Layout layout;
    auto parts = divide(parsed(text, {size}).dims[0], sizes);
    if (!parts)
      return std::string("none");
    layout.dims = *parts;
    return toString(layout, mesh);
  };
  EXPECT_EQ(show("[{col}]", 8, {2, 4}), "[{col:(1)2}, {col:(2)2}]");
  EXPECT_EQ(show("[3 * 512{col}]", 1536, {3, 8, 64}), "[{}, {col}, {}]");
  EXPECT_EQ(show("[{data, col}]", 48, {2, 24}), "[{data}, {col}]");
  EXPECT_EQ(show("[{data, col}]", 48, {1, 48, 1}), "[{}, {data, col}, {}]");
  EXPECT_EQ(show("[{row}]", 12, {4, 3}), "none");
  EXPECT_EQ(show("[{row}]", 10, {10, 1}), "[{row}, {}]");
  EXPECT_EQ(show("[{row}]", 10, {5, 2}), "none");
  EXPECT_EQ(show("[6 * 4{col}]", 24, {2, 12}), "[{}, 3 * 4{col}]");
}

TEST(Digits, SplitPartsTakesWhatDivides) {
  Mesh mesh = testMesh();
  auto show = [&](std::vector<int64_t> sizes, SubAxes axes) {
    Layout layout;
    layout.dims = splitParts(sizes, axes);
    return toString(layout, mesh);
  };
  SubAxis col = mesh.whole("col"), data = mesh.whole("data");
  EXPECT_EQ(show({2, 4}, {col}), "[{col:(1)2}, {col:(2)2}]");
  EXPECT_EQ(show({3, 4}, {col}), "[{}, {col}]");
  EXPECT_EQ(show({2, 3}, {col}), "[{col:(1)2}, {}]");
  EXPECT_EQ(show({4, 8}, {data, col}), "[{data, col:(1)2}, {col:(2)2}]");
}

TEST(Digits, UnsplitGathersAnyDigit) {
  Mesh mesh = testMesh();
  auto show = [&](const std::string &text, int64_t size, SubAxes axes) {
    auto dim = unsplit(parsed(text, {size}).dims[0], axes);
    if (!dim)
      return std::string("none");
    Layout layout;
    layout.dims = {*dim};
    return toString(layout, mesh);
  };
  SubAxis col = mesh.whole("col"), data = mesh.whole("data");
  EXPECT_EQ(show("[{data, col}]", 16, {col}), "[{data}]");
  EXPECT_EQ(show("[{data, col}]", 16, {data}), "[2 * 8{col}]");
  EXPECT_EQ(show("[{data, col}]", 16, {{"col", 2, 2}}), "[{data, col:(1)2}]");
  EXPECT_EQ(show("[{data, col}]", 16, {data, col}), "[{}]");
  EXPECT_EQ(show("[{data}]", 16, {col}), "none");
  EXPECT_EQ(show("[{data, col}]", 15, {col}), "[{data}]");
  EXPECT_EQ(show("[{data, col}]", 17, {col}), "none");
  EXPECT_EQ(show("[{data, col}]", 17, {data, col}), "[{}]");
  EXPECT_EQ(show("[{data, col}]", 15, {data}), "none");
}

} // namespace
