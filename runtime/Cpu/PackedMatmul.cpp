//===- PackedMatmul.cpp - Products with weights packed for our kernels ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of a may be anywhere, as those of windows of an image are. They are
// packed.
//
//===----------------------------------------------------------------------===//

#include "CpuLibrary.h"
#include "PackedProduct.h"
#include "Threads.h"
#include "ax/Runtime/MatmulView.h"

#include <algorithm>
#include <cstring>

namespace ax::rt {

namespace {

/// A product of one matrix b; rows of a may be anywhere.
struct RowProduct {
  /// c and the residual have two dimensions, b's batch is of size 1.
  MatmulDesc desc;
  /// Where each row of a begins, in elements.
  std::vector<int64_t> rowOffsets;
};

/// Returns the product by rows; nothing where b, or what c's rows are apart,
/// differs in the batch.
std::optional<RowProduct> asRows(const MatmulDesc &original) {
  RowProduct result{collapse(original), {0}};
  MatmulDesc &desc = result.desc;
  auto isOneRow = [](const TensorDesc &view) {
    return view.sizes[0] == 1 || view.sizes[1] == 1 ||
           view.strides[0] == view.sizes[1] * view.strides[1];
  };
  auto mergeRows = [](TensorDesc &view) {
    if (view.sizes[1] == 1)
      view.strides[1] = view.strides[0];
    view.sizes[1] *= view.sizes[0];
    view.sizes.erase(view.sizes.begin());
    view.strides.erase(view.strides.begin());
  };
  for (size_t d = 0; d + 1 < desc.a.sizes.size(); ++d) {
    std::vector<int64_t> offsets;
    for (int64_t before : result.rowOffsets)
      for (int64_t i = 0; i < desc.c.sizes[d]; ++i)
        offsets.push_back(before +
                          (desc.a.sizes[d] == 1 ? 0 : i * desc.a.strides[d]));
    result.rowOffsets = std::move(offsets);
  }
  for (size_t d = 0; d + 2 < desc.b.sizes.size(); ++d)
    if (desc.b.sizes[d] != 1)
      return std::nullopt;
  while (desc.c.sizes.size() > 2) {
    if (!isOneRow(desc.c) || (desc.hasResidual && !isOneRow(desc.residual)))
      return std::nullopt;
    mergeRows(desc.c);
    if (desc.hasResidual)
      mergeRows(desc.residual);
  }
  return result;
}

class PackedMatmul : public CpuOp {
public:
  PackedMatmul(RowProduct rows, PackedProduct productIn,
               std::shared_ptr<const HostMemory> weights)
      : desc(std::move(rows.desc)), rowOffsets(std::move(rows.rowOffsets)),
        weights(std::move(weights)), product(std::move(productIn)) {
    readsConstantOperand = false;
    workspaceBytes = product.getWorkspaceBytes();
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    const float *a = static_cast<const float *>(arguments[0]);
    PackedProduct::Operands operands = {};
    operands.b = static_cast<const float *>(weights->getData());
    operands.bEnd =
        operands.b + weights->getSize() / static_cast<int64_t>(sizeof(float));
    int next = 2;
    if (desc.hasBias)
      operands.bias = static_cast<float *>(arguments[next++]);
    if (desc.hasResidual)
      operands.residual = static_cast<float *>(arguments[next++]);
    operands.c = static_cast<float *>(arguments[next]);
    operands.workspace = workspace;
    product.run(operands, [&](int64_t first, int64_t rows, float *to) {
      packRows(a, first, rows, to);
    });
    return llvm::Error::success();
  }

private:
  void packRows(const float *a, int64_t first, int64_t rows, float *to) const {
    int64_t k = desc.a.sizes.back(), step = desc.a.strides.back();
    const int64_t *offsets = rowOffsets.data() + first;
    for (int64_t i = 0; i < k; i += packedK, to += rows * packedK) {
      const float *from = a + i * step;
      int64_t count = std::min(packedK, k - i);
      if (step == 1 && count == packedK)
        for (int64_t r = 0; r < rows; ++r)
          std::memcpy(to + r * packedK, from + offsets[r],
                      packedK * sizeof(float));
      else // Rows are next to each other, or it does not matter.
        for (int64_t j = 0; j < count; ++j)
          for (int64_t r = 0; r < rows; ++r)
            to[r * packedK + j] = from[offsets[r] + j * step];
    }
  }

  MatmulDesc desc;
  std::vector<int64_t> rowOffsets;
  std::shared_ptr<const HostMemory> weights;
  PackedProduct product;
};

} // namespace

ExpectedCpuOp preparePackedMatmul(const MatmulDesc &original,
                                  const CpuConstant &constant,
                                  PackedWeights &packed) {
  const VectorKernels &kernels = vectorKernels();
  if (!kernels.packedTile || !original.constantB || !constant.data ||
      original.a.dtype != DType::F32 || original.c.dtype != DType::F32)
    return nullptr;
  std::optional<RowProduct> product = asRows(original);
  if (!product)
    return nullptr;
  MatmulDesc &desc = product->desc;
  // Of b only the matrix counts.
  for (auto *dims : {&desc.b.sizes, &desc.b.strides})
    dims->erase(dims->begin(), dims->end() - 2);
  if (desc.c.sizes[0] == 0 || desc.a.sizes.back() == 0 ||
      desc.c.sizes[1] == 0 || desc.c.strides[1] != 1)
    return nullptr;
  int64_t k = desc.b.sizes[0], n = desc.b.sizes[1];
  std::string format = "panels " + std::to_string(kernels.panelWidth);
  for (int d = 0; d < 2; ++d)
    format += " " + std::to_string(desc.b.sizes[static_cast<size_t>(d)]) + ":" +
              std::to_string(desc.b.strides[static_cast<size_t>(d)]);
  PackedProductDesc sizes;
  sizes.rowsPerLine = desc.c.sizes[0];
  sizes.columns = n;
  sizes.depth = k;
  sizes.cStride = desc.c.strides[0];
  if (desc.hasResidual) {
    sizes.residualRowStride = desc.residual.strides[0];
    sizes.residualColumnStride = desc.residual.strides[1];
  }
  sizes.activation = desc.activation;
  PackedProduct panels(std::move(sizes), getNumThreads());
  llvm::Expected<std::shared_ptr<const HostMemory>> weights = packed.get(
      constant, format,
      panels.getPanelElements() * static_cast<int64_t>(sizeof(float)),
      [&](void *to) {
        panels.packPanels({static_cast<const float *>(constant.data), 0, k,
                           desc.b.strides[0], desc.b.strides[1]},
                          static_cast<float *>(to));
        return llvm::Error::success();
      });
  if (!weights)
    return weights.takeError();
  return std::make_unique<PackedMatmul>(std::move(*product), std::move(panels),
                                        std::move(*weights));
}

} // namespace ax::rt
