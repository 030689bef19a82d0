//===- EmitterOps.cpp - One function an operation -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Emitter.h"

#include "ax/Dialect/Ax.h"

using namespace ax;
using namespace ax::import;
using mlir::RankedTensorType;

template <typename OpTy, typename SetProperties>
llvm::SmallVector<Value>
Emitter::emit(OpClass opClass, ArrayRef<Value> operands,
              SetProperties setProperties, RankedTensorType type) {
  if (failed || llvm::any_of(operands, [](Value value) { return !value; }))
    return {};
  mlir::OperationState state(location, OpTy::getOperationName());
  state.addOperands(operands);
  auto &properties = state.getOrAddProperties<typename OpTy::Properties>();
  setProperties(properties);
  if (type) {
    state.addTypes(type);
  } else if constexpr (OpTy::template hasTrait<
                           mlir::InferTypeOpInterface::Trait>()) {
    llvm::SmallVector<mlir::Type> types;
    if (mlir::failed(OpTy::inferReturnTypes(
            builder.getContext(), location, state.operands, {},
            mlir::OpaqueProperties(&properties), {}, types))) {
      fail(ExitCode::BadModel, "the operands do not fit");
      return {};
    }
    state.addTypes(types);
  }
  return finishEmit(opClass, builder.create(state));
}

static Value first(const llvm::SmallVector<Value> &values) {
  return values.empty() ? Value() : values.front();
}

static mlir::DenseI64ArrayAttr i64s(mlir::OpBuilder &builder,
                                    ArrayRef<int64_t> values) {
  return builder.getDenseI64ArrayAttr(values);
}

static mlir::UnitAttr unit(mlir::OpBuilder &builder, bool set) {
  return set ? builder.getUnitAttr() : mlir::UnitAttr();
}

//===----------------------------------------------------------------------===//
// Element-wise
//===----------------------------------------------------------------------===//

Value Emitter::unary(UnaryKind kind, Value x) {
  return first(emit<UnaryOp>(OpClass::Elementwise, {x}, [&](auto &p) {
    p.kind = UnaryKindAttr::get(builder.getContext(), kind);
  }));
}

Value Emitter::binary(BinaryKind kind, Value lhs, Value rhs) {
  return first(emit<BinaryOp>(OpClass::Elementwise, {lhs, rhs}, [&](auto &p) {
    p.kind = BinaryKindAttr::get(builder.getContext(), kind);
  }));
}

Value Emitter::compare(CompareKind kind, Value lhs, Value rhs) {
  return first(emit<CompareOp>(OpClass::Elementwise, {lhs, rhs}, [&](auto &p) {
    p.kind = CompareKindAttr::get(builder.getContext(), kind);
  }));
}

Value Emitter::select(Value condition, Value onTrue, Value onFalse) {
  return first(emit<SelectOp>(OpClass::Elementwise,
                              {condition, onTrue, onFalse}, [](auto &) {}));
}

Value Emitter::atMost(Value x, int64_t limit) {
  return first(emit<AtMostOp>(OpClass::Other, {x}, [&](auto &p) {
    p.limit = builder.getI64IntegerAttr(limit);
  }));
}

Value Emitter::rootOfSquares(Value sum) {
  if (!training || !sum)
    return unary(UnaryKind::sqrt, sum);
  // Also what is not chosen must be finite where it is 0: 0 times infinity is
  // no number.
  Value isZero = compare(CompareKind::eq, sum, like(sum, 0));
  Value root = unary(UnaryKind::sqrt, select(isZero, like(sum, 1), sum));
  return select(isZero, like(sum, 0), root);
}

Value Emitter::cast(Value x, DType type) {
  if (!x || typeOf(x) == type)
    return x;
  if (Value wide = exact.lookup(x); wide && typeOf(wide) == type)
    return wide;
  return first(emit<CastOp>(
      OpClass::Elementwise, {x}, [](auto &) {}, tensorType(type, shapeOf(x))));
}

Value Emitter::castExactly(Value x, DType type) {
  Value narrow = cast(x, type);
  if (narrow && narrow != x)
    exact[narrow] = x;
  return narrow;
}

DType Emitter::sumType(DType type) {
  return type == DType::F16 || type == DType::BF16 ? DType::F32 : type;
}

/// Drops elements by a seed and a step that training gives later.
Value Emitter::dropout(Value x, double rate, int64_t id) {
  Value zero = scalar(DType::I64, 0);
  return first(emit<DropoutOp>(OpClass::Other, {x, zero, zero}, [&](auto &p) {
    p.rate = builder.getF64FloatAttr(rate);
    p.id = builder.getI64IntegerAttr(id);
  }));
}

Value Emitter::uniform(ArrayRef<int64_t> shape, int64_t id) {
  Value zero = scalar(DType::I64, 0);
  return first(emit<UniformOp>(
      OpClass::Other, {zero, zero},
      [&](auto &p) { p.id = builder.getI64IntegerAttr(id); },
      tensorType(DType::F32, shape)));
}

//===----------------------------------------------------------------------===//
// Moving elements
//===----------------------------------------------------------------------===//

Value Emitter::reshape(Value x, ArrayRef<int64_t> shape) {
  if (!x || shapeOf(x) == shape)
    return x;
  std::optional<int64_t> count = checkedNumElements(shape);
  if (!count || *count != numElementsOf(x))
    return fail(ExitCode::BadModel,
                llvm::formatv("cannot reshape [{0}] to [{1}]",
                              shapeToString(shapeOf(x)), shapeToString(shape)));
  if (auto previous = x.getDefiningOp<ReshapeOp>(); previous && !boundOf(x))
    return reshape(previous.getOperand(), shape);
  return first(emit<ReshapeOp>(
      OpClass::Moving, {x}, [](auto &) {}, tensorType(typeOf(x), shape)));
}

Value Emitter::transpose(Value x, ArrayRef<int64_t> permutation) {
  if (!x || llvm::is_sorted(permutation))
    return x;
  return first(emit<TransposeOp>(OpClass::Moving, {x}, [&](auto &p) {
    p.permutation = i64s(builder, permutation);
  }));
}

Value Emitter::broadcast(Value x, ArrayRef<int64_t> shape) {
  if (!x || shapeOf(x) == shape)
    return x;
  if (!checkedNumElements(shape, 8))
    return fail(ExitCode::BadModel,
                "impossible shape [" + shapeToString(shape) + "]");
  return first(emit<BroadcastOp>(
      OpClass::Moving, {x}, [](auto &) {}, tensorType(typeOf(x), shape)));
}

Value Emitter::slice(Value x, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes,
                     ArrayRef<int64_t> steps) {
  if (!x)
    return {};
  std::vector<int64_t> ones(starts.size(), 1);
  if (steps.empty())
    steps = ones;
  if (shapeOf(x) == sizes && steps == ArrayRef<int64_t>(ones))
    return x;
  return first(emit<SliceOp>(
      OpClass::Moving, {x},
      [&](auto &p) {
        p.starts = i64s(builder, starts);
        p.steps = i64s(builder, steps);
      },
      tensorType(typeOf(x), sizes)));
}

Value Emitter::sliceDim(Value x, int64_t dim, int64_t start, int64_t size,
                        int64_t step) {
  if (!x)
    return {};
  Shape starts(rankOf(x), 0), sizes(shapeOf(x)), steps(rankOf(x), 1);
  starts[dim] = start;
  sizes[dim] = size;
  steps[dim] = step;
  return slice(x, starts, sizes, steps);
}

static constexpr size_t maxConcat = 256;

Value Emitter::concat(ArrayRef<Value> values, int64_t dim) {
  if (values.size() == 1)
    return values.front();
  // Operations of very many operands are slow to lay out.
  if (values.size() > maxConcat) {
    std::vector<Value> parts;
    for (size_t i = 0; i < values.size(); i += maxConcat)
      parts.push_back(
          concat(values.slice(i, std::min(maxConcat, values.size() - i)), dim));
    return concat(parts, dim);
  }
  return first(emit<ConcatOp>(OpClass::Moving, values, [&](auto &p) {
    p.dim = builder.getI64IntegerAttr(dim);
  }));
}

Value Emitter::pad(Value x, ArrayRef<int64_t> low, ArrayRef<int64_t> high,
                   PadMode mode, Value value) {
  llvm::SmallVector<Value, 2> operands{x};
  if (mode == PadMode::constant)
    operands.push_back(value);
  return first(emit<PadOp>(OpClass::Moving, operands, [&](auto &p) {
    p.low = i64s(builder, low);
    p.high = i64s(builder, high);
    p.mode = PadModeAttr::get(builder.getContext(), mode);
  }));
}

Value Emitter::iota(DType type, ArrayRef<int64_t> shape, int64_t dim) {
  return first(emit<IotaOp>(
      OpClass::Other, {},
      [&](auto &p) { p.dim = builder.getI64IntegerAttr(dim); },
      tensorType(type, shape)));
}

Value Emitter::gather(Value x, Value indices, int64_t axis) {
  return first(
      emit<GatherOp>(OpClass::Other, {x, cleared(indices)}, [&](auto &p) {
        p.axis = builder.getI64IntegerAttr(axis);
      }));
}

Value Emitter::gatherElements(Value x, Value indices, int64_t axis) {
  return first(emit<GatherElementsOp>(
      OpClass::Other, {x, cleared(indices)},
      [&](auto &p) { p.axis = builder.getI64IntegerAttr(axis); }));
}

Value Emitter::gatherND(Value x, Value indices, int64_t batchDims) {
  return first(
      emit<GatherNDOp>(OpClass::Other, {x, cleared(indices)}, [&](auto &p) {
        p.batch_dims = builder.getI64IntegerAttr(batchDims);
      }));
}

Value Emitter::scatterElements(ScatterKind kind, Value x, Value indices,
                               Value updates, int64_t axis) {
  return first(emit<ScatterElementsOp>(
      OpClass::Other, {x, indices, updates}, [&](auto &p) {
        p.kind = ScatterKindAttr::get(builder.getContext(), kind);
        p.axis = builder.getI64IntegerAttr(axis);
      }));
}

Value Emitter::scatterND(ScatterKind kind, Value x, Value indices,
                         Value updates) {
  return first(
      emit<ScatterNDOp>(OpClass::Other, {x, indices, updates}, [&](auto &p) {
        p.kind = ScatterKindAttr::get(builder.getContext(), kind);
      }));
}

//===----------------------------------------------------------------------===//
// Reductions and norms
//===----------------------------------------------------------------------===//

Value Emitter::reduce(ReduceOpKind kind, Value x, ArrayRef<int64_t> dims,
                      bool keepDims) {
  if (dims.empty())
    return x;
  return first(emit<ReduceOp>(OpClass::Other, {x}, [&](auto &p) {
    p.kind = ReduceOpKindAttr::get(builder.getContext(), kind);
    p.dims = i64s(builder, dims);
    p.keep_dims = unit(builder, keepDims);
  }));
}

Value Emitter::argReduce(Value x, int64_t dim, bool min, bool last) {
  return first(emit<ArgReduceOp>(OpClass::Other, {x}, [&](auto &p) {
    p.dim = builder.getI64IntegerAttr(dim);
    p.min = unit(builder, min);
    p.last = unit(builder, last);
  }));
}

Value Emitter::cumulative(ReduceOpKind kind, Value x, int64_t dim,
                          bool exclusive, bool reverse) {
  return first(emit<CumulativeOp>(OpClass::Other, {x}, [&](auto &p) {
    p.kind = ReduceOpKindAttr::get(builder.getContext(), kind);
    p.dim = builder.getI64IntegerAttr(dim);
    p.exclusive = unit(builder, exclusive);
    p.reverse = unit(builder, reverse);
  }));
}

std::pair<Value, Value> Emitter::topK(Value x, int64_t k, int64_t dim,
                                      bool smallest) {
  auto results = emit<TopKOp>(OpClass::Other, {x}, [&](auto &p) {
    p.k = builder.getI64IntegerAttr(k);
    p.dim = builder.getI64IntegerAttr(dim);
    p.smallest = unit(builder, smallest);
  });
  if (results.size() != 2)
    return {};
  return {results[0], results[1]};
}

Value Emitter::nonMaxSuppression(Value boxes, Value scores, int64_t limit,
                                 double iouThreshold,
                                 std::optional<double> scoreThreshold) {
  return first(
      emit<NonMaxSuppressionOp>(OpClass::Other, {boxes, scores}, [&](auto &p) {
        p.limit = builder.getI64IntegerAttr(limit);
        p.iou_threshold = builder.getF64FloatAttr(iouThreshold);
        if (scoreThreshold)
          p.score_threshold = builder.getF64FloatAttr(*scoreThreshold);
      }));
}

Value Emitter::softmax(Value x, int64_t dim, bool log) {
  return first(emit<SoftmaxOp>(OpClass::Other, {x}, [&](auto &p) {
    p.dim = builder.getI64IntegerAttr(dim);
    p.log = unit(builder, log);
  }));
}

Value Emitter::fakeQuantize(Value x) {
  return first(emit<FakeQuantizeOp>(OpClass::Other, {x}, [](auto &) {}));
}

template <typename OpTy>
Value Emitter::norm(Value x, Value scale, Value bias, int64_t axis,
                    double epsilon) {
  llvm::SmallVector<Value, 3> operands{x};
  if (scale)
    operands.push_back(scale);
  if (bias)
    operands.push_back(bias);
  return first(emit<OpTy>(OpClass::Other, operands, [&](auto &p) {
    p.axis = builder.getI64IntegerAttr(axis);
    p.epsilon = builder.getF64FloatAttr(epsilon);
    p.operandSegmentSizes = {1, scale ? 1 : 0, bias ? 1 : 0};
  }));
}

Value Emitter::layerNorm(Value x, Value scale, Value bias, int64_t axis,
                         double epsilon) {
  return norm<LayerNormOp>(x, scale, bias, axis, epsilon);
}

Value Emitter::rmsNorm(Value x, Value scale, Value bias, int64_t axis,
                       double epsilon) {
  return norm<RMSNormOp>(x, scale, bias, axis, epsilon);
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

Value Emitter::dot(Value lhs, Value rhs, const DotDims &dims) {
  return first(emit<DotOp>(OpClass::Other, {lhs, rhs}, [&](auto &p) {
    p.lhs_batch = i64s(builder, dims.lhsBatch);
    p.rhs_batch = i64s(builder, dims.rhsBatch);
    p.lhs_contract = i64s(builder, dims.lhsContract);
    p.rhs_contract = i64s(builder, dims.rhsContract);
  }));
}

Value Emitter::conv(Value x, Value w, const Window &window, int64_t groups) {
  return first(emit<ConvOp>(OpClass::Other, {x, w}, [&](auto &p) {
    p.strides = i64s(builder, window.strides);
    p.pads = i64s(builder, window.pads);
    p.dilations = i64s(builder, window.dilations);
    p.groups = builder.getI64IntegerAttr(groups);
  }));
}

Value Emitter::convTranspose(Value x, Value w, const Window &window,
                             int64_t groups) {
  return first(emit<ConvTransposeOp>(OpClass::Other, {x, w}, [&](auto &p) {
    p.strides = i64s(builder, window.strides);
    p.pads = i64s(builder, window.pads);
    p.dilations = i64s(builder, window.dilations);
    p.output_pads = i64s(builder, window.extra);
    p.groups = builder.getI64IntegerAttr(groups);
  }));
}

Value Emitter::pool(PoolKind kind, Value x, const Window &window,
                    bool countIncludePad) {
  return first(emit<PoolOp>(OpClass::Other, {x}, [&](auto &p) {
    p.kind = PoolKindAttr::get(builder.getContext(), kind);
    p.kernel = i64s(builder, window.kernel);
    p.strides = i64s(builder, window.strides);
    p.pads = i64s(builder, window.pads);
    p.dilations = i64s(builder, window.dilations);
    p.ceil_extra = i64s(builder, window.extra);
    p.count_include_pad = unit(builder, countIncludePad);
  }));
}

Value Emitter::attention(Value q, Value k, Value v, Value mask,
                         const AttentionOptions &options) {
  llvm::SmallVector<Value, 4> operands{q, k, v};
  if (mask)
    operands.push_back(mask);
  return first(emit<AttentionOp>(OpClass::Other, operands, [&](auto &p) {
    p.scale = builder.getF64FloatAttr(options.scale);
    p.causal = unit(builder, options.causal);
    if (options.softcap != 0)
      p.softcap = builder.getF64FloatAttr(options.softcap);
    p.empty_rows_zero = unit(builder, options.emptyRowsZero);
  }));
}
