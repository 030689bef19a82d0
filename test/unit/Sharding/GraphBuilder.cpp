//===- GraphBuilder.cpp - Graphs of rules, by hand ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GraphBuilder.h"

#include <gtest/gtest.h>

namespace ax::sharding::test {

namespace {

std::vector<int64_t> shapeOf(const Graph &graph, int tensor) {
  return graph.tensors[tensor].shape;
}

/// Map of a tensor that broadcasts to `result`, aligned at the last dimension.
TensorMap broadcastMap(const TensorMap &result,
                       const std::vector<int64_t> &shape,
                       const std::vector<int64_t> &resultShape) {
  TensorMap map;
  size_t skip = resultShape.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d)
    map.push_back(shape[d] == 1 && resultShape[d + skip] != 1
                      ? std::vector<int>()
                      : result[d + skip]);
  return map;
}

} // namespace

int GraphBuilder::tensor(const std::string &name, std::vector<int64_t> shape,
                         TensorRole role) {
  GraphTensor tensor;
  tensor.name = name;
  tensor.shape = std::move(shape);
  tensor.role = role;
  graph.tensors.push_back(std::move(tensor));
  return static_cast<int>(graph.tensors.size()) - 1;
}

int GraphBuilder::addOp(GraphOp op, std::vector<int64_t> shape) {
  int result = tensor(op.name, shape, TensorRole::Value);
  op.results = {result};
  std::vector<std::vector<int64_t>> operands;
  for (int operand : op.operands)
    operands.push_back(shapeOf(graph, operand));
  auto fault = findFault(op.rule, operands, {shape});
  EXPECT_FALSE(fault) << op.name << ": " << *fault;
  ops[op.name] = static_cast<int>(graph.ops.size());
  graph.ops.push_back(std::move(op));
  return result;
}

TensorMap GraphBuilder::parallelMap(GraphOp &op,
                                    const std::vector<int64_t> &shape) {
  TensorMap map;
  for (int64_t size : shape)
    map.push_back({op.rule.addFactor(size)});
  return map;
}

int GraphBuilder::elementwise(const std::string &name,
                              std::vector<int> operands,
                              std::vector<std::vector<int>> linear) {
  std::vector<int64_t> shape;
  for (int operand : operands) {
    std::vector<int64_t> mine = shapeOf(graph, operand);
    if (mine.size() > shape.size())
      shape.insert(shape.begin(), mine.size() - shape.size(), 1);
    for (size_t d = 0; d < mine.size(); ++d) {
      int64_t &size = shape[shape.size() - mine.size() + d];
      size = std::max(size, mine[d]);
    }
  }
  GraphOp op;
  op.name = name;
  op.operands = operands;
  TensorMap result = parallelMap(op, shape);
  for (int operand : operands)
    op.rule.operands.push_back(
        broadcastMap(result, shapeOf(graph, operand), shape));
  op.rule.results = {result};
  op.rule.linear = std::move(linear);
  return addOp(std::move(op), shape);
}

int GraphBuilder::linear(const std::string &name, int x, int64_t n, int weight,
                         bool transposed) {
  std::vector<int64_t> shape = shapeOf(graph, x);
  int64_t k = shape.back();
  if (weight < 0)
    weight = state(name + ".weight", {k, n});
  GraphOp op;
  op.name = name;
  op.rule.opClass = OpClass::Reduction;
  op.operands = {x, weight};
  TensorMap rows = parallelMap(op, {shape.begin(), shape.end() - 1});
  int fk = op.rule.addFactor(k, FactorKind::Reduction);
  int fn = op.rule.addFactor(n);
  op.factorNames.resize(rows.size(), "m");
  op.factorNames.push_back("k");
  op.factorNames.push_back("n");
  TensorMap xMap = rows, result = rows;
  xMap.push_back({fk});
  result.push_back({fn});
  op.rule.operands = {xMap, transposed ? TensorMap{{fn}, {fk}}
                                       : TensorMap{{fk}, {fn}}};
  op.rule.results = {result};
  op.rule.linear = {{0}, {1}};
  shape.back() = n;
  op.flops = 2.0 * static_cast<double>(k);
  for (int64_t size : shape)
    op.flops *= static_cast<double>(size);
  return addOp(std::move(op), shape);
}

int GraphBuilder::bias(const std::string &name, int a) {
  return add(name, a, state(name + ".bias", {shapeOf(graph, a).back()}));
}

int GraphBuilder::norm(const std::string &name, int a) {
  std::vector<int64_t> shape = shapeOf(graph, a);
  GraphOp op;
  op.name = name;
  op.rule.opClass = OpClass::Reduction;
  int scale = state(name + ".scale", {shape.back()});
  op.operands = {a, scale};
  TensorMap map = parallelMap(op, {shape.begin(), shape.end() - 1});
  int width = op.rule.addFactor(shape.back(), FactorKind::Whole);
  map.push_back({width});
  op.rule.operands = {map, {{width}}};
  op.rule.results = {map};
  return addOp(std::move(op), shape);
}

int GraphBuilder::embedding(const std::string &name, int table, int ids) {
  std::vector<int64_t> tableShape = shapeOf(graph, table);
  std::vector<int64_t> shape = shapeOf(graph, ids);
  GraphOp op;
  op.name = name;
  op.rule.opClass = OpClass::Reduction;
  op.operands = {table, ids};
  int v = op.rule.addFactor(tableShape[0], FactorKind::Reduction);
  int d = op.rule.addFactor(tableShape[1]);
  op.factorNames = {"vocabulary", "width"};
  TensorMap rows = parallelMap(op, shape), result = rows;
  result.push_back({d});
  op.rule.operands = {{{v}, {d}}, rows};
  op.rule.results = {result};
  op.rule.linear = {{0}};
  shape.push_back(tableShape[1]);
  return addOp(std::move(op), shape);
}

int GraphBuilder::reshape(const std::string &name, int a,
                          std::vector<std::vector<int64_t>> from,
                          std::vector<std::vector<int64_t>> to) {
  GraphOp op;
  op.name = name;
  op.operands = {a};
  auto mapOf = [&](const std::vector<std::vector<int64_t>> &sizes, bool adds) {
    TensorMap map;
    int next = 0;
    for (const std::vector<int64_t> &dim : sizes) {
      map.emplace_back();
      for (int64_t size : dim) {
        if (adds)
          op.rule.addFactor(size);
        map.back().push_back(next++);
      }
    }
    return map;
  };
  op.rule.operands = {mapOf(from, true)};
  op.rule.results = {mapOf(to, false)};
  op.rule.linear = {{0}};
  op.rule.passesMaxMin = true;
  std::vector<int64_t> shape;
  for (const std::vector<int64_t> &dim : to) {
    shape.push_back(1);
    for (int64_t size : dim)
      shape.back() *= size;
  }
  return addOp(std::move(op), shape);
}

int GraphBuilder::transpose(const std::string &name, int a,
                            std::vector<int> permutation) {
  std::vector<int64_t> from = shapeOf(graph, a), shape;
  GraphOp op;
  op.name = name;
  op.operands = {a};
  TensorMap map = parallelMap(op, from), result;
  for (int d : permutation) {
    result.push_back(map[d]);
    shape.push_back(from[d]);
  }
  op.rule.operands = {map};
  op.rule.results = {result};
  op.rule.linear = {{0}};
  op.rule.passesMaxMin = true;
  return addOp(std::move(op), shape);
}

int GraphBuilder::sliceLast(const std::string &name, int a, int64_t parts) {
  std::vector<int64_t> shape = shapeOf(graph, a);
  GraphOp op;
  op.name = name;
  op.operands = {a};
  TensorMap map = parallelMap(op, {shape.begin(), shape.end() - 1});
  TensorMap result = map;
  int which = op.rule.addFactor(parts, FactorKind::Whole);
  int rest = op.rule.addFactor(shape.back() / parts);
  op.rule.factors[rest].mayPad = false;
  map.push_back({which, rest});
  result.push_back({rest});
  op.rule.operands = {map};
  op.rule.results = {result};
  op.rule.linear = {{0}};
  op.rule.passesMaxMin = true;
  shape.back() /= parts;
  return addOp(std::move(op), shape);
}

int GraphBuilder::broadcast(const std::string &name, int a,
                            std::vector<int64_t> shape) {
  GraphOp op;
  op.name = name;
  op.rule.opClass = OpClass::Broadcast;
  op.operands = {a};
  TensorMap result = parallelMap(op, shape);
  op.rule.operands = {broadcastMap(result, shapeOf(graph, a), shape)};
  op.rule.results = {result};
  op.rule.linear = {{0}};
  op.rule.passesMaxMin = true;
  return addOp(std::move(op), shape);
}

int GraphBuilder::attention(const std::string &name, int q, int k, int v,
                            int mask) {
  std::vector<int64_t> qs = shapeOf(graph, q), vs = shapeOf(graph, v);
  GraphOp op;
  op.name = name;
  op.rule.opClass = OpClass::Reduction;
  op.operands = {q, k, v};
  int b = op.rule.addFactor(qs[0]), g = op.rule.addFactor(vs[1]),
      r = op.rule.addFactor(qs[1] / vs[1]), s = op.rule.addFactor(qs[2]),
      t = op.rule.addFactor(vs[2], FactorKind::Whole),
      d = op.rule.addFactor(qs[3], FactorKind::Whole),
      dv = op.rule.addFactor(vs[3]);
  op.factorNames = {"batch", "kv heads", "group", "rows", "keys", "d", "dv"};
  op.rule.operands = {
      {{b}, {g, r}, {s}, {d}}, {{b}, {g}, {t}, {d}}, {{b}, {g}, {t}, {dv}}};
  if (mask >= 0) {
    op.operands.push_back(mask);
    op.rule.operands.push_back(broadcastMap({{b}, {g, r}, {s}, {t}},
                                            shapeOf(graph, mask),
                                            {qs[0], qs[1], qs[2], vs[2]}));
  }
  op.rule.results = {{{b}, {g, r}, {s}, {dv}}};
  op.rule.linear = {{2}};
  op.flops = 4.0 * static_cast<double>(qs[0] * qs[1] * qs[2] * vs[2] * qs[3]);
  return addOp(std::move(op), {qs[0], qs[1], qs[2], vs[3]});
}

int GraphBuilder::weightGrad(const std::string &name, int x, int dy) {
  std::vector<int64_t> shape = shapeOf(graph, x);
  int64_t k = shape.back(), n = shapeOf(graph, dy).back();
  GraphOp op;
  op.name = name;
  op.rule.opClass = OpClass::Reduction;
  op.operands = {x, dy};
  TensorMap rows;
  for (size_t d = 0; d + 1 < shape.size(); ++d) {
    rows.push_back({op.rule.addFactor(shape[d], FactorKind::Reduction)});
    op.factorNames.push_back("m");
  }
  TensorMap xMap = rows, dyMap = rows;
  int fk = op.rule.addFactor(k), fn = op.rule.addFactor(n);
  op.factorNames.insert(op.factorNames.end(), {"k", "n"});
  xMap.push_back({fk});
  dyMap.push_back({fn});
  op.rule.operands = {xMap, dyMap};
  op.rule.results = {{{fk}, {fn}}};
  op.rule.linear = {{0}, {1}};
  op.flops = 2.0 * static_cast<double>(n);
  for (int64_t size : shape)
    op.flops *= static_cast<double>(size);
  return addOp(std::move(op), {k, n});
}

int GraphBuilder::conv(const std::string &name, int x, int64_t out) {
  std::vector<int64_t> shape = shapeOf(graph, x);
  int64_t in = shape[1];
  GraphOp op;
  op.name = name;
  op.rule.opClass = OpClass::Reduction;
  op.operands = {x, state(name + ".weight", {out, in, 3, 3})};
  Rule &rule = op.rule;
  int b = rule.addFactor(shape[0]), n = rule.addFactor(out),
      k = rule.addFactor(in, FactorKind::Reduction),
      h = rule.addFactor(shape[2], FactorKind::Whole),
      w = rule.addFactor(shape[3], FactorKind::Whole),
      kernel = rule.addFactor(3, FactorKind::Whole);
  op.factorNames = {"batch", "n", "k"};
  rule.operands = {{{b}, {k}, {h}, {w}}, {{n}, {k}, {kernel}, {kernel}}};
  rule.results = {{{b}, {n}, {h}, {w}}};
  rule.linear = {{0}, {1}};
  op.flops =
      18.0 * static_cast<double>(shape[0] * in * out * shape[2] * shape[3]);
  shape[1] = out;
  return addOp(std::move(op), shape);
}

int GraphBuilder::reduceSum(const std::string &name, int a, size_t dim) {
  std::vector<int64_t> shape = shapeOf(graph, a);
  GraphOp op;
  op.name = name;
  op.rule.opClass = OpClass::Reduction;
  op.operands = {a};
  TensorMap map, result;
  for (size_t d = 0; d < shape.size(); ++d) {
    map.push_back({op.rule.addFactor(
        shape[d], d == dim ? FactorKind::Reduction : FactorKind::Parallel)});
    if (d != dim)
      result.push_back(map.back());
  }
  op.rule.operands = {map};
  op.rule.results = {result};
  op.rule.linear = {{0}};
  shape.erase(shape.begin() + dim);
  return addOp(std::move(op), shape);
}

void GraphBuilder::pinFactor(const std::string &op, const std::string &factor,
                             SubAxes axes, const std::string &cause,
                             bool elseWhole) {
  const GraphOp &graphOp = graph.ops[ops.at(op)];
  for (size_t f = 0; f < graphOp.factorNames.size(); ++f)
    if (graphOp.factorNames[f] == factor)
      pins.factors.push_back(
          {ops.at(op), static_cast<int>(f),
           DimLayout::split(graphOp.rule.factors[f].size, axes),
           PinLevel::Recipe, cause, false, true, elseWhole});
}

void GraphBuilder::pinHeads(const std::string &attention, SubAxes axes) {
  for (FactorPin &pin : pinOperandDim(graph, ops.at(attention), 0, 1, axes,
                                      PinLevel::Recipe, "--tp"))
    pins.factors.push_back(pin);
}

void GraphBuilder::pinDim(int tensor, int dim, SubAxes axes, bool open,
                          bool spreads) {
  pins.tensors.push_back(
      {tensor, dim,
       DimLayout::split(graph.tensors[tensor].shape[dim], std::move(axes)),
       PinLevel::Recipe, "recipe", open, spreads});
}

Propagation GraphBuilder::run(const Mesh &mesh, int latencyMicros,
                              double bytesPerSecond) const {
  PropagateOptions options;
  options.bytesPerSecond = bytesPerSecond;
  options.cost = ringCost(latencyMicros * 1e-6, 5e9);
  Propagation result = propagate(graph, mesh, pins, options);
  // What every result must satisfy, whatever was asked.
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    auto fault = findFault(result.tensors[t], graph.tensors[t].shape, mesh);
    EXPECT_FALSE(fault) << graph.tensors[t].name << ": " << *fault;
  }
  std::vector<std::vector<Layout>> seen(graph.ops.size());
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const GraphOp &op = graph.ops[i];
    const Assignment &assignment = result.ops[i].assignment;
    auto fault = findFault(op.rule, assignment, mesh);
    EXPECT_FALSE(fault) << op.name << ": " << *fault;
    for (size_t r = 0; r < op.results.size(); ++r)
      EXPECT_EQ(resultLayout(op.rule, assignment, static_cast<int>(r)),
                result.tensors[op.results[r]])
          << op.name;
    for (size_t o = 0; o < op.operands.size(); ++o)
      seen[i].push_back(result.tensors[op.operands[o]]);
  }
  for (size_t i = 0; i < result.reshards.size(); ++i) {
    const Reshard &reshard = result.reshards[i];
    EXPECT_LT(reshard.source, static_cast<int>(i));
    EXPECT_EQ(reshard.from, reshard.source < 0
                                ? result.tensors[reshard.tensor]
                                : result.reshards[reshard.source].to);
    Layout at = reshard.from;
    EXPECT_FALSE(reshard.steps.empty());
    EXPECT_FALSE(reshard.cause.empty());
    for (const Step &step : reshard.steps) {
      EXPECT_FALSE(findStepFault(step.kind, step.axes, at, step.result, mesh));
      at = step.result;
    }
    EXPECT_EQ(at, reshard.to);
    for (const Use &use : reshard.uses)
      if (use.op >= 0)
        seen[use.op][use.operand] = reshard.to;
  }
  // Every op finds its operands as it wants them.
  for (size_t i = 0; i < graph.ops.size(); ++i)
    for (size_t o = 0; o < seen[i].size(); ++o)
      EXPECT_EQ(
          toString(seen[i][o], mesh),
          toString(operandLayout(graph.ops[i].rule, result.ops[i].assignment,
                                 static_cast<int>(o)),
                   mesh))
          << graph.ops[i].name << " operand " << o;
  return result;
}

SubAxes wholeAxes(const Mesh &mesh, const std::vector<std::string> &names) {
  SubAxes axes;
  for (const std::string &name : names)
    axes.push_back(mesh.whole(name));
  return axes;
}

std::string layoutText(const Propagation &result, int tensor,
                       const Mesh &mesh) {
  return toString(result.tensors[tensor], mesh);
}

std::string countCollectives(const Propagation &result, const Mesh &mesh) {
  std::map<std::string, int> counts;
  for (const Reshard &reshard : result.reshards)
    for (const Step &step : reshard.steps) {
      if (!communicates(step.kind))
        continue;
      std::string name = toString(step.kind);
      name += "{";
      for (size_t i = 0; i < step.axes.size(); ++i)
        name += (i ? " " : "") + toString(step.axes[i], mesh);
      ++counts[name + "}"];
    }
  std::string text;
  for (auto &[name, count] : counts)
    text += (text.empty() ? "" : ", ") + name + " x " + std::to_string(count);
  return text;
}

int64_t sumPayload(const Propagation &result, const Graph &graph,
                   StepKind kind) {
  int64_t bytes = 0;
  for (const Reshard &reshard : result.reshards) {
    Layout at = reshard.from;
    for (const Step &step : reshard.steps) {
      if (step.kind == kind)
        bytes += payloadBytes(kind, at, step.result,
                              graph.tensors[reshard.tensor].elementBytes);
      at = step.result;
    }
  }
  return bytes;
}

} // namespace ax::sharding::test
