//===- ShardingRulesReshape.cpp - Rule of reshape -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both shapes are read as mixed-radix numbers of one row-major position. Digits
// that both share are parallel factors.
//
//===----------------------------------------------------------------------===//

#include "RuleBuilder.h"

#include <deque>
#include <numeric>

using namespace ax;
using namespace ax::sharding;

namespace {
/// The dimensions of one side of a group, with what is left of each when
/// common digits have been taken from its major and minor end.
struct Side {
  struct Dim {
    size_t index;
    int64_t left;
    std::vector<int> major;
    std::deque<int> minor;
  };
  std::vector<Dim> dims;
  size_t first = 0;
  size_t last = 0;

  void take(int factor, int64_t size, bool fromMajor) {
    Dim &dim = dims[fromMajor ? first : last - 1];
    dim.left /= size;
    if (fromMajor)
      dim.major.push_back(factor);
    else
      dim.minor.push_front(factor);
    if (dim.left == 1)
      fromMajor ? ++first : --last;
  }

  void store(RuleBuilder &builder, TensorMap &map) {
    for (Dim &dim : dims) {
      std::vector<int> &factors = map[dim.index];
      factors = dim.major;
      if (dim.left > 1)
        factors.push_back(builder.whole(dim.left));
      factors.insert(factors.end(), dim.minor.begin(), dim.minor.end());
    }
  }
};

/// Walks over the shape in groups of dimensions.
struct Cursor {
  llvm::ArrayRef<int64_t> shape;
  size_t next = 0;

  /// Appends the next dimension that is not 1 and returns its size.
  int64_t append(Side &side) {
    skipOnes();
    side.dims.push_back({next, shape[next], {}, {}});
    ++side.last;
    return shape[next++];
  }
  bool done() {
    skipOnes();
    return next == shape.size();
  }
  void skipOnes() {
    while (next < shape.size() && shape[next] == 1)
      ++next;
  }
};
} // namespace

/// Takes common digits from both ends; what remains of the two sides does not
/// nest and is whole.
static void refine(RuleBuilder &builder, Side &from, Side &to) {
  for (bool fromMajor : {true, false}) {
    while (from.first < from.last && to.first < to.last) {
      int64_t a = from.dims[fromMajor ? from.first : from.last - 1].left;
      int64_t b = to.dims[fromMajor ? to.first : to.last - 1].left;
      int64_t common = std::gcd(a, b);
      if (common == 1)
        break;
      int factor = builder.parallel(common);
      from.take(factor, common, fromMajor);
      to.take(factor, common, fromMajor);
      if (common != a && common != b)
        break;
    }
  }
}

Rule ReshapeOp::getShardingRule() {
  RuleBuilder builder(OpClass::Elementwise);
  llvm::ArrayRef<int64_t> fromShape = shapeOf(getOperand());
  llvm::ArrayRef<int64_t> toShape = shapeOf(getResult());
  TensorMap operand(fromShape.size()), result(toShape.size());
  if (llvm::is_contained(fromShape, 0)) {
    operand = builder.allWhole(fromShape);
    result = builder.allWhole(toShape);
  } else {
    Cursor from{fromShape}, to{toShape};
    while (!from.done()) {
      Side fromSide, toSide;
      int64_t fromSize = from.append(fromSide);
      int64_t toSize = to.append(toSide);
      while (fromSize != toSize) {
        if (fromSize < toSize)
          fromSize *= from.append(fromSide);
        else
          toSize *= to.append(toSide);
      }
      refine(builder, fromSide, toSide);
      fromSide.store(builder, operand);
      toSide.store(builder, result);
    }
  }
  builder.operand(std::move(operand));
  builder.result(std::move(result));
  builder.linearIn({0});
  builder.passMaxMin();
  return builder.take();
}
