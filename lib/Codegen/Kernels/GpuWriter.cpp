//===- GpuWriter.cpp - Kernels as what one thread does --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GpuWriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace ax::codegen {

static constexpr int64_t scratchAlignment = 64;
/// Address spaces of PTX. What is in memory of the card says so: where one
/// address is chosen of tensors' and a table's, LLVM's InferAddressSpaces
/// breaks the code if the table is in no space.
static constexpr unsigned globalSpace = 1, sharedSpace = 3;

/// The first compute capability with an instruction that rounds to them.
static constexpr unsigned firstWithFloat8 = 89;

/// 32 if numbers of elements, of points and of iterations all fit, with room
/// for a number of a thread more.
static unsigned indexBitsOf(FusionOp fusion, const KernelNests &nests) {
  constexpr int64_t most = 1 << 30;
  auto isLarge = [](Value value) {
    return tensorType(value).getNumElements() > most;
  };
  bool fits = nests.iterations <= most;
  for (const auto &[key, plan] : nests.inner)
    fits &= plan.numPoints() <= most;
  Block &body = fusion.getBody().front();
  fits &= llvm::none_of(body.getArguments(), isLarge);
  for (Operation &op : body)
    fits &= llvm::none_of(op.getResults(), isLarge);
  return fits ? 32 : 64;
}

/// Whether a thread has so many terms in an access that there are more
/// instructions than memory waits for.
static bool hasManyTerms(const KernelNests &nests) {
  return llvm::any_of(nests.inner, [](const auto &inner) {
    constexpr int64_t many = 16;
    return inner.second.numLanes() >= many;
  });
}

GpuWriter::GpuWriter(FusionOp fusion, StringRef symbol, ModuleOp module,
                     unsigned numScalars, const KernelNests &nests,
                     const GroupLaunch &launch, const GpuTarget &target)
    : ScalarWriter(module, ScalarUnit::Gpu, indexBitsOf(fusion, nests),
                   globalSpace),
      group(nests.group), roundsToFloat8(target.capability >= firstWithFloat8),
      contracts(hasManyTerms(nests)), numIterations(nests.numDealt()),
      scratchBytes(nests.scratchBytes), sharedBytes(launch.sharedBytes),
      threadsPerBlock(launch.shape.threadsPerBlock) {
  SmallVector<NamedAttrList> attributes = bufferAttributes(fusion);
  // Scratch comes last, behind scalars, if there is any.
  NamedAttrList ofScratch = attributes.pop_back_val();
  unsigned numTensors = attributes.size();
  SmallVector<Type> types(numTensors, pointerType());
  types.append(numScalars, b.getI64Type());
  attributes.resize(types.size());
  bool isInCard = scratchBytes > 0 && sharedBytes == 0;
  if (isInCard) {
    types.push_back(pointerType());
    attributes.push_back(std::move(ofScratch));
  }
  auto kernel = LLVM::LLVMFuncOp::create(
      b, loc, symbol,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  types));
  kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  if (group.isMany()) {
    kernel->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    b.getDenseI32ArrayAttr({int32_t(threadsPerBlock), 1, 1}));
    // ptxas would rather spill than not have as many threads there as can be.
    // Large blocks, and a scatter's, which keep several addresses, may have 64
    // registers for each thread; those that sum several columns 128.
    constexpr int64_t large = 512;
    bool isColumn = group.isColumn() && nests.outer.numLanes() > 1;
    int64_t threads = isColumn ? 512 : 1024;
    if (int64_t blocks = threads / threadsPerBlock;
        threadsPerBlock > large || nests.areParts || isColumn)
      kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      b.getI32IntegerAttr(static_cast<int32_t>(blocks)));
    shareWritten(fusion, attributes);
  }
  kernel.setArgAttrsAttr(toArray(b.getContext(), attributes));

  Block *start = kernel.addEntryBlock(b);
  b.setInsertionPointToStart(start);
  ValueRange arguments = start->getArguments();
  setTensors(fusion, arguments.take_front(numTensors));
  llvm::append_range(scalars, arguments.slice(numTensors, numScalars));
  Type i32 = b.getI32Type();
  thread = fromWord(NVVM::ThreadIdXOp::create(b, loc, i32));
  block = fromWord(NVVM::BlockIdXOp::create(b, loc, i32));
  numBlocks = fromWord(NVVM::GridDimXOp::create(b, loc, i32));
  if (group.isColumn()) {
    turn = divIndex(thread, number(group.columns));
  } else if (group.isMany()) {
    int64_t ofBlock = threadsPerBlock / group.threads;
    turn = remIndex(thread, number(group.threads));
    groupNumber = addIndex(mulIndex(block, number(ofBlock)),
                           divIndex(thread, number(group.threads)));
    numGroups = mulIndex(numBlocks, number(ofBlock));
  } else {
    Value size = fromWord(NVVM::BlockDimXOp::create(b, loc, i32));
    groupNumber = addIndex(mulIndex(block, size), thread);
    numGroups = mulIndex(numBlocks, size);
  }
  if (scratchBytes > 0)
    setScratch(isInCard ? arguments.back() : Value());
}

/// Of a number of threads or blocks.
Value GpuWriter::fromWord(Value number) {
  return narrow(arith::ExtUIOp::create(b, loc, b.getI64Type(), number));
}
Value GpuWriter::word(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 32);
}

/// Memory of a block, whose content does not matter.
Value GpuWriter::sharedMemory(StringRef name, int64_t bytes) {
  auto memory = LLVM::LLVMArrayType::get(b.getI8Type(), bytes);
  auto known = module.lookupSymbol<LLVM::GlobalOp>(name);
  if (!known) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    LLVM::GlobalOp::create(b, loc, memory,
                           /*isConstant=*/false, LLVM::Linkage::Internal, name,
                           Attribute(), scratchAlignment, sharedSpace);
  } else if (cast<LLVM::LLVMArrayType>(known.getType()).getNumElements() <
             memory.getNumElements()) {
    known.setGlobalType(memory);
  }
  auto type = LLVM::LLVMPointerType::get(b.getContext(), sharedSpace);
  return LLVM::AddressOfOp::create(b, loc, type, name);
}

/// The piece of this thread's group.
void GpuWriter::setScratch(Value ofCard) {
  Value base = ofCard, piece = groupNumber;
  if (!base) {
    int64_t ofBlock = threadsPerBlock / group.threads;
    base = LLVM::AddrSpaceCastOp::create(
        b, loc, pointerType(), sharedMemory("scratch", ofBlock * sharedBytes));
    piece = divIndex(thread, number(group.threads));
  }
  // Pieces of all groups may be more than 32 bits count.
  Value bytes = arith::ConstantIntOp::create(b, loc, scratchBytes, 64);
  Value offset = arith::MulIOp::create(b, loc, wide(piece), bytes);
  scratchBase = LLVM::GEPOp::create(b, loc, pointerType(), b.getI8Type(), base,
                                    ArrayRef<LLVM::GEPArg>{offset},
                                    LLVM::GEPNoWrapFlags::inbounds);
}

void GpuWriter::iterations(
    int64_t tiledSize,
    function_ref<void(Value, std::pair<Value, Value>)> body) {
  assert(tiledSize == 0 && "iterations are elements or rows");
  Value end = number(numIterations);
  {
    OpBuilder::InsertionGuard inside(b);
    Value first = groupNumber, step = numGroups;
    if (group.isColumn()) {
      first = mulIndex(block, number(group.columns));
      step = mulIndex(numBlocks, number(group.columns));
    }
    auto loop = scf::ForOp::create(b, loc, first, end, step);
    b.setInsertionPointToStart(loop.getBody());
    Value iteration = loop.getInductionVar();
    if (group.isColumn()) {
      // Whoever is beyond the last does that one along, and stores nothing.
      Value own = addIndex(iteration, remIndex(thread, number(group.columns)));
      isActive = isLess(own, end);
      iteration = minSigned(own, number(numIterations - 1));
    }
    body(iteration, {});
  }
  LLVM::ReturnOp::create(b, loc, ValueRange());
}

/// A product that is added up is one operation with that, and is rounded once:
/// where that counts. Elsewhere bits are to be the same whatever kernel the
/// product is in.
static constexpr auto contract = arith::FastMathFlags::contract;

KernelWriter::Value GpuWriter::binary(BinaryKind kind, Value x, Value y,
                                      Type type) {
  return contracts && kind == BinaryKind::mul && type.isF32()
             ? Value(arith::MulFOp::create(b, loc, x, y, contract))
             : ScalarWriter::binary(kind, x, y, type);
}

KernelWriter::Value GpuWriter::combine(ReduceOpKind kind, Value acc, Value x,
                                       Type type) {
  return contracts && kind == ReduceOpKind::sum && type.isF32()
             ? Value(arith::AddFOp::create(b, loc, acc, x, contract))
             : ScalarWriter::combine(kind, acc, x, type);
}

/// By the instruction for two of them where the card has it, of which the other
/// one is 0. It gives the bits that Support/Float8.h does, but for those of
/// NaN.
KernelWriter::Value GpuWriter::convert(Value x, Type from, Type to) {
  Type wide = b.getF32Type();
  bool isExact = from == wide || from.isBF16() || from.isF16();
  if (!roundsToFloat8 || !isFloat8(to) || !isExact)
    return ScalarWriter::convert(x, from, to);
  if (from != wide)
    x = ScalarWriter::convert(x, from, wide);
  StringRef name = isa<Float8E5M2Type>(to) ? "llvm.nvvm.ff.to.e5m2x2.rn"
                                           : "llvm.nvvm.ff.to.e4m3x2.rn";
  Value both = LLVM::CallIntrinsicOp::create(b, loc, b.getI16Type(),
                                             b.getStringAttr(name),
                                             ValueRange{zero(wide), x})
                   .getResult(0);
  return arith::TruncIOp::create(b, loc, b.getI8Type(), both);
}

//===----------------------------------------------------------------------===//
// What a group does together
//===----------------------------------------------------------------------===//

void GpuWriter::meet() {
  if (!group.isMany())
    return;
  if (isInWarp())
    NVVM::SyncWarpOp::create(b, loc, word(-1));
  else
    NVVM::Barrier0Op::create(b, loc);
}

/// The loops of this thread over `count` points from `begin` on: one over turns
/// of all threads, whose number is known, and one of those that are left.
KernelWriter::Values GpuWriter::takeTurns(Value begin, int64_t count,
                                          ValueRange carried, LoopBody body) {
  int64_t turns = count / group.threads, left = count % group.threads;
  Value first = addIndex(begin, turn);
  Values values(carried);
  if (turns > 0) {
    Value end = number(turns);
    if (isActive && carried.empty())
      end = select(isActive, end, number(0));
    values = loop(number(0), end, values, [&](Value i, ValueRange inner) {
      return body(addIndex(first, mulIndex(i, number(group.threads))), inner);
    });
  }
  if (left > 0) {
    Value from = addIndex(first, number(count - left));
    Value to = addIndex(begin, number(count));
    if (isActive && carried.empty())
      to = select(isActive, to, number(0));
    auto rest = scf::ForOp::create(b, loc, from, to, number(group.threads),
                                   ValueRange(values));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(rest.getBody());
    Values next = body(rest.getInductionVar(), rest.getRegionIterArgs());
    if (!carried.empty())
      scf::YieldOp::create(b, loc, next);
    values.assign(rest.result_begin(), rest.result_end());
  }
  return values;
}

void GpuWriter::dealtLoop(int64_t count, int64_t together,
                          function_ref<void(ValueRange)> body) {
  assert(group.isMany() && (together == 1 || !group.isColumn()));
  int64_t round = together * group.threads;
  int64_t rounds = together > 1 ? count / round : 0;
  if (rounds > 0)
    loop(number(0), number(rounds), {}, [&](Value i, ValueRange) -> Values {
      Value first = addIndex(turn, mulIndex(i, number(round)));
      Values points;
      for (int64_t k = 0; k != together; ++k)
        points.push_back(addIndex(first, number(k * group.threads)));
      body(points);
      return {};
    });
  if (int64_t left = count - rounds * round)
    takeTurns(number(rounds * round), left, {},
              [&](Value point, ValueRange) -> Values {
                body(point);
                return {};
              });
}

} // namespace ax::codegen
