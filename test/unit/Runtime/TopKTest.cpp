//===- TopKTest.cpp - The largest elements on the CPU ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LibraryRunner.h"

#include <algorithm>
#include <numeric>

using namespace ax;
using namespace ax::rt;

namespace {

TEST(TopKTest, OrderTiesAndDims) {
  for (DType type : {DType::F32, DType::I32, DType::U8, DType::F16})
    for (bool smallest : {false, true})
      for (int64_t dim : {0, 1, 2})
        for (int64_t k : {0, 1, 3}) {
          TopKDesc desc;
          desc.x = TensorDesc::dense(type, {4, 5, 6});
          desc.dim = dim;
          desc.k = k;
          desc.smallest = smallest;
          std::vector<ViewData> data;
          runLibrary(desc, data, 2);
          forEachIndex(data[1].view.sizes, [&](std::vector<int64_t> index) {
            auto d = static_cast<size_t>(dim);
            std::vector<int64_t> order(static_cast<size_t>(desc.x.sizes[d]));
            std::iota(order.begin(), order.end(), 0);
            std::vector<int64_t> at = index;
            auto value = [&](int64_t i) {
              at[d] = i;
              return data[0].get(at) * (smallest ? 1 : -1);
            };
            std::stable_sort(order.begin(), order.end(),
                             [&](int64_t a, int64_t b) {
                               double left = value(a);
                               return left < value(b);
                             });
            int64_t want = order[static_cast<size_t>(index[d])];
            EXPECT_EQ(data[2].get(index), static_cast<double>(want));
            at[d] = want;
            EXPECT_EQ(data[1].get(index), data[0].get(at));
          });
        }
}

} // namespace
