//===- GpuWriter.cpp - Kernels as what one thread does --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GpuWriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ax::codegen {

GpuWriter::GpuWriter(FusionOp fusion, StringRef symbol, ModuleOp module,
                     unsigned numScalars, const KernelNests &nests)
    : ScalarWriter(module, Bf16::Native), numIterations(nests.iterations) {
  SmallVector<NamedAttrList> attributes = bufferAttributes(fusion);
  // Scratch comes last, behind scalars, if there is any.
  NamedAttrList ofScratch = attributes.pop_back_val();
  unsigned numTensors = attributes.size();
  SmallVector<Type> types(numTensors, pointerType());
  types.append(numScalars, b.getI64Type());
  attributes.resize(types.size());
  if (nests.scratchBytes > 0) {
    types.push_back(pointerType());
    attributes.push_back(std::move(ofScratch));
  }
  auto kernel = LLVM::LLVMFuncOp::create(
      b, loc, symbol,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  types));
  kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  kernel.setArgAttrsAttr(toArray(b.getContext(), attributes));

  Block *start = kernel.addEntryBlock(b);
  b.setInsertionPointToStart(start);
  ValueRange arguments = start->getArguments();
  setTensors(fusion, arguments.take_front(numTensors));
  llvm::append_range(scalars, arguments.slice(numTensors, numScalars));
  Type i32 = b.getI32Type();
  Value size = wide(NVVM::BlockDimXOp::create(b, loc, i32));
  thread = addIndex(mulIndex(wide(NVVM::BlockIdXOp::create(b, loc, i32)), size),
                    wide(NVVM::ThreadIdXOp::create(b, loc, i32)));
  numThreads = mulIndex(wide(NVVM::GridDimXOp::create(b, loc, i32)), size);
  if (nests.scratchBytes > 0)
    scratchBase = LLVM::GEPOp::create(
        b, loc, pointerType(), b.getI8Type(), arguments.back(),
        ArrayRef<LLVM::GEPArg>{mulIndex(thread, number(nests.scratchBytes))},
        LLVM::GEPNoWrapFlags::inbounds);
}

Value GpuWriter::wide(Value number) {
  return arith::ExtUIOp::create(b, loc, b.getI64Type(), number);
}

void GpuWriter::iterations(
    int64_t tiledSize,
    function_ref<void(Value, std::pair<Value, Value>)> body) {
  assert(tiledSize == 0 && "iterations are elements or rows");
  {
    OpBuilder::InsertionGuard inside(b);
    auto loop =
        scf::ForOp::create(b, loc, thread, number(numIterations), numThreads);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar(), {});
  }
  LLVM::ReturnOp::create(b, loc, ValueRange());
}

} // namespace ax::codegen
