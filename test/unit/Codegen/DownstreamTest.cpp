//===- DownstreamTest.cpp - The closure of a graph that grows -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Downstream.h"

#include "gtest/gtest.h"

#include <random>
#include <set>

using namespace ax::codegen;

namespace {

using Edges = std::vector<std::set<unsigned>>;

/// By a walk along edges; a node does not reach itself unless there is a
/// circle.
std::set<unsigned> walk(const Edges &edges, unsigned from) {
  std::set<unsigned> seen;
  std::vector<unsigned> open(edges[from].begin(), edges[from].end());
  while (!open.empty()) {
    unsigned node = open.back();
    open.pop_back();
    if (seen.insert(node).second)
      open.insert(open.end(), edges[node].begin(), edges[node].end());
  }
  return seen;
}

// Nodes come with edges to those that are there; later edges may go anywhere,
// so that there are circles, too.
TEST(DownstreamTest, IsTheClosure) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Downstream downstream;
    Edges edges;
    auto some = [&] {
      std::set<unsigned> nodes;
      for (unsigned i = 0; !edges.empty() && i < random() % 3; ++i)
        nodes.insert(random() % edges.size());
      return nodes;
    };
    for (int step = 0; step < 150; ++step) {
      std::set<unsigned> readers = some();
      std::vector<unsigned> list(readers.begin(), readers.end());
      if (step < 5 || random() % 2) {
        EXPECT_EQ(downstream.add(list), edges.size());
        edges.push_back(readers);
      } else {
        unsigned node = random() % edges.size();
        downstream.addReaders(node, list);
        edges[node].insert(readers.begin(), readers.end());
      }
    }
    for (unsigned from = 0; from < edges.size(); ++from) {
      std::set<unsigned> reached = walk(edges, from);
      for (unsigned to = 0; to < edges.size(); ++to)
        ASSERT_EQ(downstream.reaches(from, to), reached.count(to) != 0)
            << "seed " << seed << ": " << from << " to " << to;
    }
  }
}

} // namespace
