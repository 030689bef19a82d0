//===- PackedMatmul.cpp - Products with weights packed for our kernels ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of a may be anywhere, as those of windows of an image are. They are
// packed; and so is b, once and for all where it never changes.
//
//===----------------------------------------------------------------------===//

#include "CpuLibrary.h"
#include "PackedProduct.h"
#include "Threads.h"
#include "ax/Runtime/MatmulView.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstring>

namespace ax::rt {

namespace {

/// Where one product of a batch begins, in elements; which matrix b it has.
struct BatchPlace {
  int64_t a, b, c, residual;
};

/// Products with matrices b; rows of a may be anywhere.
struct RowProducts {
  /// Without batches: one product.
  MatmulDesc desc;
  /// Where each row of a begins, in elements.
  std::vector<int64_t> rowOffsets{0};
  std::vector<BatchPlace> products{{0, 0, 0, 0}};
  /// Where each matrix b begins, in elements.
  std::vector<int64_t> matrices{0};
};

/// Where `view`, whose dimensions of size 1 are any, has the places of its
/// first dimensions that `sizes` has, the last one fastest.
std::vector<int64_t> offsetsOf(const TensorDesc &view,
                               llvm::ArrayRef<int64_t> sizes) {
  std::vector<int64_t> result{0};
  for (auto [d, size] : llvm::enumerate(sizes)) {
    int64_t stride = view.sizes[d] == 1 ? 0 : view.strides[d];
    std::vector<int64_t> offsets;
    for (int64_t before : result)
      for (int64_t i = 0; i < size; ++i)
        offsets.push_back(before + i * stride);
    result = std::move(offsets);
  }
  return result;
}

/// Each matrix b has products of its own.
void splitBatch(RowProducts &result) {
  const MatmulDesc &desc = result.desc;
  auto batch = llvm::ArrayRef(desc.c.sizes).drop_back(2);
  auto ofB = llvm::ArrayRef(desc.b.sizes).drop_back(2);
  result.matrices = offsetsOf(desc.b, ofB);
  std::vector<int64_t> a = offsetsOf(desc.a, batch);
  std::vector<int64_t> b = offsetsOf(TensorDesc::dense(DType::F32, ofB), batch);
  std::vector<int64_t> c = offsetsOf(desc.c, batch);
  std::vector<int64_t> residual(c.size());
  if (desc.hasResidual)
    residual = offsetsOf(desc.residual, batch);
  result.products.clear();
  for (size_t i = 0; i < c.size(); ++i)
    result.products.push_back({a[i], b[i], c[i], residual[i]});
  result.rowOffsets.clear();
  for (int64_t i = 0; i < desc.a.sizes[batch.size()]; ++i)
    result.rowOffsets.push_back(i * desc.a.strides[batch.size()]);
}

/// All of a batch are rows of the one b. False where what they are apart in c
/// differs.
bool mergeBatch(RowProducts &result) {
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
  result.rowOffsets =
      offsetsOf(desc.a, llvm::ArrayRef(desc.c.sizes).drop_back());
  while (desc.c.sizes.size() > 2) {
    if (!isOneRow(desc.c) || (desc.hasResidual && !isOneRow(desc.residual)))
      return false;
    mergeRows(desc.c);
    if (desc.hasResidual)
      mergeRows(desc.residual);
  }
  return true;
}

std::optional<RowProducts> asRows(const MatmulDesc &original) {
  RowProducts result{collapse(original)};
  MatmulDesc &desc = result.desc;
  if (llvm::all_of(llvm::ArrayRef(desc.b.sizes).drop_back(2),
                   [](int64_t size) { return size == 1; })) {
    if (!mergeBatch(result))
      return std::nullopt;
  } else {
    splitBatch(result);
  }
  for (TensorDesc *view : {&desc.a, &desc.b, &desc.c, &desc.residual})
    for (auto *dims : {&view->sizes, &view->strides})
      if (!dims->empty())
        dims->erase(dims->begin(), dims->end() - 2);
  return result;
}

class PackedMatmul : public CpuOp {
public:
  /// `panels` is null where b changes: it is packed in each call.
  PackedMatmul(RowProducts rows, PackedProduct productIn,
               std::shared_ptr<const HostMemory> panels)
      : rows(std::move(rows)), panels(std::move(panels)),
        product(std::move(productIn)) {
    readsConstantOperand = !this->panels;
    workspaceBytes = product.getWorkspaceBytes();
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    const MatmulDesc &desc = rows.desc;
    PackedProduct::Operands all = {};
    all.a = static_cast<const float *>(arguments[0]);
    all.b = static_cast<const float *>(arguments[1]);
    int next = 2;
    if (desc.hasBias)
      all.bias = static_cast<float *>(arguments[next++]);
    if (desc.hasResidual)
      all.residual = static_cast<float *>(arguments[next++]);
    all.c = static_cast<float *>(arguments[next]);
    all.workspace = workspace;
    for (const BatchPlace &place : rows.products) {
      PackedProduct::Operands operands = all;
      operands.a += place.a;
      setB(operands, place.b);
      operands.c += place.c;
      if (desc.hasResidual)
        operands.residual += place.residual;
      product.run(operands, [&](int64_t first, int64_t count, float *to) {
        packRows(operands.a, first, count, to);
      });
    }
    return llvm::Error::success();
  }

private:
  void setB(PackedProduct::Operands &operands, int64_t matrix) const {
    if (!panels) {
      operands.b += rows.matrices[static_cast<size_t>(matrix)];
      return;
    }
    int64_t elements = product.getPanelElements();
    operands.b =
        static_cast<const float *>(panels->getData()) + matrix * elements;
    operands.bEnd = operands.b + elements;
  }
  void packRows(const float *a, int64_t first, int64_t count, float *to) const {
    const TensorDesc &view = rows.desc.a;
    int64_t k = view.sizes[1], step = view.strides[1];
    const int64_t *offsets = rows.rowOffsets.data() + first;
    bool isTransposed = areNextToEachOther(first);
    for (int64_t i = 0; i < k; i += packedK, to += count * packedK) {
      const float *from = a + i * step;
      int64_t steps = std::min(packedK, k - i);
      if (step == 1 && steps == packedK)
        for (int64_t r = 0; r < count; ++r)
          std::memcpy(to + r * packedK, from + offsets[r],
                      packedK * sizeof(float));
      else if (isTransposed && steps == packedK)
        vectorKernels().transposeRows(from + offsets[0], step, to, count);
      else // Rows are next to each other, or it does not matter.
        for (int64_t j = 0; j < steps; ++j)
          for (int64_t r = 0; r < count; ++r)
            to[r * packedK + j] = from[offsets[r] + j * step];
    }
  }

  /// As many rows from `first` on as are read in vectors.
  bool areNextToEachOther(int64_t first) const {
    size_t begin = static_cast<size_t>(first);
    size_t end = begin + static_cast<size_t>(transposedRows);
    if (end > rows.rowOffsets.size())
      return false;
    for (size_t r = begin; r + 1 < end; ++r)
      if (rows.rowOffsets[r + 1] != rows.rowOffsets[r] + 1)
        return false;
    return true;
  }

  RowProducts rows;
  std::shared_ptr<const HostMemory> panels;
  PackedProduct product;
};

PackedProductDesc productOf(const MatmulDesc &desc) {
  PackedProductDesc product;
  product.rowsPerLine = desc.c.sizes[0];
  product.columns = desc.b.sizes[1];
  product.depth = desc.b.sizes[0];
  product.cStride = desc.c.strides[0];
  if (desc.hasResidual) {
    product.residualRowStride = desc.residual.strides[0];
    product.residualColumnStride = desc.residual.strides[1];
  }
  product.activation = desc.activation;
  product.bRowStride = desc.b.strides[0];
  product.bColumnStride = desc.b.strides[1];
  return product;
}

std::string formatOf(const TensorDesc &b) {
  std::string format = "panels " + std::to_string(vectorKernels().panelWidth);
  for (size_t d = 0; d < b.sizes.size(); ++d)
    format +=
        " " + std::to_string(b.sizes[d]) + ":" + std::to_string(b.strides[d]);
  return format;
}

} // namespace

ExpectedCpuOp preparePackedMatmul(const MatmulDesc &original,
                                  const CpuConstant &constant,
                                  PackedWeights &packed) {
  if (!vectorKernels().packedTile || original.a.dtype != DType::F32 ||
      original.c.dtype != DType::F32 || original.c.numElements() == 0 ||
      original.a.sizes.back() == 0 || original.c.strides.back() != 1)
    return nullptr;
  std::optional<RowProducts> rows = asRows(original);
  if (!rows)
    return nullptr;
  PackedProductDesc desc = productOf(rows->desc);
  bool isConstant = original.constantB && constant.data;
  desc.packsB = !isConstant;
  PackedProduct product(std::move(desc), getNumThreads());
  std::shared_ptr<const HostMemory> panels;
  if (isConstant) {
    int64_t elements = product.getPanelElements();
    auto pack = [&](void *to) {
      for (auto [i, matrix] : llvm::enumerate(rows->matrices))
        product.packPanels({static_cast<const float *>(constant.data) + matrix,
                            0, rows->desc.b.sizes[0], rows->desc.b.strides[0],
                            rows->desc.b.strides[1]},
                           static_cast<float *>(to) +
                               static_cast<int64_t>(i) * elements);
      return llvm::Error::success();
    };
    llvm::Expected<std::shared_ptr<const HostMemory>> made = packed.get(
        constant, formatOf(collapse(original).b),
        static_cast<int64_t>(rows->matrices.size() * sizeof(float)) * elements,
        pack);
    if (!made)
      return made.takeError();
    panels = std::move(*made);
  }
  return std::make_unique<PackedMatmul>(std::move(*rows), std::move(product),
                                        std::move(panels));
}

} // namespace ax::rt
