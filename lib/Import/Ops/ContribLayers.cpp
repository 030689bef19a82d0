//===- ContribLayers.cpp - Fused products and activations -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators of com.microsoft that onnxruntime writes in place of a product or
// an activation and what is around it.
//
//===----------------------------------------------------------------------===//

#include "../Activations.h"
#include "../Contractions.h"
#include "../OpTable.h"

#include <numeric>

using namespace ax;
using namespace ax::import;

/// x + bias, where there is a bias.
static Value addBias(Node &n, Value x, int input) {
  return n.has(input) ? n.b.add(x, n.in(input)) : x;
}

/// Imports Gelu and BiasGelu, and FastGelu, which approximates it by tanh.
template <UnaryKind kind>
static void importGelu(Node &n) {
  n.out(n.b.unary(kind, addBias(n, n.in(0), 1)));
}

static void importQuickGelu(Node &n) {
  Value x = n.in(0);
  double alpha = n.floatAttr("alpha", 1.702f);
  if (alpha == 1)
    return n.out(n.b.unary(UnaryKind::silu, x));
  n.out(n.b.mul(x, n.b.unary(UnaryKind::sigmoid, n.b.mul(x, alpha))));
}

static void importBiasAdd(Node &n) {
  n.out(n.b.add(n.b.add(n.in(0), n.in(1)), n.in(2)));
}

/// An operand as [batch.., rows, columns]: with `transBatch` its first
/// dimension stands where the rows do, behind those of the batch; `trans` then
/// exchanges rows and columns. A vector stays as it is.
static Value operandOfProduct(Node &n, int input, llvm::StringRef trans,
                              llvm::StringRef transBatch) {
  Value x = n.in(input);
  if (!x)
    return {};
  int64_t rank = Emitter::rankOf(x);
  if (rank < 2)
    return x;
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  if (n.intAttr(transBatch, 0))
    std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (n.intAttr(trans, 0))
    std::swap(order[rank - 1], order[rank - 2]);
  return n.b.transpose(x, order);
}

static void importFusedMatMul(Node &n) {
  Value y = matmul(n.b, operandOfProduct(n, 0, "transA", "transBatchA"),
                   operandOfProduct(n, 1, "transB", "transBatchB"));
  double alpha = n.floatAttr("alpha", 1);
  n.out(alpha == 1 ? y : n.b.mul(y, alpha));
}

static void importGemmFastGelu(Node &n) {
  Value y = matmul(n.b, n.in(0), n.in(1));
  n.out(n.b.unary(UnaryKind::gelu_tanh, addBias(n, y, 2)));
}

static void importFusedGemm(Node &n) {
  std::vector<double> parameters;
  for (llvm::StringRef name :
       {"activation_alpha", "activation_beta", "activation_gamma"})
    if (n.hasAttribute(name))
      parameters.push_back(n.floatAttr(name, 0));
  Value y = importProduct(n);
  std::string name = n.stringAttr("activation", "");
  n.out(name.empty() ? y : activate(n, name, parameters, y));
}

/// act(conv(x, w) + bias + z)
static void importFusedConv(Node &n) {
  Value bias = n.optional(2);
  Value y = importConvolution(n, n.in(0), n.in(1), bias);
  if (Value z = n.optional(3); z && y) {
    if (Emitter::shapeOf(z) != Emitter::shapeOf(y)) {
      n.fail("input 3 ('Z') is not of the shape of the result");
      return;
    }
    y = n.b.add(y, z);
  }
  std::vector<double> parameters;
  if (const onnx::AttributeProto *given = n.attribute("activation_params"))
    parameters.assign(given->floats().begin(), given->floats().end());
  std::string name = n.stringAttr("activation", "");
  n.out(name.empty() ? y : activate(n, name, parameters, y));
}

static constexpr llvm::StringLiteral products =
    "transA:int transB:int transBatchA:int transBatchB:int alpha:float";

static const OpEntry entries[] = {
    {"BiasAdd", importBiasAdd, 1, {"X:T=floats bias:T skip:T", "Y:T"}},
    {"BiasGelu", importGelu<UnaryKind::gelu>, 1, {"A:T=floats B:T", "C:T"}},
    {"FastGelu",
     importGelu<UnaryKind::gelu_tanh>,
     1,
     {"X:T=floats bias?:T", "Y:T"}},
    {"FusedConv",
     importFusedConv,
     1,
     {"X:T=floats W:T B?:T Z?:T", "Y:T",
      "auto_pad:string dilations:ints group:int kernel_shape:ints pads:ints "
      "strides:ints activation:string activation_params:floats"}},
    {"FusedGemm",
     importFusedGemm,
     1,
     {"A:T=floats B:T C?:T", "Y:T",
      "alpha:float beta:float transA:int transB:int activation:string "
      "activation_alpha:float activation_beta:float activation_gamma:float"}},
    {"FusedMatMul", importFusedMatMul, 1, {"A:T=floats B:T", "Y:T", products}},
    {"Gelu", importGelu<UnaryKind::gelu>, 1, {"X:T=floats", "Y:T"}},
    {"GemmFastGelu", importGemmFastGelu, 1, {"X:T=floats W:T bias?:T", "Y:T"}},
    {"QuickGelu", importQuickGelu, 1, {"X:T=floats", "Y:T", "alpha:float"}},
    // FusedMatMul's older name.
    {"TransposeMatMul",
     importFusedMatMul,
     1,
     {"A:T=floats B:T", "Y:T", products}},
};

void ax::import::addContribLayers(OpTable &table) {
  table.add(entries, contribDomain);
}
