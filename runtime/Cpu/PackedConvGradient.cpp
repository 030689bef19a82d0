//===- PackedConvGradient.cpp - Gradients of convolutions' weights --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradient of a weight is a product, too: a row is an input channel at a
// place of the window, a column an output channel, and what is summed up are
// all outputs. With channels next to each other rows are, too; an output's
// neighbours see what is some channels further. The gradient of y is packed
// into panels in each call.
//
//===----------------------------------------------------------------------===//

#include "ConvWindows.h"
#include "CpuLibrary.h"
#include "PackedProduct.h"
#include "Threads.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace ax::rt {

namespace {

/// Runs of what a row sees: the outputs of a line, or of a part of it.
std::vector<TileRun> runsOf(llvm::ArrayRef<int64_t> lines, int64_t outputs,
                            int64_t step) {
  std::vector<TileRun> runs;
  for (int64_t line : lines)
    for (int64_t at = 0; at < outputs; at += mostOfRun)
      runs.push_back({line + at * step, std::min(mostOfRun, outputs - at)});
  return runs;
}

/// Where each place of a window lies from its first one in `view`, places being
/// `steps` apart.
std::vector<int64_t> placesOf(const Axes &axes, const TensorDesc &view,
                              llvm::ArrayRef<int64_t> steps) {
  llvm::SmallVector<int64_t, 3> sizes;
  for (const Axis &axis : axes)
    sizes.push_back(axis.places);
  std::vector<int64_t> offsets;
  forEachPlace(sizes, [&](llvm::ArrayRef<int64_t> place) {
    int64_t offset = 0;
    for (size_t d = 0; d < place.size(); ++d)
      offset += place[d] * steps[d] * view.strides[d + 2];
    offsets.push_back(offset);
  });
  return offsets;
}

/// Of one group.
PackedProductDesc productOf(const ConvDesc &desc, const Axes &axes,
                            const PaddedInput &input) {
  llvm::SmallVector<int64_t, 3> xBegins, xSteps, placeSteps, ones;
  for (auto [d, axis] : llvm::enumerate(axes)) {
    xBegins.push_back(axis.xBegin + input.low[d]);
    xSteps.push_back(axis.xStep);
    placeSteps.push_back(axis.placeStep);
    ones.push_back(1);
  }
  int64_t outputs = axes.back().outputs;
  std::vector<int64_t> lines = linesOf(axes, input.view, xBegins, xSteps);
  PackedProductDesc product;
  product.rowsPerLine = desc.x.sizes[1] / desc.groups;
  product.columns = desc.y.sizes[1] / desc.groups;
  product.depth = static_cast<int64_t>(lines.size()) * outputs;
  product.aStep = xSteps.back() * input.view.strides.back();
  product.aStride = 1;
  product.runs = runsOf(lines, outputs, product.aStep);
  product.aLines = placesOf(axes, input.view, placeSteps);
  product.cLines = placesOf(axes, desc.w, ones);
  product.cStride = desc.w.strides[1];
  product.cColumnStride = desc.w.strides[0];
  return product;
}

class PackedConvGradient : public CpuOp {
public:
  PackedConvGradient(const ConvDesc &desc, const Axes &axes,
                     PaddedInput inputIn)
      : desc(desc), input(std::move(inputIn)),
        product(productOf(desc, axes, input), getNumThreads()),
        outputs(axes.back().outputs) {
    llvm::SmallVector<int64_t, 3> zeros(axes.size(), 0), ones(axes.size(), 1);
    yLines = linesOf(axes, desc.y, zeros, ones);
    workspaceBytes = floatBytes(input.countCopied()) +
                     floatBytes(product.getPanelElements()) +
                     product.getWorkspaceBytes();
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    const auto *x = static_cast<const float *>(arguments[0]);
    const auto *y = static_cast<const float *>(arguments[1]);
    auto *at = static_cast<char *>(workspace);
    if (input.isCopy) {
      input.copy(desc.x, x, reinterpret_cast<float *>(at));
      x = reinterpret_cast<const float *>(at);
      at += floatBytes(input.countCopied());
    }
    auto *panels = reinterpret_cast<float *>(at);
    PackedProduct::Operands operands = {};
    operands.b = panels;
    operands.bEnd = panels + product.getPanelElements();
    operands.workspace = at + floatBytes(product.getPanelElements());
    int64_t channels = desc.x.sizes[1] / desc.groups;
    int64_t columns = desc.y.sizes[1] / desc.groups;
    for (int64_t group = 0; group < desc.groups; ++group) {
      packOutputs(y + group * columns * desc.y.strides[1], panels);
      operands.a = x + group * channels;
      operands.c = static_cast<float *>(arguments[2]) +
                   group * columns * desc.w.strides[0];
      product.run(operands, nullptr);
    }
    return llvm::Error::success();
  }

private:
  void packOutputs(const float *y, float *panels) const {
    int64_t row = 0;
    for (int64_t line : yLines) {
      product.packPanels(
          {y + line, row, outputs, desc.y.strides.back(), desc.y.strides[1]},
          panels);
      row += outputs;
    }
  }

  ConvDesc desc;
  PaddedInput input;
  PackedProduct product;
  int64_t outputs;
  std::vector<int64_t> yLines;
};

} // namespace

ExpectedCpuOp preparePackedConvGradient(const ConvDesc &desc) {
  if (!vectorKernels().transposedTile ||
      desc.kind != ConvKind::WeightGradient || desc.x.dtype != DType::F32 ||
      desc.y.dtype != DType::F32 || desc.w.dtype != DType::F32 ||
      desc.y.numElements() == 0 || desc.w.numElements() == 0)
    return nullptr;
  std::vector<Axes> axes = findAxes(desc, 1);
  if (axes.empty())
    return nullptr;
  PaddedInput input(desc, axes);
  if (!input.isWorthwhile)
    return nullptr;
  return std::make_unique<PackedConvGradient>(desc, axes.front(),
                                              std::move(input));
}

} // namespace ax::rt
