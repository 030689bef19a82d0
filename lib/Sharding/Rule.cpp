//===- Rule.cpp - How the dimensions of an operation relate ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Between the splits of an op's factors and the layouts of its tensors stand
// two functions of Digits.h: a dimension's layout is compose() of its factors',
// and divide() reads the factors' off a dimension. A Linear has the factors m,
// k, n, its operands the dimensions [m, k] and [k, n], its result [m, n]: with
// k over col the operands are `[{}, {col}]` and `[{col}, {}]`, and the result,
// in which k is not, is `[{}, {}], partial sum {col}`. A reshape of [12] to [3,
// 4] has two factors, 3 and 4, of which the first dimension is made.
//
//===----------------------------------------------------------------------===//

#include "ax/Sharding/Rule.h"

#include "ax/Sharding/Digits.h"

#include <algorithm>
#include <cassert>

namespace ax::sharding {

int Rule::addFactor(int64_t size, FactorKind kind, ReduceKind reduce) {
  factors.push_back({size, kind, reduce, true});
  return static_cast<int>(factors.size()) - 1;
}

Assignment Assignment::unsplit(const Rule &rule) {
  Assignment assignment;
  for (const RuleFactor &factor : rule.factors)
    assignment.factors.push_back(DimLayout::whole(factor.size));
  return assignment;
}

namespace {

/// The layout of each dimension, composed of its factors' in the map's order,
/// major first: heads over col and 64 in a head, whole, are `8{col} * 64`.
std::vector<DimLayout> dimsOf(const TensorMap &map,
                              const Assignment &assignment) {
  std::vector<DimLayout> dims;
  for (const std::vector<int> &factors : map) {
    std::vector<DimLayout> parts;
    for (int factor : factors)
      parts.push_back(assignment.factors[factor]);
    dims.push_back(compose(parts));
  }
  return dims;
}

/// Whether some dimension is made of `factor`, alone or with others.
bool hasFactor(const TensorMap &map, int factor) {
  for (const std::vector<int> &dim : map)
    for (int f : dim)
      if (f == factor)
        return true;
  return false;
}

/// True when `operand` must be partial for `assignment`'s sums to pass: of a
/// sum the operands of its linear set, of a maximum or minimum all.
bool carriesPartial(const Rule &rule, const Assignment &assignment,
                    int operand) {
  if (assignment.passedPartial.empty())
    return false;
  if (assignment.passedKind != ReduceKind::Sum)
    return true;
  const std::vector<int> &set = rule.linear[assignment.linearSet];
  return std::find(set.begin(), set.end(), operand) != set.end();
}

std::string operandName(size_t operand) {
  return "operand " + std::to_string(operand);
}

} // namespace

Layout operandLayout(const Rule &rule, const Assignment &assignment,
                     int operand) {
  Layout layout;
  layout.dims = dimsOf(rule.operands[operand], assignment);
  if (carriesPartial(rule, assignment, operand)) {
    layout.partial = assignment.passedPartial;
    layout.partialKind = assignment.passedKind;
  }
  return canonicalize(std::move(layout));
}

Layout resultLayout(const Rule &rule, const Assignment &assignment,
                    int result) {
  Layout layout;
  layout.dims = dimsOf(rule.results[result], assignment);
  layout.partial = assignment.passedPartial;
  layout.partialKind = assignment.passedKind;
  // Over axes that split a factor which the op sums over, each rank has summed
  // its own part only.
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    if (rule.factors[f].kind != FactorKind::Reduction ||
        hasFactor(rule.results[result], static_cast<int>(f)))
      continue;
    SubAxes axes = assignment.factors[f].axes();
    if (axes.empty())
      continue;
    layout.partialKind = rule.factors[f].reduce;
    layout.partial.insert(layout.partial.end(), axes.begin(), axes.end());
  }
  return canonicalize(std::move(layout));
}

std::optional<std::string>
findFault(const Rule &rule, const Assignment &assignment, const Mesh &mesh) {
  if (assignment.factors.size() != rule.factors.size())
    return std::string("wrong number of factors");
  SubAxes used = assignment.passedPartial;
  std::optional<ReduceKind> kind;
  if (!used.empty())
    kind = assignment.passedKind;
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    const DimLayout &split = assignment.factors[f];
    const RuleFactor &factor = rule.factors[f];
    std::string name = "factor " + std::to_string(f) + " of size " +
                       std::to_string(factor.size);
    Layout alone;
    alone.dims = {split};
    if (auto fault = findFault(alone, {factor.size}, mesh))
      return name + ": " + *fault;
    if (!split.isSplit())
      continue;
    if (factor.kind == FactorKind::Whole)
      return name + " cannot be split";
    // Padding is anything. Along rows it stays in rows that nobody has; in a
    // sum or an order it would count: 10 elements over 4 ranks are 3, 3, 3, 1
    // and two that are none.
    if (!factor.mayPad && !digitsOf(split))
      return name + " does not divide over " +
             std::to_string(numParts(split.axes())) + " parts";
    // One axis cannot number parts of two factors, nor of a factor and a sum:
    // rank i would have block (i, i) alone, and nobody block (0, 1).
    SubAxes axes = split.axes();
    for (const SubAxis &axis : axes)
      if (overlap({axis}, used))
        return "axis '" + toString(axis, mesh) + "' is used twice";
    used.insert(used.end(), axes.begin(), axes.end());
    // A layout has one kind of partial: no collective makes the whole of a sum
    // of maxima.
    if (factor.kind == FactorKind::Reduction) {
      if (kind && *kind != factor.reduce)
        return std::string("the results would be partial in two ways (") +
               toString(*kind) + " and " + toString(factor.reduce) + ")";
      kind = factor.reduce;
    }
  }
  // Factors that are legal each for itself may not be so together: an uneven
  // one cannot be a part of a dimension.
  auto tensorFault = [&](const TensorMap &map) -> std::optional<std::string> {
    Layout layout;
    layout.dims = dimsOf(map, assignment);
    return findFault(layout, layout.globalShape(), mesh);
  };
  for (const TensorMap &map : rule.operands)
    if (auto fault = tensorFault(map))
      return fault;
  for (const TensorMap &map : rule.results)
    if (auto fault = tensorFault(map))
      return fault;
  if (assignment.passedPartial.empty())
    return std::nullopt;
  if (assignment.passedKind != ReduceKind::Sum) {
    if (!rule.passesMaxMin)
      return std::string("partial ") + toString(assignment.passedKind) +
             " does not pass through this operation";
  } else if (assignment.linearSet < 0 ||
             assignment.linearSet >= static_cast<int>(rule.linear.size())) {
    return std::string("the operation is not linear in the operands that are "
                       "partial sums");
  }
  return std::nullopt;
}

namespace {

/// Collects the splits of factors that tensors' layouts imply. Two operands
/// that have a factor in common must split it alike: with `[{}, {col}]` and
/// `[{row}, {}]` for a Linear, k would be over col and over row.
class Inference {
public:
  Inference(const Rule &rule, const Mesh &mesh) : rule(rule), mesh(mesh) {
    known.resize(rule.factors.size());
  }

  /// False, with `fault` set, when `layout` cannot be read through `map`.
  /// With `onlyUnknown`, factors known from other tensors are not compared:
  /// what operands say decides, and the caller holds the result against it,
  /// which gives the better message. For an op without operands, as a constant
  /// or random numbers, results alone decide.
  bool read(const TensorMap &map, const Layout &layout, const std::string &name,
            bool onlyUnknown) {
    if (map.size() != layout.dims.size())
      return fail(name + ": the layout has " +
                  std::to_string(layout.dims.size()) + " dimensions, not " +
                  std::to_string(map.size()));
    std::vector<std::optional<DimLayout>> seen(rule.factors.size());
    for (size_t d = 0; d < map.size(); ++d) {
      std::vector<int64_t> sizes;
      for (int factor : map[d])
        sizes.push_back(rule.factors[factor].size);
      // A dimension of no factor is of size 1, made by the op itself: there is
      // nothing to split.
      auto parts = divide(layout.dims[d], sizes);
      if (!parts || (map[d].empty() && layout.dims[d].isSplit())) {
        Layout alone;
        alone.dims = {layout.dims[d]};
        return fail(name + ", dimension " + std::to_string(d) + ": split " +
                    toString(alone, mesh) + " does not fall on its parts " +
                    sizesText(sizes));
      }
      for (size_t i = 0; i < map[d].size(); ++i)
        seen[map[d][i]] = (*parts)[i];
    }
    for (size_t f = 0; f < seen.size(); ++f) {
      if (!seen[f] || (onlyUnknown && known[f]))
        continue;
      if (known[f] && !(*known[f] == *seen[f]))
        return fail(name + " splits factor " + std::to_string(f) + " as " +
                    splitText(*seen[f]) + ", " + source[f] + " as " +
                    splitText(*known[f]));
      known[f] = seen[f];
      source.resize(seen.size());
      source[f] = name;
    }
    return true;
  }

  std::vector<std::optional<DimLayout>> known;
  std::string fault;

private:
  bool fail(std::string message) {
    fault = std::move(message);
    return false;
  }
  std::string splitText(const DimLayout &dim) {
    Layout alone;
    alone.dims = {dim};
    return toString(alone, mesh);
  }
  static std::string sizesText(const std::vector<int64_t> &sizes) {
    std::string text;
    for (int64_t size : sizes)
      text += (text.empty() ? "" : " x ") + std::to_string(size);
    return text.empty() ? "1" : text;
  }

  const Rule &rule;
  const Mesh &mesh;
  std::vector<std::string> source;
};

/// Fills the partial sums that pass; a fault when they do not. Operands that
/// are partial must be exactly one linear set: for an addition, {{0, 1}}, both
/// or none; for a product, {{0}, {1}}, only one of the two, since the sum of
/// products of addends is not the product of sums.
std::optional<std::string> inferPassed(const Rule &rule,
                                       const std::vector<Layout> &operands,
                                       Assignment &assignment) {
  std::vector<int> partial;
  for (size_t i = 0; i < operands.size(); ++i)
    if (!operands[i].partial.empty())
      partial.push_back(static_cast<int>(i));
  if (partial.empty())
    return std::nullopt;
  const Layout &first = operands[partial[0]];
  for (int i : partial)
    if (sortAxes(operands[i].partial) != sortAxes(first.partial) ||
        operands[i].partialKind != first.partialKind)
      return operandName(partial[0]) + " and " + operandName(i) +
             " are partial over different axes";
  assignment.passedPartial = sortAxes(first.partial);
  assignment.passedKind = first.partialKind;
  // More than is needed: of a monotone operation an operand might be whole. No
  // operation here has asked for it.
  if (first.partialKind != ReduceKind::Sum) {
    if (partial.size() != operands.size())
      return operandName(partial[0]) + " is partial " +
             toString(first.partialKind) + ", but not every operand is";
    return std::nullopt;
  }
  for (size_t s = 0; s < rule.linear.size(); ++s) {
    std::vector<int> set = rule.linear[s];
    std::sort(set.begin(), set.end());
    if (set == partial) {
      assignment.linearSet = static_cast<int>(s);
      return std::nullopt;
    }
  }
  return operandName(partial[0]) +
         " is a partial sum, in which the operation is not linear";
}

InferredAssignment infer(const Rule &rule, const std::vector<Layout> &operands,
                         const std::vector<Layout> *results, const Mesh &mesh) {
  if (operands.size() != rule.operands.size() ||
      (results && results->size() != rule.results.size()))
    return {std::nullopt, "wrong number of layouts"};
  Inference inference(rule, mesh);
  for (size_t i = 0; i < operands.size(); ++i)
    if (!inference.read(rule.operands[i], canonicalize(operands[i]),
                        operandName(i), false))
      return {std::nullopt, inference.fault};
  if (results) {
    // A factor that some operand has is what the operands say; the caller
    // compares. A result may still not be readable through its map.
    for (size_t i = 0; i < results->size(); ++i)
      if (!inference.read(rule.results[i], canonicalize((*results)[i]),
                          "result " + std::to_string(i), true))
        return {std::nullopt, inference.fault};
  }
  Assignment assignment = Assignment::unsplit(rule);
  for (size_t f = 0; f < rule.factors.size(); ++f)
    if (inference.known[f])
      assignment.factors[f] = *inference.known[f];
  if (auto fault = inferPassed(rule, operands, assignment))
    return {std::nullopt, *fault};
  if (auto fault = findFault(rule, assignment, mesh))
    return {std::nullopt, *fault};
  return {assignment, ""};
}

} // namespace

InferredAssignment inferAssignment(const Rule &rule,
                                   const std::vector<Layout> &operands,
                                   const Mesh &mesh) {
  return infer(rule, operands, nullptr, mesh);
}

InferredAssignment inferAssignment(const Rule &rule,
                                   const std::vector<Layout> &operands,
                                   const std::vector<Layout> &results,
                                   const Mesh &mesh) {
  return infer(rule, operands, &results, mesh);
}

std::optional<std::string>
findFault(const Rule &rule, const std::vector<std::vector<int64_t>> &operands,
          const std::vector<std::vector<int64_t>> &results) {
  if (rule.operands.size() != operands.size() ||
      rule.results.size() != results.size())
    return std::string("the rule has another number of operands or results");
  std::vector<int> operandUses(rule.factors.size());
  auto check = [&](const TensorMap &map, const std::vector<int64_t> &shape,
                   const std::string &name) -> std::optional<std::string> {
    if (map.size() != shape.size())
      return name + " has another rank";
    for (size_t d = 0; d < map.size(); ++d) {
      int64_t product = 1;
      for (int f : map[d]) {
        if (f < 0 || f >= static_cast<int>(rule.factors.size()))
          return name + " names an unknown factor";
        product *= rule.factors[f].size;
      }
      if (product != shape[d])
        return name + ", dimension " + std::to_string(d) +
               ": factors multiply to " + std::to_string(product) + ", not " +
               std::to_string(shape[d]);
    }
    return std::nullopt;
  };
  for (size_t i = 0; i < operands.size(); ++i)
    if (auto fault = check(rule.operands[i], operands[i], operandName(i)))
      return fault;
  for (size_t i = 0; i < results.size(); ++i) {
    if (auto fault =
            check(rule.results[i], results[i], "result " + std::to_string(i)))
      return fault;
    for (size_t f = 0; f < rule.factors.size(); ++f)
      if (rule.factors[f].kind == FactorKind::Parallel &&
          !hasFactor(rule.results[i], static_cast<int>(f)))
        return "parallel factor " + std::to_string(f) + " is not in result " +
               std::to_string(i);
  }
  for (size_t f = 0; f < rule.factors.size(); ++f)
    if (rule.factors[f].kind == FactorKind::Reduction &&
        std::all_of(rule.results.begin(), rule.results.end(),
                    [&](const TensorMap &map) {
                      return hasFactor(map, static_cast<int>(f));
                    }))
      return "reduction factor " + std::to_string(f) + " is in every result";
  for (const std::vector<int> &set : rule.linear)
    for (int operand : set)
      if (operand < 0 || operand >= static_cast<int>(operands.size()))
        return std::string("a linear set names an unknown operand");
  return std::nullopt;
}

/// Lists come with their lengths, so that none can be read in two ways.
std::vector<int64_t> numbersOf(const Rule &rule) {
  std::vector<int64_t> key;
  auto add = [&](auto number) { key.push_back(static_cast<int64_t>(number)); };
  auto addList = [&](const std::vector<int> &list) {
    add(list.size());
    key.insert(key.end(), list.begin(), list.end());
  };
  add(rule.factors.size());
  for (const RuleFactor &factor : rule.factors) {
    add(factor.size);
    add(factor.kind);
    add(factor.reduce);
    add(factor.mayPad);
  }
  for (const auto *maps : {&rule.operands, &rule.results}) {
    add(maps->size());
    for (const TensorMap &map : *maps) {
      add(map.size());
      for (const std::vector<int> &factors : map)
        addList(factors);
    }
  }
  add(rule.linear.size());
  for (const std::vector<int> &set : rule.linear)
    addList(set);
  add(rule.passesMaxMin);
  return key;
}

} // namespace ax::sharding
