//===- Distribute.cpp - Global tensors and the parts of ranks -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Interpreter/Distribute.h"

#include "Kernels.h"

#include "ax/Support/Error.h"

#include <map>

using namespace mlir;

namespace ax::interpreter {

using sharding::Layout;
using sharding::Mesh;

/// Returns for each dimension the global index of every local one, or
/// `outside`.
static SmallVector<Table> globalIndices(const Layout &layout, const Mesh &mesh,
                                        const std::vector<int64_t> &at) {
  SmallVector<Table> tables;
  for (const sharding::DimLayout &dim : layout.dims) {
    Layout line;
    line.dims = {dim};
    Table table(dim.localSize(), outside);
    for (int64_t i = 0, e = table.size(); i < e; ++i)
      if (auto index = sharding::globalIndex(line, mesh, at, {i}))
        table[i] = index->front();
    tables.push_back(std::move(table));
  }
  return tables;
}

static SmallVector<Table> positions(const Layout &layout, const Mesh &mesh,
                                    const std::vector<int64_t> &at) {
  SmallVector<Table> tables = globalIndices(layout, mesh, at);
  std::vector<int64_t> strides = rowMajorStrides(layout.globalShape());
  for (auto [table, stride] : llvm::zip_equal(tables, strides))
    for (int64_t &index : table)
      if (index != outside)
        index *= stride;
  return tables;
}

/// Bytes of one element of poison.
static std::array<uint8_t, 8> poison(DType type) {
  std::array<uint8_t, 8> bytes;
  bytes.fill(type == DType::Bool ? 1 : 0xff);
  return bytes;
}

HostTensor localPart(const HostTensor &global, const Layout &layout,
                     const Mesh &mesh, const std::vector<int64_t> &coordinates,
                     Padding padding) {
  HostTensor part(global.getType(), layout.localShape());
  if (layout.partialKind == sharding::ReduceKind::Sum &&
      mesh.index(layout.partial, coordinates) != 0)
    return part;
  std::array<uint8_t, 8> bytes = poison(global.getType());
  copyByTables(global, positions(layout, mesh, coordinates), part,
               padding == Padding::Poison ? bytes.data() : nullptr);
  return part;
}

static ReduceOpKind toReduceOpKind(sharding::ReduceKind kind) {
  switch (kind) {
  case sharding::ReduceKind::Sum:
    return ReduceOpKind::sum;
  case sharding::ReduceKind::Max:
    return ReduceOpKind::max;
  case sharding::ReduceKind::Min:
    return ReduceOpKind::min;
  }
  llvm_unreachable("reduce kind");
}

namespace {
/// Puts the parts of all ranks that agree in the partial axes together.
class Addend {
public:
  Addend(DType type, const Shape &shape)
      : tensor(type, shape), seen(DType::Bool, shape) {}

  /// False when an element differs from what another rank holds of it.
  bool add(const HostTensor &part, ArrayRef<Table> positions) {
    int64_t size = byteSize(part.getType());
    uint8_t *to = tensor.mutableData();
    MutableArrayRef<bool> have = seen.mutableValues<bool>();
    bool equal = true;
    int64_t next = 0;
    forEach(positions, 0, 0, [&](int64_t position) {
      const uint8_t *from = part.data() + size * next++;
      if (position == outside)
        return;
      if (have[position])
        equal &= std::memcmp(to + position * size, from, size) == 0;
      std::memcpy(to + position * size, from, size);
      have[position] = true;
    });
    return equal;
  }
  bool isComplete() const {
    return llvm::all_of(seen.values<bool>(), [](bool b) { return b; });
  }

  HostTensor tensor;

private:
  template <typename Fn>
  static void forEach(ArrayRef<Table> tables, size_t dim, int64_t base, Fn fn) {
    if (dim == tables.size())
      return fn(base);
    for (int64_t offset : tables[dim])
      forEach(tables, dim + 1,
              base == outside || offset == outside ? outside : base + offset,
              fn);
  }

  HostTensor seen;
};
} // namespace

llvm::Expected<HostTensor> assemble(ArrayRef<Part> parts, const Layout &layout,
                                    const Mesh &mesh) {
  DType type = parts.front().tensor.getType();
  std::map<int64_t, Addend> addends;
  for (const Part &part : parts) {
    if (part.tensor.getType() != type ||
        part.tensor.getShape() != layout.localShape())
      return makeErrorf(ExitCode::Internal, "a part is {0}, not {1}",
                        part.tensor.typeToString(),
                        shapeToString(layout.localShape()));
    int64_t number = mesh.index(layout.partial, part.coordinates);
    Addend &addend =
        addends.try_emplace(number, type, layout.globalShape()).first->second;
    if (!addend.add(part.tensor, positions(layout, mesh, part.coordinates)))
      return makeErrorf(ExitCode::Internal,
                        "rank {0} differs from another rank in elements that "
                        "both hold",
                        mesh.rankOf(part.coordinates));
  }
  for (const auto &[number, addend] : addends)
    if (!addend.isComplete())
      return makeError(ExitCode::Internal, "no rank holds some elements");
  HostTensor total = std::move(addends.begin()->second.tensor);
  for (auto it = std::next(addends.begin()); it != addends.end(); ++it)
    combineInto(toReduceOpKind(layout.partialKind), total, it->second.tensor);
  return total;
}

} // namespace ax::interpreter
