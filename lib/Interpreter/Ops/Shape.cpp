//===- Shape.cpp - Interpreting ops that move elements --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Kernels.h"

#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;

namespace ax::interpreter {

static HostTensor iota(IotaOp op) {
  HostTensor to = emptyLike(op.getResult());
  HostTensor line(to.getType(), {to.getShape()[op.getDim()]});
  visitDType(to.getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (auto [i, out] : llvm::enumerate(line.mutableValues<T>()))
      out = store<T>(static_cast<Wide<T>>(i));
  });
  SmallVector<Table> tables;
  for (int64_t dim = 0; dim < to.getRank(); ++dim)
    tables.push_back(linearTable(to.getShape()[dim], 0,
                                 dim == static_cast<int64_t>(op.getDim())));
  copyByTables(line, tables, to);
  return to;
}

static HostTensor slice(SliceOp op, const HostTensor &x) {
  HostTensor to = emptyLike(op.getResult());
  std::vector<int64_t> strides = rowMajorStrides(x.getShape());
  SmallVector<Table> tables;
  for (int64_t dim = 0; dim < to.getRank(); ++dim)
    tables.push_back(linearTable(to.getShape()[dim],
                                 op.getStarts()[dim] * strides[dim],
                                 op.getSteps()[dim] * strides[dim]));
  copyByTables(x, tables, to);
  return to;
}

/// A window of `x`; what lies outside is `fill` (zero bits when null).
static void window(const HostTensor &x, ArrayRef<int64_t> starts,
                   HostTensor &to, const uint8_t *fill) {
  std::vector<int64_t> strides = rowMajorStrides(x.getShape());
  SmallVector<Table> tables;
  for (int64_t dim = 0; dim < to.getRank(); ++dim) {
    Table table(to.getShape()[dim], outside);
    for (int64_t i = 0, e = table.size(); i < e; ++i) {
      int64_t at;
      bool inside = !__builtin_add_overflow(starts[dim], i, &at) && at >= 0 &&
                    at < x.getShape()[dim];
      if (inside)
        table[i] = at * strides[dim];
    }
    tables.push_back(std::move(table));
  }
  copyByTables(x, tables, to, fill);
}

static HostTensor dynamicSlice(DynamicSliceOp op, Operands in) {
  HostTensor to = emptyLike(op.getResult());
  SmallVector<int64_t> starts;
  for (const HostTensor &start : in.drop_front())
    starts.push_back(start.getInt(0));
  window(in[0], starts, to, nullptr);
  return to;
}

/// Where position `i`, counted from the operand's first element, is found.
static int64_t paddedPosition(PadMode mode, int64_t i, int64_t size) {
  switch (mode) {
  case PadMode::edge:
    return std::clamp<int64_t>(i, 0, size - 1);
  case PadMode::wrap:
    return ((i % size) + size) % size;
  case PadMode::reflect: {
    // Mirrors again and again when the padding is wider than the operand.
    int64_t period = size > 1 ? 2 * (size - 1) : 1;
    int64_t at = ((i % period) + period) % period;
    return at < size ? at : period - at;
  }
  case PadMode::constant:
    break;
  }
  llvm_unreachable("constant padding has no position");
}

static HostTensor pad(PadOp op, Operands in) {
  const HostTensor &x = in[0];
  HostTensor to = emptyLike(op.getResult());
  if (op.getMode() == PadMode::constant || x.numElements() == 0) {
    SmallVector<int64_t> starts;
    for (int64_t low : op.getLow())
      starts.push_back(-low);
    window(x, starts, to, in.size() > 1 ? in[1].data() : nullptr);
    return to;
  }
  std::vector<int64_t> strides = rowMajorStrides(x.getShape());
  SmallVector<Table> tables;
  for (int64_t dim = 0; dim < to.getRank(); ++dim) {
    Table table(to.getShape()[dim]);
    for (int64_t i = 0, e = table.size(); i < e; ++i)
      table[i] =
          strides[dim] *
          paddedPosition(op.getMode(), i - op.getLow()[dim], x.getShape()[dim]);
    tables.push_back(std::move(table));
  }
  copyByTables(x, tables, to);
  return to;
}

static HostTensor concat(ConcatOp op, Operands in) {
  HostTensor to = emptyLike(op.getResult());
  ArrayRef<int64_t> shape = to.getShape();
  int64_t dim = op.getDim();
  auto bytesPer = [&](ArrayRef<int64_t> sizes) {
    return std::accumulate(sizes.begin() + dim, sizes.end(),
                           byteSize(to.getType()), std::multiplies<>());
  };
  int64_t count = std::accumulate(shape.begin(), shape.begin() + dim,
                                  int64_t(1), std::multiplies<>());
  uint8_t *base = to.mutableData();
  int64_t offset = 0, pitch = bytesPer(shape);
  for (const HostTensor &part : in) {
    int64_t bytes = bytesPer(part.getShape());
    for (int64_t i = 0; bytes && i < count; ++i)
      std::memcpy(base + i * pitch + offset, part.data() + i * bytes, bytes);
    offset += bytes;
  }
  return to;
}

std::optional<Results> interpretShape(Operation *op, Operands in) {
  return llvm::TypeSwitch<Operation *, std::optional<Results>>(op)
      .Case([&](IotaOp o) { return Results{iota(o)}; })
      .Case([&](ReshapeOp o) {
        return Results{
            in[0].reshaped(toShape(tensorType(o.getResult()).getShape()))};
      })
      .Case([&](TransposeOp o) {
        return Results{transposed(in[0], o.getPermutation())};
      })
      .Case([&](BroadcastOp o) {
        return Results{
            broadcastTo(in[0], tensorType(o.getResult()).getShape())};
      })
      .Case([&](SliceOp o) { return Results{slice(o, in[0])}; })
      .Case([&](DynamicSliceOp o) { return Results{dynamicSlice(o, in)}; })
      .Case([&](ConcatOp o) { return Results{concat(o, in)}; })
      .Case([&](PadOp o) { return Results{pad(o, in)}; })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace ax::interpreter
