//===- IndexSpace.h - Loops, and numbers made of counters -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop nest is a list of atoms: counters 0 .. size - 1, first slowest. The
// index of a dimension is an affine expression in atoms, so a reshape is
// arithmetic on expressions, and mostly costs nothing at run time. Where a
// quotient or a comparison does not simplify, the nest is to be refined (an
// atom split in two, or its range cut in pieces); chooseNests (Nests.h) then
// goes through the kernel anew. Adjacent atoms that are always used as one
// number become one loop.
//
//===----------------------------------------------------------------------===//
#ifndef AX_CODEGEN_KERNELS_INDEXSPACE_H
#define AX_CODEGEN_KERNELS_INDEXSPACE_H

#include "KernelWriter.h"
#include "LoopPlan.h"

#include <optional>

namespace ax::codegen {

/// constant + sum of coefficient * variable. Terms are sorted by variable, no
/// coefficient is 0.
struct IndexExpr {
  struct Term {
    int var;
    int64_t coef;
    bool operator==(const Term &o) const {
      return var == o.var && coef == o.coef;
    }
    bool operator<(const Term &o) const {
      return var != o.var ? var < o.var : coef < o.coef;
    }
  };
  int64_t constant = 0;
  llvm::SmallVector<Term, 4> terms;

  IndexExpr() = default;
  IndexExpr(int64_t constant) : constant(constant) {}

  bool isConstant() const { return terms.empty(); }
  int64_t coefficient(int var) const;
  bool operator==(const IndexExpr &o) const {
    return constant == o.constant && terms == o.terms;
  }
  bool operator<(const IndexExpr &o) const;
};

IndexExpr operator+(const IndexExpr &a, const IndexExpr &b);
IndexExpr operator*(const IndexExpr &a, int64_t factor);
using Indices = llvm::SmallVector<IndexExpr, 4>;

/// Variables of one way through a kernel, and what it wants refined.
///
/// A way through that wants something refined gives placeholders for what it
/// cannot say, and is good for nothing but `applyRequests`. In one that wants
/// nothing, all indices are affine in atoms, and in numbers of run time.
class IndexSpace {
public:
  explicit IndexSpace(KernelWriter &writer) : writer(writer) {}

  /// Variables for the atoms of a plan, which must outlive the space.
  struct Nest {
    LoopPlan *plan;
    llvm::SmallVector<int, 4> vars; // -1 for atoms of size 1, and lanes
    bool canCut = true;
    int64_t lane = 0; // the one that is written now
  };
  Nest addNest(LoopPlan &plan, bool canCut);
  /// A number known only at run time, lo <= value <= hi.
  IndexExpr addOpaque(mlir::Value value, int64_t lo, int64_t hi);

  /// The loop counter of atoms [first, last) of the nest.
  void bindGroup(const Nest &nest, int first, mlir::Value counter);
  /// The atom lies in [lo, hi] in what is written now.
  void setRange(const Nest &nest, int atom, int64_t lo, int64_t hi);

  /// The counter of one atom, as an expression.
  IndexExpr atom(const Nest &nest, int index) const;
  /// The row-major number of the nest's point.
  IndexExpr linear(const Nest &nest) const;

  /// The counter of its last loop of more than one point, lanes aside.
  IndexExpr lastLoop(const Nest &nest) const;

  /// The least and the largest value that the expression takes.
  std::pair<int64_t, int64_t> range(const IndexExpr &expr) const;
  /// Quotient (rounded down) and remainder by a constant > 0.
  std::pair<IndexExpr, IndexExpr> divMod(const IndexExpr &expr,
                                         int64_t divisor);
  /// Indices of the element whose row-major number is `linear`, 0 in dimensions
  /// of size 1; linearize() is the inverse.
  Indices delinearize(IndexExpr linear, llvm::ArrayRef<int64_t> shape);
  IndexExpr linearize(llvm::ArrayRef<IndexExpr> indices,
                      llvm::ArrayRef<int64_t> shape);
  /// Each piece is a copy of the nest's body: more of them would cost more in
  /// code than comparisons cost in time. Two dimensions that are padded at both
  /// ends make 3 * 3.
  static constexpr int64_t usualPieces = 9;
  /// expr < bound when known; asks for a cut when that would make it known, and
  /// the nest has fewer than `mostPieces`.
  std::optional<bool> isLess(const IndexExpr &expr, int64_t bound,
                             int64_t mostPieces = usualPieces);

  /// The number as an index of the writer's.
  mlir::Value materialize(const IndexExpr &expr);
  /// True when the expression has no variable but those of `nest`.
  bool dependsOnlyOn(const IndexExpr &expr, const Nest &nest) const;
  /// True when the expression has any variable of `nest`.
  bool dependsOn(const IndexExpr &expr, const Nest &nest) const;

  bool wantsRefining() const;
  /// Refines the plans as was asked for; true when something was.
  bool applyRequests();

private:
  struct Var {
    int64_t lo, hi;
    mlir::Value value; // counter of its loop; null until bound
    LoopPlan *plan = nullptr;
    int atom = 0;
    bool canCut = false;
  };
  /// What is asked for: an atom of `inner` points behind what is left of it.
  struct Split {
    LoopPlan *plan;
    int atom;
    int64_t inner;
  };
  /// What is asked for: that a piece of the atom ends before `at`.
  struct Cut {
    LoopPlan *plan;
    int atom;
    int64_t at;
    int64_t mostPieces;
  };

  bool requestSplit(const IndexExpr &rest, int64_t divisor);

  KernelWriter &writer;
  llvm::SmallVector<Var, 16> vars;
  llvm::SmallVector<Split, 4> splits;
  llvm::SmallVector<Cut, 4> cuts;
  /// Atoms that are not to be one loop with the one before.
  llvm::SmallVector<std::pair<LoopPlan *, int>, 4> separations;
};

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_INDEXSPACE_H
