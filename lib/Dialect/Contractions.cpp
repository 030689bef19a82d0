//===- Contractions.cpp - What contractions say of themselves -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/Ax.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace ax;

using ShapeOf = llvm::function_ref<std::vector<int64_t>(Value)>;

static double product(ArrayRef<int64_t> sizes) {
  double result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

/// Dimensions `first` .. `last` - 1.
static SmallVector<int64_t> range(int64_t first, int64_t last) {
  return llvm::to_vector(llvm::seq(first, last));
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

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

/// Of products of all queries and keys, `depths` elements each.
template <typename Op>
static double flopsOfScores(Op op, double depths, ShapeOf shape) {
  std::vector<int64_t> q = shape(op.getQ());
  double keysOfQuery = shape(op.getK())[2] * (op.getCausal() ? 0.5 : 1);
  if (std::optional<int64_t> window = op.getWindow())
    keysOfQuery = std::min(keysOfQuery, double(*window));
  return 2 * double(q[0]) * q[1] * q[2] * keysOfQuery * depths;
}

double AttentionOp::getFlops(ShapeOf shape) {
  return flopsOfScores(*this, shape(getQ())[3] + shape(getV())[3], shape);
}

/// The scores and the gradients of q and k; of the probabilities and of v.
double AttentionGradientOp::getFlops(ShapeOf shape) {
  return flopsOfScores(*this, 3 * shape(getQ())[3] + 2 * shape(getV())[3],
                       shape);
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

StringRef LinearOp::getKindName() { return "linear"; }
StringRef DotOp::getKindName() { return "dot"; }
StringRef ConvOp::getKindName() { return "convolution"; }
StringRef ConvTransposeOp::getKindName() { return "convolution"; }
StringRef ConvWeightGradientOp::getKindName() { return "convolution"; }
StringRef AttentionOp::getKindName() { return "attention"; }
StringRef AttentionGradientOp::getKindName() { return "attention"; }

SmallVector<NamedDims> LinearOp::getNamedDims() {
  int64_t last = getFeatureDim();
  return {{"k", getX(), {last}, true},
          {"n", getResult(), {last}, true},
          {"rows", getResult(), range(0, last)}};
}

SmallVector<NamedDims> DotOp::getNamedDims() {
  int64_t batch = getLhsBatch().size();
  int64_t left = tensorType(getLhs()).getRank() - getLhsContract().size();
  int64_t rank = tensorType(getResult()).getRank();
  return {{"batch", getResult(), range(0, batch)},
          {"rows", getResult(), range(batch, left)},
          {"columns", getResult(), range(left, rank)},
          {"k", getLhs(), llvm::to_vector(getLhsContract())}};
}

template <typename ConvOpTy>
static SmallVector<NamedDims> namedDims(ConvOpTy conv) {
  return {{"input channels", conv.getX(), {1}, true},
          {"output channels", conv.getResult(), {1}, true},
          {"batch", conv.getResult(), {0}}};
}
SmallVector<NamedDims> ConvOp::getNamedDims() { return namedDims(*this); }
SmallVector<NamedDims> ConvTransposeOp::getNamedDims() {
  return namedDims(*this);
}
SmallVector<NamedDims> ConvWeightGradientOp::getNamedDims() { return {}; }

template <typename Op>
static SmallVector<NamedDims> dimsOfHeads(Op op) {
  return {{"heads", op.getQ(), {1}, true},
          {"kv heads", op.getK(), {1}},
          {"queries", op.getQ(), {2}},
          {"batch", op.getQ(), {0}}};
}
SmallVector<NamedDims> AttentionOp::getNamedDims() {
  return dimsOfHeads(*this);
}
SmallVector<NamedDims> AttentionGradientOp::getNamedDims() {
  return dimsOfHeads(*this);
}

int64_t LinearOp::getFeatureDim() {
  return tensorType(getResult()).getRank() - 1;
}
int64_t ConvOp::getFeatureDim() { return 1; }
int64_t ConvTransposeOp::getFeatureDim() { return 1; }
