//===- Shardings.cpp - What propagation found, as attributes --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Shardings.h"
#include "PinLists.h"

#include "ax/Dialect/Pins.h"
#include "ax/Sharding/Digits.h"

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

void ax::writeShardings(const ShardGraph &graph, const Shardings &shardings,
                        const Mesh &mesh) {
  if (graph.values.empty())
    return;
  MLIRContext *context = graph.values.front().getContext();
  std::vector<LayoutAttr> layouts;
  for (const Layout &layout : shardings.layouts)
    layouts.push_back(LayoutAttr::get(context, layout, mesh));
  std::vector<AxesAttr> axes;
  for (const SubAxes &list : shardings.axes)
    axes.push_back(AxesAttr::get(context, list, mesh));
  std::vector<StringAttr> causes;
  for (const std::string &cause : shardings.causes)
    causes.push_back(StringAttr::get(context, cause));

  SmallVector<LayoutAttr> operands, results;
  SmallVector<AxesAttr> split;
  SmallVector<StringAttr> reasons;
  for (auto [op, sharding] : llvm::zip_equal(graph.ops, shardings.ops)) {
    operands.clear();
    results.clear();
    split.clear();
    reasons.clear();
    for (int number : sharding.operands)
      operands.push_back(layouts[number]);
    for (int number : sharding.results)
      results.push_back(layouts[number]);
    for (auto [list, cause] : sharding.because) {
      split.push_back(axes[list]);
      reasons.push_back(causes[cause]);
    }
    op->setDiscardableAttr(
        kSharding,
        ShardingAttr::get(context, operands, results, split, reasons));
  }
  for (auto [tensor, value] : llvm::enumerate(graph.values))
    if (graph.graph.tensors[tensor].role != TensorRole::Value)
      setShardAttr(value, kSharding,
                   ShardingAttr::get(context, {},
                                     layouts[shardings.tensors[tensor]], {},
                                     {}));
}

namespace {

/// Numbers of what attributes say, each of which is read once.
class ShardingReader {
public:
  explicit ShardingReader(const Mesh &mesh) : mesh(mesh) {}

  /// A layout's sizes come from the tensor that it is of.
  int layout(LayoutAttr attr, Value value) {
    auto [at, isNew] =
        layoutNumbers.try_emplace({attr, value.getType()}, read.layouts.size());
    if (isNew)
      read.layouts.push_back(
          canonicalize(attr.resolve(tensorType(value).getShape(), mesh)));
    return at->second;
  }
  int axes(AxesAttr attr) {
    auto [at, isNew] = axesNumbers.try_emplace(attr, read.axes.size());
    if (isNew)
      read.axes.push_back(attr.resolve(mesh));
    return at->second;
  }
  int cause(StringAttr attr) {
    auto [at, isNew] = causeNumbers.try_emplace(attr, read.causes.size());
    if (isNew)
      read.causes.push_back(attr.str());
    return at->second;
  }

  Shardings read;

private:
  const Mesh &mesh;
  llvm::DenseMap<std::pair<Attribute, Type>, int> layoutNumbers;
  llvm::DenseMap<Attribute, int> axesNumbers, causeNumbers;
};

} // namespace

FailureOr<Shardings> ax::readShardings(const ShardGraph &graph,
                                       const Mesh &mesh) {
  ShardingReader reader(mesh);
  Shardings &read = reader.read;
  for (Value value : graph.values)
    if (!getShardAttr(value, kSharding))
      return emitError(value.getLoc())
             << "has no " << kSharding
             << ": ax-propagate goes before ax-insert-reshards";
  for (Operation *op : graph.ops) {
    auto sharding = cast<ShardingAttr>(op->getDiscardableAttr(kSharding));
    Shardings::Op &made = read.ops.emplace_back();
    for (auto [layout, operand] :
         llvm::zip_equal(sharding.getOperands(), op->getOperands()))
      made.operands.push_back(reader.layout(layout, operand));
    for (auto [layout, result] :
         llvm::zip_equal(sharding.getResults(), op->getResults()))
      made.results.push_back(reader.layout(layout, result));
    for (auto [list, cause] :
         llvm::zip_equal(sharding.getAxes(), sharding.getReasons()))
      made.because.emplace_back(reader.axes(list), reader.cause(cause));
  }
  for (Value value : graph.values) {
    auto result = dyn_cast<OpResult>(value);
    auto sharding = cast<ShardingAttr>(getShardAttr(value, kSharding));
    read.tensors.push_back(reader.layout(
        sharding.getResults()[result ? result.getResultNumber() : 0], value));
  }
  return std::move(read);
}

Layout ax::withoutTime(Layout layout, const Mesh &mesh) {
  for (DimLayout &dim : layout.dims) {
    SubAxes inTime;
    for (const SubAxis &axis : dim.axes())
      if (mesh.isInTime(axis))
        inTime.push_back(axis);
    if (!inTime.empty())
      dim = unsplit(dim, inTime).value_or(DimLayout::whole(dim.size()));
  }
  return canonicalize(layout);
}
