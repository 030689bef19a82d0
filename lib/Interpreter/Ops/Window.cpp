//===- Window.cpp - Interpreting convolutions and pooling -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One to three spatial dimensions are done as three.
//
//===----------------------------------------------------------------------===//

#include "../Kernels.h"

#include "llvm/ADT/TypeSwitch.h"

#include <array>
#include <cmath>

using namespace mlir;

namespace ax::interpreter {

namespace {
using Triple = std::array<int64_t, 3>;

/// The last three of `values`, with `missing` for those in front.
Triple toTriple(ArrayRef<int64_t> values, int64_t missing) {
  Triple triple = {missing, missing, missing};
  for (size_t i = 0; i < values.size(); ++i)
    triple[3 - values.size() + i] = values[i];
  return triple;
}

int64_t volume(const Triple &t) { return t[0] * t[1] * t[2]; }

/// How windows lie over the larger of two spatial extents.
struct Window {
  Triple large, small, kernel, stride, dilation, low, high;

  Window(ArrayRef<int64_t> largeShape, ArrayRef<int64_t> smallShape,
         ArrayRef<int64_t> kernelSizes, ArrayRef<int64_t> strides,
         ArrayRef<int64_t> pads, ArrayRef<int64_t> dilations)
      : large(toTriple(largeShape.drop_front(2), 1)),
        small(toTriple(smallShape.drop_front(2), 1)),
        kernel(toTriple(kernelSizes, 1)), stride(toTriple(strides, 1)),
        dilation(toTriple(dilations, 1)),
        low(toTriple(pads.take_front(strides.size()), 0)),
        high(toTriple(pads.drop_front(strides.size()), 0)) {}

  /// Calls fn(number of the kernel element, position in the large extent) for
  /// every element of the window at `at`; the position is -1 in the padding,
  /// -2 past the high padding.
  template <typename Fn>
  void forEach(int64_t window, Fn fn) const {
    Triple at = {window / (small[1] * small[2]), window / small[2] % small[1],
                 window % small[2]};
    for (int64_t i = 0, e = volume(kernel); i < e; ++i) {
      Triple in = {i / (kernel[1] * kernel[2]), i / kernel[2] % kernel[1],
                   i % kernel[2]};
      int64_t position = 0;
      bool padding = false, past = false;
      for (int d = 0; d < 3; ++d) {
        int64_t x = at[d] * stride[d] - low[d] + in[d] * dilation[d];
        padding |= x < 0 || x >= large[d];
        past |= x >= large[d] + high[d];
        position = position * large[d] + x;
      }
      fn(i, past ? -2 : padding ? -1 : position);
    }
  }
};
} // namespace

static HostTensor conv(ConvOp op, Operands in) {
  HostTensor to = emptyLike(op.getResult());
  ArrayRef<int64_t> xShape = in[0].getShape(), wShape = in[1].getShape();
  Window window(xShape, to.getShape(), wShape.drop_front(2), op.getStrides(),
                op.getPads(), op.getDilations());
  std::vector<double> x = toDoubles(in[0]), w = toDoubles(in[1]);
  std::vector<double> out(to.numElements());
  int64_t groups = op.getGroups(), outs = wShape[0], ins = wShape[1];
  int64_t points = volume(window.small), area = volume(window.large);
  int64_t taps = volume(window.kernel);
  for (int64_t b = 0; b < xShape[0]; ++b)
    for (int64_t point = 0; point < points; ++point)
      window.forEach(point, [&](int64_t tap, int64_t position) {
        if (position < 0)
          return;
        for (int64_t o = 0; o < outs; ++o) {
          int64_t firstIn = o / (outs / groups) * ins;
          double sum = 0;
          for (int64_t c = 0; c < ins; ++c)
            sum += x[(b * xShape[1] + firstIn + c) * area + position] *
                   w[(o * ins + c) * taps + tap];
          out[(b * outs + o) * points + point] += sum;
        }
      });
  storeDoubles(out, to);
  return to;
}

static HostTensor convTranspose(ConvTransposeOp op, Operands in) {
  HostTensor to = emptyLike(op.getResult());
  ArrayRef<int64_t> xShape = in[0].getShape(), wShape = in[1].getShape();
  // The windows of the convolution whose gradient this is lie over the result.
  Window window(to.getShape(), xShape, wShape.drop_front(2), op.getStrides(),
                op.getPads(), op.getDilations());
  std::vector<double> x = toDoubles(in[0]), w = toDoubles(in[1]);
  std::vector<double> out(to.numElements());
  int64_t groups = op.getGroups(), ins = wShape[0], outs = wShape[1];
  int64_t points = volume(window.small), area = volume(window.large);
  int64_t taps = volume(window.kernel);
  for (int64_t b = 0; b < xShape[0]; ++b)
    for (int64_t point = 0; point < points; ++point)
      window.forEach(point, [&](int64_t tap, int64_t position) {
        if (position < 0)
          return;
        for (int64_t c = 0; c < ins; ++c) {
          int64_t firstOut = c / (ins / groups) * outs;
          double value = x[(b * ins + c) * points + point];
          for (int64_t o = 0; o < outs; ++o)
            out[(b * outs * groups + firstOut + o) * area + position] +=
                value * w[(c * outs + o) * taps + tap];
        }
      });
  storeDoubles(out, to);
  return to;
}

static HostTensor convWeightGradient(ConvWeightGradientOp op, Operands in) {
  HostTensor to = emptyLike(op.getResult());
  ArrayRef<int64_t> xShape = in[0].getShape(), dyShape = in[1].getShape();
  Window window(xShape, dyShape, op.getKernel(), op.getStrides(), op.getPads(),
                op.getDilations());
  std::vector<double> x = toDoubles(in[0]), dy = toDoubles(in[1]);
  std::vector<double> out(to.numElements());
  int64_t outs = dyShape[1], ins = to.getShape()[1];
  int64_t points = volume(window.small), area = volume(window.large);
  int64_t taps = volume(window.kernel);
  for (int64_t b = 0; b < xShape[0]; ++b)
    for (int64_t point = 0; point < points; ++point)
      window.forEach(point, [&](int64_t tap, int64_t position) {
        if (position < 0)
          return;
        for (int64_t o = 0; o < outs; ++o) {
          int64_t firstIn = o / (outs / op.getGroups()) * ins;
          double value = dy[(b * outs + o) * points + point];
          for (int64_t c = 0; c < ins; ++c)
            out[(o * ins + c) * taps + tap] +=
                value * x[(b * xShape[1] + firstIn + c) * area + position];
        }
      });
  storeDoubles(out, to);
  return to;
}

static HostTensor maxPoolGradient(MaxPoolGradientOp op, Operands in) {
  HostTensor to = emptyLike(op.getResult());
  Window window(to.getShape(), in[1].getShape(), op.getKernel(),
                op.getStrides(), op.getPads(), op.getDilations());
  std::vector<double> x = toDoubles(in[0]), dy = toDoubles(in[1]);
  std::vector<double> out(to.numElements());
  int64_t points = volume(window.small), area = volume(window.large);
  for (size_t i = 0; i < dy.size(); ++i) {
    int64_t first = static_cast<int64_t>(i) / points * area, best = -1;
    window.forEach(i % points, [&](int64_t, int64_t position) {
      if (position < 0)
        return;
      double value = x[first + position];
      if (best < 0 || value > x[first + best] || std::isnan(value))
        best = position;
    });
    if (best >= 0)
      out[first + best] += dy[i];
  }
  storeDoubles(out, to);
  return to;
}

static HostTensor pool(PoolOp op, const HostTensor &x) {
  HostTensor to = emptyLike(op.getResult());
  ArrayRef<int64_t> xShape = x.getShape();
  Window window(xShape, to.getShape(), op.getKernel(), op.getStrides(),
                op.getPads(), op.getDilations());
  int64_t points = volume(window.small), area = volume(window.large);
  visitDType(x.getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    ArrayRef<T> in = x.values<T>();
    MutableArrayRef<T> out = to.mutableValues<T>();
    for (int64_t i = 0, e = to.numElements(); i < e; ++i) {
      Wide<T> total = 0;
      int64_t count = 0;
      bool any = false;
      window.forEach(i % points, [&](int64_t, int64_t position) {
        count += position >= 0 || (position == -1 && op.getCountIncludePad());
        if (position < 0)
          return;
        Wide<T> value = load(in[i / points * area + position]);
        if (op.getKind() == PoolKind::max)
          total = any ? combine(ReduceOpKind::max, total, value) : value;
        else
          total = combine(ReduceOpKind::sum, total, value);
        any = true;
      });
      if (op.getKind() == PoolKind::avg)
        total = count ? total / static_cast<Wide<T>>(count) : total;
      if (op.getKind() == PoolKind::max && !any)
        total = lowest<T>();
      out[i] = store<T>(total);
    }
  });
  return to;
}

std::optional<Results> interpretWindow(Operation *op, Operands in) {
  return llvm::TypeSwitch<Operation *, std::optional<Results>>(op)
      .Case([&](ConvOp o) { return Results{conv(o, in)}; })
      .Case([&](ConvTransposeOp o) { return Results{convTranspose(o, in)}; })
      .Case([&](ConvWeightGradientOp o) {
        return Results{convWeightGradient(o, in)};
      })
      .Case(
          [&](MaxPoolGradientOp o) { return Results{maxPoolGradient(o, in)}; })
      .Case([&](PoolOp o) { return Results{pool(o, in[0])}; })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace ax::interpreter
