//===- Dealt.h - A dimension in the order in which it is dealt --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The weight of a Linear that gives q, k and v, which have 8, 2 and 2 heads, is
// cut into two equal halves of which each has 4, 1 and 1 of them only where its
// rows are in another order than in the model's file: each hand in turn gets
// its share of each part, as cards are dealt.
//
//   model:  q q q q q q q q k k v v
//   dealt:  q q q q k v q q q q k v
//
//===----------------------------------------------------------------------===//
#ifndef AX_SUPPORT_DEALT_H
#define AX_SUPPORT_DEALT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ax {

/// In which order a tensor has the elements of one dimension.
struct Dealt {
  int64_t dim = 0;
  /// Sizes of the parts, which are the dimension together.
  std::vector<int64_t> parts;
  /// Divides each of the parts.
  int64_t hands = 1;

  bool operator==(const Dealt &o) const {
    return dim == o.dim && parts == o.parts && hands == o.hands;
  }
  bool operator!=(const Dealt &o) const { return !(*this == o); }

  /// Why it is no order of a tensor of that shape, whose number of elements is
  /// known to be one; nothing when it is.
  std::optional<std::string> findFault(llvm::ArrayRef<int64_t> shape) const;
};

/// Where elements of a dense, row-major tensor lie in the model's order and as
/// they are dealt.
class DealtOrder {
public:
  /// Dealt::findFault has found nothing.
  DealtOrder(const Dealt &dealt, llvm::ArrayRef<int64_t> shape);

  /// Calls fn(where, how many, number of the first in the run) for pieces of a
  /// run of elements, until it returns false; returns whether it never did.
  using VisitRun = llvm::function_ref<bool(int64_t, int64_t, int64_t)>;
  /// The run is in the model's order, and its pieces where they are dealt.
  bool deal(int64_t at, int64_t count, VisitRun fn) const;
  /// The other way round.
  bool collect(int64_t at, int64_t count, VisitRun fn) const;

private:
  /// Where an element is in the other order, and how many follow it there.
  struct Place {
    int64_t at, rest;
  };
  Place whereDealt(int64_t at) const;
  Place whereInModel(int64_t at) const;
  /// The number of the part that has an element of the model.
  size_t partAt(int64_t at) const;
  int64_t shareOf(size_t part) const {
    return (starts[part + 1] - starts[part]) / hands;
  }
  using Locate = Place (DealtOrder::*)(int64_t) const;
  bool visit(Locate locate, int64_t at, int64_t count, VisitRun fn) const;

  int64_t hands;
  /// Where parts start, and where the last one ends, in elements: the dimension
  /// begins anew there.
  std::vector<int64_t> starts;
};

} // namespace ax

#endif // AX_SUPPORT_DEALT_H
