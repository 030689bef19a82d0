//===- Reduction.cpp - Interpreting reductions, norms, scans --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Kernels.h"

#include "ax/Support/BitBlocks.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <numeric>

using namespace mlir;

namespace ax::interpreter {

namespace {
/// The operand with the given dimensions last, as rows over them.
struct Rows {
  HostTensor tensor;
  SmallVector<int64_t> order;
  int64_t count = 1;
  int64_t length = 1;

  Rows(const HostTensor &x, ArrayRef<int64_t> dims)
      : tensor(transposed(x, movedLast(x.getRank(), dims))),
        order(movedLast(x.getRank(), dims)) {
    for (int64_t dim = 0; dim < x.getRank(); ++dim)
      (llvm::is_contained(dims, dim) ? length : count) *= x.getShape()[dim];
  }

  /// Puts the dimensions of `rows`, in this object's order, back; `rows` may
  /// have another length.
  HostTensor restore(const HostTensor &rows) const {
    return transposed(rows, inverse(order));
  }
  Shape shapeWithLength(int64_t newLength) const {
    Shape shape = tensor.getShape();
    shape.back() = newLength;
    return shape;
  }
};
} // namespace

template <typename T>
static Wide<T> neutral(ReduceOpKind kind) {
  switch (kind) {
  case ReduceOpKind::sum:
    return 0;
  case ReduceOpKind::prod:
    return 1;
  case ReduceOpKind::max:
    return lowest<T>();
  case ReduceOpKind::min:
    return highest<T>();
  }
  llvm_unreachable("reduce kind");
}

static HostTensor reduce(ReduceOp op, const HostTensor &x) {
  Rows rows(x, op.getDims());
  HostTensor to = emptyLike(op.getResult());
  visitDType(x.getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    ArrayRef<T> in = rows.tensor.values<T>();
    MutableArrayRef<T> out = to.mutableValues<T>();
    auto start = neutral<T>(op.getKind());
    for (int64_t row = 0; row < rows.count; ++row) {
      auto total = start;
      for (int64_t i = 0; i < rows.length; ++i)
        total = combine(op.getKind(), total, load(in[row * rows.length + i]));
      out[row] = store<T>(total);
    }
  });
  return to;
}

static HostTensor argReduce(ArgReduceOp op, const HostTensor &x) {
  int64_t dim = op.getDim();
  Rows rows(x, dim);
  HostTensor to = emptyLike(op.getResult());
  visitDType(x.getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    ArrayRef<T> in = rows.tensor.values<T>();
    for (int64_t row = 0; row < rows.count; ++row) {
      ArrayRef<T> values = in.slice(row * rows.length, rows.length);
      int64_t best = 0;
      for (int64_t i = 1; i < rows.length; ++i) {
        auto value = load(values[i]), least = load(values[best]);
        bool better = op.getMin() ? value < least : value > least;
        if (better || (op.getLast() && value == least))
          best = i;
      }
      to.setInt(row, best);
    }
  });
  return to;
}

static HostTensor cumulative(CumulativeOp op, const HostTensor &x) {
  int64_t dim = op.getDim();
  Rows rows(x, dim);
  HostTensor to(x.getType(), rows.tensor.getShape());
  visitDType(x.getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    ArrayRef<T> in = rows.tensor.values<T>();
    MutableArrayRef<T> out = to.mutableValues<T>();
    auto start = neutral<T>(op.getKind());
    for (int64_t row = 0; row < rows.count; ++row) {
      auto total = start;
      for (int64_t i = 0; i < rows.length; ++i) {
        int64_t at =
            row * rows.length + (op.getReverse() ? rows.length - 1 - i : i);
        auto before = total;
        total = combine(op.getKind(), total, load(in[at]));
        out[at] = store<T>(op.getExclusive() ? before : total);
      }
    }
  });
  return rows.restore(to);
}

static Results topK(TopKOp op, const HostTensor &x) {
  int64_t dim = op.getDim(), k = op.getK();
  Rows rows(x, dim);
  HostTensor values(x.getType(), rows.shapeWithLength(k));
  HostTensor indices(elementDType(op.getIndices()), rows.shapeWithLength(k));
  visitDType(x.getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    ArrayRef<T> in = rows.tensor.values<T>();
    MutableArrayRef<T> out = values.mutableValues<T>();
    // NaN counts as the largest number.
    auto less = [](T lhs, T rhs) {
      auto a = load(lhs), b = load(rhs);
      return a == a && (b != b || a < b);
    };
    std::vector<int64_t> order(rows.length);
    for (int64_t row = 0; row < rows.count; ++row) {
      ArrayRef<T> from = in.slice(row * rows.length, rows.length);
      std::iota(order.begin(), order.end(), 0);
      llvm::stable_sort(order, [&](int64_t i, int64_t j) {
        return op.getSmallest() ? less(from[i], from[j])
                                : less(from[j], from[i]);
      });
      for (int64_t i = 0; i < k; ++i) {
        out[row * k + i] = from[order[i]];
        indices.setInt(row * k + i, order[i]);
      }
    }
  });
  return {rows.restore(values), rows.restore(indices)};
}

static HostTensor softmax(SoftmaxOp op, const HostTensor &x) {
  int64_t dim = op.getDim();
  Rows rows(x, dim);
  std::vector<double> values = toDoubles(rows.tensor);
  for (int64_t row = 0; row < rows.count; ++row) {
    MutableArrayRef<double> v(values.data() + row * rows.length, rows.length);
    double largest = -INFINITY, sum = 0;
    for (double value : v)
      largest = combine(ReduceOpKind::max, largest, value);
    for (double value : v)
      sum += std::exp(value - largest);
    for (double &value : v)
      value = op.getLog() ? value - largest - std::log(sum)
                          : std::exp(value - largest) / sum;
  }
  HostTensor to(x.getType(), rows.tensor.getShape());
  storeDoubles(values, to);
  return rows.restore(to);
}

static HostTensor fakeQuantize(const HostTensor &x) {
  constexpr float range = 127;
  std::vector<double> values = toDoubles(x);
  auto length = static_cast<size_t>(x.getShape().back());
  for (size_t start = 0; start < values.size(); start += length) {
    MutableArrayRef<double> row(values.data() + start, length);
    double most = 0;
    for (double value : row)
      most = combine(ReduceOpKind::max, most, std::abs(value));
    auto largest = static_cast<float>(most);
    float factor = largest < leastQuantized ? 0 : range / largest;
    float scale = largest / range;
    for (double &value : row)
      value = std::nearbyint(static_cast<float>(value) * factor) * scale;
  }
  HostTensor to(x.getType(), x.getShape());
  storeDoubles(values, to);
  return to;
}

/// `x` with optional scale and bias from `in`, as the op has them.
template <typename NormOp>
static HostTensor norm(NormOp op, Operands in, bool subtractMean) {
  std::vector<double> values = toDoubles(in[0]);
  std::vector<double> scale, bias;
  if (op.getScale())
    scale = toDoubles(in[1]);
  if (op.getBias())
    bias = toDoubles(in[op.getScale() ? 2 : 1]);
  int64_t length = 1;
  for (int64_t size :
       ArrayRef<int64_t>(in[0].getShape()).drop_front(op.getAxis()))
    length *= size;
  double epsilon = op.getEpsilon().convertToDouble();
  for (size_t row = 0; length && row < values.size() / length; ++row) {
    MutableArrayRef<double> v(values.data() + row * length, length);
    double mean = 0, squares = 0;
    if (subtractMean)
      mean = std::accumulate(v.begin(), v.end(), 0.0) / length;
    for (double value : v)
      squares += (value - mean) * (value - mean);
    double factor = 1 / std::sqrt(squares / length + epsilon);
    for (int64_t i = 0; i < length; ++i) {
      v[i] = (v[i] - mean) * factor * (scale.empty() ? 1 : scale[i]);
      v[i] += bias.empty() ? 0 : bias[i];
    }
  }
  HostTensor to = emptyLike(op.getResult());
  storeDoubles(values, to);
  return to;
}

void combineInto(ReduceOpKind kind, HostTensor &to, const HostTensor &from) {
  visitDType(to.getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    MutableArrayRef<T> out = to.mutableValues<T>();
    for (auto [a, b] : llvm::zip_equal(out, from.values<T>()))
      a = store<T>(combine(kind, load(a), load(b)));
  });
}

/// Corners lowest first: y, x, y, x.
static std::array<double, 4> boxAt(const HostTensor &boxes, int64_t number) {
  std::array<double, 4> box;
  for (int64_t i : {0, 1}) {
    double a = boxes.getDouble(4 * number + i);
    double b = boxes.getDouble(4 * number + 2 + i);
    box[i] = std::min(a, b);
    box[i + 2] = std::max(a, b);
  }
  return box;
}

static double overlap(const std::array<double, 4> &a,
                      const std::array<double, 4> &b) {
  auto area = [](const std::array<double, 4> &box) {
    return (box[2] - box[0]) * (box[3] - box[1]);
  };
  double height = std::min(a[2], b[2]) - std::max(a[0], b[0]);
  double width = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  if (height <= 0 || width <= 0)
    return 0;
  return height * width / (area(a) + area(b) - height * width);
}

static HostTensor nonMaxSuppression(NonMaxSuppressionOp op,
                                    const HostTensor &boxes,
                                    const HostTensor &scores) {
  const Shape &shape = scores.getShape();
  int64_t count = shape[2], limit = op.getLimit();
  HostTensor result = emptyLike(op.getResult());
  for (int64_t row = 0; row < shape[0] * shape[1]; ++row) {
    auto score = [&](int64_t i) { return scores.getDouble(row * count + i); };
    std::vector<int64_t> order, taken;
    for (int64_t i = 0; i < count; ++i)
      if (op.getScoreThreshold()
              ? score(i) > op.getScoreThreshold()->convertToDouble()
              : !std::isnan(score(i)))
        order.push_back(i);
    llvm::stable_sort(
        order, [&](int64_t a, int64_t b) { return score(a) > score(b); });
    int64_t first = row / shape[1] * count;
    for (int64_t i : order)
      if (static_cast<int64_t>(taken.size()) < limit &&
          llvm::none_of(taken, [&](int64_t other) {
            return overlap(boxAt(boxes, first + i),
                           boxAt(boxes, first + other)) >
                   op.getIouThreshold().convertToDouble();
          }))
        taken.push_back(i);
    taken.resize(limit, -1);
    for (int64_t i = 0; i < limit; ++i)
      result.setInt(row * limit + i, taken[i]);
  }
  return result;
}

std::optional<Results> interpretReduction(Operation *op, Operands in) {
  return llvm::TypeSwitch<Operation *, std::optional<Results>>(op)
      .Case([&](ReduceOp o) { return Results{reduce(o, in[0])}; })
      .Case([&](ArgReduceOp o) { return Results{argReduce(o, in[0])}; })
      .Case([&](CumulativeOp o) { return Results{cumulative(o, in[0])}; })
      .Case([&](TopKOp o) { return topK(o, in[0]); })
      .Case([&](NonMaxSuppressionOp o) {
        return Results{nonMaxSuppression(o, in[0], in[1])};
      })
      .Case([&](SoftmaxOp o) { return Results{softmax(o, in[0])}; })
      .Case([&](FakeQuantizeOp) { return Results{fakeQuantize(in[0])}; })
      .Case([&](LayerNormOp o) { return Results{norm(o, in, true)}; })
      .Case([&](RMSNormOp o) { return Results{norm(o, in, false)}; })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace ax::interpreter
