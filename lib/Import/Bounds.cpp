//===- Bounds.cpp - Results of which there may be fewer -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where data decide how many results there are, `--max` gives them room: they
// come first along a dimension, padding follows. An operation keeps such a
// dimension when its sharding rule says that it may be split (what is in it
// does not meet), and nothing that is not padded so meets it. Everything else
// is an error, unless its importer fills the padding with something that does
// not count.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "ax/Dialect/Ax.h"
#include "ax/Dialect/ProgramNames.h"

#include "llvm/Support/GlobPattern.h"

using namespace ax;
using namespace ax::import;
using namespace ax::sharding;

std::optional<int64_t> Emitter::maxResults() {
  std::optional<int64_t> found;
  location->walk([&](mlir::Location inner) {
    auto name = mlir::dyn_cast<mlir::NameLoc>(inner);
    for (MaxResults &entry : allMaxResults) {
      if (!name || found)
        break;
      auto pattern = llvm::GlobPattern::create(entry.node);
      bool matches = entry.node == name.getName().getValue();
      if (!pattern)
        llvm::consumeError(pattern.takeError());
      else
        matches |= pattern->match(name.getName().getValue());
      if (matches) {
        entry.isUsed = true;
        found = entry.count;
      }
    }
    return mlir::WalkResult::advance();
  });
  return found;
}

std::string Emitter::nodeOf(mlir::Location location) {
  std::string name;
  location->walk([&](mlir::Location inner) {
    if (auto named = mlir::dyn_cast<mlir::NameLoc>(inner);
        named && name.empty())
      name = named.getName().str();
    return mlir::WalkResult::advance();
  });
  return name;
}

std::optional<int64_t> Emitter::roomForResults() {
  if (std::optional<int64_t> found = maxResults())
    return found;
  std::string idle;
  for (const MaxResults &entry : allMaxResults)
    if (!entry.isUsed)
      idle += (idle.empty() ? "; --max " : ", ") + entry.node;
  if (!idle.empty())
    idle += " is of no such node up to here";
  fail(ExitCode::Unsupported,
       "data decide how many results there are; axopt --max '" +
           nodeOf(location) + "=N' gives them room for N" + idle);
  return std::nullopt;
}

const Bound *Emitter::boundOf(Value value) const {
  auto found = bounds.find(value);
  return found == bounds.end() ? nullptr : &found->second;
}

bool Emitter::isConstant(Value value) const {
  return value.getDefiningOp<ConstantOp>() && !boundOf(value);
}

Value Emitter::copied(Value x) { return select(scalar(DType::Bool, 1), x, x); }

Value Emitter::bounded(Value x, int64_t dim, Value count) {
  if (x && count)
    bounds[x] = {dim, count, nodeOf(location)};
  return x;
}

void Emitter::beginNode() {
  own.clear();
  dropsBounds = false;
}

void Emitter::remember(mlir::Operation *op) {
  if (bounds.empty())
    return;
  if (llvm::all_of(op->getOperands(), [&](Value operand) {
        return own.contains(operand.getDefiningOp());
      }))
    own.insert(op);
}

Value Emitter::isLive(Value x) {
  const Bound *bound = boundOf(x);
  if (!bound)
    return {};
  Shape line(rankOf(x), 1);
  line[bound->dim] = shapeOf(x)[bound->dim];
  Value count = bound->count;
  Value live =
      compare(CompareKind::lt, iota(DType::I64, line, bound->dim), count);
  if (live)
    own.insert(live.getDefiningOp());
  return live;
}

Value Emitter::filled(Value x, Value number) {
  if (!x || !boundOf(x))
    return x;
  Value y = select(isLive(x), x, number);
  if (y)
    bounds.erase(y);
  return y;
}

Value Emitter::cleared(Value x) {
  return x && boundOf(x) ? select(isLive(x), x, like(x, 0)) : x;
}

Value Emitter::alongResults(Value x, int64_t dim, double neutral,
                            llvm::function_ref<Value(Value)> make) {
  const Bound *found = boundOf(x);
  if (!found || found->dim != dim)
    return make(x);
  Value count = found->count;
  return bounded(make(filled(x, neutral)), dim, count);
}

/// The dimension of `map` that is `factor` and nothing else.
static std::optional<int64_t> dimOf(const TensorMap &map, int factor) {
  for (auto [dim, factors] : llvm::enumerate(map))
    if (llvm::is_contained(factors, factor))
      return factors.size() == 1 ? std::optional<int64_t>(dim) : std::nullopt;
  return std::nullopt;
}

static bool has(const TensorMap &map, int factor) {
  return llvm::any_of(map, [&](const std::vector<int> &factors) {
    return llvm::is_contained(factors, factor);
  });
}

void Emitter::keepBounds(mlir::Operation *op) {
  if (bounds.empty())
    return;
  auto refuse = [&](const Bound &bound) {
    fail(ExitCode::Unsupported,
         "what axopt --max gives node '" + bound.node +
             "' room for would be taken for results here: its results may "
             "only be worked on one by one, or summed, compared or sorted");
  };
  auto interface = mlir::dyn_cast<ShardingRuleOpInterface>(op);
  std::optional<Rule> rule;
  std::optional<int> factor;
  const Bound *first = nullptr;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    const Bound *bound = boundOf(operand);
    if (!bound)
      continue;
    if (!rule && interface)
      rule = interface.getShardingRule();
    if (!rule)
      return refuse(*bound);
    const std::vector<int> &factors = rule->operands[i][bound->dim];
    bool isKept = factors.size() == 1 &&
                  rule->factors[factors[0]].kind == FactorKind::Parallel &&
                  (!factor || *factor == factors[0]) &&
                  (!first || isSame(first->count, bound->count));
    if (!isKept)
      return refuse(*bound);
    factor = factors[0];
    first = bound;
  }
  if (!first)
    return;
  Bound bound = *first;
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (!boundOf(operand) && has(rule->operands[i], *factor) &&
        !own.contains(operand.getDefiningOp()))
      return refuse(bound);
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    std::optional<int64_t> dim = dimOf(rule->results[i], *factor);
    if (!dim)
      return refuse(bound);
    bounds[result] = {*dim, bound.count, bound.node};
  }
}

bool Emitter::checkDropped(ArrayRef<Value> inputs, ArrayRef<Value> outputs) {
  if (bounds.empty() || failed || dropsBounds)
    return !failed;
  const Bound *bound = nullptr;
  for (Value input : inputs)
    if (input && boundOf(input))
      bound = boundOf(input);
  if (!bound)
    return true;
  for (Value output : outputs)
    if (output && !boundOf(output)) {
      fail(ExitCode::Unsupported,
           "how many results node '" + bound->node +
               "' has is known only when it runs, and would not count here");
      return false;
    }
  return true;
}

void Emitter::checkMaxResults() {
  for (const MaxResults &entry : allMaxResults)
    if (!entry.isUsed)
      fail(ExitCode::Usage, "--max " + entry.node +
                                ": data decide of no such node how many "
                                "results it has");
}

CountedOutputs
Emitter::addCounts(llvm::SmallVectorImpl<Value> &outputs,
                   llvm::SmallVectorImpl<mlir::StringAttr> &names) {
  CountedOutputs counted;
  for (size_t i = 0, e = outputs.size(); i < e; ++i) {
    const Bound *bound = boundOf(outputs[i]);
    if (!bound)
      continue;
    auto name = builder.getStringAttr(countName(names[i].getValue()));
    if (llvm::is_contained(names, name))
      fail(ExitCode::Unsupported, "output '" + name.getValue() +
                                      "' has the name of how many results "
                                      "output '" +
                                      names[i].getValue() + "' has");
    counted.emplace_back(i, bound->dim);
    outputs.push_back(bound->count);
    names.push_back(name);
  }
  return counted;
}

std::pair<Value, Value> Emitter::compact(Value mask, int64_t room) {
  if (!mask)
    return {};
  int64_t size = numElementsOf(mask);
  Value none = scalar(DType::I64, 0);
  if (size == 0)
    return {broadcast(none, {room}), none};
  // Each goes behind those before it; what is too much, and what is none, to
  // one place more.
  Value numbers = cast(reshape(mask, {size}), DType::I64);
  Value behind = cumulative(ReduceOpKind::sum, numbers, 0, false, false);
  Value count = reshape(sliceDim(behind, 0, size - 1, 1), {});
  count = atMost(count, room);
  Value last = scalar(DType::I64, static_cast<double>(room));
  Value to = select(reshape(mask, {size}), min(add(behind, -1), last), last);
  Value places =
      scatterElements(ScatterKind::set, splat(DType::I64, {room + 1}, 0), to,
                      iota(DType::I64, {size}, 0), 0);
  Value slot = iota(DType::I64, {room}, 0);
  return {select(compare(CompareKind::lt, slot, count),
                 sliceDim(places, 0, 0, room), none),
          count};
}

Value Emitter::extremeOf(Value x, bool lowest) {
  if (!x)
    return {};
  HostTensor number(typeOf(x), {});
  if (isFloat(typeOf(x)))
    number.setDouble(0, lowest ? -INFINITY : INFINITY);
  else
    visitDType(typeOf(x), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::numeric_limits<T>::is_integer)
        number.setInt(
            0, static_cast<int64_t>(lowest ? std::numeric_limits<T>::lowest()
                                           : std::numeric_limits<T>::max()));
    });
  return constant(std::move(number));
}
