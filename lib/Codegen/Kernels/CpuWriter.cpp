//===- CpuWriter.cpp - Kernels as functions on scalars --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CpuWriter.h"

#include "ElementOps.h"
#include "EmitRandom.h"
#include "Emitter.h"
#include "ScalarMath.h"
#include "ax/Runtime/Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ax::codegen {

/// A tile has so many points of the last loop: that many cache lines stay even
/// with an unlucky stride.
static constexpr int64_t tilePoints = 16;

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

CpuWriter::CpuWriter(FusionOp fusion, StringRef symbol, ModuleOp module,
                     unsigned numScalars, bool hasScratch)
    : module(module), b(fusion.getContext()), loc(b.getUnknownLoc()) {
  Region &region = fusion.getBody();
  unsigned numTensors = region.getNumArguments() +
                        region.front().getTerminator()->getNumOperands();
  unsigned numBuffers = numTensors + 1;
  SmallVector<Type> types(numBuffers, pointerType());
  types.append(numScalars + 2, b.getI64Type());
  b.setInsertionPointToEnd(module.getBody());
  auto body = LLVM::LLVMFuncOp::create(
      b, loc, (symbol + "_body").str(),
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  types),
      LLVM::Linkage::Internal);
  body.setNoInline(true);
  body.setArgAttrsAttr(argumentAttributes(fusion, types.size()));
  writeEntry(symbol, body, numScalars, hasScratch);

  Block *start = body.addEntryBlock(b);
  b.setInsertionPointToStart(start);
  tensors.assign(start->args_begin(), start->args_begin() + numTensors);
  // One name for one piece of memory: so none is said not to alias the other.
  if (std::optional<ArrayRef<int64_t>> places = fusion.getInPlace())
    for (auto [result, operand] : llvm::enumerate(*places))
      if (operand >= 0)
        tensors[region.getNumArguments() + result] = tensors[operand];
  scratchBase = start->getArgument(numTensors);
  scalars.assign(start->args_begin() + numBuffers, start->args_end() - 2);
  begin = start->getArgument(types.size() - 2);
  end = start->getArgument(types.size() - 1);
}

Type CpuWriter::pointerType() {
  return LLVM::LLVMPointerType::get(b.getContext());
}

Value CpuWriter::loadWord(Value base, Type type, unsigned index) {
  Value at = LLVM::GEPOp::create(b, loc, base.getType(), type, base,
                                 ArrayRef<LLVM::GEPArg>{int32_t(index)});
  return LLVM::LoadOp::create(b, loc, type, at);
}

/// Makes all attributes at once: a list of them is made anew for each change.
ArrayAttr CpuWriter::argumentAttributes(FusionOp fusion,
                                        unsigned numArguments) {
  SmallVector<Type> types(fusion.getBody().getArgumentTypes());
  llvm::append_range(
      types, fusion.getBody().front().getTerminator()->getOperandTypes());
  SmallVector<NamedAttrList> attributes(numArguments);
  for (auto [i, type] : llvm::enumerate(types)) {
    auto tensor = cast<RankedTensorType>(type);
    int64_t bytes =
        tensor.getNumElements() * storageBytes(tensor.getElementType());
    if (bytes > 0)
      attributes[i].set(LLVM::LLVMDialect::getDereferenceableAttrName(),
                        b.getI64IntegerAttr(bytes));
  }
  // Scratch, too.
  for (unsigned i = 0; i != types.size() + 1; ++i) {
    attributes[i].set(LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
    attributes[i].set(LLVM::LLVMDialect::getAlignAttrName(),
                      b.getI64IntegerAttr(rt::bufferAlignment));
  }
  return b.getArrayAttr(llvm::map_to_vector(
      attributes, [&](const NamedAttrList &of) -> Attribute {
        return of.getDictionary(b.getContext());
      }));
}

void CpuWriter::writeEntry(StringRef symbol, Operation *body,
                           unsigned numScalars, bool hasScratch) {
  auto function = cast<LLVM::LLVMFuncOp>(body);
  unsigned numTensors = function.getNumArguments() - numScalars - 3;
  Type pointer = pointerType(), i64 = b.getI64Type();
  OpBuilder::InsertionGuard guard(b);
  auto entry = LLVM::LLVMFuncOp::create(
      b, loc, symbol,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  {pointer, pointer, i64, i64}));
  Block *block = entry.addEntryBlock(b);
  b.setInsertionPointToStart(block);
  SmallVector<Value> operands;
  for (unsigned i = 0; i != numTensors; ++i)
    operands.push_back(loadWord(block->getArgument(0), pointer, i));
  operands.push_back(hasScratch
                         ? loadWord(block->getArgument(0), pointer, numTensors)
                         : LLVM::ZeroOp::create(b, loc, pointer).getResult());
  for (unsigned i = 0; i != numScalars; ++i)
    operands.push_back(loadWord(block->getArgument(1), i64, i));
  operands.append({block->getArgument(2), block->getArgument(3)});
  LLVM::CallOp::create(b, loc, function, operands);
  LLVM::ReturnOp::create(b, loc, ValueRange());
}

//===----------------------------------------------------------------------===//
// Index arithmetic
//===----------------------------------------------------------------------===//

Value CpuWriter::number(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 64);
}
Value CpuWriter::addIndex(Value x, Value y) {
  return arith::AddIOp::create(b, loc, x, y, arith::IntegerOverflowFlags::nsw);
}
Value CpuWriter::mulIndex(Value x, Value y) {
  return arith::MulIOp::create(b, loc, x, y, arith::IntegerOverflowFlags::nsw);
}
Value CpuWriter::divIndex(Value x, Value y) {
  return arith::DivUIOp::create(b, loc, x, y);
}
Value CpuWriter::remIndex(Value x, Value y) {
  return arith::RemUIOp::create(b, loc, x, y);
}
Value CpuWriter::addWrapped(Value x, Value y) {
  return arith::AddIOp::create(b, loc, x, y);
}
Value CpuWriter::minSigned(Value x, Value y) {
  return arith::MinSIOp::create(b, loc, x, y);
}
Value CpuWriter::maxSigned(Value x, Value y) {
  return arith::MaxSIOp::create(b, loc, x, y);
}
Value CpuWriter::isLess(Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
}
Value CpuWriter::isAtLeast(Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, x, y);
}
Value CpuWriter::both(Value condition, Value other) {
  return arith::AndIOp::create(b, loc, condition, other);
}
Value CpuWriter::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, loc, condition, x, y);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Value CpuWriter::unary(UnaryKind kind, Value x, Type type) {
  return emitUnary(b, kind, x, type);
}
Value CpuWriter::expFlushed(Value x) { return emitExpFlushed(b, x); }
Value CpuWriter::binary(BinaryKind kind, Value x, Value y, Type type) {
  return emitBinary(b, kind, x, y, type);
}
Value CpuWriter::compare(CompareKind kind, Value x, Value y, Type type) {
  return emitCompare(b, kind, x, y, type);
}
Value CpuWriter::convert(Value x, Type from, Type to) {
  return emitCast(b, x, from, to);
}
Value CpuWriter::combine(ReduceOpKind kind, Value acc, Value x, Type type) {
  return emitCombine(b, kind, acc, x, type);
}
Value CpuWriter::neutral(ReduceOpKind kind, Type type) {
  return emitNeutral(b, kind, type);
}
Value CpuWriter::zero(Type type) { return emitZero(b, type); }
Value CpuWriter::constant(Attribute element, Type type) {
  return emitConstant(b, element, type);
}
Value CpuWriter::random(Value index, Value seed, Value step, int64_t id) {
  return emitRandom(b, index, seed, step, id);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value CpuWriter::scratch(int64_t byteOffset) {
  return LLVM::GEPOp::create(b, loc, pointerType(), b.getI8Type(), scratchBase,
                             ArrayRef<LLVM::GEPArg>{number(byteOffset)},
                             LLVM::GEPNoWrapFlags::inbounds);
}

Value CpuWriter::table(ConstantOp op) {
  RankedTensorType type = tensorType(op.getResult());
  Type element = type.getElementType(), stored = storageType(element);
  auto values = cast<DenseElementsAttr>(op.getValue());
  std::string name =
      "constant" +
      std::to_string(std::distance(op->getBlock()->begin(), op->getIterator()));
  if (!module.lookupSymbol(name)) {
    // The same bits under a signless type; i1 as bytes.
    auto plain = RankedTensorType::get({type.getNumElements()}, stored);
    DenseElementsAttr data;
    if (element.isInteger(1)) {
      SmallVector<int8_t> bytes;
      for (bool value : values.getValues<bool>())
        bytes.push_back(value);
      data = DenseElementsAttr::get(plain, ArrayRef<int8_t>(bytes));
    } else {
      data = DenseElementsAttr::getFromRawBuffer(plain, values.getRawData());
    }
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    LLVM::GlobalOp::create(
        b, loc, LLVM::LLVMArrayType::get(stored, type.getNumElements()),
        /*isConstant=*/true, LLVM::Linkage::Internal, name, data,
        /*alignment=*/64);
  }
  return LLVM::AddressOfOp::create(b, loc, pointerType(), name);
}

Value CpuWriter::address(Value base, Value offset, Type type) {
  return LLVM::GEPOp::create(b, loc, base.getType(), storageType(type), base,
                             ArrayRef<LLVM::GEPArg>{offset},
                             LLVM::GEPNoWrapFlags::inbounds);
}

Value CpuWriter::load(Value base, Value offset, Type type) {
  Value at = address(base, offset, type);
  Value stored =
      LLVM::LoadOp::create(b, loc, storageType(type), at, storageBytes(type));
  return fromStorage(b, stored, type);
}

void CpuWriter::store(Value value, Value base, Value offset, Type type) {
  value = toStorage(b, value, type);
  Value at = address(base, offset, type);
  LLVM::StoreOp::create(b, loc, value, at, storageBytes(type));
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

void CpuWriter::iterations(
    int64_t tiledSize,
    function_ref<void(Value, std::pair<Value, Value>)> body) {
  std::pair<Value, Value> tile;
  {
    OpBuilder::InsertionGuard inside(b);
    if (tiledSize) {
      auto tiles = scf::ForOp::create(b, loc, number(0), number(tiledSize),
                                      number(tilePoints));
      b.setInsertionPointToStart(tiles.getBody());
      Value first = tiles.getInductionVar();
      Value behind = arith::AddIOp::create(b, loc, first, number(tilePoints));
      tile = {first, arith::MinUIOp::create(b, loc, behind, number(tiledSize))};
    }
    auto loop = scf::ForOp::create(b, loc, begin, end, number(1));
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar(), tile);
  }
  LLVM::ReturnOp::create(b, loc, ValueRange());
}

KernelWriter::Values CpuWriter::loop(Value from, Value to, ValueRange carried,
                                     LoopBody body) {
  auto loop = scf::ForOp::create(b, loc, from, to, number(1), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!carried.empty())
    scf::YieldOp::create(b, loc, next);
  return Values(loop.result_begin(), loop.result_end());
}

Value CpuWriter::choice(Value condition, Type type, Scalar inside,
                        Scalar outside) {
  auto choice = scf::IfOp::create(b, loc, TypeRange(scalarType(type)),
                                  condition, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  auto fill = [&](Block *block, Scalar body) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(block);
    Value value = body();
    scf::YieldOp::create(b, loc, value);
  };
  fill(choice.thenBlock(), inside);
  fill(choice.elseBlock(), outside);
  return choice.getResult(0);
}

Operation *CpuWriter::openPlace() { return number(0).getDefiningOp(); }

void CpuWriter::at(Operation *place, function_ref<void()> body) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(place);
  body();
}

void CpuWriter::closePlace(Operation *place) { place->erase(); }

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void writeKernel(FusionOp fusion, KernelNests nests, StringRef symbol,
                 ModuleOp module) {
  if (fusion.getBody().front().getTerminator()->getNumOperands() == 0)
    return;
  CpuWriter writer(fusion, symbol, module, collectScalars(fusion).size(),
                   nests.scratchBytes > 0);
  Emitter emitter(fusion, nests, writer);
  emitter.run();
  assert(!emitter.wantsRefining() &&
         emitter.getScratchBytes() == nests.scratchBytes &&
         "the nests were chosen for this kernel");
}

} // namespace ax::codegen
