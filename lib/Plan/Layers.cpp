//===- Layers.cpp - Linears, convolutions, attention, embeddings ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Plan/Layers.h"

#include "ax/Cost/OpCost.h"

using namespace mlir;
using namespace ax;
using namespace ax::plan;

static NamedSplit splitOf(const NamedDims &named, const sharding::Mesh &mesh) {
  const sharding::Layout &layout = getLayout(tensorType(named.value), mesh);
  NamedSplit all{named.name.str(), 1, {}};
  for (int64_t dim : named.dims) {
    all.size *= layout.dims[dim].size();
    llvm::append_range(all.axes, layout.dims[dim].axes());
  }
  return all;
}

/// A table of weights, one row for each index.
static GatherOp asEmbedding(Operation *op) {
  auto gather = dyn_cast<GatherOp>(op);
  bool fits = gather && gather.getOperand().getDefiningOp<LoadOp>() &&
              gather.getAxis() == 0 &&
              tensorType(gather.getOperand()).getRank() == 2;
  return fits ? gather : GatherOp();
}

std::optional<Layer> plan::findLayer(Operation *op,
                                     const sharding::Mesh &mesh) {
  Layer layer;
  layer.op = op;
  SmallVector<NamedDims> named;
  if (auto contraction = dyn_cast<ContractionOpInterface>(op)) {
    layer.kind = contraction.getKindName();
    named = contraction.getNamedDims();
  } else if (GatherOp gather = asEmbedding(op)) {
    layer.kind = "embedding";
    named = {{"vocabulary", gather.getOperand(), {0}},
             {"hidden", gather.getOperand(), {1}}};
  }
  if (named.empty())
    return std::nullopt;
  for (const NamedDims &dims : named)
    layer.splits.push_back(splitOf(dims, mesh));
  layer.node = getNodeName(op).str();
  layer.wholeFlops = cost::wholeFlops(op);
  return layer;
}
