//===- Dialect.cpp - Registration and helpers on types --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KnownLayouts.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ax;

#include "ax/Dialect/AxDialect.cpp.inc"
#include "ax/Dialect/AxInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ax/Dialect/AxAttrs.cpp.inc"

AxDialect::~AxDialect() = default;

void AxDialect::initialize() {
  knownLayouts = std::make_unique<KnownLayoutsOfThreads>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ax/Dialect/AxAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ax/Dialect/AxOps.cpp.inc"
      >();
}

Operation *AxDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                          Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || !sameWithoutLayout(elements.getShapedType(), type))
    return nullptr;
  return ConstantOp::create(builder, loc, type, elements);
}

RankedTensorType ax::withoutLayout(RankedTensorType type) {
  return RankedTensorType::get(type.getShape(), type.getElementType());
}

bool ax::sameWithoutLayout(TypeRange lhs, TypeRange rhs) {
  return lhs.size() == rhs.size() &&
         llvm::all_of(llvm::zip(lhs, rhs), [](auto pair) {
           auto a = dyn_cast<RankedTensorType>(std::get<0>(pair));
           auto b = dyn_cast<RankedTensorType>(std::get<1>(pair));
           return a && b && a.getShape() == b.getShape() &&
                  a.getElementType() == b.getElementType();
         });
}

bool ax::sameOrUnrounded(TypeRange inferred, TypeRange actual) {
  SmallVector<Type> unrounded;
  for (auto [from, to] : llvm::zip(inferred, actual)) {
    auto a = dyn_cast<RankedTensorType>(from),
         b = dyn_cast<RankedTensorType>(to);
    bool isWider =
        a && b &&
        ((isNarrowFloat(a.getElementType()) && b.getElementType().isF32()) ||
         (isInteger8(a.getElementType()) &&
          b.getElementType().isSignlessInteger(32)));
    unrounded.push_back(isWider ? a.clone(b.getElementType()) : from);
  }
  return inferred.size() == actual.size() &&
         sameWithoutLayout(unrounded, actual);
}

RankedTensorType ax::localPartType(RankedTensorType type,
                                   const sharding::Mesh &mesh) {
  return KnownLayouts::get(type.getContext()).on(mesh).localPartOf(type);
}

sharding::Mesh ax::getMesh(Operation *op) {
  if (auto plan =
          isa<PlanOp>(op) ? cast<PlanOp>(op) : op->getParentOfType<PlanOp>())
    return plan.getMesh();
  return {};
}

const sharding::Layout &ax::getLayout(RankedTensorType type,
                                      const sharding::Mesh &mesh) {
  return KnownLayouts::get(type.getContext()).on(mesh).layoutOf(type);
}

RankedTensorType ax::withLayout(RankedTensorType type,
                                const sharding::Layout &layout,
                                const sharding::Mesh &mesh) {
  return RankedTensorType::get(
      type.getShape(), type.getElementType(),
      LayoutAttr::get(type.getContext(), layout, mesh));
}

FailureOr<SmallVector<int64_t>> ax::broadcastShapes(ArrayRef<int64_t> lhs,
                                                    ArrayRef<int64_t> rhs) {
  if (lhs.size() < rhs.size())
    std::swap(lhs, rhs);
  SmallVector<int64_t> result(lhs);
  size_t shift = lhs.size() - rhs.size();
  for (auto [i, size] : llvm::enumerate(rhs)) {
    int64_t &other = result[shift + i];
    if (other == 1)
      other = size;
    else if (size != 1 && size != other)
      return failure();
  }
  return result;
}

Value ax::findBias(Operation *product, BinaryOp sum) {
  auto layer = dyn_cast<LayerOpInterface>(product);
  if (!layer || sum.getKind() != BinaryKind::add)
    return {};
  Value result = product->getResult(0);
  if ((sum.getLhs() == result) == (sum.getRhs() == result))
    return {};
  Value added = sum->getOperand(sum.getLhs() == result);
  ArrayRef<int64_t> of = tensorType(result).getShape(),
                    shape = tensorType(added).getShape();
  size_t dim = layer.getFeatureDim();
  bool fits =
      shape.size() == of.size() - dim && shape[0] == of[dim] &&
      llvm::all_of(shape.drop_front(), [](int64_t n) { return n == 1; });
  return fits ? added : Value();
}

static StringRef nameOf(Location loc) {
  return llvm::TypeSwitch<LocationAttr, StringRef>(loc)
      .Case<NameLoc>([](NameLoc name) { return name.getName().getValue(); })
      .Case<FusedLoc>([](FusedLoc fused) {
        for (Location inner : fused.getLocations())
          if (StringRef name = nameOf(inner); !name.empty())
            return name;
        return StringRef();
      })
      .Case<CallSiteLoc>(
          [](CallSiteLoc call) { return nameOf(call.getCallee()); })
      .Default([](auto) { return StringRef(); });
}

static void addNodes(Location loc, SmallVector<StringRef> &nodes) {
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location inner : fused.getLocations())
      addNodes(inner, nodes);
    return;
  }
  StringRef name = nameOf(loc);
  if (!name.empty() && !llvm::is_contained(nodes, name))
    nodes.push_back(name);
}

SmallVector<StringRef> ax::getMergedNodes(Operation *op) {
  if (auto node = op->getAttrOfType<StringAttr>(kNode))
    return {node.getValue()};
  SmallVector<StringRef> nodes;
  if (auto several = op->getAttrOfType<ArrayAttr>(kNode)) {
    for (Attribute node : several)
      if (auto name = dyn_cast<StringAttr>(node))
        nodes.push_back(name.getValue());
    return nodes;
  }
  addNodes(op->getLoc(), nodes);
  return nodes;
}

StringRef ax::getNodeName(Operation *op) {
  SmallVector<StringRef> nodes = getMergedNodes(op);
  return nodes.empty() ? StringRef() : nodes.front();
}

void ax::setNodes(Operation *op, ArrayRef<StringRef> nodes) {
  Builder builder(op->getContext());
  if (nodes.size() == 1)
    op->setAttr(kNode, builder.getStringAttr(nodes.front()));
  else if (!nodes.empty())
    op->setAttr(kNode, builder.getStrArrayAttr(nodes));
}

Location ax::getNodeLocation(Operation *op) {
  if (!op->hasAttr(kNode))
    return op->getLoc();
  SmallVector<Location> names;
  for (StringRef node : getMergedNodes(op))
    names.push_back(NameLoc::get(StringAttr::get(op->getContext(), node)));
  return FusedLoc::get(op->getContext(), names);
}

Location ax::mergeLocations(Operation *first, Operation *second) {
  return FusedLoc::get(first->getContext(),
                       {first->getLoc(), second->getLoc()});
}

SmallVector<StringRef> ax::getNodeNames(Operation *op) {
  SmallVector<StringRef> names{getNodeName(op)};
  op->getLoc()->walk([&](Location inner) {
    if (auto name = dyn_cast<NameLoc>(inner))
      names.push_back(name.getName().getValue());
    return WalkResult::advance();
  });
  return names;
}
