//===- IndexSpace.cpp - Loops and what is computed from their counters ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An example: the operand [4, 6] is transposed to [6, 4] and reshaped to [24].
// The first way through has one atom a in 0 .. 23. The reshape needs a / 4 and
// a % 4, which no affine expression says, so a is to be split. The second way
// through has b in 0 .. 5 and c in 0 .. 3, the result's element is 4 b + c, and
// quotient and remainder by 4 are b and c. The operand's element is [c, b],
// number b + 6 c. One counter 4 b + c cannot give that, so the two are to be
// separate loops; the third way through wants nothing. No division is left in
// the kernel.
//
// Refining ends, as plans only ever get finer: a split makes two smaller sizes
// of one, a separation is made once, and there are no more cuts than
// `isLess` is told that there may be.
//
//===----------------------------------------------------------------------===//

#include "IndexSpace.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;

namespace ax::codegen {

int64_t IndexExpr::coefficient(int var) const {
  for (const Term &term : terms)
    if (term.var == var)
      return term.coef;
  return 0;
}

bool IndexExpr::operator<(const IndexExpr &o) const {
  if (constant != o.constant)
    return constant < o.constant;
  return std::lexicographical_compare(terms.begin(), terms.end(),
                                      o.terms.begin(), o.terms.end());
}

/// Merges the two sorted lists, so that equal numbers have equal expressions:
/// memos of what was computed are found by them.
IndexExpr operator+(const IndexExpr &a, const IndexExpr &b) {
  IndexExpr sum(a.constant + b.constant);
  auto i = a.terms.begin(), j = b.terms.begin();
  while (i != a.terms.end() || j != b.terms.end()) {
    if (j == b.terms.end() || (i != a.terms.end() && i->var < j->var)) {
      sum.terms.push_back(*i++);
    } else if (i == a.terms.end() || j->var < i->var) {
      sum.terms.push_back(*j++);
    } else {
      if (int64_t coef = i->coef + j->coef)
        sum.terms.push_back({i->var, coef});
      ++i, ++j;
    }
  }
  return sum;
}

IndexExpr operator*(const IndexExpr &a, int64_t factor) {
  IndexExpr product(a.constant * factor);
  if (factor != 0)
    for (const IndexExpr::Term &term : a.terms)
      product.terms.push_back({term.var, term.coef * factor});
  return product;
}

IndexSpace::Nest IndexSpace::addNest(LoopPlan &plan, bool canCut) {
  Nest nest{&plan, {}, canCut};
  for (auto [k, atom] : llvm::enumerate(plan.atoms)) {
    if (atom.size == 1 || atom.isLane) {
      nest.vars.push_back(-1);
      continue;
    }
    nest.vars.push_back(vars.size());
    vars.push_back({0, std::max<int64_t>(atom.size - 1, 0), Value(), &plan,
                    int(k), canCut});
  }
  return nest;
}

IndexExpr IndexSpace::addOpaque(Value value, int64_t lo, int64_t hi) {
  if (lo == hi)
    return IndexExpr(lo);
  IndexExpr expr;
  expr.terms.push_back({int(vars.size()), 1});
  vars.push_back({lo, hi, value, nullptr, 0, false});
  return expr;
}

void IndexSpace::bindGroup(const Nest &nest, int first, Value counter) {
  // Every atom of the group has the value of the whole group's counter, which
  // is not the atom's own: materialize() takes the group at once, times the
  // coefficient of its last atom.
  for (int k = first, e = nest.vars.size(); k != e; ++k) {
    if (k > first && nest.plan->atoms[k].separate)
      break;
    if (nest.vars[k] >= 0)
      vars[nest.vars[k]].value = counter;
  }
}

void IndexSpace::setRange(const Nest &nest, int atom, int64_t lo, int64_t hi) {
  if (nest.vars[atom] >= 0) {
    vars[nest.vars[atom]].lo = lo;
    vars[nest.vars[atom]].hi = hi;
  }
}

IndexExpr IndexSpace::atom(const Nest &nest, int index) const {
  IndexExpr expr;
  ArrayRef<LoopPlan::Atom> atoms = nest.plan->atoms;
  if (nest.vars[index] >= 0) {
    expr.terms.push_back({nest.vars[index], 1});
  } else if (atoms[index].isLane) {
    int64_t behind = 1;
    for (const LoopPlan::Atom &atom : atoms.drop_front(index + 1))
      behind *= atom.size;
    expr.constant = nest.lane / behind % atoms[index].size;
  }
  return expr;
}

IndexExpr IndexSpace::linear(const Nest &nest) const {
  IndexExpr sum;
  int64_t stride = 1;
  for (int k = nest.vars.size() - 1; k >= 0; --k) {
    sum = sum + atom(nest, k) * stride;
    stride *= nest.plan->atoms[k].size;
  }
  return sum;
}

IndexExpr IndexSpace::lastLoop(const Nest &nest) const {
  auto groups = nest.plan->groups();
  while (!groups.empty() && nest.plan->sizeOf(groups.back()) == 1)
    groups.pop_back();
  IndexExpr counter;
  int64_t stride = 1;
  for (int k = groups.back().second; k-- > groups.back().first;) {
    counter = counter + atom(nest, k) * stride;
    stride *= nest.plan->atoms[k].size;
  }
  return counter;
}

/// Both ends are taken by some point, since variables do not depend on each
/// other and each is in the expression once.
std::pair<int64_t, int64_t> IndexSpace::range(const IndexExpr &expr) const {
  int64_t lo = expr.constant, hi = expr.constant;
  for (const IndexExpr::Term &term : expr.terms) {
    const Var &var = vars[term.var];
    lo += term.coef * (term.coef > 0 ? var.lo : var.hi);
    hi += term.coef * (term.coef > 0 ? var.hi : var.lo);
  }
  return {lo, hi};
}

/// Asks for an atom to be split such that `rest` can be divided afterwards.
///
/// E.g. rest = 2 v + w, with v in 0 .. 7 and w in 0 .. 1, and divisor 8: with
/// v = 4 b + c, rest is 8 b + 2 c + w, where 2 c + w < 8, so that the quotient
/// is b. What is left beside b has to stay below the divisor, and not to be
/// negative, or there would be a division all the same.
bool IndexSpace::requestSplit(const IndexExpr &rest, int64_t divisor) {
  for (const IndexExpr::Term &term : rest.terms) {
    const Var &var = vars[term.var];
    if (!var.plan || term.coef <= 0 || divisor % term.coef != 0)
      continue;
    int64_t inner = divisor / term.coef;
    int64_t size = var.plan->atoms[var.atom].size;
    // An atom with cuts stays whole: they are places in it.
    if (inner <= 1 || inner >= size || size % inner != 0 ||
        !var.plan->atoms[var.atom].cuts.empty())
      continue;
    IndexExpr others = rest;
    llvm::erase_if(others.terms, [&](auto &t) { return t.var == term.var; });
    auto [lo, hi] = range(others);
    if (lo < 0 || hi + term.coef * (inner - 1) >= divisor)
      continue;
    splits.push_back({var.plan, var.atom, inner});
    return true;
  }
  return false;
}

std::pair<IndexExpr, IndexExpr> IndexSpace::divMod(const IndexExpr &expr,
                                                   int64_t divisor) {
  if (divisor == 1)
    return {expr, IndexExpr()};
  // Multiples of the divisor go into the quotient, and what is left is divided
  // by its range: between two multiples of the divisor its quotient is known.
  int64_t whole = llvm::divideFloorSigned(expr.constant, divisor);
  IndexExpr quotient(whole), rest(expr.constant - whole * divisor);
  for (const IndexExpr::Term &term : expr.terms) {
    if (term.coef % divisor == 0)
      quotient.terms.push_back({term.var, term.coef / divisor});
    else
      rest.terms.push_back(term);
  }
  auto [lo, hi] = range(rest);
  int64_t first = llvm::divideFloorSigned(lo, divisor);
  if (first == llvm::divideFloorSigned(hi, divisor)) {
    rest.constant -= first * divisor;
    quotient.constant += first;
    return {quotient, rest};
  }
  // This way through is in vain then: any expression will do.
  if (requestSplit(rest, divisor))
    return {IndexExpr(), IndexExpr()};
  // The division is done at run time, e.g. of an index that a gather has read.
  // It is unsigned, so what is divided is made not negative first.
  rest.constant -= first * divisor;
  quotient.constant += first;
  Value value = materialize(rest), by = writer.number(divisor);
  Value q = writer.divIndex(value, by);
  Value r = writer.remIndex(value, by);
  int64_t most = (hi - first * divisor) / divisor;
  return {quotient + addOpaque(q, 0, most), addOpaque(r, 0, divisor - 1)};
}

Indices IndexSpace::delinearize(IndexExpr linear, ArrayRef<int64_t> shape) {
  Indices indices(shape.size());
  for (int d = int(shape.size()) - 1; d >= 0; --d) {
    if (shape[d] <= 1)
      continue;
    // The outermost index needs no remainder: the number is one of a point.
    if (std::all_of(shape.begin(), shape.begin() + d,
                    [](int64_t size) { return size == 1; })) {
      indices[d] = linear;
      break;
    }
    std::tie(linear, indices[d]) = divMod(linear, shape[d]);
  }
  return indices;
}

IndexExpr IndexSpace::linearize(ArrayRef<IndexExpr> indices,
                                ArrayRef<int64_t> shape) {
  IndexExpr sum;
  int64_t stride = 1;
  for (int d = int(shape.size()) - 1; d >= 0; --d) {
    if (shape[d] > 1)
      sum = sum + indices[d] * stride;
    stride *= shape[d];
  }
  return sum;
}

/// E.g. a concatenation of 3 and 5 elements asks whether its index v, in
/// 0 .. 7, is less than 3. That is not known, so a cut at 3 is asked for: the
/// next way through has a loop over 0 .. 2 and one over 3 .. 7, and in each of
/// them it is. Without an answer a kernel compares at run time.
std::optional<bool> IndexSpace::isLess(const IndexExpr &expr, int64_t bound,
                                       int64_t mostPieces) {
  auto [lo, hi] = range(expr);
  if (hi < bound)
    return true;
  if (lo >= bound)
    return false;
  // The term that counts most decides, if the others stay below its step: else
  // some value of it has points of either kind, which no cut parts.
  const IndexExpr::Term *main = nullptr;
  for (const IndexExpr::Term &term : expr.terms)
    if (!main || std::abs(term.coef) > std::abs(main->coef))
      main = &term;
  const Var &var = vars[main->var];
  if (!var.plan || !var.canCut || var.plan->numPieces() >= mostPieces)
    return std::nullopt;
  IndexExpr others = expr;
  llvm::erase_if(others.terms, [&](auto &t) { return t.var == main->var; });
  auto [restLo, restHi] = range(others);
  int64_t step = std::abs(main->coef);
  if (restHi - restLo >= step)
    return std::nullopt;
  int64_t at;
  if (main->coef > 0) {
    // First value for which some point is not less; all are to be so there, or
    // the piece behind the cut would have to ask again.
    at = llvm::divideCeilSigned(bound - restHi, step);
    if (step * at + restLo < bound)
      return std::nullopt;
  } else {
    // First value for which all points are less; none is to be so before.
    at = llvm::divideFloorSigned(restHi - bound, step) + 1;
    if (restLo - step * (at - 1) < bound)
      return std::nullopt;
  }
  if (at <= var.lo || at > var.hi)
    return std::nullopt;
  cuts.push_back({var.plan, var.atom, at, mostPieces});
  return std::nullopt;
}

/// The counter of a loop over atoms of sizes 6 and 4 is 4 b + c. So 8 b + 2 c
/// is twice the counter, while for b + 6 c there must be two loops: that is
/// asked for, and what is returned then means nothing.
Value IndexSpace::materialize(const IndexExpr &expr) {
  std::optional<Value> sum;
  auto add = [&](Value value, int64_t coef) {
    if (coef != 1)
      value = writer.mulIndex(value, writer.number(coef));
    sum = sum ? writer.addIndex(*sum, value) : value;
  };
  SmallVector<char, 16> done(expr.terms.size(), 0);
  for (int i = int(expr.terms.size()) - 1; i >= 0; --i) {
    if (done[i])
      continue;
    const IndexExpr::Term &term = expr.terms[i];
    const Var &var = vars[term.var];
    if (!var.plan) {
      add(var.value, term.coef);
      continue;
    }
    // The whole group that the atom is in, from its end.
    int first = var.atom, last = var.atom + 1,
        numAtoms = var.plan->atoms.size();
    while (!var.plan->atoms[first].separate && first > 0)
      --first;
    while (last < numAtoms && !var.plan->atoms[last].separate)
      ++last;
    if (last - first == 1) {
      add(var.value, term.coef);
      continue;
    }
    // Every atom's coefficient is to be the number of points after it, times
    // that of the last one. An atom that the expression lacks counts as 0.
    int64_t unit = 0, points = 1;
    bool isLast = true;
    // Terms of this group are neighbours: the nest's variables are.
    int j = i;
    for (int k = last - 1; k >= first; --k) {
      int64_t size = var.plan->atoms[k].size;
      if (size == 1)
        continue;
      int64_t coef = 0;
      if (j >= 0 && vars[expr.terms[j].var].plan == var.plan &&
          vars[expr.terms[j].var].atom == k) {
        coef = expr.terms[j].coef;
        done[j] = 1;
        --j;
      }
      if (isLast) {
        unit = coef;
        isLast = false;
      } else if (coef != unit * points) {
        separations.push_back({var.plan, k + 1});
        unit = coef, points = 1;
      }
      points *= size;
    }
    add(var.value, unit);
  }
  if (expr.constant != 0 || !sum)
    add(writer.number(expr.constant), 1);
  return *sum;
}

bool IndexSpace::dependsOnlyOn(const IndexExpr &expr, const Nest &nest) const {
  return llvm::all_of(expr.terms, [&](const IndexExpr::Term &term) {
    return llvm::is_contained(nest.vars, term.var);
  });
}

bool IndexSpace::dependsOn(const IndexExpr &expr, const Nest &nest) const {
  return llvm::any_of(expr.terms, [&](const IndexExpr::Term &term) {
    return llvm::is_contained(nest.vars, term.var);
  });
}

bool IndexSpace::wantsRefining() const {
  return !splits.empty() || !cuts.empty() || !separations.empty();
}

bool IndexSpace::applyRequests() {
  // After a split was asked for, expressions are placeholders: what else was
  // asked for means nothing, and would take loops apart that may stay one.
  if (!splits.empty()) {
    cuts.clear();
    separations.clear();
  }
  bool changed = false;
  for (auto [plan, atom] : separations) {
    changed |= !plan->atoms[atom].separate;
    plan->atoms[atom].separate = true;
  }
  // A piece has a range of its own, which only a loop over that atom alone can
  // have: so it is separate from the atoms before and behind it.
  for (const Cut &cut : cuts) {
    LoopPlan::Atom &atom = cut.plan->atoms[cut.atom];
    if (llvm::is_contained(atom.cuts, cut.at) ||
        cut.plan->numPieces() >= cut.mostPieces)
      continue;
    atom.cuts.insert(llvm::lower_bound(atom.cuts, cut.at), cut.at);
    atom.separate = true;
    if (size_t(cut.atom) + 1 < cut.plan->atoms.size())
      cut.plan->atoms[cut.atom + 1].separate = true;
    changed = true;
  }
  // Last atoms first, and one split of an atom at a time: positions stay valid.
  llvm::stable_sort(splits, [](const Split &a, const Split &b) {
    return a.plan != b.plan ? a.plan < b.plan : a.atom > b.atom;
  });
  const Split *previous = nullptr;
  for (const Split &split : splits) {
    if (previous && previous->plan == split.plan &&
        previous->atom == split.atom)
      continue;
    previous = &split;
    LoopPlan::Atom &atom = split.plan->atoms[split.atom];
    if (!atom.cuts.empty())
      continue;
    // The two stay one loop as long as nobody needs them apart.
    int64_t inner = split.inner;
    atom.size /= inner;
    split.plan->atoms.insert(split.plan->atoms.begin() + split.atom + 1,
                             {inner, {}, false});
    changed = true;
  }
  return changed;
}

} // namespace ax::codegen
