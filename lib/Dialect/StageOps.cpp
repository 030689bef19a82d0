//===- StageOps.cpp - Stages, transfers, schedules ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/Ax.h"
#include "ax/Dialect/MeshAxes.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace ax;

/// Ranks of one stage share a coordinate on this axis.
static int64_t numStages(Operation *op) {
  return getMesh(op).axisSize(meshAxis::pipe);
}

static LogicalResult checkStage(Operation *op, int64_t stage) {
  int64_t stages = numStages(op);
  if (stage >= 0 && stage < stages)
    return success();
  return op->emitOpError("names stage ")
         << stage << " of a mesh with pipe = " << stages;
}

//===----------------------------------------------------------------------===//
// StageOp
//===----------------------------------------------------------------------===//

ParseResult StageOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  int64_t on;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      parser.parseKeyword("on") || parser.parseInteger(on))
    return failure();
  result.addAttribute(getOnAttrName(result.name),
                      parser.getBuilder().getI64IntegerAttr(on));
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  auto parseOperand = [&]() -> ParseResult {
    OpAsmParser::Argument &argument = arguments.emplace_back();
    return failure(parser.parseArgument(argument) || parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()) ||
                   parser.parseColonType(argument.type));
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                     parseOperand) ||
      parser.parseOptionalArrowTypeList(result.types) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  SmallVector<Type> types = llvm::map_to_vector(
      arguments, [](const OpAsmParser::Argument &a) { return a.type; });
  return failure(
      parser.resolveOperands(operands, types, loc, result.operands) ||
      parser.parseRegion(*result.addRegion(), arguments));
}

void StageOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << " on " << getOn() << " (";
  llvm::interleaveComma(llvm::zip(getBody().getArguments(), getOperands()),
                        printer, [&](auto pair) {
                          printer << std::get<0>(pair) << " = "
                                  << std::get<1>(pair) << " : "
                                  << std::get<1>(pair).getType();
                        });
  printer << ')';
  if (getNumResults()) {
    printer << " -> (";
    llvm::interleaveComma(getResultTypes(), printer);
    printer << ')';
  }
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getSymNameAttrName(), getOnAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult StageOp::verify() {
  if (failed(checkStage(*this, getOn())))
    return failure();
  Block &body = getBody().front();
  if (body.getArgumentTypes() != getOperandTypes())
    return emitOpError("operands and region arguments differ in type");
  auto yield = dyn_cast<YieldOp>(&body.back());
  if (!yield)
    return emitOpError("must end with ax.yield");
  if (yield.getOperandTypes() != getResultTypes())
    return emitOpError("yields other types than its results have");
  return success();
}

//===----------------------------------------------------------------------===//
// TransferOp, ScheduleOp
//===----------------------------------------------------------------------===//

LogicalResult TransferOp::verify() {
  if (failed(checkStage(*this, getFrom())) ||
      failed(checkStage(*this, getTo())))
    return failure();
  if (getFrom() == getTo())
    return emitOpError("is from stage ") << getFrom() << " to itself";
  if (int64_t slots = getSlots(); slots < 1)
    return emitOpError("has ") << slots << " slots; at least one is needed";
  return success();
}

ParseResult ScheduleOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr policy;
  SmallVector<StringRef> orders;
  SmallVector<std::string> storage;
  if (parser.parseAttribute(policy, getPolicyAttrName(result.name),
                            result.attributes))
    return failure();
  auto parseOrder = [&]() -> ParseResult {
    int64_t stage;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword("stage") || parser.parseInteger(stage) ||
        parser.parseColon())
      return failure();
    if (stage != static_cast<int64_t>(storage.size()))
      return parser.emitError(loc, "expected stage ") << storage.size();
    return parser.parseString(&storage.emplace_back());
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Braces,
                                     parseOrder))
    return failure();
  orders.assign(storage.begin(), storage.end());
  result.addAttribute(getOrdersAttrName(result.name),
                      parser.getBuilder().getStrArrayAttr(orders));
  return parser.parseOptionalAttrDict(result.attributes);
}

void ScheduleOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getPolicyAttr() << " {";
  for (auto [i, order] :
       llvm::enumerate(getOrders().getAsValueRange<StringAttr>())) {
    printer.printNewline();
    printer << "  stage " << i << ": \"" << order << '"'
            << (i + 1 < getOrders().size() ? "," : "");
  }
  printer.printNewline();
  printer << '}';
  printer.printOptionalAttrDict((*this)->getAttrs(), {"policy", "orders"});
}

LogicalResult ScheduleOp::verify() {
  if (static_cast<int64_t>(getOrders().size()) != numStages(*this))
    return emitOpError("has ") << getOrders().size() << " stages, the mesh has "
                               << numStages(*this);
  return success();
}
