//===- GroupedMatmul.cpp - Rows times their groups' matrices --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rows of a group are brought together and are one product, or a few, of
// numbers of rows that products were prepared for: how many a group has is
// known when it runs. Places for rows that there are not are made, and dropped.
// Floats of 32 bits go by our own packed kernels, which fetch the rows where
// they are, and pack matrices that never change once and for all.
//
// Example: of 100 rows, 80 and 20 are products that were prepared.
//
//===----------------------------------------------------------------------===//

#include "CpuLibrary.h"
#include "PackedProduct.h"
#include "RowsByGroup.h"
#include "Threads.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

namespace ax::rt {

namespace {

constexpr int64_t alignment = 64;

/// So many rows meet a matrix at a time, at most.
constexpr int64_t mostRows = 256;

/// A product's weights are read and its threads meet, whatever it has of rows:
/// that costs about as much as so many.
constexpr int64_t rowsOfProduct = 8;

/// Products of some rows, which lie anywhere, with a matrix.
class RowProduct {
public:
  virtual ~RowProduct() = default;
  /// Memory that it needs besides the sums.
  virtual int64_t getWorkspaceBytes() const = 0;
  /// Sums of `rows`, and of others behind them, one row after another.
  virtual llvm::Error run(const void *x, llvm::ArrayRef<int64_t> rows,
                          const void *w, int64_t group, void *sums,
                          void *workspace) = 0;
};

/// By what `prepareCpuOp` gives, of rows that were copied.
class CopiedProduct : public RowProduct {
public:
  CopiedProduct(const GroupedMatmulDesc &desc, int64_t rows,
                std::unique_ptr<CpuOp> op)
      : copy(RowCopy::of(desc.x)),
        matrixBytes(desc.w.strides[0] * byteSize(desc.w.dtype)),
        copyBytes(llvm::alignTo(rows * copy.rowBytes(), alignment)),
        op(std::move(op)) {}

  int64_t getWorkspaceBytes() const override {
    return copyBytes + op->getWorkspaceBytes();
  }
  llvm::Error run(const void *x, llvm::ArrayRef<int64_t> rows, const void *w,
                  int64_t group, void *sums, void *workspace) override {
    // Behind the copies are those of earlier products, or nothing that counts.
    copy.gather(x, rows, workspace);
    void *matrix =
        const_cast<char *>(static_cast<const char *>(w) + group * matrixBytes);
    void *const arguments[] = {workspace, matrix, sums};
    return op->execute(arguments, static_cast<char *>(workspace) + copyBytes);
  }

private:
  RowCopy copy;
  int64_t matrixBytes, copyBytes;
  std::unique_ptr<CpuOp> op;
};

/// By our own kernels; `panels` is null where w changes.
class PackedRowProduct : public RowProduct {
public:
  PackedRowProduct(const GroupedMatmulDesc &desc, PackedProduct product,
                   std::shared_ptr<const HostMemory> panels)
      : copy(RowCopy::of(desc.x)), matrixStride(desc.w.strides[0]),
        product(std::move(product)), panels(std::move(panels)) {}

  int64_t getWorkspaceBytes() const override {
    return product.getWorkspaceBytes();
  }
  llvm::Error run(const void *x, llvm::ArrayRef<int64_t> rows, const void *w,
                  int64_t group, void *sums, void *workspace) override {
    PackedProduct::Operands operands = {};
    operands.b = static_cast<const float *>(w) + group * matrixStride;
    if (panels) {
      int64_t elements = product.getPanelElements();
      operands.b =
          static_cast<const float *>(panels->getData()) + group * elements;
      operands.bEnd = operands.b + elements;
    }
    operands.c = static_cast<float *>(sums);
    operands.workspace = workspace;
    product.run(operands, [&](int64_t first, int64_t count, float *to) {
      pack(static_cast<const float *>(x), rows, first, count, to);
    });
    return llvm::Error::success();
  }

private:
  /// Behind the last row there is that one again.
  void pack(const float *x, llvm::ArrayRef<int64_t> rows, int64_t first,
            int64_t count, float *to) const {
    int64_t last = static_cast<int64_t>(rows.size()) - 1;
    for (int64_t r = 0; r < count; ++r) {
      auto place = static_cast<size_t>(std::min(first + r, last));
      const float *row = x + rows[place] * copy.rowStride;
      for (int64_t i = 0; i < copy.columns; i += packedK) {
        float *steps = to + i * count + r * packedK;
        int64_t number = std::min(packedK, copy.columns - i);
        if (copy.columnStride == 1 && number == packedK)
          std::memcpy(steps, row + i, packedK * sizeof(float));
        else
          for (int64_t j = 0; j < number; ++j)
            steps[j] = row[(i + j) * copy.columnStride];
      }
    }
  }

  RowCopy copy;
  int64_t matrixStride;
  PackedProduct product;
  std::shared_ptr<const HostMemory> panels;
};

class GroupedMatmul : public CpuOp {
public:
  GroupedMatmul(const GroupedMatmulDesc &desc, std::vector<int64_t> sizesIn,
                std::vector<std::unique_ptr<RowProduct>> productsIn,
                bool readsWeights)
      : result(RowCopy::of(desc.y)), indexType(desc.groups.dtype),
        groups(desc.w.sizes[0]), byGroup(desc.x.sizes[0], groups),
        sizes(std::move(sizesIn)), products(std::move(productsIn)) {
    readsConstantOperand = readsWeights;
    orderBytes = llvm::alignTo(byGroup.getBytes(), alignment);
    if (!sizes.empty())
      sumBytes = llvm::alignTo(sizes.back() * result.rowBytes(), alignment);
    workspaceBytes = orderBytes + sumBytes;
    for (auto &product : products)
      workspaceBytes = std::max(
          workspaceBytes, orderBytes + sumBytes + product->getWorkspaceBytes());
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    RowsByGroup order = byGroup;
    if (llvm::Error error = order.sort(arguments[2], indexType, workspace))
      return error;
    char *sums = static_cast<char *>(workspace) + orderBytes;
    for (int64_t group = 0; group < groups; ++group) {
      llvm::ArrayRef<int64_t> rest = order.rowsOf(group);
      while (!rest.empty() && !products.empty()) {
        size_t number = chooseSize(static_cast<int64_t>(rest.size()));
        llvm::ArrayRef<int64_t> rows =
            rest.take_front(static_cast<size_t>(sizes[number]));
        if (llvm::Error error = products[number]->run(
                arguments[0], rows, arguments[1], group, sums, sums + sumBytes))
          return error;
        result.scatter(sums, rows, arguments[3]);
        rest = rest.drop_front(rows.size());
      }
    }
    return llvm::Error::success();
  }

private:
  /// Of that which has places for all `rows`, if few are for none, or of the
  /// largest below it.
  size_t chooseSize(int64_t rows) const {
    auto above =
        static_cast<size_t>(llvm::lower_bound(sizes, rows) - sizes.begin());
    bool fits = above < sizes.size() && sizes[above] - rows <= rowsOfProduct;
    return fits ? above : above - 1;
  }

  RowCopy result;
  DType indexType;
  int64_t groups;
  RowsByGroup byGroup;
  std::vector<int64_t> sizes;
  std::vector<std::unique_ptr<RowProduct>> products;
  int64_t orderBytes = 0, sumBytes = 0;
};

} // namespace

/// The product of `rows` dense rows.
static MatmulDesc productOf(const GroupedMatmulDesc &desc, int64_t rows) {
  MatmulDesc product;
  product.a = TensorDesc::dense(desc.x.dtype, {rows, desc.x.sizes[1]});
  product.b = desc.w;
  product.b.sizes.erase(product.b.sizes.begin());
  product.b.strides.erase(product.b.strides.begin());
  product.c = TensorDesc::dense(desc.y.dtype, {rows, desc.y.sizes[1]});
  return product;
}

static PackedProduct packedProductOf(const GroupedMatmulDesc &desc,
                                     int64_t rows, bool isConstant) {
  PackedProductDesc product;
  product.rowsPerLine = rows;
  product.depth = desc.w.sizes[1];
  product.columns = product.cStride = desc.w.sizes[2];
  product.bRowStride = desc.w.strides[1];
  product.bColumnStride = desc.w.strides[2];
  product.packsB = !isConstant;
  return PackedProduct(std::move(product), getNumThreads());
}

static llvm::Expected<std::shared_ptr<const HostMemory>>
packMatrices(const GroupedMatmulDesc &desc, const CpuConstant &constant,
             PackedWeights &packed) {
  PackedProduct any = packedProductOf(desc, 1, /*isConstant=*/true);
  const TensorDesc &w = desc.w;
  int64_t elements = any.getPanelElements();
  std::string format =
      "grouped panels " + std::to_string(vectorKernels().panelWidth);
  for (size_t d = 0; d < w.sizes.size(); ++d)
    format +=
        " " + std::to_string(w.sizes[d]) + ":" + std::to_string(w.strides[d]);
  return packed.get(
      constant, format,
      w.sizes[0] * elements * static_cast<int64_t>(sizeof(float)),
      [&](void *to) {
        for (int64_t group = 0; group < w.sizes[0]; ++group)
          any.packPanels(
              {static_cast<const float *>(constant.data) + group * w.strides[0],
               0, w.sizes[1], w.strides[1], w.strides[2]},
              static_cast<float *>(to) + group * elements);
        return llvm::Error::success();
      });
}

ExpectedCpuOp prepareGroupedMatmul(const GroupedMatmulDesc &desc,
                                   const CpuConstant &constant,
                                   PackedWeights &packed) {
  std::vector<int64_t> sizes;
  if (desc.y.numElements() > 0)
    sizes = preparedSizes(std::min(desc.x.sizes[0], mostRows));
  bool isPacked = vectorKernels().packedTile && desc.x.dtype == DType::F32 &&
                  desc.w.numElements() > 0;
  std::shared_ptr<const HostMemory> panels;
  if (isPacked && desc.constantW && constant.data) {
    auto made = packMatrices(desc, constant, packed);
    if (!made)
      return made.takeError();
    panels = std::move(*made);
  }
  std::vector<std::unique_ptr<RowProduct>> products;
  for (int64_t rows : sizes) {
    if (isPacked) {
      products.push_back(std::make_unique<PackedRowProduct>(
          desc, packedProductOf(desc, rows, panels != nullptr), panels));
      continue;
    }
    ExpectedCpuOp op = prepareCpuOp(productOf(desc, rows), {}, packed);
    if (!op)
      return op.takeError();
    products.push_back(
        std::make_unique<CopiedProduct>(desc, rows, std::move(*op)));
  }
  return std::make_unique<GroupedMatmul>(desc, std::move(sizes),
                                         std::move(products), !panels);
}

} // namespace ax::rt
