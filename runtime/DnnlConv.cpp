//===- DnnlConv.cpp - Convolutions by oneDNN ------------------------------===//

#include "DnnlOp.h"

namespace ax::rt {

namespace {

/// The weights as oneDNN numbers them: [groups,] out channels, in channels,
/// kernel.
TensorDesc weightView(const ConvDesc &desc) {
  TensorDesc view = desc.w;
  int64_t groups = desc.groups;
  std::vector<int64_t> sizes(view.sizes.begin() + 2, view.sizes.end());
  std::vector<int64_t> strides(view.strides.begin() + 2, view.strides.end());
  int64_t first = view.sizes[0] / groups, firstStride = view.strides[0];
  int64_t second = view.sizes[1], secondStride = view.strides[1];
  int64_t groupStride = first * firstStride;
  if (desc.transposed) {
    std::swap(first, second);
    std::swap(firstStride, secondStride);
  }
  sizes.insert(sizes.begin(), {first, second});
  strides.insert(strides.begin(), {firstStride, secondStride});
  if (groups > 1) {
    sizes.insert(sizes.begin(), groups);
    strides.insert(strides.begin(), groupStride);
  }
  return {view.dtype, std::move(sizes), std::move(strides)};
}

/// High padding that the output size takes for granted: less than zero where a
/// transposed convolution adds to the output.
std::vector<int64_t> highPads(const ConvDesc &desc) {
  std::vector<int64_t> pads = desc.padsHigh;
  if (desc.transposed)
    for (size_t d = 0; d < pads.size(); ++d)
      pads[d] = (desc.x.sizes[d + 2] - 1) * desc.strides[d] +
                (desc.w.sizes[d + 2] - 1) * desc.dilations[d] + 1 -
                desc.padsLow[d] - desc.y.sizes[d + 2];
  return pads;
}

/// oneDNN's convolutions want channels next to each other (or in blocks); the
/// plain ONNX order is slow.
bool isChannelsLast(const TensorDesc &view) { return view.strides[1] == 1; }

struct Descs {
  dnnl_memory_desc_t x, w, y, bias;
};

DnnlPrimitiveDesc makePrimitive(const ConvDesc &desc, const Descs &d,
                                const dnnl_primitive_attr *attr) {
  std::vector<int64_t> high = highPads(desc);
  std::vector<int64_t> dilations;
  for (int64_t dilation : desc.dilations)
    dilations.push_back(dilation - 1);
  const dnnl_memory_desc_t *bias = desc.hasBias ? &d.bias : nullptr;
  if (desc.transposed) {
    dnnl_deconvolution_desc_t op;
    if (dnnl_dilated_deconvolution_forward_desc_init(
            &op, dnnl_forward_inference, dnnl_deconvolution_direct, &d.x, &d.w,
            bias, &d.y, desc.strides.data(), dilations.data(),
            desc.padsLow.data(), high.data()) != dnnl_success)
      return nullptr;
    return makeDnnlPrimitiveDesc(&op, attr);
  }
  dnnl_convolution_desc_t op;
  if (dnnl_dilated_convolution_forward_desc_init(
          &op, dnnl_forward_inference, dnnl_convolution_direct, &d.x, &d.w,
          bias, &d.y, desc.strides.data(), dilations.data(),
          desc.padsLow.data(), high.data()) != dnnl_success)
    return nullptr;
  return makeDnnlPrimitiveDesc(&op, attr);
}

/// Where `plain` is used in the format `chosen`: itself, or a temporary.
DnnlPlace placeFor(DnnlOp &op, const dnnl_memory_desc_t &plain,
                   const dnnl_memory_desc_t &chosen, DnnlPlace place) {
  return dnnl_memory_desc_equal(&plain, &chosen) ? place
                                                 : op.addTemporary(chosen);
}

} // namespace

ExpectedCpuOp prepareDnnlConv(const ConvDesc &desc,
                              const ConstantOperand &constant,
                              PackedWeights &packed) {
  Descs plain;
  if (!dnnlType(desc.x.dtype) || !makeDnnlDesc(desc.x, plain.x) ||
      !makeDnnlDesc(weightView(desc), plain.w) ||
      !makeDnnlDesc(desc.y, plain.y) ||
      !makeDnnlDesc(TensorDesc::dense(desc.y.dtype, {desc.y.sizes[1]}),
                    plain.bias))
    return nullptr;
  Descs wanted = plain;
  wanted.w = withAnyFormat(plain.w);
  if (!isChannelsLast(desc.x))
    wanted.x = withAnyFormat(plain.x);
  if (!isChannelsLast(desc.y))
    wanted.y = withAnyFormat(plain.y);
  DnnlAttr attr = makeDnnlAttr(desc.activation, nullptr, desc.hasResidual,
                               desc.activationLast);
  DnnlPrimitiveDesc primitive = makePrimitive(desc, wanted, attr.get());
  if (!primitive)
    return nullptr;
  const dnnl_memory_desc_t &x = queryDnnlDesc(primitive, dnnl_query_src_md);
  const dnnl_memory_desc_t &w = queryDnnlDesc(primitive, dnnl_query_weights_md);
  const dnnl_memory_desc_t &y = queryDnnlDesc(primitive, dnnl_query_dst_md);

  auto op = std::make_unique<DnnlOp>();
  int biasIndex = 2, residualIndex = biasIndex + desc.hasBias,
      yIndex = residualIndex + desc.hasResidual;
  DnnlPlace xPlace = DnnlPlace::argument(0), wPlace = DnnlPlace::argument(1),
            yPlace = DnnlPlace::argument(yIndex);
  DnnlPlace xUsed = placeFor(*op, plain.x, x, xPlace);
  DnnlPlace yUsed = placeFor(*op, plain.y, y, yPlace);
  DnnlPlace wUsed = wPlace;
  if (!dnnl_memory_desc_equal(&plain.w, &w)) {
    if (desc.constantW && constant.data) {
      llvm::Expected<DnnlPlace> place =
          op->addConstant(constant, plain.w, w, packed);
      if (!place)
        return place.takeError();
      wUsed = *place;
    } else {
      wUsed = op->addTemporary(w);
      if (llvm::Error error = op->addReorder(plain.w, wPlace, w, wUsed))
        return error;
    }
  }
  if (xUsed.kind == DnnlPlace::Workspace)
    if (llvm::Error error = op->addReorder(plain.x, xPlace, x, xUsed))
      return error;
  // The sum post-operation adds to what is in the destination.
  if (desc.hasResidual)
    if (llvm::Error error = op->addReorder(
            plain.y, DnnlPlace::argument(residualIndex), y, yUsed))
      return error;
  llvm::SmallVector<DnnlOp::Operand, 4> operands{{DNNL_ARG_SRC, x, xUsed},
                                                 {DNNL_ARG_WEIGHTS, w, wUsed},
                                                 {DNNL_ARG_DST, y, yUsed}};
  if (desc.hasBias)
    operands.push_back(
        {DNNL_ARG_BIAS, plain.bias, DnnlPlace::argument(biasIndex)});
  if (llvm::Error error = op->addPrimitive(primitive, operands))
    return error;
  if (yUsed.kind == DnnlPlace::Workspace)
    if (llvm::Error error = op->addReorder(y, yUsed, plain.y, yPlace))
      return error;
  if (llvm::Error error = op->finish())
    return error;
  return op;
}

} // namespace ax::rt
