//===- Layers.cpp - Linears, convolutions, attention, embeddings ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Plan/Layers.h"

#include "ax/Cost/OpCost.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace ax;
using namespace ax::plan;

std::string plan::bytesText(int64_t bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = bytes;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  return llvm::formatv(unit == 0 ? "{0:F0} {1}" : "{0:F1} {1}", value,
                       units[unit]);
}

std::string plan::countText(double n, const char *unit) {
  const char *prefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t p = 0;
  for (; n >= 1000 && p + 1 < std::size(prefixes); ++p)
    n /= 1000;
  return llvm::formatv(p == 0 ? "{0:F0} {1}{2}" : "{0:F2} {1}{2}", n,
                       prefixes[p], unit);
}

namespace {

struct Splits {
  NamedSplit split(StringRef name, Value value, int64_t dim) const {
    sharding::DimLayout layout = getLayout(tensorType(value), mesh).dims[dim];
    return {name.str(), layout.size(), layout.axes()};
  }
  /// Dimensions `first` .. `last` - 1 of `value`, as one.
  NamedSplit split(StringRef name, Value value, int64_t first,
                   int64_t last) const {
    NamedSplit all{name.str(), 1, {}};
    for (int64_t dim = first; dim < last; ++dim) {
      NamedSplit one = split(name, value, dim);
      all.size *= one.size;
      llvm::append_range(all.axes, one.axes);
    }
    return all;
  }

  const sharding::Mesh &mesh;
};

} // namespace

static bool isWeight(Value value) {
  return value.getDefiningOp<LoadOp>() != nullptr;
}

std::optional<Layer> plan::findLayer(Operation *op,
                                     const sharding::Mesh &mesh) {
  Splits splits{mesh};
  Layer layer;
  layer.op = op;
  bool known =
      llvm::TypeSwitch<Operation *, bool>(op)
          .Case<LinearOp>([&](LinearOp linear) {
            int64_t last = tensorType(linear.getX()).getRank() - 1;
            layer.kind = "linear";
            layer.splits = {splits.split("k", linear.getX(), last),
                            splits.split("n", linear.getResult(), last),
                            splits.split("rows", linear.getResult(), 0, last)};
            return true;
          })
          .Case<ConvOp, ConvTransposeOp>([&](auto conv) {
            layer.kind = "convolution";
            layer.splits = {
                splits.split("input channels", conv.getX(), 1),
                splits.split("output channels", conv.getResult(), 1),
                splits.split("batch", conv.getResult(), 0)};
            return true;
          })
          .Case<AttentionOp>([&](AttentionOp attention) {
            layer.kind = "attention";
            layer.splits = {splits.split("heads", attention.getQ(), 1),
                            splits.split("kv heads", attention.getK(), 1),
                            splits.split("queries", attention.getQ(), 2),
                            splits.split("batch", attention.getQ(), 0)};
            return true;
          })
          .Case<DotOp>([&](DotOp dot) {
            layer.kind = "dot";
            int64_t batch = dot.getLhsBatch().size();
            int64_t left = tensorType(dot.getLhs()).getRank() -
                           dot.getLhsContract().size();
            int64_t rank = tensorType(dot.getResult()).getRank();
            layer.splits = {
                splits.split("batch", dot.getResult(), 0, batch),
                splits.split("rows", dot.getResult(), batch, left),
                splits.split("columns", dot.getResult(), left, rank)};
            NamedSplit summed{"k", 1, {}};
            for (int64_t dim : dot.getLhsContract()) {
              NamedSplit one = splits.split("k", dot.getLhs(), dim);
              summed.size *= one.size;
              llvm::append_range(summed.axes, one.axes);
            }
            layer.splits.push_back(summed);
            return true;
          })
          .Case<GatherOp>([&](GatherOp gather) {
            if (!isWeight(gather.getOperand()) || gather.getAxis() != 0 ||
                tensorType(gather.getOperand()).getRank() != 2)
              return false;
            layer.kind = "embedding";
            layer.splits = {splits.split("vocabulary", gather.getOperand(), 0),
                            splits.split("hidden", gather.getOperand(), 1)};
            return true;
          })
          .Default([](Operation *) { return false; });
  if (!known)
    return std::nullopt;
  layer.node = getNodeName(op).str();
  layer.wholeFlops = cost::wholeFlops(op);
  return layer;
}
