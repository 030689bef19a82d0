//===- Programs.cpp - Local programs and stages ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Local/Local.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace ax;

//===----------------------------------------------------------------------===//
// LocalProgramOp
//===----------------------------------------------------------------------===//

LogicalResult LocalProgramOp::verify() {
  for (Operation &op : getBody().front())
    if (!isa<LocalStageOp>(op))
      return op.emitOpError("does not belong into a local program");
  return success();
}

//===----------------------------------------------------------------------===//
// LocalStageOp
//===----------------------------------------------------------------------===//

void LocalStageOp::build(OpBuilder &builder, OperationState &state,
                         StringRef name, ArrayRef<Attribute> states,
                         ArrayRef<int64_t> accumulated,
                         ArrayRef<Attribute> stored, ArrayRef<int64_t> direct,
                         TypeRange arguments) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.sym_name = builder.getStringAttr(name);
  properties.states = builder.getArrayAttr(states);
  properties.accumulated = builder.getDenseI64ArrayAttr(accumulated);
  properties.stored = builder.getArrayAttr(stored);
  properties.direct = builder.getDenseI64ArrayAttr(direct);
  Block &block = state.addRegion()->emplaceBlock();
  for (Type type : arguments)
    block.addArgument(type, state.location);
}

ParseResult LocalStageOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Attribute> states, stored;
  SmallVector<int64_t> accumulated, direct;
  auto parseArgument = [&]() -> ParseResult {
    return parser.parseArgument(arguments.emplace_back(), /*allowType=*/true);
  };
  auto parseLoad = [&]() -> ParseResult {
    FlatSymbolRefAttr state;
    if (parser.parseAttribute(state) || parser.parseEqual())
      return failure();
    states.push_back(state);
    return parseArgument();
  };
  auto parseSum = [&]() -> ParseResult {
    if (parser.parseInteger(accumulated.emplace_back()) || parser.parseEqual())
      return failure();
    return parseArgument();
  };
  auto parseStored = [&]() -> ParseResult {
    FlatSymbolRefAttr state;
    if (parser.parseAttribute(state))
      return failure();
    stored.push_back(state);
    return success();
  };
  auto parseDirect = [&]() -> ParseResult {
    return parser.parseInteger(direct.emplace_back());
  };
  auto parseList = [&](StringRef keyword,
                       function_ref<ParseResult()> parse) -> ParseResult {
    if (failed(parser.parseOptionalKeyword(keyword)))
      return success();
    return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parse);
  };
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                     parseArgument) ||
      parseList("loads", parseLoad) || parseList("adds", parseSum) ||
      parseList("stores", parseStored) || parseList("direct", parseDirect) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  result.addAttribute(getStatesAttrName(result.name),
                      builder.getArrayAttr(states));
  result.addAttribute(getAccumulatedAttrName(result.name),
                      builder.getDenseI64ArrayAttr(accumulated));
  result.addAttribute(getStoredAttrName(result.name),
                      builder.getArrayAttr(stored));
  result.addAttribute(getDirectAttrName(result.name),
                      builder.getDenseI64ArrayAttr(direct));
  return parser.parseRegion(*result.addRegion(), arguments);
}

void LocalStageOp::print(OpAsmPrinter &printer) {
  auto argument = [&](unsigned number) {
    printer.printRegionArgument(getBody().getArgument(number));
  };
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  llvm::interleaveComma(llvm::seq(getNumInputs()), printer, argument);
  printer << ')';
  if (!getStates().empty()) {
    printer << " loads(";
    llvm::interleaveComma(llvm::enumerate(getStates()), printer,
                          [&](auto entry) {
                            printer << entry.value() << " = ";
                            argument(getNumInputs() + entry.index());
                          });
    printer << ')';
  }
  if (!getAccumulated().empty()) {
    printer << " adds(";
    llvm::interleaveComma(llvm::enumerate(getAccumulated()), printer,
                          [&](auto entry) {
                            printer << entry.value() << " = ";
                            argument(getFirstSum() + entry.index());
                          });
    printer << ')';
  }
  if (!getStored().empty()) {
    printer << " stores(";
    llvm::interleaveComma(getStored(), printer);
    printer << ')';
  }
  if (!getDirect().empty()) {
    printer << " direct(";
    llvm::interleaveComma(getDirect(), printer);
    printer << ')';
  }
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getStatesAttrName(), getAccumulatedAttrName(),
       getStoredAttrName(), getDirectAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult LocalStageOp::verify() {
  Block &block = getBlock();
  if (!isa<LocalYieldOp>(block.back()))
    return emitOpError("must end with axl.yield");
  for (ArrayAttr names : {getStates(), getStored()})
    if (!llvm::all_of(names, llvm::IsaPred<FlatSymbolRefAttr>))
      return emitOpError("names states by @name alone");
  if (block.getNumArguments() < getStates().size() + getAccumulated().size() ||
      getYield()->getNumOperands() < getStored().size())
    return emitOpError("has fewer arguments or results than states and sums");
  for (auto [i, number] : llvm::enumerate(getAccumulated()))
    if (number < 0 || number >= getFirstStored() ||
        getYield()->getOperand(number).getType() !=
            block.getArgument(getFirstSum() + i).getType())
      return emitOpError("adds up result ")
             << number << ", which is not what its sum is";
  for (int64_t number : getDirect())
    if (number < 0 || number >= getYield()->getNumOperands())
      return emitOpError("has no result ") << number << " to make directly";
  return success();
}

LogicalResult LocalStageOp::verifySymbolUses(SymbolTableCollection &tables) {
  sharding::Mesh mesh = getMesh(*this);
  auto check = [&](Attribute name, Value value) -> LogicalResult {
    auto symbol = cast<FlatSymbolRefAttr>(name);
    auto state = tables.lookupNearestSymbolFrom<StateOp>(*this, symbol);
    if (!state)
      return emitOpError("there is no state ") << symbol;
    if (localPartType(state.getTensorType(), mesh) != value.getType())
      return emitOpError("has ")
             << value.getType() << " for a rank's part of " << symbol;
    return success();
  };
  for (auto [i, name] : llvm::enumerate(getStates()))
    if (failed(check(name, getBlock().getArgument(getNumInputs() + i))))
      return failure();
  for (auto [i, name] : llvm::enumerate(getStored()))
    if (failed(check(name, getYield()->getOperand(getFirstStored() + i))))
      return failure();
  return success();
}
