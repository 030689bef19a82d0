//===- LookUpTest.cpp - Bytes that a table has for bytes ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LibraryRunner.h"

using namespace ax;
using namespace ax::rt;

namespace {

LookUpDesc lookUp(DType table, DType x, std::vector<int64_t> sizes) {
  return {TensorDesc::dense(table, {256}),
          TensorDesc::dense(x, std::move(sizes))};
}

// Sizes around those of vectors, and of what a thread takes.
TEST(LookUpTest, AllBytes) {
  for (DType table : {DType::I8, DType::U8})
    for (DType x : {DType::I8, DType::U8})
      for (int64_t count : {0, 1, 63, 64, 65, 1000, 40000}) {
        LookUpDesc desc = lookUp(table, x, {count, 1});
        std::vector<ViewData> data = randomArguments(desc);
        std::mt19937 random(3);
        for (ViewData *bytes : {&data[0], &data[1]})
          for (int64_t i = 0; i < bytes->memory.numElements(); ++i)
            bytes->memory.mutableData()[i] = static_cast<char>(random());
        runLibrary(desc, data, 2);
        for (int64_t i = 0; i < count; ++i) {
          auto number = static_cast<int64_t>(data[1].get({i, 0}));
          double want = data[0].get({number < 0 ? number + 256 : number});
          ASSERT_EQ(data[2].get({i, 0}), want) << count << " " << i;
        }
      }
}

TEST(LookUpTest, Faults) {
  EXPECT_EQ(findFault(lookUp(DType::U8, DType::I8, {3})), "");
  EXPECT_NE(findFault(lookUp(DType::F32, DType::U8, {3})), "");
  EXPECT_NE(findFault(lookUp(DType::U8, DType::I32, {3})), "");
  LookUpDesc few = lookUp(DType::U8, DType::U8, {3});
  few.table = TensorDesc::dense(DType::U8, {255});
  EXPECT_NE(findFault(few), "");
  LookUpDesc strided = lookUp(DType::U8, DType::U8, {3, 2});
  std::swap(strided.x.strides[0], strided.x.strides[1]);
  EXPECT_NE(findFault(strided), "");
}

} // namespace
