//===- PinLists.cpp - Pins as attributes and back -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PinLists.h"

#include "ax/Dialect/Pins.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

static ProgramOp programOf(BlockArgument argument) {
  return cast<ProgramOp>(argument.getOwner()->getParentOp());
}

Attribute ax::getShardAttr(Value value, StringRef name) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return programOf(argument).getArgAttr(argument.getArgNumber(), name);
  return value.getDefiningOp()->getDiscardableAttr(name);
}

void ax::setShardAttr(Value value, StringRef name, Attribute attr) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    ProgramOp program = programOf(argument);
    if (attr)
      program.setArgAttr(argument.getArgNumber(), name, attr);
    else
      program.removeArgAttr(argument.getArgNumber(), name);
  } else if (attr) {
    value.getDefiningOp()->setDiscardableAttr(name, attr);
  } else {
    value.getDefiningOp()->removeDiscardableAttr(name);
  }
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {

class PinWriter {
public:
  PinWriter(const ShardGraph &graph, const Mesh &mesh)
      : graph(graph), mesh(mesh), context(graph.values.front().getContext()) {}

  void add(const FactorPin &pin, StringRef asks);
  /// The first pins of one tensor that differ in nothing but their dimensions,
  /// which grow, as one; how many these are.
  size_t add(ArrayRef<TensorPin> pins);
  void write();

private:
  StringAttr text(StringRef text) { return StringAttr::get(context, text); }

  const ShardGraph &graph;
  const Mesh &mesh;
  MLIRContext *context;
  /// The pins, by the first result of an operation, or by an input.
  llvm::MapVector<Value, SmallVector<Attribute>> lists;
};

/// A dimension that a factor is in.
struct FactorPlace {
  bool ofResult;
  unsigned tensor, dim, part;
};

} // namespace

/// The first one.
static FactorPlace placeOf(int factor, const Rule &rule) {
  for (bool ofResult : {false, true})
    for (auto [t, map] :
         llvm::enumerate(ofResult ? rule.results : rule.operands))
      for (auto [d, factors] : llvm::enumerate(map))
        for (auto [p, f] : llvm::enumerate(factors))
          if (f == factor)
            return {ofResult, static_cast<unsigned>(t),
                    static_cast<unsigned>(d), static_cast<unsigned>(p)};
  llvm_unreachable("a factor is in some dimension");
}

void PinWriter::add(const FactorPin &pin, StringRef asks) {
  assert(pin.level != PinLevel::Weak && "of tensors alone");
  FactorPlace place = placeOf(pin.factor, graph.rule(pin.op));
  Layout split;
  split.dims.push_back(pin.split);
  lists[graph.ops[pin.op]->getResult(0)].push_back(FactorPinAttr::get(
      context, place.ofResult, place.tensor, place.dim, place.part,
      LayoutAttr::get(context, split, mesh), pin.level == PinLevel::User,
      pin.open, pin.anyPlace, pin.elseWhole, text(pin.cause), text(asks)));
}

size_t PinWriter::add(ArrayRef<TensorPin> pins) {
  const TensorPin &first = pins.front();
  Value value = graph.values[first.tensor];
  Layout layout = Layout::replicated(graph.graph.tensors[first.tensor].shape);
  SmallVector<int64_t> dims;
  for (const TensorPin &pin : pins) {
    if (pin.tensor != first.tensor || pin.level != first.level ||
        pin.open != first.open || pin.spreads != first.spreads ||
        pin.cause != first.cause || (!dims.empty() && pin.dim <= dims.back()))
      break;
    layout.dims[pin.dim] = pin.split;
    dims.push_back(pin.dim);
  }
  auto result = dyn_cast<OpResult>(value);
  Value owner = result ? result.getOwner()->getResult(0) : value;
  lists[owner].push_back(
      PinAttr::get(context, result ? result.getResultNumber() : 0,
                   LayoutAttr::get(context, layout, mesh), dims,
                   first.level == PinLevel::User, first.level == PinLevel::Weak,
                   first.open, !first.spreads, text(first.cause)));
  return dims.size();
}

void PinWriter::write() {
  for (auto &[value, added] : lists) {
    SmallVector<Attribute> pins;
    if (auto before = cast_or_null<ArrayAttr>(getShardAttr(value, kPins)))
      llvm::append_range(pins, before);
    llvm::append_range(pins, added);
    setShardAttr(value, kPins, ArrayAttr::get(context, pins));
  }
}

void ax::addPins(const ShardGraph &graph, const Pins &pins, const Mesh &mesh,
                 const AskedParts &asked) {
  if (graph.values.empty())
    return;
  PinWriter writer(graph, mesh);
  for (auto [i, pin] : llvm::enumerate(pins.factors)) {
    auto asks = asked.find(i);
    writer.add(pin, asks == asked.end() ? StringRef() : asks->second);
  }
  for (ArrayRef<TensorPin> rest = pins.tensors; !rest.empty();)
    rest = rest.drop_front(writer.add(rest));
  writer.write();
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static PinLevel levelOf(bool user, bool weak = false) {
  return user ? PinLevel::User : weak ? PinLevel::Weak : PinLevel::Recipe;
}

int ax::factorOf(FactorPinAttr pin, const Rule &rule) {
  const auto &maps = pin.getOfResult() ? rule.results : rule.operands;
  return maps[pin.getTensor()][pin.getDim()][pin.getPart()];
}

static void read(FactorPinAttr pin, int op, const Rule &rule, const Mesh &mesh,
                 Pins &pins) {
  int factor = factorOf(pin, rule);
  Layout split = pin.getSplit().resolve({rule.factors[factor].size}, mesh);
  pins.factors.push_back({op, factor, std::move(split.dims.front()),
                          levelOf(pin.getUser()), pin.getBecause().str(),
                          pin.getOpen(), pin.getAnyPlace(),
                          pin.getElseWhole()});
}

static void read(PinAttr pin, int tensor, ArrayRef<int64_t> shape,
                 const Mesh &mesh, Pins &pins) {
  Layout layout = pin.getLayout().resolve(shape, mesh);
  for (int64_t dim : pin.getDims())
    pins.tensors.push_back({tensor, static_cast<int>(dim), layout.dims[dim],
                            levelOf(pin.getUser(), pin.getWeak()),
                            pin.getBecause().str(), pin.getOpen(),
                            !pin.getHereOnly()});
}

Pins ax::readPins(const ShardGraph &graph, const Mesh &mesh) {
  Pins pins;
  for (auto [i, op] : llvm::enumerate(graph.ops))
    if (auto list = cast_or_null<ArrayAttr>(op->getDiscardableAttr(kPins)))
      for (auto pin : list.getAsRange<Attribute>())
        if (auto ofFactor = dyn_cast<FactorPinAttr>(pin))
          read(ofFactor, i, graph.rule(i), mesh, pins);
  for (auto [t, value] : llvm::enumerate(graph.values)) {
    auto list = cast_or_null<ArrayAttr>(getShardAttr(value, kPins));
    if (!list)
      continue;
    auto result = dyn_cast<OpResult>(value);
    unsigned number = result ? result.getResultNumber() : 0;
    for (auto attr : list.getAsRange<Attribute>())
      if (auto pin = dyn_cast<PinAttr>(attr); pin && pin.getResult() == number)
        read(pin, t, tensorType(value).getShape(), mesh, pins);
  }
  return pins;
}
