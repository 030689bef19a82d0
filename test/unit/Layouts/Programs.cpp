//===- Programs.cpp - Small models as programs ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Programs.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace ax::test {

namespace {
using Dims = ArrayRef<int64_t>;

/// Builds a plan with one program; operations have the name set last.
class ModelBuilder {
public:
  ModelBuilder(MLIRContext &context) : builder(&context) {
    module = ModuleOp::create(builder.getUnknownLoc());
    builder.setInsertionPointToEnd(module->getBody());
    plan = PlanOp::create(builder, loc(), "model", PlanOp::currentVersion);
    plan.getBody().emplaceBlock();
  }

  /// Starts the program; its arguments have these types.
  void begin(ArrayRef<Type> inputs) {
    builder.setInsertionPointToEnd(&plan.getBody().front());
    program = ProgramOp::create(builder, loc(), "main",
                                builder.getFunctionType(inputs, {}));
    builder.setInsertionPointToEnd(&program.getBody().front());
  }
  OwningOpRef<ModuleOp> end(Value output) {
    ReturnOp::create(builder, loc(), output);
    program.setFunctionType(
        builder.getFunctionType(program.getArgumentTypes(), output.getType()));
    return std::move(module);
  }
  Value input(unsigned i) { return program.getBody().getArgument(i); }
  void name(const std::string &text) { prefix = text; }

  RankedTensorType f32(Dims shape) {
    return RankedTensorType::get(shape, builder.getF32Type());
  }
  RankedTensorType i64(Dims shape) {
    return RankedTensorType::get(shape, builder.getI64Type());
  }
  /// Of the state with this name, made when it is first used.
  Value weight(const std::string &state, Dims shape) {
    if (!SymbolTable::lookupSymbolIn(plan, state)) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(program);
      StateOp::create(builder, loc(), state, f32(shape), "weights", 0,
                      f32(shape).getNumElements() * 4, nullptr, nullptr,
                      nullptr);
    }
    return LoadOp::create(builder, loc(), f32(shape), state);
  }
  template <typename OpT, typename... Args>
  Value make(Args &&...args) {
    return OpT::create(builder, loc(), std::forward<Args>(args)...)
        ->getResult(0);
  }

  Value linear(Value x, const std::string &state, int64_t n, bool bias) {
    int64_t k = tensorType(x).getShape().back();
    Value w = weight(state + ".w", {k, n});
    Value b = bias ? weight(state + ".b", {n}) : Value();
    name(state);
    Value y = make<LinearOp>(x, w, false);
    return b ? add(y, b) : y;
  }
  Value add(Value a, Value b) { return make<BinaryOp>(BinaryKind::add, a, b); }
  Value reshape(Value x, Dims shape) { return make<ReshapeOp>(f32(shape), x); }
  Value transpose(Value x, Dims order) {
    SmallVector<int64_t> shape;
    for (int64_t dim : order)
      shape.push_back(tensorType(x).getDimSize(dim));
    return make<TransposeOp>(f32(shape), x, order);
  }
  Value norm(Value x, const std::string &state, bool rms) {
    int64_t d = tensorType(x).getShape().back();
    name(state);
    if (rms)
      return make<RMSNormOp>(x, weight(state + ".w", {d}), Value(), 2,
                             llvm::APFloat(1e-5));
    return make<LayerNormOp>(x, weight(state + ".w", {d}),
                             weight(state + ".b", {d}), 2, llvm::APFloat(1e-5));
  }

private:
  Location loc() { return NameLoc::get(builder.getStringAttr(prefix)); }

  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
  PlanOp plan;
  ProgramOp program;
  std::string prefix = "model";
};

/// Blocks of a transformer.
class Transformer : public ModelBuilder {
public:
  Transformer(MLIRContext &context, const TransformerShape &s)
      : ModelBuilder(context), s(s), width(s.heads * s.headSize) {}

  Value toHeads(Value x, int64_t heads) {
    Value split = reshape(x, {s.batch, s.sequence, heads, s.headSize});
    return transpose(split, {0, 2, 1, 3});
  }
  Value attend(Value q, Value k, Value v) {
    Value heads = make<AttentionOp>(q, k, v, Value(), llvm::APFloat(0.5), true,
                                    /*window=*/IntegerAttr(), FloatAttr(),
                                    /*empty_rows_zero=*/false,
                                    /*empty_rows_mean=*/false,
                                    /*product_type=*/TypeAttr());
    Value merged = transpose(heads, {0, 2, 1, 3});
    return reshape(merged, {s.batch, s.sequence, width});
  }
  Value embed() {
    begin({i64({s.batch, s.sequence})});
    return make<GatherOp>(weight("wte", {s.vocabulary, width}), input(0), 0);
  }
  OwningOpRef<ModuleOp> logits(Value x) {
    name("lm_head");
    return end(make<LinearOp>(x, weight("wte", {s.vocabulary, width}), true));
  }

  const TransformerShape s;
  const int64_t width;
};
} // namespace

OwningOpRef<ModuleOp> buildGPT(MLIRContext &context,
                               const TransformerShape &s) {
  Transformer m(context, s);
  Value x = m.embed();
  Value positions = m.make<IotaOp>(m.i64({s.sequence}), 0);
  x = m.add(x, m.make<GatherOp>(m.weight("wpe", {s.sequence, m.width}),
                                positions, 0));
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    std::string h = "h." + std::to_string(layer) + ".";
    Value qkv = m.linear(m.norm(x, h + "ln_1", false), h + "attn.c_attn",
                         3 * m.width, true);
    SmallVector<Value> parts;
    for (int64_t i = 0; i < 3; ++i) {
      Value part = m.make<SliceOp>(m.f32({s.batch, s.sequence, m.width}), qkv,
                                   Dims{0, 0, i * m.width}, Dims{1, 1, 1});
      parts.push_back(m.toHeads(part, s.heads));
    }
    Value mixed = m.attend(parts[0], parts[1], parts[2]);
    x = m.add(x, m.linear(mixed, h + "attn.c_proj", m.width, true));
    Value up =
        m.linear(m.norm(x, h + "ln_2", false), h + "mlp.c_fc", s.hidden, true);
    Value active = m.make<UnaryOp>(UnaryKind::gelu_tanh, up);
    x = m.add(x, m.linear(active, h + "mlp.c_proj", m.width, true));
  }
  return m.logits(m.norm(x, "ln_f", false));
}

OwningOpRef<ModuleOp> buildLlama(MLIRContext &context,
                                 const TransformerShape &s) {
  Transformer m(context, s);
  Value x = m.embed();
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    std::string h = "layers." + std::to_string(layer) + ".";
    Value normed = m.norm(x, h + "input_norm", true);
    auto project = [&](const char *which, int64_t heads) {
      Value flat = m.linear(normed, h + which, heads * s.headSize, false);
      return m.toHeads(flat, heads);
    };
    Value q = project("q_proj", s.heads), k = project("k_proj", s.kvHeads);
    Value mixed = m.attend(q, k, project("v_proj", s.kvHeads));
    x = m.add(x, m.linear(mixed, h + "o_proj", m.width, false));
    normed = m.norm(x, h + "post_norm", true);
    Value gate = m.linear(normed, h + "gate_proj", s.hidden, false);
    Value up = m.linear(normed, h + "up_proj", s.hidden, false);
    Value active = m.make<BinaryOp>(BinaryKind::mul,
                                    m.make<UnaryOp>(UnaryKind::silu, gate), up);
    x = m.add(x, m.linear(active, h + "down_proj", m.width, false));
  }
  return m.logits(m.norm(x, "norm", true));
}

OwningOpRef<ModuleOp> buildConvNet(MLIRContext &context, int64_t batch) {
  ModelBuilder m(context);
  m.begin({m.f32({batch, 3, 8, 8})});
  auto conv = [&](Value x, std::string state, int64_t outs, int64_t kernel,
                  int64_t groups) {
    int64_t ins = tensorType(x).getDimSize(1), pad = kernel / 2;
    Value w = m.weight(state + ".w", {outs, ins / groups, kernel, kernel});
    Value b = m.weight(state + ".b", {outs});
    m.name(state);
    Value y = m.make<ConvOp>(x, w, Dims{1, 1}, Dims{pad, pad, pad, pad},
                             Dims{1, 1}, groups);
    return m.add(y, m.reshape(b, {outs, 1, 1}));
  };
  auto relu = [&](Value x) { return m.make<UnaryOp>(UnaryKind::relu, x); };
  Value x = relu(conv(m.input(0), "stem", 8, 3, 1));
  x = m.make<PoolOp>(PoolKind::max, x, Dims{2, 2}, Dims{2, 2}, Dims{0, 0, 0, 0},
                     Dims{1, 1}, Dims{0, 0}, false);
  for (int64_t block = 0; block < 2; ++block) {
    std::string name = "block" + std::to_string(block);
    Value inner = relu(conv(x, name + ".conv1", 8, 1, 1));
    inner = relu(conv(inner, name + ".conv2", 8, 3, 4));
    x = relu(m.add(conv(inner, name + ".conv3", 8, 1, 1), x));
  }
  Value pooled = m.make<ReduceOp>(ReduceOpKind::sum, x, Dims{2, 3}, false);
  return m.end(m.linear(pooled, "classifier", 10, true));
}

} // namespace ax::test
