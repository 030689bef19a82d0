//===- DnnlMatmul.cpp - Matrix products by oneDNN -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DnnlOp.h"

#include "ax/Runtime/MatmulView.h"

namespace ax::rt {

/// Whether oneDNN has products of these types.
static bool hasTypes(const MatmulDesc &desc) {
  return dnnlType(desc.a.dtype) ||
         areDnnlIntegers(desc.a.dtype, desc.b.dtype, desc.c.dtype);
}

ExpectedCpuOp prepareDnnlMatmul(const MatmulDesc &original,
                                const CpuConstant &constant,
                                PackedWeights &packed) {
  MatmulDesc desc = collapse(original);
  if (!hasTypes(desc) || !hasUnitStride(desc.a) || !hasUnitStride(desc.b) ||
      desc.c.strides.back() != 1)
    return nullptr;
  dnnl_memory_desc_t a, b, c, bias, residual;
  std::vector<int64_t> biasSizes(desc.c.sizes.size(), 1);
  biasSizes.back() = desc.c.sizes.back();
  if (!makeDnnlDesc(desc.a, a) || !makeDnnlDesc(desc.b, b) ||
      !makeDnnlDesc(desc.c, c) ||
      !makeDnnlDesc(TensorDesc::dense(desc.c.dtype, biasSizes), bias) ||
      (desc.hasResidual && !makeDnnlDesc(desc.residual, residual)))
    return nullptr;
  bool pack = desc.constantB && constant.data;
  dnnl_memory_desc_t wanted = pack ? withAnyFormat(b) : b;
  dnnl_matmul_desc_t op;
  if (dnnl_matmul_desc_init(&op, &a, &wanted, desc.hasBias ? &bias : nullptr,
                            &c) != dnnl_success)
    return nullptr;
  DnnlAttr attr = makeDnnlAttr(desc.activation,
                               desc.hasResidual ? &residual : nullptr, false);
  DnnlPrimitiveDesc primitive = makeDnnlPrimitiveDesc(&op, attr.get());
  if (!primitive)
    return nullptr;

  auto result = std::make_unique<DnnlOp>();
  DnnlPlace weights = DnnlPlace::argument(1);
  const dnnl_memory_desc_t &chosen =
      queryDnnlDesc(primitive, dnnl_query_weights_md);
  if (pack && !dnnl_memory_desc_equal(&chosen, &b)) {
    llvm::Expected<DnnlPlace> place =
        result->addConstant(constant, b, chosen, packed);
    if (!place)
      return place.takeError();
    weights = *place;
  }
  llvm::SmallVector<DnnlOp::Operand, 5> operands{
      {DNNL_ARG_SRC, a, DnnlPlace::argument(0)},
      {DNNL_ARG_WEIGHTS, chosen, weights}};
  int next = 2;
  if (desc.hasBias)
    operands.push_back({DNNL_ARG_BIAS, bias, DnnlPlace::argument(next++)});
  if (desc.hasResidual) {
    int position = desc.activation == Activation::None ? 0 : 1;
    operands.push_back(
        {DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1, residual,
         DnnlPlace::argument(next++)});
  }
  operands.push_back({DNNL_ARG_DST, c, DnnlPlace::argument(next)});
  if (llvm::Error error = result->addPrimitive(primitive, operands))
    return error;
  if (llvm::Error error = result->finish())
    return error;
  return result;
}

} // namespace ax::rt
