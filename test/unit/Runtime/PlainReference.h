//===- PlainReference.h - Convolutions beside our plain ones ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_PLAINREFERENCE_H
#define AX_TEST_PLAINREFERENCE_H

#include "CpuLibrary.h"
#include "LibraryRunner.h"
#include "ax/Runtime/HostMemory.h"

#include <algorithm>

namespace ax::rt {

/// Channels last, of which there may be `more` at each place.
inline TensorDesc image(const std::vector<int64_t> &sizes, int64_t more = 0) {
  return channelsLast(DType::F32, sizes, more);
}

struct ConvCase {
  std::vector<int64_t> x, w, strides, dilations, padsLow, padsHigh;
  int64_t groups = 1, moreX = 0, moreY = 0;
  ConvKind kind = ConvKind::Forward;
};

inline ConvDesc makeDesc(const ConvCase &c) {
  ConvDesc desc;
  desc.strides = c.strides;
  desc.dilations = c.dilations;
  desc.padsLow = c.padsLow;
  desc.padsHigh = c.padsHigh;
  desc.groups = c.groups;
  desc.constantW = true;
  desc.kind = c.kind;
  bool isTransposed = c.kind == ConvKind::Transposed;
  std::vector<int64_t> y{c.x[0], isTransposed ? c.w[1] * c.groups : c.w[0]};
  for (size_t d = 0; d < c.strides.size(); ++d) {
    int64_t pads = c.padsLow[d] + c.padsHigh[d];
    int64_t reach = (c.w[d + 2] - 1) * c.dilations[d] + 1;
    y.push_back(isTransposed ? (c.x[d + 2] - 1) * c.strides[d] + reach - pads
                             : (c.x[d + 2] + pads - reach) / c.strides[d] + 1);
  }
  desc.x = image(c.x, c.moreX);
  desc.w = TensorDesc::dense(DType::F32, c.w);
  desc.y = image(y, c.moreY);
  return desc;
}

/// In a workspace of just as many bytes.
inline void run(CpuOp &op, std::vector<ViewData> &data) {
  std::vector<void *> addresses;
  for (ViewData &d : data)
    addresses.push_back(d.memory.mutableData());
  if (!op.readsConstant())
    addresses[1] = nullptr;
  constexpr size_t guard = 4096;
  constexpr char pattern = 0x5a;
  auto bytes = static_cast<size_t>(op.getWorkspaceBytes());
  auto workspace =
      llvm::cantFail(HostMemory::allocate(static_cast<int64_t>(bytes + guard)));
  char *end = static_cast<char *>(workspace.getData()) + bytes;
  std::fill(static_cast<char *>(workspace.getData()), end + guard, pattern);
  llvm::cantFail(op.execute(addresses.data(), workspace.getData()));
  EXPECT_TRUE(std::all_of(end, end + guard, [](char c) {
    return c == pattern;
  })) << "wrote behind the workspace";
}

/// Compares all of the memory of a result, what is between its elements, too.
inline void expectNear(const ViewData &got, const ViewData &wanted,
                       int64_t depth) {
  double largest = 0;
  for (int64_t i = 0; i < wanted.memory.numElements(); ++i)
    largest = std::max(
        largest, distance(got.memory.getDouble(i), wanted.memory.getDouble(i)));
  EXPECT_LE(largest, 2e-6 * std::sqrt(double(depth)));
}

inline int64_t depthOf(const ConvDesc &desc) {
  return desc.w.numElements() * desc.x.sizes[1] /
         (desc.w.sizes[0] * desc.w.sizes[1]);
}

inline std::vector<ViewData> runPlain(ConvDesc desc,
                                      std::vector<ViewData> data) {
  desc.constantW = false;
  run(*llvm::cantFail(desc.kind == ConvKind::Transposed
                          ? preparePlainConvTransposed(desc)
                          : preparePlainConv(desc)),
      data);
  return data;
}

} // namespace ax::rt

#endif // AX_TEST_PLAINREFERENCE_H
