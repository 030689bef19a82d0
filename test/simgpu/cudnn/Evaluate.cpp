//===- Evaluate.cpp - The simulated cuDNN's numbers -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Graph.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

// Of plain numbers only; nothing of it is linked.
#include "ax/Support/Float16.h"

namespace simcudnn {

namespace {

/// A tensor's elements, in the order of its indices.
using Values = std::vector<double>;

/// Calls fn with the offsets by each of the strides, of every index in order.
template <size_t N, typename Fn>
void walk(const Sizes &sizes, const std::array<Sizes, N> &strides, Fn &&fn) {
  size_t rank = sizes.size();
  Sizes index(rank, 0);
  std::array<int64_t, N> offsets{};
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  for (int64_t i = 0; i < count; ++i) {
    fn(offsets);
    for (size_t d = rank; d-- > 0;) {
      bool wraps = ++index[d] == sizes[d];
      int64_t steps = wraps ? 1 - sizes[d] : 1;
      for (size_t n = 0; n < N; ++n)
        offsets[n] += steps * strides[n][d];
      if (!wraps)
        break;
      index[d] = 0;
    }
  }
}

Sizes denseStrides(const Sizes &sizes) {
  Sizes strides(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0; step *= sizes[d])
    strides[d] = step;
  return strides;
}

/// Those of a tensor's values; 0 where it has one for all.
Sizes broadcastStrides(const Sizes &sizes) {
  Sizes strides = denseStrides(sizes);
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] == 1)
      strides[d] = 0;
  return strides;
}

double load(cudnnDataType_t type, const unsigned char *bytes) {
  uint16_t narrow = 0;
  int32_t integer = 0;
  float single = 0;
  switch (type) {
  case CUDNN_DATA_HALF:
    std::memcpy(&narrow, bytes, sizeof(narrow));
    return ax::f16BitsToFloat(narrow);
  case CUDNN_DATA_BFLOAT16:
    std::memcpy(&narrow, bytes, sizeof(narrow));
    return ax::bf16BitsToFloat(narrow);
  case CUDNN_DATA_INT32:
    std::memcpy(&integer, bytes, sizeof(integer));
    return integer;
  case CUDNN_DATA_BOOLEAN:
    return *bytes != 0;
  default:
    std::memcpy(&single, bytes, sizeof(single));
    return single;
  }
}

void store(cudnnDataType_t type, double value, unsigned char *bytes) {
  auto put = [&](auto number) { std::memcpy(bytes, &number, sizeof(number)); };
  switch (type) {
  case CUDNN_DATA_HALF:
    return put(ax::Float16(value).bits);
  case CUDNN_DATA_BFLOAT16:
    return put(ax::BFloat16(value).bits);
  case CUDNN_DATA_INT32:
    return put(static_cast<int32_t>(value));
  case CUDNN_DATA_BOOLEAN:
    return put(static_cast<unsigned char>(value != 0));
  default:
    return put(static_cast<float>(value));
  }
}

double roundTo(cudnnDataType_t type, double value) {
  unsigned char bytes[8];
  store(type, value, bytes);
  return load(type, bytes);
}

class Evaluator {
public:
  Evaluator(const Graph &graph, Engine engine,
            const std::map<int64_t, unsigned char *> &places)
      : graph(graph), engine(engine), places(places) {}

  void run() {
    // All that is read is read before anything is written.
    for (const auto &[number, tensor] : graph.tensors)
      if (!tensor.isVirtual && !graph.isWritten(number))
        values[number] = read(tensor);
    for (const Node &node : graph.nodes) {
      Values made = compute(node);
      if (graph.takesZeroForNoKey(node))
        overflow(node, made);
      for (double &value : made)
        value = roundTo(node.output.type, value);
      values[node.output.number] = std::move(made);
    }
    for (const Node &node : graph.nodes)
      if (node.output.isInMemory())
        write(node.output);
  }

private:
  Values read(const Tensor &tensor) const {
    const unsigned char *at = places.at(tensor.number);
    int64_t bytes = tensor.bytesOfElement();
    Values made;
    made.reserve(static_cast<size_t>(tensor.numElements()));
    walk<1>(tensor.sizes, {tensor.strides}, [&](auto offsets) {
      made.push_back(load(tensor.type, at + offsets[0] * bytes));
    });
    return made;
  }
  void write(const Tensor &tensor) const {
    unsigned char *at = places.at(tensor.number);
    int64_t bytes = tensor.bytesOfElement();
    const double *next = values.at(tensor.number).data();
    walk<1>(tensor.sizes, {tensor.strides}, [&](auto offsets) {
      store(tensor.type, *next++, at + offsets[0] * bytes);
    });
  }

  Values compute(const Node &node) const {
    switch (node.kind) {
    case Kind::Matmul:
      return multiply(node);
    case Kind::Pointwise:
      return apply(node);
    case Kind::Reduction:
      return reduce(node);
    case Kind::Reshape:
      return reshape(node);
    case Kind::Convolution:
    case Kind::ImageGradient:
    case Kind::WeightGradient:
      return convolve(node, of(node.inputs[0]), of(node.inputs[1]), engine);
    }
    return {};
  }

  const Values &of(const Tensor &tensor) const {
    return values.at(tensor.number);
  }

  /// What keys behind the last one add to a query's gradient, as the real one
  /// has it on cards of 9.0: exp(0 - log sum) times 0.
  void overflow(const Node &gradient, Values &made) const {
    const Values &stats = of(graph.statsOfGradient());
    size_t size = made.size() / stats.size();
    for (size_t row = 0; row < stats.size(); ++row)
      if (std::isinf(std::exp(static_cast<float>(-stats[row]))))
        std::fill_n(made.begin() + static_cast<ptrdiff_t>(row * size), size,
                    std::nan(""));
  }

  Values multiply(const Node &node) const {
    const Tensor &a = node.inputs[0], &b = node.inputs[1], &c = node.output;
    size_t rank = c.getRank();
    int64_t m = c.sizes[rank - 2], n = c.sizes[rank - 1], k = a.sizes[rank - 1];
    int64_t batches = c.numElements() / (m * n);
    // The place of a batch of c in a factor's, whose sizes divide c's.
    auto batchOf = [&](const Tensor &factor, int64_t batch) {
      int64_t place = 0, step = 1;
      for (size_t d = rank - 2; d-- > 0;) {
        int64_t index = batch % c.sizes[d];
        batch /= c.sizes[d];
        place += step * (index / (c.sizes[d] / factor.sizes[d]));
        step *= factor.sizes[d];
      }
      return place;
    };
    Values made(static_cast<size_t>(c.numElements()), 0.0);
    double *row = made.data();
    for (int64_t batch = 0; batch < batches; ++batch) {
      const double *left = of(a).data() + batchOf(a, batch) * m * k;
      const double *right = of(b).data() + batchOf(b, batch) * k * n;
      for (int64_t i = 0; i < m; ++i, row += n)
        for (int64_t l = 0; l < k; ++l) {
          double factor = left[i * k + l];
          for (int64_t j = 0; j < n; ++j)
            row[j] += factor * right[l * n + j];
        }
    }
    return made;
  }

  Values apply(const Node &node) const {
    const Sizes &sizes = node.output.sizes;
    if (node.mode == CUDNN_POINTWISE_GEN_INDEX) {
      Sizes strides(sizes.size(), 0);
      strides[static_cast<size_t>(node.axis)] = 1;
      return collect(node, {strides, strides, strides},
                     [](auto at) { return static_cast<double>(at[0]); });
    }
    std::array<Sizes, 3> strides;
    std::array<const double *, 3> operands{};
    for (size_t i = 0; i < 3; ++i) {
      // What is not there is as the first one.
      const Tensor &operand = node.inputs[i < node.inputs.size() ? i : 0];
      strides[i] = broadcastStrides(operand.sizes);
      operands[i] = of(operand).data();
    }
    auto go = [&](auto fn) {
      return collect(node, strides, [&](auto at) {
        return fn(operands[0][at[0]], operands[1][at[1]], operands[2][at[2]]);
      });
    };
    switch (node.mode) {
    case CUDNN_POINTWISE_EXP:
      return go([](double x, double, double) { return std::exp(x); });
    case CUDNN_POINTWISE_LOG:
      return go([](double x, double, double) { return std::log(x); });
    case CUDNN_POINTWISE_ADD:
      return go([](double x, double b, double) { return x + b; });
    case CUDNN_POINTWISE_SUB:
      return go([](double x, double b, double) { return x - b; });
    case CUDNN_POINTWISE_MUL:
      return go([](double x, double b, double) { return x * b; });
    case CUDNN_POINTWISE_DIV:
      return go([](double x, double b, double) { return x / b; });
    case CUDNN_POINTWISE_CMP_GE:
      return go([](double x, double b, double) { return double(x >= b); });
    case CUDNN_POINTWISE_CMP_GT:
      return go([](double x, double b, double) { return double(x > b); });
    case CUDNN_POINTWISE_BINARY_SELECT:
      return go([](double x, double b, double t) { return t != 0 ? x : b; });
    default:
      return go([](double x, double, double) { return x; });
    }
  }
  template <typename Fn>
  Values collect(const Node &node, const std::array<Sizes, 3> &strides,
                 Fn &&fn) const {
    Values made;
    made.reserve(static_cast<size_t>(node.output.numElements()));
    walk<3>(node.output.sizes, strides,
            [&](const auto &at) { made.push_back(fn(at)); });
    return made;
  }

  Values reduce(const Node &node) const {
    const Tensor &x = node.inputs[0], &y = node.output;
    bool isMax = node.reduction == CUDNN_REDUCE_TENSOR_MAX;
    Values made(static_cast<size_t>(y.numElements()),
                isMax ? -std::numeric_limits<double>::infinity() : 0.0);
    // Each dimension is groups of y's, and the elements of each.
    Sizes sizes, strides, dense = denseStrides(y.sizes);
    for (size_t d = 0; d < x.getRank(); ++d) {
      sizes.insert(sizes.end(), {y.sizes[d], x.sizes[d] / y.sizes[d]});
      strides.insert(strides.end(), {dense[d], 0});
    }
    const double *next = of(x).data();
    walk<1>(sizes, {strides}, [&](auto offsets) {
      double &sum = made[static_cast<size_t>(offsets[0])];
      double value = *next++;
      if (!isMax)
        sum += value;
      else if (value > sum || std::isnan(value))
        sum = value;
    });
    return made;
  }

  /// The same places by other sizes and strides; NaN where x has nothing.
  Values reshape(const Node &node) const {
    const Tensor &x = node.inputs[0], &y = node.output;
    Values lying(static_cast<size_t>(x.reach()), std::nan(""));
    const double *next = of(x).data();
    walk<1>(x.sizes, {x.strides}, [&](auto offsets) {
      lying[static_cast<size_t>(offsets[0])] = *next++;
    });
    Values made;
    made.reserve(static_cast<size_t>(y.numElements()));
    walk<1>(y.sizes, {y.strides}, [&](auto offsets) {
      made.push_back(lying[static_cast<size_t>(offsets[0])]);
    });
    return made;
  }

  const Graph &graph;
  Engine engine;
  const std::map<int64_t, unsigned char *> &places;
  std::map<int64_t, Values> values;
};

} // namespace

void evaluate(const Graph &graph, Engine engine,
              const std::map<int64_t, unsigned char *> &places) {
  Evaluator(graph, engine, places).run();
}

} // namespace simcudnn
