//===- CudnnMask.cpp - Which keys attention sees, for cuDNN ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CudnnMask.h"

#include "ax/Gradients/AttentionParts.h"
#include "ax/Interpreter/Elements.h"

#include "llvm/Support/Error.h"

#include <cmath>

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// Exact in bf16. Kernels round what they multiply scores by, log2(e), so that
/// of two equal scores of 2^30 the difference may be some 60, which is no
/// overflow where a block of keys is hidden as a whole.
static constexpr double hidden = -1073741824.0;

/// Of the elements of a mask in order; -inf where there is no key.
static double numberOf(const HostTensor &mask, int64_t index) {
  double value = mask.getDouble(index);
  if (mask.getType() != DType::Bool)
    return value;
  return value != 0 ? 0 : -INFINITY;
}

/// Whether each query has a key that it sees by a constant, and to which as
/// little is added as leaves scores their digits.
static bool isPlain(const AttentionValues &in, ConstantOp mask) {
  auto read = interpreter::toHostTensor(mask.getValue());
  if (!read) {
    llvm::consumeError(read.takeError());
    return false;
  }
  constexpr double small = 1024;
  ArrayRef<int64_t> shape = shapeOf(mask);
  int64_t queries = shapeOf(in.q)[2], keys = shapeOf(in.k)[2], width = shape[3];
  int64_t rows = in.causal ? queries : shape[2];
  for (int64_t outer = 0; outer < shape[0] * shape[1]; ++outer)
    for (int64_t row = 0; row < rows; ++row) {
      int64_t seen =
          in.causal ? std::min(keys, row + keys - queries + 1) : keys;
      int64_t begin = in.window ? std::max<int64_t>(0, seen - *in.window) : 0;
      int64_t first = (outer * shape[2] + (shape[2] == 1 ? 0 : row)) * width;
      double largest = -INFINITY;
      // Of one number for all keys, that.
      if (width == 1 && begin < seen)
        begin = 0;
      for (int64_t key = begin; key < std::min(seen, width); ++key)
        largest = std::max(largest, numberOf(*read, first + key));
      if (!(std::abs(largest) <= small))
        return false;
    }
  return true;
}

static bool seeKeys(const AttentionValues &in) {
  if (!in.mask)
    return !in.causal || shapeOf(in.k)[2] >= shapeOf(in.q)[2];
  auto constant = in.mask.getDefiningOp<ConstantOp>();
  return constant && isPlain(in, constant);
}

/// What is added to scores, in f32, hidden keys being -inf.
static Value numbersOf(Value mask, TensorBuilder &t) {
  constexpr int64_t one[] = {1, 1, 1, 1};
  Type f32 = t.b.getF32Type();
  Value zero = t.splat(one, f32, 0);
  if (!mask)
    return zero;
  return elementType(mask).isInteger(1) ? t.select(mask, zero, -INFINITY)
                                        : t.cast(mask, f32);
}

CudnnMask ax::codegen::makeCudnnMask(const AttentionValues &in,
                                     Type productType, TensorBuilder &t) {
  int64_t queries = shapeOf(in.q)[2], keys = shapeOf(in.k)[2];
  CudnnMask made;
  // A single query sees all keys, being at the last one's place.
  bool causal = in.causal && queries != 1;
  made.causal = causal && queries == keys;
  if (!in.mask && causal == made.causal)
    return made;

  Value numbers = numbersOf(in.mask, t);
  auto hideOthers = [&](Value value) {
    return t.select(seenByPlaces(in, t, 4), value, -INFINITY);
  };
  if (causal && !made.causal)
    numbers = hideOthers(numbers);
  Value added = numbers;
  if (!seeKeys(in)) {
    // A softmax is the same with a number less in all of its row.
    Value seen = made.causal ? hideOthers(numbers) : numbers;
    Value largest = t.reduce(ReduceOpKind::max, seen, 3);
    made.isEmpty = t.compare(CompareKind::eq, largest, -INFINITY);
    added = t.sub(added, largest);
  }
  added = t.binary(BinaryKind::max, added, t.number(added, hidden));
  if (made.isEmpty)
    added = t.select(made.isEmpty, t.number(added, 0), added);
  // Of bf16 these numbers are what they are in f32; f16 does not have them.
  bool hidesOnly = !in.mask || elementType(in.mask).isInteger(1);
  made.added =
      hidesOnly && productType.isBF16() ? t.cast(added, productType) : added;
  return made;
}
