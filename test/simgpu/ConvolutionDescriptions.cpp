//===- ConvolutionDescriptions.cpp - Convolutions that tests want ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ConvolutionDescriptions.h"

namespace ax::rt {

ConvShape squareShape(int64_t batch, int64_t in, int64_t out, int64_t size,
                      int64_t kernel, int64_t stride, int64_t groups) {
  int64_t pad = kernel / 2;
  return {batch,        in / groups,      out / groups,     groups,
          {size, size}, {kernel, kernel}, {stride, stride}, {1, 1},
          {pad, pad},   {pad, pad}};
}

/// [outer, channels, spatial...], with its channels innermost if so.
static TensorDesc laidOut(DType dtype, std::vector<int64_t> sizes, bool last) {
  TensorDesc made = TensorDesc::dense(dtype, std::move(sizes));
  if (!last)
    return made;
  int64_t step = made.sizes[1];
  made.strides[1] = 1;
  for (size_t i = made.sizes.size(); i-- > 2; step *= made.sizes[i])
    made.strides[i] = step;
  return made;
}

ConvDesc makeConvDesc(ConvKind kind, DType dtype, const ConvShape &shape,
                      ConvLayout layout) {
  ConvDesc desc;
  desc.kind = kind;
  desc.groups = shape.groups;
  desc.strides = shape.strides;
  desc.dilations = shape.dilations;
  desc.padsLow = shape.padsLow;
  desc.padsHigh = shape.padsHigh;
  std::vector<int64_t> x = {shape.batch, shape.in * shape.groups};
  std::vector<int64_t> y = {shape.batch, shape.out * shape.groups};
  std::vector<int64_t> w = {y[1], shape.in};
  for (size_t i = 0; i < shape.image.size(); ++i) {
    int64_t reach = (shape.kernel[i] - 1) * shape.dilations[i] + 1;
    x.push_back(shape.image[i]);
    w.push_back(shape.kernel[i]);
    y.push_back(
        (shape.image[i] + shape.padsLow[i] + shape.padsHigh[i] - reach) /
            shape.strides[i] +
        1);
  }
  if (kind == ConvKind::Transposed)
    std::swap(x, y);
  desc.x = laidOut(dtype, x, layout.images);
  desc.y = laidOut(dtype, y, layout.images);
  desc.w = laidOut(dtype, w, layout.weights);
  return desc;
}

ConvDesc RandomConvolution::next() {
  constexpr DType types[] = {DType::F32, DType::F16, DType::BF16};
  constexpr int64_t unit = 8;
  DType dtype = types[number(3)];
  ConvShape shape;
  shape.batch = 1 + number(3);
  shape.groups = number(3) ? 1 : 1 + number(3);
  shape.in = 1 + number(10);
  shape.out = 1 + number(10);
  // Each channel by itself.
  if (number(4) == 0) {
    shape.groups = 1 + number(3 * unit);
    shape.in = 1;
    shape.out = 1 + number(2);
  }
  auto rank = static_cast<size_t>(1 + number(3));
  int64_t largest = rank == 1 ? 40 : rank == 2 ? 12 : 7;
  for (size_t i = 0; i < rank; ++i) {
    int64_t kernel = 1 + number(4), dilation = 1 + number(2);
    int64_t reach = (kernel - 1) * dilation + 1;
    int64_t low = number(3), high = number(2) ? low : number(3);
    shape.image.push_back(std::max<int64_t>(reach - low - high, 1) +
                          number(largest));
    shape.kernel.push_back(kernel);
    shape.dilations.push_back(dilation);
    shape.strides.push_back(1 + number(3));
    shape.padsLow.push_back(low);
    shape.padsHigh.push_back(high);
  }
  return makeConvDesc(allConvKinds[number(3)], dtype, shape,
                      allConvLayouts[number(3)]);
}

} // namespace ax::rt
