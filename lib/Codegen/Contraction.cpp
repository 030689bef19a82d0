//===- Contraction.cpp - Contractions as strided matrix products ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Contraction.h"

#include "llvm/ADT/STLExtras.h"

namespace ax::codegen {

using Dims = llvm::SmallVector<ContractionDim>;

/// Whether walking `minor` and then `major` is walking one longer loop.
static bool isOneLoop(int64_t major, int64_t minor, int64_t minorSize) {
  return (major < 0 && minor < 0) ||
         (major >= 0 && minor >= 0 && major == minor * minorSize);
}

static Dims join(const Dims &dims) {
  Dims joined;
  for (const ContractionDim &dim : dims) {
    if (dim.size == 1)
      continue;
    if (!joined.empty()) {
      ContractionDim &major = joined.back();
      if (isOneLoop(major.a, dim.a, dim.size) &&
          isOneLoop(major.b, dim.b, dim.size) &&
          isOneLoop(major.c, dim.c, dim.size) &&
          isOneLoop(major.residual, dim.residual, dim.size)) {
        int64_t size = major.size * dim.size;
        major = dim;
        major.size = size;
        continue;
      }
    }
    joined.push_back(dim);
  }
  return joined;
}

/// Takes the last dimension as the matrix's own; the others become batch.
static ContractionDim takeInner(Dims &dims, Dims &batch) {
  if (dims.empty())
    return {};
  ContractionDim inner = dims.pop_back_val();
  batch.append(dims.begin(), dims.end());
  return inner;
}

/// Whether rows lie one behind another, which do not overlap.
static bool hasRows(const rt::TensorDesc &tensor) {
  int64_t rank = tensor.getRank();
  return tensor.strides[rank - 1] == 1 &&
         tensor.strides[rank - 2] >= tensor.sizes[rank - 1];
}

/// Whether the last dimension is contiguous, and all that is along others
/// begins where a library wants it.
static bool hasEightBitRows(const rt::TensorDesc &tensor) {
  bool result = tensor.strides.back() == 1;
  for (size_t i = 0; i + 1 < tensor.sizes.size(); ++i)
    result &= tensor.sizes[i] == 1 || tensor.strides[i] % eightBitMultiple == 0;
  return result;
}

static rt::TensorDesc transposed(rt::TensorDesc tensor) {
  int64_t rank = tensor.getRank();
  std::swap(tensor.sizes[rank - 1], tensor.sizes[rank - 2]);
  std::swap(tensor.strides[rank - 1], tensor.strides[rank - 2]);
  return tensor;
}

static bool isMatrix(const rt::TensorDesc &tensor) {
  return hasRows(tensor) || hasRows(transposed(tensor));
}

static bool isAddend(const rt::TensorDesc &tensor) {
  int64_t rank = tensor.getRank();
  return hasRows(tensor) ||
         (tensor.strides[rank - 1] == 1 && tensor.strides[rank - 2] == 0);
}

std::optional<rt::MatmulDesc> toMatmul(const Contraction &contraction,
                                       ContractionFault &fault) {
  Dims batch = join(contraction.batch), m = join(contraction.m),
       n = join(contraction.n), k = join(contraction.k);
  if (k.size() > 1) {
    // Joined in neither: an operand whose own strides do not join is at fault.
    for (size_t i = 1; i < k.size(); ++i) {
      fault.a |= !isOneLoop(k[i - 1].a, k[i].a, k[i].size);
      fault.b |= !isOneLoop(k[i - 1].b, k[i].b, k[i].size);
    }
    return std::nullopt;
  }
  ContractionDim inner = k.empty() ? ContractionDim{} : k.front();
  ContractionDim row = takeInner(m, batch), column = takeInner(n, batch);

  rt::MatmulDesc desc;
  desc.a.dtype = contraction.aType;
  desc.b.dtype = contraction.bType;
  desc.c.dtype = desc.residual.dtype = contraction.resultType;
  auto append = [](rt::TensorDesc &tensor, int64_t size, int64_t stride) {
    bool has = stride >= 0;
    tensor.sizes.push_back(has ? size : 1);
    tensor.strides.push_back(has && size > 1 ? stride : 0);
  };
  for (const ContractionDim &dim : batch) {
    append(desc.a, dim.size, dim.a);
    append(desc.b, dim.size, dim.b);
    append(desc.c, dim.size, dim.c);
    append(desc.residual, dim.size, dim.residual);
  }
  append(desc.a, row.size, row.a);
  append(desc.a, inner.size, inner.a);
  append(desc.b, inner.size, inner.b);
  append(desc.b, column.size, column.b);
  append(desc.c, row.size, row.c);
  append(desc.c, column.size, column.c);
  append(desc.residual, row.size, row.residual);
  append(desc.residual, column.size, column.residual);
  // A dimension of extent 1, or of none, may have any stride: the one that
  // makes the matrix a plain one.
  auto fillStrides = [](rt::TensorDesc &tensor) {
    int64_t rank = tensor.getRank();
    int64_t &outer = tensor.strides[rank - 2],
            &inner = tensor.strides[rank - 1];
    if (tensor.sizes[rank - 1] <= 1)
      inner = 1;
    if (tensor.sizes[rank - 2] <= 1)
      outer = inner == 1 ? tensor.sizes[rank - 1] : 1;
    for (int64_t i = rank - 3; i >= 0; --i)
      if (tensor.sizes[i] == 1)
        tensor.strides[i] = tensor.sizes[i + 1] * tensor.strides[i + 1];
    return outer == 1 || inner == 1;
  };
  fault.a |= !fillStrides(desc.a);
  fault.b |= !fillStrides(desc.b);
  fillStrides(desc.c);
  fillStrides(desc.residual);
  if (contraction.needsMatrices) {
    fault.a |= !isMatrix(desc.a);
    fault.b |= !isMatrix(desc.b);
    fault.residual = contraction.hasResidual && !isAddend(desc.residual);
  }
  if (contraction.isOfEightBits) {
    fault.a |= !hasEightBitRows(desc.a) ||
               (isFloat8(desc.a.dtype) &&
                desc.c.sizes[desc.c.getRank() - 2] % eightBitMultiple != 0);
    fault.b |= !hasEightBitRows(transposed(desc.b)) ||
               desc.b.sizes.back() % eightBitMultiple != 0;
  }
  if (fault.a || fault.b || fault.residual)
    return std::nullopt;
  desc.hasResidual = contraction.hasResidual;
  if (!desc.hasResidual)
    desc.residual = {};
  return desc;
}

} // namespace ax::codegen
