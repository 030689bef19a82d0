//===- GraphBuilder.h - Graphs of rules, by hand ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SHARDING_GRAPHBUILDER_H
#define AX_TEST_SHARDING_GRAPHBUILDER_H

#include "ax/Sharding/Propagate.h"

#include <map>

namespace ax::sharding::test {

/// Writes down transformer blocks with the rules that the ax ops have. Methods
/// return the number of the result tensor; an op is found again by its name.
class GraphBuilder {
public:
  Graph graph;
  Pins pins;
  std::map<std::string, int> ops;

  int tensor(const std::string &name, std::vector<int64_t> shape,
             TensorRole role);
  int input(const std::string &name, std::vector<int64_t> shape) {
    return tensor(name, std::move(shape), TensorRole::Input);
  }
  int state(const std::string &name, std::vector<int64_t> shape) {
    return tensor(name, std::move(shape), TensorRole::State);
  }
  int constant(const std::string &name, std::vector<int64_t> shape) {
    return tensor(name, std::move(shape), TensorRole::Constant);
  }
  void output(int tensor) { graph.tensors[tensor].isOutput = true; }

  /// x W with a new weight (or this one, [k, n], or [n, k] if transposed).
  int linear(const std::string &name, int x, int64_t n, int weight = -1,
             bool transposed = false);
  /// Broadcasting sum, product and non-linear function.
  int add(const std::string &name, int a, int b) {
    return elementwise(name, {a, b}, {{0, 1}});
  }
  int mul(const std::string &name, int a, int b) {
    return elementwise(name, {a, b}, {{0}, {1}});
  }
  int unary(const std::string &name, int a) {
    return elementwise(name, {a}, {});
  }
  int bias(const std::string &name, int a);
  int norm(const std::string &name, int a);
  /// Rows of a table [V, d].
  int embedding(const std::string &name, int table, int ids);
  /// Splits or joins dimensions: sizes of the parts of each operand dimension
  /// and of each result dimension, in the same order.
  int reshape(const std::string &name, int a,
              std::vector<std::vector<int64_t>> from,
              std::vector<std::vector<int64_t>> to);
  int transpose(const std::string &name, int a, std::vector<int> permutation);
  /// Elements [part * size / parts, ...) of the last dimension.
  int sliceLast(const std::string &name, int a, int64_t parts);
  int broadcast(const std::string &name, int a, std::vector<int64_t> shape);
  /// q [b, h, s, d], k and v [b, g, s, d], mask broadcasting or -1.
  int attention(const std::string &name, int q, int k, int v, int mask = -1);
  /// Gradient of a weight [k, n]: sum over all rows of x [..., k], dy [..., n].
  int weightGrad(const std::string &name, int x, int dy);
  /// [b, in, h, w] -> [b, out, h, w] with a new weight [out, in, 3, 3].
  int conv(const std::string &name, int x, int64_t out);
  int reduceSum(const std::string &name, int a, size_t dim);

  void pinFactor(const std::string &op, const std::string &factor, SubAxes axes,
                 const std::string &cause = "--tp", bool elseWhole = false);
  void pinHeads(const std::string &attention, SubAxes axes);
  void pinDim(int tensor, int dim, SubAxes axes, bool open = true,
              bool spreads = true);

  /// `bytesPerSecond`: of element-wise work.
  Propagation run(const Mesh &mesh, int latencyMicros = 1,
                  double bytesPerSecond = 1e10) const;

private:
  int addOp(GraphOp op, std::vector<int64_t> shape);
  int elementwise(const std::string &name, std::vector<int> operands,
                  std::vector<std::vector<int>> linear);
  TensorMap parallelMap(GraphOp &op, const std::vector<int64_t> &shape);
};

/// Whole axes of these names.
SubAxes wholeAxes(const Mesh &mesh, const std::vector<std::string> &names);
std::string layoutText(const Propagation &result, int tensor, const Mesh &mesh);
/// "all_reduce{col} x 2, all_gather{data}": the collectives, sorted by kind.
std::string countCollectives(const Propagation &result, const Mesh &mesh);
/// Sum of payload bytes of collectives of this kind.
int64_t sumPayload(const Propagation &result, const Graph &graph,
                   StepKind kind);

} // namespace ax::sharding::test

#endif // AX_TEST_SHARDING_GRAPHBUILDER_H
