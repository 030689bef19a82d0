//===- Library.cpp - Operations that a device's library does --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Library.h"

#include "Contraction.h"
#include "EightBitProducts.h"
#include "LibraryArguments.h"
#include "ax/Local/Local.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ax::codegen {

Operation *getLibraryCore(Operation *op) {
  if (auto library = dyn_cast<LibraryOp>(op))
    return library.getCore();
  return isa<LinearOp, DotOp, ConvOp, ConvTransposeOp, ConvWeightGradientOp,
             AttentionOp, AttentionGradientOp, LocalAttentionOp,
             LocalAttentionGradientOp, PoolOp, MaxPoolGradientOp, TopKOp,
             NonMaxSuppressionOp, CheckIndicesOp, LookUpOp, GroupedMatmulOp,
             GroupedWeightGradientOp, BlockMatmulOp>(op)
             ? op
             : nullptr;
}

LibraryOp wrapInLibrary(Operation *op) {
  if (auto library = dyn_cast<LibraryOp>(op))
    return library;
  OpBuilder builder(op);
  Location loc = op->getLoc();
  auto library = LibraryOp::create(builder, loc, op->getResult(0).getType(),
                                   op->getOperands());
  op->getResult(0).replaceAllUsesWith(library.getResult());
  Block &body = library.getBody().emplaceBlock();
  for (Type type : op->getOperandTypes())
    body.addArgument(type, loc);
  op->moveBefore(&body, body.end());
  op->setOperands(body.getArguments());
  builder.setInsertionPointToEnd(&body);
  LocalYieldOp::create(builder, loc, op->getResults());
  return library;
}

Operation *unwrapLibrary(LibraryOp library) {
  Operation *core = library.getCore();
  Block &body = library.getBody().front();
  for (auto [argument, operand] :
       llvm::zip_equal(body.getArguments(), library.getOperands()))
    argument.replaceAllUsesWith(operand);
  library.getResult().replaceAllUsesWith(library.getYield()->getOperand(0));
  library.getYield()->erase();
  library->getBlock()->getOperations().splice(library->getIterator(),
                                              body.getOperations());
  library.erase();
  return core;
}

void setLibraryOperand(Operation *op, unsigned number, Value value) {
  op->setOperand(number, value);
  if (auto library = dyn_cast<LibraryOp>(op))
    library.getBody().getArgument(number).setType(value.getType());
}

namespace {

class CallBuilder : LibraryArguments {
public:
  CallBuilder(Operation *op, llvm::function_ref<bool(Value)> isConstant,
              const MemoryValues &inMemory, bool gpu)
      : LibraryArguments(op, inMemory, gpu), isConstant(isConstant) {}

  LibraryCall build() {
    Operation *core = getLibraryCore(op);
    llvm::TypeSwitch<Operation *>(core)
        .Case<LinearOp, DotOp, ConvOp, ConvTransposeOp, ConvWeightGradientOp,
              AttentionOp, AttentionGradientOp, LocalAttentionOp,
              LocalAttentionGradientOp, PoolOp, MaxPoolGradientOp, TopKOp,
              NonMaxSuppressionOp, CheckIndicesOp, LookUpOp, GroupedMatmulOp,
              GroupedWeightGradientOp, BlockMatmulOp>(
            [&](auto concrete) { buildFor(concrete); });
    addResults(core);
    return std::move(call);
  }

private:
  void addActivation(rt::MatmulDesc &matmul) {
    matmul.activation = getActivation();
    matmul.form = getForm();
    if (matmul.form == rt::ActivationForm::Gradient)
      addGradientOperand();
  }

  /// The strides of what is added to a product's result; -1 where nothing is.
  SmallVector<int64_t> addResidual(int64_t rank, Contraction &contraction) {
    Value added = getResidual();
    if (!added)
      return SmallVector<int64_t>(rank, -1);
    contraction.hasResidual = true;
    return SmallVector<int64_t>(argument(added).strides);
  }

  void finish(Contraction &contraction, OpOperand &a, OpOperand &b,
              rt::MatmulDesc &matmul) {
    matmul.hasResidual = contraction.hasResidual;
    contraction.needsMatrices = gpu;
    contraction.isOfEightBits =
        gpu && (isFloat8(contraction.aType) || multipliesIntegers(op));
    ContractionFault fault;
    auto made = toMatmul(contraction, fault);
    if (made) {
      matmul.a = made->a;
      matmul.b = made->b;
      matmul.c = made->c;
      matmul.residual = made->residual;
      // Both are dense, and as large as the result.
      if (matmul.hasInput())
        matmul.input = made->c;
    }
    // Where the views of the factors begin counts, too.
    auto begins = [&](size_t argument) {
      return !contraction.isOfEightBits ||
             call.arguments[argument].byteOffset % eightBitMultiple == 0;
    };
    if (fault.a || !begins(0))
      call.wantsDense.push_back(outside(a));
    if (fault.b || !begins(1))
      call.wantsDense.push_back(outside(b));
    if (fault.residual)
      call.wantsDense.push_back(getResidual());
    assert((made || !call.wantsDense.empty()) && "dense operands always fit");
    matmul.constantB = isConstant(call.arguments[1].base);
    call.desc = matmul;
  }

  void buildFor(LinearOp linear) {
    Contraction contraction;
    StridedView x = argument(linear.getXMutable());
    StridedView w = argument(linear.getWMutable());
    contraction.aType = dtypeOf(linear.getX());
    contraction.bType = dtypeOf(linear.getW());
    contraction.resultType = dtypeOf(linear.getResult());
    rt::TensorDesc c = result();
    rt::MatmulDesc matmul;
    matmul.hasBias = addBias();
    SmallVector<int64_t> added = addResidual(c.getRank(), contraction);
    int64_t last = x.sizes.size() - 1;
    int64_t wk = linear.getTransposeW() ? 1 : 0;
    for (int64_t i = 0; i < last; ++i)
      contraction.m.push_back(
          {x.sizes[i], x.strides[i], -1, c.strides[i], added[i]});
    contraction.k.push_back({x.sizes[last], x.strides[last], w.strides[wk]});
    contraction.n.push_back(
        {w.sizes[1 - wk], -1, w.strides[1 - wk], c.strides[last], added[last]});
    addActivation(matmul);
    finish(contraction, linear.getXMutable(), linear.getWMutable(), matmul);
  }

  void buildFor(DotOp dot) {
    Contraction contraction;
    StridedView a = argument(dot.getLhsMutable());
    StridedView b = argument(dot.getRhsMutable());
    contraction.aType = dtypeOf(dot.getLhs());
    contraction.bType = dtypeOf(dot.getRhs());
    contraction.resultType = dtypeOf(dot.getResult());
    rt::TensorDesc c = result();
    SmallVector<int64_t> added = addResidual(c.getRank(), contraction);
    int64_t next = 0;
    for (auto [l, r] : llvm::zip_equal(dot.getLhsBatch(), dot.getRhsBatch())) {
      contraction.batch.push_back({a.sizes[l], a.strides[l], b.strides[r],
                                   c.strides[next], added[next]});
      ++next;
    }
    for (int64_t i = 0, e = a.sizes.size(); i < e; ++i)
      if (!llvm::is_contained(dot.getLhsBatch(), i) &&
          !llvm::is_contained(dot.getLhsContract(), i)) {
        contraction.m.push_back(
            {a.sizes[i], a.strides[i], -1, c.strides[next], added[next]});
        ++next;
      }
    for (int64_t i = 0, e = b.sizes.size(); i < e; ++i)
      if (!llvm::is_contained(dot.getRhsBatch(), i) &&
          !llvm::is_contained(dot.getRhsContract(), i)) {
        contraction.n.push_back(
            {b.sizes[i], -1, b.strides[i], c.strides[next], added[next]});
        ++next;
      }
    for (auto [l, r] :
         llvm::zip_equal(dot.getLhsContract(), dot.getRhsContract()))
      contraction.k.push_back({a.sizes[l], a.strides[l], b.strides[r]});
    rt::MatmulDesc matmul;
    addActivation(matmul);
    finish(contraction, dot.getLhsMutable(), dot.getRhsMutable(), matmul);
  }

  template <typename Op>
  void setWindow(Op conv, rt::ConvDesc &out) {
    out.strides = toVector(conv.getStrides());
    out.dilations = toVector(conv.getDilations());
    ArrayRef<int64_t> pads = conv.getPads();
    out.padsLow = toVector(pads.take_front(pads.size() / 2));
    out.padsHigh = toVector(pads.drop_front(pads.size() / 2));
    out.groups = conv.getGroups();
  }
  template <typename Op>
  rt::ConvDesc convolution(Op conv) {
    rt::ConvDesc out;
    setWindow(conv, out);
    out.x = imageArgument(conv.getXMutable());
    out.w = gpu ? imageArgument(conv.getWMutable())
                : denseArgument(conv.getWMutable());
    out.constantW = isConstant(call.arguments[1].base);
    out.hasBias = addBias();
    out.y = result();
    return out;
  }
  void buildFor(ConvOp conv) {
    rt::ConvDesc out = convolution(conv);
    if (Value added = getResidual()) {
      out.hasResidual = true;
      denseArgument(added);
    }
    out.activation = getActivation();
    out.activationLast = library && library.isActivationLast();
    call.desc = out;
  }
  void buildFor(ConvTransposeOp conv) {
    rt::ConvDesc out = convolution(conv);
    out.kind = rt::ConvKind::Transposed;
    call.desc = out;
  }

  void buildFor(ConvWeightGradientOp conv) {
    rt::ConvDesc out;
    out.kind = rt::ConvKind::WeightGradient;
    setWindow(conv, out);
    out.x = imageArgument(conv.getXMutable());
    out.y = imageArgument(conv.getGradientMutable());
    out.w = result();
    call.desc = out;
  }

  template <typename Op>
  rt::PoolDesc windows(Op pool) {
    rt::PoolDesc out;
    out.x = packedArgument(pool.getXMutable());
    out.kernel = toVector(pool.getKernel());
    out.strides = toVector(pool.getStrides());
    out.dilations = toVector(pool.getDilations());
    ArrayRef<int64_t> pads = pool.getPads();
    out.padsLow = toVector(pads.take_front(pads.size() / 2));
    out.padsHigh = toVector(pads.drop_front(pads.size() / 2));
    return out;
  }
  void buildFor(PoolOp pool) {
    rt::PoolDesc out = windows(pool);
    out.kind = pool.getKind() == PoolKind::max   ? rt::PoolKind::Max
               : pool.getKind() == PoolKind::avg ? rt::PoolKind::Avg
                                                 : rt::PoolKind::Sum;
    out.y = result();
    out.countIncludePad = pool.getCountIncludePad();
    call.desc = out;
  }
  void buildFor(MaxPoolGradientOp pool) {
    rt::PoolDesc out = windows(pool);
    out.kind = rt::PoolKind::MaxGradient;
    out.y = packedArgument(pool.getGradientMutable());
    out.dx = result();
    call.desc = out;
  }

  void addMask(MutableOperandRange mask, rt::AttentionDesc &out) {
    if (mask.empty())
      return;
    out.hasMask = true;
    StridedView view = argument(mask[0]);
    // Broadcast to [batch, heads, S, T].
    int64_t target[4] = {out.q.sizes[0], out.q.sizes[1], out.q.sizes[2],
                         out.k.sizes[2]};
    for (int64_t i = 0; i < 4; ++i)
      if (view.sizes[i] != target[i]) {
        view.sizes[i] = target[i];
        view.strides[i] = 0;
      }
    out.mask = desc(view);
  }
  template <typename Op>
  void addOperands(Op attention, rt::AttentionDesc &out) {
    out.q = rowArgument(attention.getQMutable());
    out.k = rowArgument(attention.getKMutable());
    out.v = rowArgument(attention.getVMutable());
    out.scale = attention.getScale().convertToDouble();
    out.causal = attention.getCausal();
    out.window = attention.getWindow().value_or(0);
    out.emptyRowsZero = attention.getEmptyRowsZero();
  }
  static double capOf(std::optional<APFloat> cap) {
    return cap ? cap->convertToDouble() : 0;
  }
  void buildFor(AttentionOp attention) {
    rt::AttentionDesc out;
    addOperands(attention, out);
    out.out = result();
    out.softcap = capOf(attention.getSoftcap());
    out.emptyRowsMean = attention.getEmptyRowsMean();
    addMask(attention.getMaskMutable(), out);
    call.desc = out;
  }
  void buildFor(LocalAttentionOp attention) {
    rt::AttentionDesc out;
    addOperands(attention, out);
    out.out = desc(placeOf(attention.getResult()));
    out.givesLogSums = true;
    addMask(attention.getMaskMutable(), out);
    call.desc = out;
  }
  template <typename Op>
  rt::AttentionGradientDesc gradientOf(Op attention) {
    rt::AttentionGradientDesc out;
    addOperands(attention, out.forward);
    out.forward.out = rowArgument(attention.getResultMutable());
    out.gradient = rowArgument(attention.getGradientMutable());
    out.dq = desc(placeOf(attention.getDq()));
    out.dk = desc(placeOf(attention.getDk()));
    out.dv = desc(placeOf(attention.getDv()));
    return out;
  }
  void buildFor(AttentionGradientOp attention) {
    rt::AttentionGradientDesc out = gradientOf(attention);
    out.forward.softcap = capOf(attention.getSoftcap());
    out.forward.emptyRowsMean = attention.getEmptyRowsMean();
    addMask(attention.getMaskMutable(), out.forward);
    call.desc = out;
  }
  void buildFor(LocalAttentionGradientOp attention) {
    rt::AttentionGradientDesc out = gradientOf(attention);
    out.forward.givesLogSums = true;
    addMask(attention.getMaskMutable(), out.forward);
    denseArgument(attention.getLogSumsMutable());
    call.desc = out;
  }

  void buildFor(TopKOp topK) {
    rt::TopKDesc out;
    out.x = denseArgument(topK.getOperandMutable());
    out.dim = topK.getDim();
    out.k = topK.getK();
    out.smallest = topK.getSmallest();
    call.desc = out;
  }

  void buildFor(NonMaxSuppressionOp op) {
    rt::NonMaxSuppressionDesc out;
    out.boxes = denseArgument(op.getBoxesMutable());
    out.scores = denseArgument(op.getScoresMutable());
    out.limit = op.getLimit();
    out.iouThreshold = op.getIouThreshold().convertToDouble();
    if (auto threshold = op.getScoreThreshold())
      out.scoreThreshold = threshold->convertToDouble();
    call.desc = out;
  }

  void buildFor(CheckIndicesOp check) {
    rt::IndexCheckDesc out;
    out.indices = denseArgument(check.getIndicesMutable());
    call.desc = out;
  }

  void buildFor(LookUpOp op) {
    rt::LookUpDesc out;
    out.table = denseArgument(op.getTableMutable());
    out.x = denseArgument(op.getBytesMutable());
    call.desc = out;
  }

  /// Matrices as [groups, k, n].
  template <typename Op>
  static void turn(Op op, rt::TensorDesc &w) {
    if (!op.getTransposeW())
      return;
    std::swap(w.sizes[1], w.sizes[2]);
    std::swap(w.strides[1], w.strides[2]);
  }
  void buildFor(GroupedMatmulOp op) {
    rt::GroupedMatmulDesc out;
    out.x = desc(argument(op.getXMutable()));
    out.w = desc(argument(op.getWMutable()));
    turn(op, out.w);
    if (!rt::hasUnitStride(out.w))
      call.wantsDense.push_back(op.getW());
    out.groups = denseArgument(op.getGroupsMutable());
    out.y = result();
    out.constantW = isConstant(call.arguments[1].base);
    call.desc = out;
  }
  void buildFor(GroupedWeightGradientOp op) {
    rt::GroupedMatmulDesc out;
    out.kind = rt::GroupedKind::WeightGradient;
    out.x = desc(argument(op.getXMutable()));
    out.y = desc(argument(op.getGradientMutable()));
    out.groups = denseArgument(op.getGroupsMutable());
    out.w = result();
    turn(op, out.w);
    call.desc = out;
  }

  void buildFor(BlockMatmulOp op) {
    rt::BlockMatmulDesc out;
    out.x = denseArgument(op.getXMutable());
    out.w = denseArgument(op.getWMutable());
    out.scales = denseArgument(op.getScalesMutable());
    out.hasZeros = op.getZeros() != Value();
    if (out.hasZeros)
      denseArgument(*op.getZerosMutable().begin());
    out.bits = op.getBits();
    out.y = result();
    call.desc = out;
  }

  llvm::function_ref<bool(Value)> isConstant;
};

} // namespace

LibraryCall makeLibraryCall(Operation *op,
                            llvm::function_ref<bool(Value)> isConstant,
                            const MemoryValues &inMemory, bool gpu) {
  return CallBuilder(op, isConstant, inMemory, gpu).build();
}

} // namespace ax::codegen
