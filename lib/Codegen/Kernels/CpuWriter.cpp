//===- CpuWriter.cpp - Kernels as functions on scalars --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CpuWriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ax::codegen {

/// A tile has so many points of the last loop: that many cache lines stay even
/// with an unlucky stride.
static constexpr int64_t tilePoints = 16;

CpuWriter::CpuWriter(FusionOp fusion, StringRef symbol, ModuleOp module,
                     unsigned numScalars, bool hasScratch)
    : ScalarWriter(module, ScalarUnit::Processor, 64, /*tableSpace=*/0) {
  SmallVector<NamedAttrList> attributes = bufferAttributes(fusion);
  unsigned numBuffers = attributes.size();
  SmallVector<Type> types(numBuffers, pointerType());
  types.append(numScalars + 2, b.getI64Type());
  attributes.resize(types.size());
  auto body = LLVM::LLVMFuncOp::create(
      b, loc, (symbol + "_body").str(),
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  types),
      LLVM::Linkage::Internal);
  body.setNoInline(true);
  body.setArgAttrsAttr(toArray(b.getContext(), attributes));
  writeEntry(symbol, body, numScalars, hasScratch);

  Block *start = body.addEntryBlock(b);
  b.setInsertionPointToStart(start);
  ValueRange arguments = start->getArguments();
  setTensors(fusion, arguments.take_front(numBuffers - 1));
  scratchBase = arguments[numBuffers - 1];
  llvm::append_range(scalars, arguments.slice(numBuffers, numScalars));
  begin = arguments[types.size() - 2];
  end = arguments[types.size() - 1];
}

Value CpuWriter::loadWord(Value base, Type type, unsigned index) {
  Value at = LLVM::GEPOp::create(b, loc, base.getType(), type, base,
                                 ArrayRef<LLVM::GEPArg>{int32_t(index)});
  return LLVM::LoadOp::create(b, loc, type, at);
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

} // namespace ax::codegen
