//===- Movement.cpp - Copies by index tables ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Kernels.h"

using namespace mlir;

namespace ax::interpreter {

DType elementDType(Value value) {
  return *toDType(tensorType(value).getElementType());
}

HostTensor emptyLike(Value value) {
  return HostTensor(elementDType(value), toShape(tensorType(value).getShape()));
}

std::vector<double> toDoubles(const HostTensor &tensor) {
  std::vector<double> result(tensor.numElements());
  visitDType(tensor.getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    ArrayRef<T> values = tensor.values<T>();
    for (size_t i = 0; i < values.size(); ++i)
      result[i] = static_cast<double>(load(values[i]));
  });
  return result;
}

void storeDoubles(ArrayRef<double> values, HostTensor &to) {
  visitDType(to.getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    MutableArrayRef<T> out = to.mutableValues<T>();
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = store<T>(static_cast<Wide<T>>(values[i]));
  });
}

Table linearTable(int64_t size, int64_t start, int64_t step) {
  Table table(size);
  for (int64_t i = 0; i < size; ++i)
    table[i] = start + i * step;
  return table;
}

namespace {
/// Elements are moved as bits, one instance for each element size.
template <typename Bits>
class TableCopy {
public:
  TableCopy(const HostTensor &from, ArrayRef<Table> tables, HostTensor &to,
            const uint8_t *fillBytes)
      : from(reinterpret_cast<const Bits *>(from.data())), tables(tables),
        to(reinterpret_cast<Bits *>(to.mutableData())) {
    if (fillBytes)
      std::memcpy(&fill, fillBytes, sizeof(Bits));
    if (!tables.empty())
      for (size_t i = 1; i < tables.back().size(); ++i)
        contiguous &= tables.back()[i] == tables.back()[i - 1] + 1;
    if (!tables.empty())
      contiguous &= !llvm::is_contained(tables.back(), outside);
  }

  void run(size_t dim = 0, int64_t base = 0) {
    if (tables.empty()) {
      *to = *from;
      return;
    }
    const Table &table = tables[dim];
    if (dim + 1 < tables.size()) {
      for (int64_t offset : table)
        run(dim + 1,
            base == outside || offset == outside ? outside : base + offset);
    } else if (base == outside) {
      to = std::fill_n(to, table.size(), fill);
    } else if (contiguous && !table.empty()) {
      to = std::copy_n(from + base + table[0], table.size(), to);
    } else {
      for (int64_t offset : table)
        *to++ = offset == outside ? fill : from[base + offset];
    }
  }

private:
  const Bits *from;
  ArrayRef<Table> tables;
  Bits *to;
  Bits fill = 0;
  bool contiguous = true;
};
} // namespace

void copyByTables(const HostTensor &from, ArrayRef<Table> tables,
                  HostTensor &to, const uint8_t *fill) {
  if (to.numElements() == 0)
    return;
  switch (byteSize(to.getType())) {
  case 1:
    return TableCopy<uint8_t>(from, tables, to, fill).run();
  case 2:
    return TableCopy<uint16_t>(from, tables, to, fill).run();
  case 4:
    return TableCopy<uint32_t>(from, tables, to, fill).run();
  default:
    return TableCopy<uint64_t>(from, tables, to, fill).run();
  }
}

HostTensor broadcastTo(const HostTensor &tensor, ArrayRef<int64_t> shape) {
  if (ArrayRef<int64_t>(tensor.getShape()) == shape)
    return tensor;
  HostTensor result(tensor.getType(), toShape(shape));
  std::vector<int64_t> strides = rowMajorStrides(tensor.getShape());
  int64_t added = shape.size() - tensor.getRank();
  SmallVector<Table> tables;
  for (int64_t dim = 0, rank = shape.size(); dim < rank; ++dim) {
    bool repeats = dim < added || tensor.getShape()[dim - added] == 1;
    tables.push_back(
        linearTable(shape[dim], 0, repeats ? 0 : strides[dim - added]));
  }
  copyByTables(tensor, tables, result);
  return result;
}

HostTensor transposed(const HostTensor &tensor, ArrayRef<int64_t> permutation) {
  if (llvm::is_sorted(permutation))
    return tensor;
  std::vector<int64_t> strides = rowMajorStrides(tensor.getShape());
  Shape shape;
  SmallVector<Table> tables;
  for (int64_t dim : permutation) {
    shape.push_back(tensor.getShape()[dim]);
    tables.push_back(linearTable(shape.back(), 0, strides[dim]));
  }
  HostTensor result(tensor.getType(), std::move(shape));
  copyByTables(tensor, tables, result);
  return result;
}

SmallVector<int64_t> movedLast(int64_t rank, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> order;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(dims, dim))
      order.push_back(dim);
  order.append(dims.begin(), dims.end());
  return order;
}

SmallVector<int64_t> inverse(ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> result(permutation.size());
  for (auto [i, dim] : llvm::enumerate(permutation))
    result[dim] = i;
  return result;
}

} // namespace ax::interpreter
