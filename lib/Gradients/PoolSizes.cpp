//===- PoolSizes.cpp - How many elements a mean is of ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Gradients/PoolSizes.h"

#include <algorithm>

using namespace mlir;
using namespace ax;

/// By dimensions, for whatever counts does so in each of them.
Value ax::poolSizes(PoolOp op, TensorBuilder &t, Type element) {
  ArrayRef<int64_t> x = shapeOf(op.getX()), y = shapeOf(op.getResult());
  size_t spatial = op.getKernel().size();
  SmallVector<int64_t> shape(spatial, 1);
  SmallVector<double> sizes = {1};
  for (size_t i = 0; i < spatial; ++i) {
    int64_t low = op.getPads()[i];
    int64_t first = op.getCountIncludePad() ? -low : 0;
    int64_t last =
        x[i + 2] + (op.getCountIncludePad() ? op.getPads()[i + spatial] : 0);
    SmallVector<double> product;
    shape[i] = y[i + 2];
    for (double outer : sizes)
      for (int64_t at = 0; at < shape[i]; ++at) {
        double count = 0;
        for (int64_t k = 0; k < op.getKernel()[i]; ++k) {
          int64_t position =
              at * op.getStrides()[i] - low + k * op.getDilations()[i];
          count += position >= first && position < last;
        }
        product.push_back(outer * count);
      }
    sizes = std::move(product);
  }
  auto divisor = [](double size) { return std::max(size, 1.0); };
  if (llvm::all_equal(sizes))
    return t.splat({}, element, divisor(sizes[0]));
  SmallVector<Attribute> values =
      llvm::map_to_vector(sizes, [&](double size) -> Attribute {
        return t.b.getFloatAttr(element, divisor(size));
      });
  return ConstantOp::create(
      t.b,
      DenseElementsAttr::get(RankedTensorType::get(shape, element), values));
}
