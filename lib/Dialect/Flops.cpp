//===- Flops.cpp - The work of contractions -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/Ax.h"

using namespace mlir;
using namespace ax;

using ShapeOf = llvm::function_ref<std::vector<int64_t>(Value)>;

static double product(ArrayRef<int64_t> sizes) {
  double result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

double LinearOp::getFlops(ShapeOf shape) {
  return 2 * product(shape(getResult())) * shape(getX()).back();
}

double DotOp::getFlops(ShapeOf shape) {
  std::vector<int64_t> lhs = shape(getLhs());
  double k = 1;
  for (int64_t dim : getLhsContract())
    k *= lhs[dim];
  return 2 * product(shape(getResult())) * k;
}

double ConvOp::getFlops(ShapeOf shape) {
  return 2 * product(shape(getResult())) *
         product(ArrayRef<int64_t>(shape(getW())).drop_front());
}

double ConvTransposeOp::getFlops(ShapeOf shape) {
  return 2 * product(shape(getX())) *
         product(ArrayRef<int64_t>(shape(getW())).drop_front());
}

double ConvWeightGradientOp::getFlops(ShapeOf shape) {
  return 2 * product(shape(getGradient())) *
         product(ArrayRef<int64_t>(shape(getResult())).drop_front());
}

double AttentionOp::getFlops(ShapeOf shape) {
  std::vector<int64_t> q = shape(getQ()), v = shape(getV());
  double pairs = double(q[0]) * q[1] * q[2] * v[2];
  return 2 * pairs * (q[3] + v[3]) * (getCausal() ? 0.5 : 1);
}
