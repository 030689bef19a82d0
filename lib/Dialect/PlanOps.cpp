//===- PlanOps.cpp - Plans, meshes, state, programs -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KnownLayouts.h"

#include "ax/Dialect/MeshAxes.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/TrainingAttrs.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"

#include <set>

using namespace mlir;
using namespace ax;

/// What is wrong with the layout in `type`, on the mesh of `op`'s plan.
static LogicalResult checkLayout(Operation *op, Type type, StringRef what) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.getEncoding())
    return success();
  auto layout = dyn_cast<LayoutAttr>(tensor.getEncoding());
  if (!layout)
    return op->emitOpError()
           << what
           << " has an encoding that is no layout: " << tensor.getEncoding();
  sharding::Mesh mesh = getMesh(op);
  LayoutsOnMesh &known = KnownLayouts::get(op->getContext()).on(mesh);
  if (known.soundTypes.contains(type))
    return success();
  sharding::Layout resolved = layout.resolve(tensor.getShape(), mesh);
  if (auto fault = sharding::findFault(resolved, tensor.getShape().vec(), mesh))
    return op->emitOpError() << what << " " << tensor << ": " << *fault;
  // No rule makes such, and no exchange sums them up.
  if (isFloat8(tensor.getElementType()) && !resolved.partial.empty() &&
      resolved.partialKind == sharding::ReduceKind::Sum)
    return op->emitOpError()
           << what << " " << tensor << ": floats of eight bits are no addends";
  known.soundTypes.insert(type);
  return success();
}

//===----------------------------------------------------------------------===//
// PlanOp
//===----------------------------------------------------------------------===//

sharding::Mesh PlanOp::getMesh() {
  auto meshes = getBody().getOps<MeshOp>();
  return meshes.empty() ? sharding::Mesh() : (*meshes.begin()).getMesh();
}

LogicalResult PlanOp::verify() {
  int64_t version = getVersion();
  if (version < firstVersion || version > currentVersion)
    return emitOpError("has version ")
           << version << "; this build reads version " << firstVersion << " to "
           << currentVersion;
  if ((*this)->hasAttr(kData)) {
    if (version < preparedVersion)
      return emitOpError("has a '")
             << kData << "', which version " << version << " has not";
  }
  if (Attribute unbatched = (*this)->getAttr(kUnbatched)) {
    auto names = dyn_cast<ArrayAttr>(unbatched);
    if (!names || !llvm::all_of(names, llvm::IsaPred<StringAttr>))
      return emitOpError("has a '") << kUnbatched << "' that lists no names";
  }
  bool seenMesh = false;
  for (Operation &op : getBody().front()) {
    // Other dialects have programs of their own.
    if (op.getDialect() == (*this)->getDialect() &&
        !isa<MeshOp, StateOp, ProgramOp>(op))
      return op.emitOpError("does not belong directly into a plan");
    if (auto state = dyn_cast<StateOp>(op);
        state && state.getPrepared() && version < preparedVersion)
      return op.emitOpError("is prepared, which version ")
             << version << " does not know";
    if (isa<MeshOp>(op) && std::exchange(seenMesh, true))
      return op.emitOpError("is the plan's second mesh");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// MeshOp
//===----------------------------------------------------------------------===//

void MeshOp::build(OpBuilder &builder, OperationState &state,
                   const sharding::Mesh &mesh) {
  SmallVector<StringRef> names;
  SmallVector<int64_t> sizes;
  int64_t space = 0;
  for (bool inTime : {false, true})
    for (const sharding::Axis &axis : mesh.getAxes())
      if (axis.inTime == inTime) {
        names.push_back(axis.name);
        sizes.push_back(axis.size);
        space += !inTime;
      }
  build(builder, state, builder.getStrArrayAttr(names),
        builder.getDenseI64ArrayAttr(sizes), builder.getI64IntegerAttr(space));
}

sharding::Mesh MeshOp::getMesh() {
  return KnownLayouts::get(getContext()).meshOf(*this);
}

ParseResult MeshOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<StringRef> names;
  SmallVector<int64_t> sizes;
  auto parseAxes = [&] {
    return parser.parseCommaSeparatedList(
        OpAsmParser::Delimiter::Square, [&]() -> ParseResult {
          return failure(parser.parseKeyword(&names.emplace_back()) ||
                         parser.parseEqual() ||
                         parser.parseInteger(sizes.emplace_back()));
        });
  };
  if (parseAxes())
    return failure();
  int64_t space = names.size();
  if (succeeded(parser.parseOptionalKeyword("in")) &&
      (parser.parseKeyword("time") || parseAxes()))
    return failure();
  Builder &builder = parser.getBuilder();
  result.addAttribute("names", builder.getStrArrayAttr(names));
  result.addAttribute("sizes", builder.getDenseI64ArrayAttr(sizes));
  result.addAttribute("num_space", builder.getI64IntegerAttr(space));
  return parser.parseOptionalAttrDict(result.attributes);
}

void MeshOp::print(OpAsmPrinter &printer) {
  sharding::Mesh mesh = getMesh();
  ArrayRef<sharding::Axis> axes(mesh.getAxes());
  auto printAxes = [&](ArrayRef<sharding::Axis> part) {
    printer << '[';
    llvm::interleaveComma(part, printer, [&](const sharding::Axis &axis) {
      printer << axis.name << " = " << axis.size;
    });
    printer << ']';
  };
  printer << ' ';
  printAxes(axes.take_front(getNumSpace()));
  if (axes.size() > getNumSpace()) {
    printer << " in time ";
    printAxes(axes.drop_front(getNumSpace()));
  }
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {"names", "sizes", "num_space"});
}

LogicalResult MeshOp::verify() {
  constexpr int64_t maxRanks = int64_t(1) << 24;
  if (getNames().size() != getSizes().size() ||
      getNumSpace() > getSizes().size())
    return emitOpError("needs one size per axis");
  std::set<std::string> seen;
  int64_t total = 1;
  sharding::Mesh mesh = getMesh();
  for (const sharding::Axis &axis : mesh.getAxes()) {
    if (!seen.insert(axis.name).second)
      return emitOpError("has two axes named '") << axis.name << "'";
    if (axis.size < 1 || axis.size > maxRanks)
      return emitOpError("axis '") << axis.name << "' has size " << axis.size
                                   << "; 1 .. " << maxRanks << " is possible";
    if (axis.inTime &&
        llvm::is_contained({meshAxis::pipe, meshAxis::data, meshAxis::context,
                            meshAxis::depth, meshAxis::row, meshAxis::col},
                           StringRef(axis.name)))
      return emitOpError("axis '")
             << axis.name << "' says which rank it is: it cannot be in time";
    total *= axis.size;
    if (total > maxRanks)
      return emitOpError("has more than ") << maxRanks << " ranks and slices";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// StateOp, LoadOp
//===----------------------------------------------------------------------===//

LogicalResult StateOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape())
    return emitOpError("must be a tensor of static shape, got ") << getType();
  if (std::optional<Type> narrow = getFileType()) {
    if (getFile().empty())
      return emitOpError("is read as ") << *narrow << ", but has no file";
    bool isWider =
        type.getElementType().isF32() && (narrow->isF16() || narrow->isBF16());
    if (!isWider)
      return emitOpError("of type ")
             << type << " is read as " << *narrow
             << ": only f32 has another type in a file, f16 or bf16";
    int64_t version = (*this)->getParentOfType<PlanOp>().getVersion();
    if (version < PlanOp::fileTypeVersion)
      return emitOpError("is read as ")
             << *narrow << ", which version " << version << " has not";
  }
  if (std::optional<DealtAttr> dealt = getDealt()) {
    if (getPrepared())
      return emitOpError("is dealt, but prepared: no model has an order of it");
    if (auto fault = dealt->getOrder().findFault(type.getShape()))
      return emitOpError("of type ") << type << " is not dealt so: " << *fault;
    int64_t version = (*this)->getParentOfType<PlanOp>().getVersion();
    if (version < PlanOp::dealtVersion)
      return emitOpError("is dealt, which version ") << version << " has not";
  }
  Type element = getElementTypeInFile();
  unsigned bits = element.isInteger(1)     ? 8
                  : element.isIntOrFloat() ? element.getIntOrFloatBitWidth()
                                           : 0;
  llvm::APInt bytes(128, bits / 8);
  for (int64_t size : type.getShape())
    bytes *= llvm::APInt(128, size);
  int64_t offset = getOffset(), length = getLength();
  if (getPrepared() && (!getFile().empty() || getTrainable()))
    return emitOpError("is prepared, but ")
           << (getTrainable() ? "is trained" : "has a file");
  if (getFile().empty()) {
    if (offset != 0 || length != 0)
      return emitOpError("has an offset or a length, but no file");
    bytes = llvm::APInt(128, 0);
  }
  if (bits == 0 || offset < 0 || length < 0 ||
      bytes != llvm::APInt(128, length))
    return emitOpError("of type ") << type << " does not have " << length
                                   << " bytes at offset " << offset;
  return checkLayout(*this, type, "state");
}

/// `op` gives or takes `type` where the state of that name holds it.
static LogicalResult checkState(Operation *op, SymbolTableCollection &tables,
                                FlatSymbolRefAttr name, Type type,
                                StringRef verb) {
  auto state = tables.lookupNearestSymbolFrom<StateOp>(op, name);
  if (!state)
    return op->emitOpError("there is no state ") << name;
  if (state.getType() != type)
    return op->emitOpError() << verb << ' ' << type << ", the state " << name
                             << " is " << state.getType();
  return success();
}

LogicalResult LoadOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkState(*this, tables, getStateAttr(), getType(), "gives");
}

LogicalResult StoreOp::verifySymbolUses(SymbolTableCollection &tables) {
  return checkState(*this, tables, getStateAttr(), getOperand().getType(),
                    "stores");
}

//===----------------------------------------------------------------------===//
// ProgramOp
//===----------------------------------------------------------------------===//

void ProgramOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                      FunctionType type, ArrayRef<StringAttr> argNames,
                      ArrayRef<StringAttr> resultNames) {
  auto namesToAttrs = [&](ArrayRef<StringAttr> names) -> ArrayAttr {
    if (names.empty())
      return nullptr;
    return builder.getArrayAttr(llvm::map_to_vector(names, [&](StringAttr n) {
      return cast<Attribute>(
          builder.getDictionaryAttr(builder.getNamedAttr("ax.name", n)));
    }));
  };
  state.addAttribute(getSymNameAttrName(state.name),
                     builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  if (ArrayAttr attrs = namesToAttrs(argNames))
    state.addAttribute(getArgAttrsAttrName(state.name), attrs);
  if (ArrayAttr attrs = namesToAttrs(resultNames))
    state.addAttribute(getResAttrsAttrName(state.name), attrs);
  Block &block = state.addRegion()->emplaceBlock();
  for (Type input : type.getInputs())
    block.addArgument(input, state.location);
}

ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildType =
      [](Builder &builder, ArrayRef<Type> inputs, ArrayRef<Type> results,
         function_interface_impl::VariadicFlag, std::string &) -> Type {
    return builder.getFunctionType(inputs, results);
  };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false,
      getFunctionTypeAttrName(result.name), buildType,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void ProgramOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(
      printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
      getArgAttrsAttrName(), getResAttrsAttrName());
}

static StringRef nameIn(Attribute dictionary) {
  if (auto attrs = dyn_cast_or_null<DictionaryAttr>(dictionary))
    if (auto name = attrs.getAs<StringAttr>("ax.name"))
      return name.getValue();
  return {};
}

StringRef ProgramOp::getArgName(unsigned i) {
  return nameIn(getArgAttrDict(i));
}

bool ProgramOp::isBatched(unsigned i) {
  auto names =
      (*this)->getParentOfType<PlanOp>()->getAttrOfType<ArrayAttr>(kUnbatched);
  return !names || !llvm::is_contained(names.getAsValueRange<StringAttr>(),
                                       getArgName(i));
}

std::optional<int64_t> ProgramOp::getBatch() {
  for (auto [i, type] : llvm::enumerate(getArgumentTypes()))
    if (auto tensor = cast<RankedTensorType>(type);
        tensor.getRank() > 0 && isBatched(i))
      return tensor.getDimSize(0);
  return std::nullopt;
}

std::optional<int64_t> ProgramOp::getSampleDim(unsigned i) {
  if (auto dim = getResultAttrOfType<IntegerAttr>(i, kSamples))
    return dim.getInt();
  return std::nullopt;
}

std::optional<int64_t> ProgramOp::getCountedDim(unsigned i) {
  if (auto dim = getResultAttrOfType<IntegerAttr>(i, kCountedDim))
    return dim.getInt();
  return std::nullopt;
}

void ProgramOp::setSampleDim(unsigned i, int64_t dim) {
  setResultAttr(i, kSamples, Builder(*this).getI64IntegerAttr(dim));
}

StringRef ProgramOp::getResultName(unsigned i) {
  return nameIn(getResultAttrDict(i));
}

std::optional<ResultRole> ProgramOp::getRole(unsigned i) {
  if (auto role = getResultAttrOfType<ResultRoleAttr>(i, kRole))
    return role.getValue();
  return std::nullopt;
}

void ProgramOp::setRole(unsigned i, ResultRole role) {
  setResultAttr(i, kRole, ResultRoleAttr::get(getContext(), role));
}

std::optional<unsigned> ProgramOp::findResult(ResultRole role) {
  for (unsigned i = 0, e = getNumResults(); i < e; ++i)
    if (getRole(i) == role)
      return i;
  return std::nullopt;
}

static LogicalResult verifyRoles(ProgramOp program) {
  int64_t version = program->getParentOfType<PlanOp>().getVersion();
  llvm::SmallDenseSet<ResultRole> seen;
  for (unsigned i = 0, e = program.getNumResults(); i < e; ++i) {
    Attribute attr = program.getResultAttr(i, kRole);
    if (attr && version < PlanOp::rolesVersion)
      return program.emitOpError()
             << "has a result with an '" << kRole << "', which version "
             << version << " has not";
    if (attr && !isa<ResultRoleAttr>(attr))
      return program.emitOpError()
             << kRole << " of a result is a role, got " << attr;
    if (attr && !seen.insert(*program.getRole(i)).second)
      return program.emitOpError() << "has two results of the role " << attr;
  }
  return success();
}

static LogicalResult verifyLabels(ProgramOp program, Type type,
                                  Attribute attr) {
  auto labels = dyn_cast<DictionaryAttr>(attr);
  bool isWhole = labels && labels.size() == 3 &&
                 cast<RankedTensorType>(type).getElementType().isInteger(64);
  for (StringRef name : {"classes", "ignore_index", "shift"}) {
    auto number = isWhole ? labels.getAs<IntegerAttr>(name) : IntegerAttr();
    isWhole = number && number.getType().isInteger(64) &&
              (name == "ignore_index" || number.getInt() >= 0);
  }
  if (isWhole)
    return success();
  return program.emitOpError()
         << kLabels << " of an input of i64 needs the i64 numbers classes, "
         << "ignore_index and shift, got " << attr << " of " << type;
}

static LogicalResult verifySamples(ProgramOp program, unsigned result) {
  Attribute attr = program.getResultAttr(result, kSamples);
  if (!attr)
    return success();
  auto type = cast<RankedTensorType>(program.getResultTypes()[result]);
  auto dim = dyn_cast<IntegerAttr>(attr);
  if (!dim || !dim.getType().isInteger(64) || dim.getInt() < 0 ||
      dim.getInt() >= type.getRank())
    return program.emitOpError()
           << kSamples << " of a result is the i64 number of one of its "
           << "dimensions, got " << attr << " of " << type;
  std::optional<int64_t> batch = program.getBatch();
  if (!batch || *batch < 1 || type.getDimSize(dim.getInt()) % *batch != 0)
    return program.emitOpError()
           << "dimension " << dim.getInt() << " of the result " << type
           << " cannot count samples: the inputs take "
           << (batch ? "batches of " + std::to_string(*batch) : "no batches");
  return success();
}

LogicalResult ProgramOp::verify() {
  for (auto types : {getArgumentTypes(), getResultTypes()})
    for (Type type : types) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || !tensor.hasStaticShape())
        return emitOpError("inputs and outputs must be tensors of static "
                           "shape, got ")
               << type;
    }
  for (Type type : getArgumentTypes())
    if (failed(checkLayout(*this, type, "input")))
      return failure();
  for (unsigned i = 0; i < getNumArguments(); ++i)
    if (Attribute labels = getArgAttr(i, kLabels))
      if (failed(verifyLabels(*this, getArgument(i).getType(), labels)))
        return failure();
  for (unsigned i = 0; i < getNumResults(); ++i)
    if (failed(verifySamples(*this, i)))
      return failure();
  if (failed(verifyRoles(*this)))
    return failure();
  // Every layout in the body, once, here: ops need not ask.
  WalkResult result = walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (failed(checkLayout(op, type, "result")))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult ReturnOp::verify() {
  auto program = cast<ProgramOp>((*this)->getParentOp());
  if (getOperandTypes() != TypeRange(program.getResultTypes()))
    return emitOpError("operands do not have the program's result types");
  return success();
}
