//===- Gather.cpp - Interpreting gather and scatter -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Kernels.h"

#include "ax/Dialect/Indexing.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;

namespace ax::interpreter {

static int64_t product(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                         std::multiplies<>());
}

llvm::Expected<std::vector<int64_t>> toIndices(const HostTensor &tensor,
                                               ArrayRef<int64_t> sizes) {
  std::vector<int64_t> indices = tensor.toInts();
  for (size_t i = 0; i < indices.size() && !sizes.empty(); ++i) {
    int64_t size = sizes[i % sizes.size()];
    if (indices[i] < -size || indices[i] >= size)
      return makeErrorf(ExitCode::RunFailed,
                        "index {0} is out of range of a dimension of {1}",
                        indices[i], size);
    indices[i] += indices[i] < 0 ? size : 0;
  }
  return indices;
}

/// `interpret` has seen that they are in range.
static std::vector<int64_t> indicesOf(Operation *op, Operands in) {
  return llvm::cantFail(toIndices(in[indicesOperand], *getIndexedSizes(op)));
}

static HostTensor gather(GatherOp op, Operands in) {
  const HostTensor &x = in[0];
  HostTensor to = emptyLike(op.getResult());
  if (to.numElements() == 0 || x.numElements() == 0)
    return to;
  ArrayRef<int64_t> shape = x.getShape();
  int64_t axis = op.getAxis(), size = shape[axis];
  int64_t count = product(shape.take_front(axis));
  size_t bytes = product(shape.drop_front(axis + 1)) * byteSize(x.getType());
  std::vector<int64_t> indices = indicesOf(op, in);
  uint8_t *out = to.mutableData();
  for (int64_t i = 0; i < count; ++i)
    for (int64_t index : indices) {
      std::memcpy(out, x.data() + (i * size + index) * bytes, bytes);
      out += bytes;
    }
  return to;
}

/// Calls fn(position in `indices`, position of the first element along `axis`
/// in a tensor of strides `strides`) for every element of `indices`.
template <typename Fn>
static void forEachElement(ArrayRef<int64_t> indicesShape,
                           ArrayRef<int64_t> strides, int64_t axis, Fn fn) {
  std::vector<int64_t> at(indicesShape.size());
  for (int64_t i = 0, e = product(indicesShape); i < e; ++i) {
    int64_t base = 0;
    for (int64_t dim = 0, rank = at.size(); dim < rank; ++dim)
      base += dim == axis ? 0 : at[dim] * strides[dim];
    fn(i, base);
    for (size_t dim = at.size(); dim-- > 0;) {
      if (++at[dim] < indicesShape[dim])
        break;
      at[dim] = 0;
    }
  }
}

static HostTensor gatherElements(GatherElementsOp op, Operands in) {
  const HostTensor &x = in[0];
  HostTensor to = emptyLike(op.getResult());
  if (to.numElements() == 0 || x.numElements() == 0)
    return to;
  int64_t axis = op.getAxis();
  std::vector<int64_t> strides = rowMajorStrides(x.getShape());
  std::vector<int64_t> indices = indicesOf(op, in);
  int64_t bytes = byteSize(x.getType());
  uint8_t *out = to.mutableData();
  forEachElement(in[1].getShape(), strides, axis, [&](int64_t i, int64_t base) {
    base += indices[i] * strides[axis];
    std::memcpy(out + i * bytes, x.data() + base * bytes, bytes);
  });
  return to;
}

static HostTensor gatherND(GatherNDOp op, Operands in) {
  const HostTensor &x = in[0];
  HostTensor to = emptyLike(op.getResult());
  if (to.numElements() == 0 || x.numElements() == 0)
    return to;
  ArrayRef<int64_t> shape = x.getShape(), indicesShape = in[1].getShape();
  int64_t numBatch = op.getBatchDims(), depth = indicesShape.back();
  int64_t batches = product(shape.take_front(numBatch));
  int64_t perBatch = product(indicesShape.drop_back().drop_front(numBatch));
  int64_t batchSize = product(shape.drop_front(numBatch));
  int64_t length = product(shape.drop_front(numBatch + depth));
  std::vector<int64_t> strides = rowMajorStrides(shape);
  std::vector<int64_t> indices = indicesOf(op, in);
  int64_t bytes = byteSize(x.getType());
  uint8_t *out = to.mutableData();
  for (int64_t row = 0; row < batches * perBatch; ++row) {
    int64_t base = row / perBatch * batchSize;
    for (int64_t i = 0; i < depth; ++i)
      base += indices[row * depth + i] * strides[numBatch + i];
    std::memcpy(out + row * length * bytes, x.data() + base * bytes,
                length * bytes);
  }
  return to;
}

/// Sums are rounded once.
static HostTensor gatherGradient(GatherGradientOp op, Operands in) {
  HostTensor to = emptyLike(op.getResult());
  if (to.numElements() == 0)
    return to;
  ArrayRef<int64_t> shape = to.getShape();
  int64_t axis = op.getAxis(), size = shape[axis];
  int64_t count = product(shape.take_front(axis));
  int64_t length = product(shape.drop_front(axis + 1));
  std::vector<int64_t> indices = indicesOf(op, in);
  visitDType(to.getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<Wide<T>> sums(to.numElements());
    ArrayRef<T> updates = in[0].values<T>();
    for (int64_t i = 0, from = 0; i < count; ++i)
      for (int64_t index : indices)
        for (int64_t j = 0; j < length; ++j, ++from) {
          Wide<T> &sum = sums[(i * size + index) * length + j];
          sum = combine(ReduceOpKind::sum, sum, load(updates[from]));
        }
    llvm::transform(sums, to.mutableValues<T>().begin(), store<T>);
  });
  return to;
}

/// Integers wrap.
template <typename T>
static void scatterOne(ScatterKind kind, T &to, T update) {
  auto meet = [&](ReduceOpKind how) {
    to = store<T>(combine(how, load(to), load(update)));
  };
  switch (kind) {
  case ScatterKind::set:
    to = update;
    return;
  case ScatterKind::add:
    return meet(ReduceOpKind::sum);
  case ScatterKind::mul:
    return meet(ReduceOpKind::prod);
  case ScatterKind::max:
    return meet(ReduceOpKind::max);
  case ScatterKind::min:
    return meet(ReduceOpKind::min);
  }
}

/// Computes an operation that adds up in the tensor it makes: narrow floats in
/// f32.
template <typename OpTy>
static HostTensor
scatterWide(OpTy op, Operands in,
            llvm::function_ref<HostTensor(OpTy, Operands)> scatter) {
  DType type = in[0].getType();
  if (type != DType::F16 && type != DType::BF16)
    return scatter(op, in);
  Results wide(in);
  wide[0] = in[0].cast(DType::F32);
  wide[2] = in[2].cast(DType::F32);
  return scatter(op, wide).cast(type);
}

static HostTensor scatterElements(ScatterElementsOp op, Operands in) {
  HostTensor to = in[0];
  int64_t axis = op.getAxis();
  std::vector<int64_t> strides = rowMajorStrides(to.getShape());
  std::vector<int64_t> indices = indicesOf(op, in);
  visitDType(to.getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    MutableArrayRef<T> out = to.mutableValues<T>();
    ArrayRef<T> updates = in[2].values<T>();
    forEachElement(
        in[1].getShape(), strides, axis, [&](int64_t i, int64_t base) {
          scatterOne(op.getKind(), out[base + indices[i] * strides[axis]],
                     updates[i]);
        });
  });
  return to;
}

static HostTensor scatterND(ScatterNDOp op, Operands in) {
  HostTensor to = in[0];
  Shape shape = to.getShape();
  int64_t depth = in[1].getShape().back();
  int64_t length = product(ArrayRef<int64_t>(shape).drop_front(depth));
  int64_t rows = product(ArrayRef<int64_t>(in[1].getShape()).drop_back());
  std::vector<int64_t> strides = rowMajorStrides(shape);
  std::vector<int64_t> indices = indicesOf(op, in);
  visitDType(to.getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    MutableArrayRef<T> out = to.mutableValues<T>();
    ArrayRef<T> updates = in[2].values<T>();
    for (int64_t row = 0; row < rows; ++row) {
      int64_t base = 0;
      for (int64_t i = 0; i < depth; ++i)
        base += indices[row * depth + i] * strides[i];
      for (int64_t i = 0; i < length; ++i)
        scatterOne(op.getKind(), out[base + i], updates[row * length + i]);
    }
  });
  return to;
}

std::optional<Results> interpretGather(Operation *op, Operands in) {
  return llvm::TypeSwitch<Operation *, std::optional<Results>>(op)
      .Case([&](GatherOp o) { return Results{gather(o, in)}; })
      .Case([&](GatherGradientOp o) { return Results{gatherGradient(o, in)}; })
      .Case([&](GatherElementsOp o) { return Results{gatherElements(o, in)}; })
      .Case([&](GatherNDOp o) { return Results{gatherND(o, in)}; })
      .Case([&](ScatterElementsOp o) {
        return Results{scatterWide<ScatterElementsOp>(o, in, scatterElements)};
      })
      .Case([&](ScatterNDOp o) {
        return Results{scatterWide<ScatterNDOp>(o, in, scatterND)};
      })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace ax::interpreter
