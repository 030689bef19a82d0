//===- ScalarWriter.cpp - What writers of scalar code share ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ScalarWriter.h"

#include "EmitRandom.h"
#include "ScalarMath.h"
#include "ax/Runtime/Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ax::codegen {

ScalarWriter::ScalarWriter(ModuleOp module, ScalarUnit unit, unsigned indexBits,
                           unsigned tableSpace)
    : module(module), b(module.getContext()), loc(b.getUnknownLoc()),
      unit(unit), indexBits(indexBits), tableSpace(tableSpace) {
  b.setInsertionPointToEnd(module.getBody());
}

Type ScalarWriter::pointerType() {
  return LLVM::LLVMPointerType::get(b.getContext());
}

SmallVector<NamedAttrList> ScalarWriter::bufferAttributes(FusionOp fusion) {
  SmallVector<Type> types(fusion.getBody().getArgumentTypes());
  llvm::append_range(
      types, fusion.getBody().front().getTerminator()->getOperandTypes());
  SmallVector<NamedAttrList> attributes(types.size() + 1);
  for (auto [i, type] : llvm::enumerate(types)) {
    auto tensor = cast<RankedTensorType>(type);
    int64_t bytes =
        tensor.getNumElements() * storageBytes(tensor.getElementType());
    if (bytes > 0)
      attributes[i].set(LLVM::LLVMDialect::getDereferenceableAttrName(),
                        b.getI64IntegerAttr(bytes));
  }
  for (NamedAttrList &of : attributes) {
    of.set(LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
    of.set(LLVM::LLVMDialect::getAlignAttrName(),
           b.getI64IntegerAttr(rt::bufferAlignment));
  }
  return attributes;
}

/// What is said not to alias no barrier changes, for LLVM.
void ScalarWriter::shareWritten(FusionOp fusion,
                                MutableArrayRef<NamedAttrList> buffers) {
  auto share = [&](unsigned number) {
    buffers[number].erase(LLVM::LLVMDialect::getNoAliasAttrName());
  };
  for (unsigned i = fusion.getBody().getNumArguments(); i != buffers.size();
       ++i)
    share(i);
  if (std::optional<ArrayRef<int64_t>> places = fusion.getInPlace())
    for (int64_t operand : *places)
      if (operand >= 0)
        share(operand);
}

void ScalarWriter::setTensors(FusionOp fusion, ValueRange buffers) {
  tensors.assign(buffers.begin(), buffers.end());
  // One name for one piece of memory: so none is said not to alias the other.
  if (std::optional<ArrayRef<int64_t>> places = fusion.getInPlace())
    for (auto [result, operand] : llvm::enumerate(*places))
      if (operand >= 0)
        tensors[fusion.getBody().getNumArguments() + result] = tensors[operand];
}

/// Makes all attributes at once: a list of them is made anew for each change.
ArrayAttr toArray(MLIRContext *context, ArrayRef<NamedAttrList> attributes) {
  Builder builder(context);
  return builder.getArrayAttr(llvm::map_to_vector(
      attributes, [&](const NamedAttrList &of) -> Attribute {
        return of.getDictionary(context);
      }));
}

//===----------------------------------------------------------------------===//
// Index arithmetic
//===----------------------------------------------------------------------===//

Value ScalarWriter::number(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, indexBits);
}
Value ScalarWriter::addIndex(Value x, Value y) {
  return arith::AddIOp::create(b, loc, x, y, arith::IntegerOverflowFlags::nsw);
}
Value ScalarWriter::mulIndex(Value x, Value y) {
  return arith::MulIOp::create(b, loc, x, y, arith::IntegerOverflowFlags::nsw);
}
Value ScalarWriter::divIndex(Value x, Value y) {
  return arith::DivUIOp::create(b, loc, x, y);
}
Value ScalarWriter::remIndex(Value x, Value y) {
  return arith::RemUIOp::create(b, loc, x, y);
}
Value ScalarWriter::addWrapped(Value x, Value y) {
  return arith::AddIOp::create(b, loc, x, y);
}
Value ScalarWriter::minSigned(Value x, Value y) {
  return arith::MinSIOp::create(b, loc, x, y);
}
Value ScalarWriter::maxSigned(Value x, Value y) {
  return arith::MaxSIOp::create(b, loc, x, y);
}
Value ScalarWriter::isLess(Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
}
Value ScalarWriter::isAtLeast(Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, x, y);
}
Value ScalarWriter::both(Value condition, Value other) {
  return arith::AndIOp::create(b, loc, condition, other);
}
Value ScalarWriter::select(Value condition, Value x, Value y) {
  // Where processors have no bf16, LLVM 22 widens what is chosen, and narrows
  // it by a function that nobody links in.
  Type type = x.getType();
  bool asBits = type.isBF16() && unit == ScalarUnit::Processor;
  if (asBits) {
    x = toStorage(b, x, type);
    y = toStorage(b, y, type);
  }
  Value chosen = arith::SelectOp::create(b, loc, condition, x, y);
  return asBits ? fromStorage(b, chosen, type) : chosen;
}

Value ScalarWriter::wide(Value index) {
  return indexBits == 64 ? index
                         : arith::ExtSIOp::create(b, loc, b.getI64Type(), index)
                               .getResult();
}
Value ScalarWriter::narrow(Value number) {
  return indexBits == 64 ? number
                         : arith::TruncIOp::create(
                               b, loc, b.getIntegerType(indexBits), number)
                               .getResult();
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Value ScalarWriter::unary(UnaryKind kind, Value x, Type type) {
  return emitUnary(b, unit, kind, x, type);
}
Value ScalarWriter::expFlushed(Value x) { return emitExpFlushed(b, x); }
Value ScalarWriter::binary(BinaryKind kind, Value x, Value y, Type type) {
  return emitBinary(b, unit, kind, x, y, type);
}
Value ScalarWriter::compare(CompareKind kind, Value x, Value y, Type type) {
  return emitCompare(b, unit, kind, x, y, type);
}
Value ScalarWriter::convert(Value x, Type from, Type to) {
  return emitCast(b, unit, x, from, to);
}
Value ScalarWriter::combine(ReduceOpKind kind, Value acc, Value x, Type type) {
  return emitCombine(b, kind, acc, x, type);
}
Value ScalarWriter::neutral(ReduceOpKind kind, Type type) {
  return emitNeutral(b, kind, type);
}
Value ScalarWriter::zero(Type type) { return emitZero(b, type); }
Value ScalarWriter::constant(Attribute element, Type type) {
  return emitConstant(b, element, type);
}
Value ScalarWriter::random(Value index, Value seed, Value step, int64_t id) {
  return emitRandom(b, index, seed, step, id);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value ScalarWriter::scratch(int64_t byteOffset) {
  return LLVM::GEPOp::create(b, loc, pointerType(), b.getI8Type(), scratchBase,
                             ArrayRef<LLVM::GEPArg>{number(byteOffset)},
                             LLVM::GEPNoWrapFlags::inbounds);
}

Value ScalarWriter::table(ConstantOp op) {
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
        /*alignment=*/64, tableSpace);
  }
  Value table = LLVM::AddressOfOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext(), tableSpace), name);
  if (tableSpace == 0)
    return table;
  return LLVM::AddrSpaceCastOp::create(b, loc, pointerType(), table);
}

Value ScalarWriter::address(Value base, Value offset, Type type) {
  return LLVM::GEPOp::create(b, loc, base.getType(), storageType(type), base,
                             ArrayRef<LLVM::GEPArg>{offset},
                             LLVM::GEPNoWrapFlags::inbounds);
}

Value ScalarWriter::load(Value base, Value offset, Type type) {
  Value at = address(base, offset, type);
  Value stored =
      LLVM::LoadOp::create(b, loc, storageType(type), at, storageBytes(type));
  return fromStorage(b, stored, type);
}

void ScalarWriter::store(Value value, Value base, Value offset, Type type) {
  value = toStorage(b, value, type);
  Value at = address(base, offset, type);
  LLVM::StoreOp::create(b, loc, value, at, storageBytes(type));
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

KernelWriter::Values ScalarWriter::loop(Value from, Value to,
                                        ValueRange carried, LoopBody body) {
  auto loop = scf::ForOp::create(b, loc, from, to, number(1), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!carried.empty())
    scf::YieldOp::create(b, loc, next);
  return Values(loop.result_begin(), loop.result_end());
}

Value ScalarWriter::choice(Value condition, Type type, Scalar inside,
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

void ScalarWriter::branch(Value condition, function_ref<void()> inside,
                          function_ref<void()> outside) {
  auto branch = scf::IfOp::create(b, loc, condition,
                                  /*withElseRegion=*/bool(outside));
  OpBuilder::InsertionGuard guard(b);
  if (inside) {
    b.setInsertionPointToStart(branch.thenBlock());
    inside();
  }
  if (outside) {
    b.setInsertionPointToStart(branch.elseBlock());
    outside();
  }
}

Operation *ScalarWriter::openPlace() { return number(0).getDefiningOp(); }

void ScalarWriter::at(Operation *place, function_ref<void()> body) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(place);
  body();
}

void ScalarWriter::closePlace(Operation *place) { place->erase(); }

} // namespace ax::codegen
