//===- PackedConv.cpp - Convolutions with weights packed for our kernels --===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A convolution is a product: a row is what the window of an output place sees,
// a column an output channel. Windows are gathered when tiles of rows are
// packed, and are never in memory as a whole. For example, of an image of 8
// channels a window of 3 x 3 is 3 runs of 24 elements, each zero where it lies
// in the padding.
//
//===----------------------------------------------------------------------===//

#include "CpuLibrary.h"
#include "PackedProduct.h"

#include "llvm/ADT/ArrayRef.h"

#include <algorithm>
#include <cstring>

namespace ax::rt {

namespace {

/// Writes a row of a tile, [depth / packedK][rows][packedK].
class RowWriter {
public:
  RowWriter(float *to, int64_t rows) : to(to), next(rows * packedK) {}

  void copy(const float *from, int64_t count) {
    inPieces(
        count,
        [&](float *piece, int64_t size) {
          std::copy(from, from + size, piece);
          from += size;
        },
        [&](float *piece) {
          std::memcpy(piece, from, packedK * sizeof(float));
          from += packedK;
        });
  }
  void zero(int64_t count) {
    inPieces(
        count,
        [](float *piece, int64_t size) {
          std::fill(piece, piece + size, 0.0f);
        },
        [](float *piece) { std::memset(piece, 0, packedK * sizeof(float)); });
  }

private:
  /// Pieces up to where the next one begins, and whole ones, which are of a
  /// size that the compiler knows.
  template <typename Part, typename Whole>
  void inPieces(int64_t count, Part &&part, Whole &&whole) {
    if (lane > 0) {
      int64_t size = std::min(count, packedK - lane);
      part(to + lane, size);
      count -= size;
      lane += size;
      if (lane < packedK)
        return;
      lane = 0;
      to += next;
    }
    for (; count >= packedK; count -= packedK, to += next)
      whole(to);
    if (count > 0)
      part(to, count);
    lane = count;
  }

  /// Where the piece begins that is being written, and from one to the next.
  float *to;
  int64_t next, lane = 0;
};

/// What windows see of an x whose channels are next to each other.
class Windows {
public:
  explicit Windows(const ConvDesc &descIn) : desc(descIn) {
    size_t last = desc.strides.size() - 1;
    channels = desc.x.sizes[1] / desc.groups;
    places = desc.w.sizes[last + 2];
    step = desc.dilations[last] * desc.x.strides[last + 2];
    isRun = step == channels || places == 1;
    for (size_t d = 0; d < last; ++d)
      lines *= desc.w.sizes[d + 2];
  }

  int64_t getDepth() const { return lines * places * channels; }

  /// `x` is where the group's channels begin.
  void pack(const float *x, int64_t first, int64_t rows, float *to) const {
    for (int64_t r = 0; r < rows; ++r)
      packRow(x, first + r, RowWriter(to + r * packedK, rows));
  }

private:
  void packRow(const float *x, int64_t row, RowWriter writer) const {
    constexpr size_t mostDims = 3;
    int64_t begin[mostDims] = {};
    size_t last = desc.strides.size() - 1;
    for (size_t d = last + 1; d-- > 0;) {
      int64_t size = desc.y.sizes[d + 2];
      begin[d] = row % size * desc.strides[d] - desc.padsLow[d];
      row /= size;
    }
    int64_t start =
        row * desc.x.strides[0] + begin[last] * desc.x.strides[last + 2];
    for (int64_t line = 0; line < lines; ++line) {
      int64_t offset = start, rest = line;
      bool inside = true;
      for (size_t d = last; d-- > 0;) {
        int64_t at = begin[d] + rest % desc.w.sizes[d + 2] * desc.dilations[d];
        rest /= desc.w.sizes[d + 2];
        inside &= at >= 0 && at < desc.x.sizes[d + 2];
        offset += at * desc.x.strides[d + 2];
      }
      if (inside)
        packLine(x, offset, begin[last], writer);
      else
        writer.zero(places * channels);
    }
  }

  /// `begin` is where the line begins in the last dimension of x, and `offset`
  /// the place in memory of what is there, or would be.
  void packLine(const float *x, int64_t offset, int64_t begin,
                RowWriter &writer) const {
    int64_t dilation = desc.dilations.back(), size = desc.x.sizes.back();
    // Places below `low` see padding, and those from `high` on.
    auto placesBelow = [&](int64_t at) {
      return std::clamp<int64_t>((at - begin + dilation - 1) / dilation, 0,
                                 places);
    };
    int64_t low = begin < 0 ? placesBelow(0) : 0;
    int64_t high = begin < size ? placesBelow(size) : 0;
    if (low >= high)
      return writer.zero(places * channels);
    writer.zero(low * channels);
    if (isRun)
      writer.copy(x + offset + low * step, (high - low) * channels);
    else
      for (int64_t p = low; p < high; ++p)
        writer.copy(x + offset + p * step, channels);
    writer.zero((places - high) * channels);
  }

  ConvDesc desc;
  /// A window has lines along the last dimension, each of some places.
  int64_t channels, lines = 1, places;
  /// From one place of a line to the next, in elements.
  int64_t step;
  /// A line's places are next to each other.
  bool isRun;
};

class PackedConv : public CpuOp {
public:
  PackedConv(const ConvDesc &desc, const PackedProductDesc &sizes,
             std::shared_ptr<const HostMemory> weights)
      : desc(desc), windows(desc), weights(std::move(weights)), product(sizes),
        columns(sizes.columns) {
    readsConstantOperand = false;
    workspaceBytes = product.getWorkspaceBytes();
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    const auto *x = static_cast<const float *>(arguments[0]);
    int next = 2;
    const auto *bias =
        desc.hasBias ? static_cast<float *>(arguments[next++]) : nullptr;
    const auto *residual =
        desc.hasResidual ? static_cast<float *>(arguments[next++]) : nullptr;
    auto *y = static_cast<float *>(arguments[next]);
    const auto *b = static_cast<const float *>(weights->getData());
    int64_t elements = panelElements(windows.getDepth(), columns);
    int64_t channels = desc.x.sizes[1] / desc.groups;
    for (int64_t group = 0; group < desc.groups; ++group) {
      PackedProduct::Operands operands = {};
      operands.b = b + group * elements;
      operands.bEnd = b + desc.groups * elements;
      int64_t column = group * columns;
      operands.bias = bias ? bias + column : nullptr;
      operands.residual = residual ? residual + column : nullptr;
      operands.c = y + column;
      operands.workspace = workspace;
      product.run(operands, [&](int64_t first, int64_t rows, float *to) {
        windows.pack(x + group * channels, first, rows, to);
      });
    }
    return llvm::Error::success();
  }

private:
  ConvDesc desc;
  Windows windows;
  std::shared_ptr<const HostMemory> weights;
  PackedProduct product;
  int64_t columns;
};

/// How far apart y's places are, in row-major order, batches included; nothing
/// where that differs.
std::optional<int64_t> placeStride(const TensorDesc &y) {
  std::optional<int64_t> stride;
  int64_t expected = 0;
  for (size_t d = y.sizes.size(); d-- > 0;) {
    if (d == 1 || y.sizes[d] == 1)
      continue;
    if (!stride)
      stride = expected = y.strides[d];
    if (y.strides[d] != expected)
      return std::nullopt;
    expected *= y.sizes[d];
  }
  return stride.value_or(y.sizes[1]);
}

bool hasChannelsTogether(const TensorDesc &view) {
  return view.strides[1] == 1 || view.sizes[1] == 1;
}

/// Of each group panels: [place of the window, channel] x [output channel].
void packWeights(const ConvDesc &desc, const float *from, int64_t depth,
                 int64_t columns, float *to) {
  const TensorDesc &w = desc.w;
  int64_t channels = w.sizes[1];
  for (int64_t group = 0; group < desc.groups; ++group) {
    for (int64_t row = 0; row < depth; row += channels) {
      int64_t place = row / channels, offset = group * columns * w.strides[0];
      for (size_t d = w.sizes.size(); d-- > 2;) {
        offset += place % w.sizes[d] * w.strides[d];
        place /= w.sizes[d];
      }
      packPanels({from + offset, row, channels, w.strides[1], w.strides[0]},
                 depth, columns, to);
    }
    to += panelElements(depth, columns);
  }
}

} // namespace

ExpectedCpuOp preparePackedConv(const ConvDesc &desc,
                                const CpuConstant &constant,
                                PackedWeights &packed) {
  if (!vectorKernels().packedTile || desc.kind != ConvKind::Forward ||
      !desc.constantW || !constant.data || desc.x.dtype != DType::F32 ||
      desc.y.dtype != DType::F32 || desc.strides.size() > 3 ||
      !hasChannelsTogether(desc.x) || !hasChannelsTogether(desc.y))
    return nullptr;
  PackedProductDesc sizes;
  sizes.rows = desc.y.sizes[0];
  for (size_t d = 2; d < desc.y.sizes.size(); ++d)
    sizes.rows *= desc.y.sizes[d];
  sizes.columns = desc.y.sizes[1] / desc.groups;
  sizes.depth = Windows(desc).getDepth();
  std::optional<int64_t> stride = placeStride(desc.y);
  if (!stride || sizes.rows == 0 || sizes.columns == 0 || sizes.depth == 0)
    return nullptr;
  sizes.cStride = sizes.residualRowStride = *stride;
  sizes.activation = desc.activation;
  sizes.activationLast = desc.activationLast;
  std::string format = "conv panels " +
                       std::to_string(vectorKernels().panelWidth) + " " +
                       std::to_string(desc.groups);
  for (size_t d = 0; d < desc.w.sizes.size(); ++d)
    format += " " + std::to_string(desc.w.sizes[d]) + ":" +
              std::to_string(desc.w.strides[d]);
  int64_t elements = desc.groups * panelElements(sizes.depth, sizes.columns);
  llvm::Expected<std::shared_ptr<const HostMemory>> weights = packed.get(
      constant, format, elements * static_cast<int64_t>(sizeof(float)),
      [&](void *to) {
        packWeights(desc, static_cast<const float *>(constant.data),
                    sizes.depth, sizes.columns, static_cast<float *>(to));
        return llvm::Error::success();
      });
  if (!weights)
    return weights.takeError();
  return std::make_unique<PackedConv>(desc, sizes, std::move(*weights));
}

} // namespace ax::rt
