//===- KnownLayouts.cpp - What types say, remembered ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KnownLayouts.h"

using namespace mlir;
using namespace ax;

KnownLayouts &KnownLayouts::get(MLIRContext *context) {
  return context->getOrLoadDialect<AxDialect>()->knownLayouts->known.get();
}

LayoutsOnMesh &KnownLayouts::on(const sharding::Mesh &mesh) {
  if (last && last->mesh == mesh)
    return *last;
  auto at = llvm::find_if(
      meshes, [&](const LayoutsOnMesh &known) { return known.mesh == mesh; });
  last = at == meshes.end() ? &meshes.emplace_back(mesh) : &*at;
  return *last;
}

const sharding::Mesh &KnownLayouts::meshOf(MeshOp op) {
  Axes key(op.getNamesAttr(), op.getSizesAttr(), op.getNumSpaceAttr());
  std::unique_ptr<sharding::Mesh> &mesh = byAttributes[key];
  if (!mesh) {
    std::vector<sharding::Axis> axes;
    for (auto [i, name] :
         llvm::enumerate(op.getNames().getAsValueRange<StringAttr>()))
      axes.push_back({name.str(), op.getSizes()[i], i >= op.getNumSpace()});
    mesh = std::make_unique<sharding::Mesh>(std::move(axes));
  }
  return *mesh;
}

const sharding::Layout &LayoutsOnMesh::layoutOf(RankedTensorType type) {
  std::unique_ptr<sharding::Layout> &known = layouts[type];
  if (!known) {
    auto attr = dyn_cast_or_null<LayoutAttr>(type.getEncoding());
    known = std::make_unique<sharding::Layout>(
        attr ? sharding::canonicalize(attr.resolve(type.getShape(), mesh))
             : sharding::Layout::replicated(type.getShape().vec()));
  }
  return *known;
}

RankedTensorType LayoutsOnMesh::localPartOf(RankedTensorType type) {
  RankedTensorType &known = localParts[type];
  if (!known) {
    const sharding::Layout &layout = layoutOf(type);
    Type element = type.getElementType();
    if (!layout.partial.empty() &&
        layout.partialKind == sharding::ReduceKind::Sum &&
        isNarrowFloat(element))
      element = Float32Type::get(type.getContext());
    known = RankedTensorType::get(layout.localShape(), element);
  }
  return known;
}
