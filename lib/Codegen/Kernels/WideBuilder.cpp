//===- WideBuilder.cpp - Element-wise steps in f32 or f64 -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "WideBuilder.h"

using namespace mlir;

namespace ax::codegen {

Value WideBuilder::cast(Value x, Type to) {
  RankedTensorType from = tensorType(x);
  if (from.getElementType() == to)
    return x;
  return CastOp::create(b, loc, RankedTensorType::get(from.getShape(), to), x);
}

Value WideBuilder::number(double value) {
  return ConstantOp::create(
      b, loc, DenseElementsAttr::get(type({}), b.getFloatAttr(element, value)));
}

Value WideBuilder::reduce(ReduceOpKind kind, Value x, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> shape(tensorType(x).getShape());
  for (int64_t dim : dims)
    shape[dim] = 1;
  return ReduceOp::create(b, loc, type(shape), kind, x, dims,
                          /*keep_dims=*/true);
}

template <typename NormOp>
Value WideBuilder::normalize(NormOp op, Value x, ArrayRef<int64_t> dims,
                             Value scale, Value bias) {
  x = wide(x);
  // Dimensions before one that is kept, then those behind: the loop over what
  // is kept and what is behind it vectorises.
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  int64_t lastKept = static_cast<int64_t>(shape.size()) - 1;
  while (lastKept >= 0 &&
         (shape[lastKept] == 1 || llvm::is_contained(dims, lastKept)))
    --lastKept;
  SmallVector<int64_t> before, behind;
  int64_t count = 1;
  for (int64_t dim : dims) {
    (dim < lastKept ? before : behind).push_back(dim);
    count *= shape[dim];
  }
  Value factor = number(1.0 / std::max<int64_t>(count, 1));
  auto mean = [&](Value v) {
    if (!before.empty())
      v = reduce(ReduceOpKind::sum, v, before);
    if (!behind.empty())
      v = reduce(ReduceOpKind::sum, v, behind);
    return mul(v, factor);
  };
  if (std::is_same_v<NormOp, LayerNormOp>)
    x = sub(x, mean(x));
  Value variance = mean(mul(x, x));
  Value epsilon = number(op.getEpsilon().convertToDouble());
  Value y = mul(x, unary(UnaryKind::rsqrt, add(variance, epsilon)));
  if (scale)
    y = mul(y, wide(scale));
  if (bias)
    y = add(y, wide(bias));
  return y;
}

template Value WideBuilder::normalize(LayerNormOp, Value, ArrayRef<int64_t>,
                                      Value, Value);
template Value WideBuilder::normalize(RMSNormOp, Value, ArrayRef<int64_t>,
                                      Value, Value);

} // namespace ax::codegen
