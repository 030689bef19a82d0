//===- PackedConv.cpp - Convolutions with weights packed for our kernels --===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A convolution is a product: a row is what the window of an output place sees,
// a column an output channel. With channels next to each other a window is a
// few runs of memory, which lie alike for all windows, so that products read
// them where they are. For example, a window of 3 x 3 of an image of 8 channels
// is 3 runs of 24 elements, each a line of the image behind the one before.
// What is padded, or has channels apart, is copied first, with zeros around it.
//
// A transposed convolution of stride s is s convolutions (along each
// dimension), each of every s-th place of the window and of the output: with a
// window of 4 and a stride of 2 even outputs are made of places 0 and 2, odd
// ones of 1 and 3.
//
//===----------------------------------------------------------------------===//

#include "ConvWindows.h"
#include "CpuLibrary.h"
#include "PackedProduct.h"
#include "Threads.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace ax::rt {

namespace {

/// The runs of a window of a group's channels.
std::vector<TileRun> runsOf(const Axes &axes, const TensorDesc &x,
                            int64_t channels) {
  const Axis &last = axes.back();
  int64_t step = last.placeStep * x.strides.back();
  int64_t together = step == channels ? last.places : 1;
  llvm::SmallVector<int64_t, 3> sizes;
  for (const Axis &axis : axes)
    sizes.push_back(axis.places);
  sizes.back() /= together;
  std::vector<TileRun> runs;
  forEachPlace(sizes, [&](llvm::ArrayRef<int64_t> place) {
    int64_t offset = 0;
    for (size_t d = 0; d < axes.size(); ++d)
      offset += place[d] * axes[d].placeStep * x.strides[d + 2];
    int64_t length = together * channels;
    for (int64_t at = 0; at < length; at += mostOfRun)
      runs.push_back({offset + at, std::min(mostOfRun, length - at)});
  });
  return runs;
}

PackedProductDesc productOf(const ConvDesc &desc, const Axes &axes,
                            const PaddedInput &input) {
  llvm::SmallVector<int64_t, 3> xBegins, xSteps, yBegins, ySteps;
  PackedProductDesc product;
  product.depth = desc.x.sizes[1] / desc.groups;
  for (auto [d, axis] : llvm::enumerate(axes)) {
    product.depth *= axis.places;
    xBegins.push_back(axis.xBegin + input.low[d]);
    xSteps.push_back(axis.xStep);
    yBegins.push_back(axis.yBegin);
    ySteps.push_back(axis.yStep);
  }
  product.columns = desc.y.sizes[1] / desc.groups;
  product.runs = runsOf(axes, input.view, desc.x.sizes[1] / desc.groups);
  product.rowsPerLine = axes.back().outputs;
  product.aLines = linesOf(axes, input.view, xBegins, xSteps);
  product.aStride = axes.back().xStep * input.view.strides.back();
  product.cLines = linesOf(axes, desc.y, yBegins, ySteps);
  product.cStride = axes.back().yStep * desc.y.strides.back();
  product.residualRowStride = product.cStride;
  if (desc.y.sizes[1] > 1)
    product.cColumnStride = product.residualColumnStride = desc.y.strides[1];
  product.activation = desc.activation;
  product.activationLast = desc.activationLast;
  return product;
}

/// A convolution, or that of some residues of a transposed one's strides, of
/// one group.
struct Part {
  Axes axes;
  PackedProduct product;
};

/// The panels of one group, whose weights begin at `from`.
void packPart(const ConvDesc &desc, const Part &part, const float *from,
              float *to) {
  int64_t channels = desc.x.sizes[1] / desc.groups;
  int64_t channelStride = desc.w.strides[1], columnStride = desc.w.strides[0];
  if (desc.kind == ConvKind::Transposed)
    std::swap(channelStride, columnStride);
  llvm::SmallVector<int64_t, 3> sizes;
  for (const Axis &axis : part.axes)
    sizes.push_back(axis.places);
  // Weights of a window lie together as a rule: of as many channels as stay in
  // the cache until all places have had theirs.
  constexpr int64_t most = 16;
  for (int64_t channel = 0; channel < channels; channel += most) {
    int64_t row = channel, count = std::min(most, channels - channel);
    forEachPlace(sizes, [&](llvm::ArrayRef<int64_t> place) {
      int64_t offset = channel * channelStride;
      for (auto [d, axis] : llvm::enumerate(part.axes))
        offset += (axis.wBegin + place[d] * axis.wStep) * desc.w.strides[d + 2];
      part.product.packPanels(
          {from + offset, row, count, channelStride, columnStride}, to);
      row += channels;
    });
  }
}

/// Elements of the panels of all groups and parts.
int64_t countPanels(const ConvDesc &desc, llvm::ArrayRef<Part> parts) {
  int64_t elements = 0;
  for (const Part &part : parts)
    elements += part.product.getPanelElements();
  return desc.groups * elements;
}

void packWeights(const ConvDesc &desc, llvm::ArrayRef<Part> parts,
                 const float *from, float *to) {
  int64_t ofGroup = desc.w.sizes[0] / desc.groups * desc.w.strides[0];
  for (int64_t group = 0; group < desc.groups; ++group)
    for (const Part &part : parts) {
      packPart(desc, part, from + group * ofGroup, to);
      to += part.product.getPanelElements();
    }
}

class PackedConv : public CpuOp {
public:
  /// Weights that change are null, and packed in each call.
  PackedConv(const ConvDesc &desc, PaddedInput input, std::vector<Part> parts,
             bool sharesUnits, std::shared_ptr<const HostMemory> weights)
      : desc(desc), input(std::move(input)), parts(std::move(parts)),
        sharesUnits(sharesUnits), weights(std::move(weights)) {
    readsConstantOperand = !this->weights;
    for (const Part &part : this->parts)
      productBytes = std::max(productBytes, part.product.getWorkspaceBytes());
    workspaceBytes = copiedBytes() + packedBytes() +
                     (sharesUnits ? threads : 1) * productBytes;
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    auto *copied = static_cast<float *>(workspace);
    auto *packed = copied + copiedBytes() / sizeof(float);
    const auto *x = static_cast<const float *>(arguments[0]);
    if (input.isCopy) {
      input.copy(desc.x, x, copied);
      x = copied;
    }
    PackedProduct::Operands operands = {};
    if (weights) {
      operands.b = static_cast<const float *>(weights->getData());
    } else {
      packWeights(desc, parts, static_cast<const float *>(arguments[1]),
                  packed);
      operands.b = packed;
    }
    operands.bEnd = operands.b + countPanels(desc, parts);
    operands.workspace = packed + packedBytes() / sizeof(float);
    int next = 2;
    if (desc.hasBias)
      operands.bias = static_cast<float *>(arguments[next++]);
    if (desc.hasResidual)
      operands.residual = static_cast<float *>(arguments[next++]);
    operands.c = static_cast<float *>(arguments[next]);
    operands.a = x;
    runGroups(operands);
    return llvm::Error::success();
  }

private:
  /// `operands` are those of the first group. Where there are as many products
  /// as threads, each is a thread's.
  void runGroups(const PackedProduct::Operands &operands) const {
    auto count = static_cast<int64_t>(parts.size());
    auto run = [&](int64_t unit, int64_t range) {
      PackedProduct::Operands ofUnit = operands;
      ofUnit.workspace =
          static_cast<char *>(operands.workspace) + range * productBytes;
      runUnit(unit / count, parts[static_cast<size_t>(unit % count)], ofUnit);
    };
    int64_t units = desc.groups * count;
    if (!sharesUnits) {
      for (int64_t unit = 0; unit < units; ++unit)
        run(unit, 0);
      return;
    }
    int64_t perRange = llvm::divideCeil(units, threads);
    parallelFor(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        for (int64_t unit = r * perRange;
             unit < std::min(units, (r + 1) * perRange); ++unit)
          run(unit, r);
    });
  }
  void runUnit(int64_t group, const Part &part,
               PackedProduct::Operands operands) const {
    int64_t columns = desc.y.sizes[1] / desc.groups;
    int64_t apart = group * columns * desc.y.strides[1];
    operands.a += group * (desc.x.sizes[1] / desc.groups);
    operands.b += group * (countPanels(desc, parts) / desc.groups);
    for (const Part *before = parts.data(); before != &part; ++before)
      operands.b += before->product.getPanelElements();
    operands.c += apart;
    if (operands.bias)
      operands.bias += group * columns;
    if (operands.residual)
      operands.residual += apart;
    part.product.run(operands, nullptr);
  }
  int64_t copiedBytes() const { return floatBytes(input.countCopied()); }
  int64_t packedBytes() const {
    return weights ? 0 : floatBytes(countPanels(desc, parts));
  }

  ConvDesc desc;
  PaddedInput input;
  std::vector<Part> parts;
  /// Each thread has products of its own.
  bool sharesUnits;
  int64_t threads = getNumThreads(), productBytes = 0;
  std::shared_ptr<const HostMemory> weights;
};

bool isPackable(const ConvDesc &desc) {
  bool isTransposed = desc.kind == ConvKind::Transposed;
  return vectorKernels().directTile && desc.kind != ConvKind::WeightGradient &&
         desc.x.dtype == DType::F32 && desc.y.dtype == DType::F32 &&
         desc.y.numElements() > 0 && desc.w.numElements() > 0 &&
         (!isTransposed ||
          (llvm::all_of(desc.dilations, [](int64_t d) { return d == 1; }) &&
           llvm::all_of(desc.padsLow, [](int64_t pad) { return pad >= 0; })));
}

std::string formatOf(const ConvDesc &desc, llvm::ArrayRef<Part> parts) {
  std::string format =
      std::string(desc.kind == ConvKind::Transposed ? "transposed " : "conv ") +
      std::to_string(vectorKernels().panelWidth) + " " +
      std::to_string(desc.groups);
  for (size_t d = 0; d < desc.w.sizes.size(); ++d)
    format += " " + std::to_string(desc.w.sizes[d]) + ":" +
              std::to_string(desc.w.strides[d]);
  for (const Part &part : parts)
    format += part.product.isOfFewColumns() ? " columns" : " panels";
  // These, and how far the output reaches, say which residue is first.
  if (desc.kind == ConvKind::Transposed)
    for (size_t d = 0; d < desc.strides.size(); ++d)
      format += " " + std::to_string(desc.strides[d]) + ":" +
                std::to_string(desc.padsLow[d]) + ":" +
                std::to_string(desc.y.sizes[d + 2]);
  return format;
}

} // namespace

ExpectedCpuOp preparePackedConv(const ConvDesc &desc,
                                const CpuConstant &constant,
                                PackedWeights &packed) {
  if (!isPackable(desc))
    return nullptr;
  // Of a transposed one with large strides they are many small products.
  constexpr size_t mostParts = 64;
  std::vector<Axes> all = findAxes(desc, mostParts);
  if (all.empty())
    return nullptr;
  PaddedInput input(desc, all);
  if (!input.isWorthwhile)
    return nullptr;
  int64_t threads = getNumThreads();
  bool sharesUnits =
      threads > 1 && desc.groups * static_cast<int64_t>(all.size()) >= threads;
  std::vector<Part> parts;
  for (const Axes &axes : all)
    parts.push_back({axes, PackedProduct(productOf(desc, axes, input),
                                         sharesUnits ? 1 : threads)});
  std::shared_ptr<const HostMemory> weights;
  if (desc.constantW && constant.data) {
    auto made = packed.get(
        constant, formatOf(desc, parts), floatBytes(countPanels(desc, parts)),
        [&](void *to) {
          packWeights(desc, parts, static_cast<const float *>(constant.data),
                      static_cast<float *>(to));
          return llvm::Error::success();
        });
    if (!made)
      return made.takeError();
    weights = std::move(*made);
  }
  return std::make_unique<PackedConv>(desc, std::move(input), std::move(parts),
                                      sharesUnits, std::move(weights));
}

} // namespace ax::rt
