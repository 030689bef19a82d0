//===- WriteReduction.cpp - What ranks hold, made one, on a GPU -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "WriteReduction.h"

#include "ElementOps.h"
#include "ScalarWriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ax::codegen {

namespace {

/// Arithmetic is that of runtime/Host/VectorReduce.inc, so that a device's
/// results have the bits of the host's.
class ReductionWriter {
public:
  ReductionWriter(const Reduction &reduction, ModuleOp module)
      : reduction(reduction), b(module.getContext()), loc(b.getUnknownLoc()) {
    b.setInsertionPointToEnd(module.getBody());
  }

  void write(StringRef symbol) {
    Block *start = createKernel(symbol);
    b.setInsertionPointToStart(start);
    ValueRange buffers =
        start->getArguments().take_front(reduction.numBuffers());
    ValueRange scalars =
        start->getArguments().drop_front(reduction.numBuffers());
    forEachElement(scalars[0], scalars[1], [&](Value row, Value column) {
      auto at = [&](Value stride) {
        return make<arith::AddIOp>(make<arith::MulIOp>(row, stride), column);
      };
      Value from = at(scalars[2]), to = at(scalars[3]);
      Value result;
      for (Value source : buffers.take_front(reduction.sources)) {
        Value element = load(source, from);
        result = result ? combine(result, element) : element;
      }
      for (Value destination : buffers.drop_front(reduction.sources))
        store(result, destination, to);
    });
    LLVM::ReturnOp::create(b, loc, ValueRange());
  }

private:
  template <typename Op, typename... Args>
  Value make(Args &&...args) {
    return Op::create(b, loc, std::forward<Args>(args)...);
  }
  Value number(int64_t value) { return make<arith::ConstantIntOp>(value, 64); }

  Block *createKernel(StringRef symbol) {
    Type pointer = LLVM::LLVMPointerType::get(b.getContext());
    SmallVector<Type> types(reduction.numBuffers(), pointer);
    NamedAttrList ofBuffer;
    ofBuffer.set(LLVM::LLVMDialect::getAlignAttrName(),
                 b.getI64IntegerAttr(storageBytes(reduction.type)));
    SmallVector<NamedAttrList> attributes(types.size(), ofBuffer);
    types.append(rt::reductionKernel::numScalars, b.getI64Type());
    attributes.resize(types.size());
    auto kernel = LLVM::LLVMFuncOp::create(
        b, loc, symbol,
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                    types));
    kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    b.getUnitAttr());
    kernel.setArgAttrsAttr(toArray(b.getContext(), attributes));
    return kernel.addEntryBlock(b);
  }

  /// The loop of this thread, which counts rows and columns on: a division for
  /// each element would take longer than the element.
  void forEachElement(Value rows, Value rowSize,
                      function_ref<void(Value row, Value column)> body) {
    auto wide = [&](Value word) {
      return make<arith::ExtUIOp>(b.getI64Type(), word);
    };
    Type i32 = b.getI32Type();
    Value threads = wide(make<NVVM::BlockDimXOp>(i32));
    Value first = make<arith::AddIOp>(
        make<arith::MulIOp>(wide(make<NVVM::BlockIdXOp>(i32)), threads),
        wide(make<NVVM::ThreadIdXOp>(i32)));
    Value step =
        make<arith::MulIOp>(wide(make<NVVM::GridDimXOp>(i32)), threads);
    // Where rows have nothing, there is nothing to do, and no divisor.
    Value divisor = make<arith::MaxSIOp>(rowSize, number(1));
    Value rowStep = make<arith::DivUIOp>(step, divisor);
    Value columnStep = make<arith::RemUIOp>(step, divisor);
    Value row = make<arith::DivUIOp>(first, divisor);
    Value column = make<arith::RemUIOp>(first, divisor);
    auto loop =
        scf::ForOp::create(b, loc, first, make<arith::MulIOp>(rows, rowSize),
                           step, ValueRange{row, column});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    row = loop.getRegionIterArg(0);
    column = loop.getRegionIterArg(1);
    body(row, column);
    Value next = make<arith::AddIOp>(column, columnStep);
    Value isBehind =
        make<arith::CmpIOp>(arith::CmpIPredicate::sge, next, rowSize);
    Value nextRow =
        make<arith::AddIOp>(make<arith::AddIOp>(row, rowStep),
                            make<arith::ExtUIOp>(b.getI64Type(), isBehind));
    Value inRow = make<arith::SelectOp>(
        isBehind, make<arith::SubIOp>(next, rowSize), next);
    scf::YieldOp::create(b, loc, ValueRange{nextRow, inRow});
  }

  bool isNarrow() const { return isNarrowFloat(reduction.type); }
  /// Truth values are compared as the bytes that they are.
  bool isBool() const { return reduction.type.isInteger(1); }

  Value address(Value base, Value offset) {
    return LLVM::GEPOp::create(
        b, loc, base.getType(), storageType(reduction.type), base,
        ArrayRef<LLVM::GEPArg>{offset}, LLVM::GEPNoWrapFlags::inbounds);
  }
  Value load(Value base, Value offset) {
    Type type = reduction.type;
    Value stored = LLVM::LoadOp::create(
        b, loc, storageType(type), address(base, offset), storageBytes(type));
    if (isBool())
      return stored;
    Value element = fromStorage(b, stored, type);
    return isNarrow()
               ? emitCast(b, ScalarUnit::Gpu, element, type, b.getF32Type())
               : element;
  }
  void store(Value value, Value base, Value offset) {
    Type type = reduction.type;
    if (isNarrow())
      value = emitCast(b, ScalarUnit::Gpu, value, b.getF32Type(), type);
    if (!isBool())
      value = toStorage(b, value, type);
    LLVM::StoreOp::create(b, loc, value, address(base, offset),
                          storageBytes(type));
  }

  /// NaN wins; of equal numbers the second does.
  Value combine(Value sum, Value element) {
    bool isFloat = isa<FloatType>(sum.getType());
    if (reduction.kind == ReduceOpKind::sum)
      return isFloat ? make<arith::AddFOp>(sum, element)
                     : make<arith::AddIOp>(sum, element);
    bool isMax = reduction.kind == ReduceOpKind::max;
    if (!isFloat) {
      bool isUnsigned = isBool() || reduction.type.isUnsignedInteger();
      auto predicate = isMax        ? isUnsigned ? arith::CmpIPredicate::ugt
                                                 : arith::CmpIPredicate::sgt
                       : isUnsigned ? arith::CmpIPredicate::ult
                                    : arith::CmpIPredicate::slt;
      return make<arith::SelectOp>(make<arith::CmpIOp>(predicate, sum, element),
                                   sum, element);
    }
    Value isBeyond = make<arith::CmpFOp>(isMax ? arith::CmpFPredicate::OGT
                                               : arith::CmpFPredicate::OLT,
                                         sum, element);
    Value isNaN = make<arith::CmpFOp>(arith::CmpFPredicate::UNE, sum, sum);
    return make<arith::SelectOp>(make<arith::OrIOp>(isBeyond, isNaN), sum,
                                 element);
  }

  const Reduction &reduction;
  OpBuilder b;
  Location loc;
};

} // namespace

rt::LaunchShape writeReduction(const Reduction &reduction, StringRef symbol,
                               ModuleOp module) {
  ReductionWriter(reduction, module).write(symbol);
  // As many threads as a large card runs at the same time.
  constexpr int64_t blocks = 1024, threadsPerBlock = 256;
  return {blocks, threadsPerBlock};
}

} // namespace ax::codegen
