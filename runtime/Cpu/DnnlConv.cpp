//===- DnnlConv.cpp - Convolutions by oneDNN ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DnnlOp.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"

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
  if (desc.kind == ConvKind::Transposed) {
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
  if (desc.kind == ConvKind::Transposed)
    for (size_t d = 0; d < pads.size(); ++d)
      pads[d] = (desc.x.sizes[d + 2] - 1) * desc.strides[d] +
                (desc.w.sizes[d + 2] - 1) * desc.dilations[d] + 1 -
                desc.padsLow[d] - desc.y.sizes[d + 2];
  return pads;
}

/// `desc` of images of height 1: oneDNN's kernels for depthwise convolutions
/// take no signals, for which it would fill blocks with zeros or go to a
/// product per group.
ConvDesc withHeight(ConvDesc desc) {
  for (TensorDesc *view : {&desc.x, &desc.w, &desc.y}) {
    int64_t stride = view->sizes[2] * view->strides[2];
    view->sizes.insert(view->sizes.begin() + 2, 1);
    view->strides.insert(view->strides.begin() + 2, stride);
  }
  desc.strides.insert(desc.strides.begin(), 1);
  desc.dilations.insert(desc.dilations.begin(), 1);
  desc.padsLow.insert(desc.padsLow.begin(), 0);
  desc.padsHigh.insert(desc.padsHigh.begin(), 0);
  return desc;
}

/// `desc`, dense, its second dimension innermost.
dnnl_memory_desc_t withChannelsLast(const dnnl_memory_desc_t &desc) {
  const dnnl_format_tag_t tags[] = {dnnl_nwc, dnnl_nhwc, dnnl_ndhwc};
  dnnl_memory_desc_t result;
  dnnl_memory_desc_init_by_tag(&result, desc.ndims, desc.dims, desc.data_type,
                               tags[desc.ndims - 3]);
  return result;
}

struct Descs {
  dnnl_memory_desc_t x, w, y, bias;
};

/// oneDNN's convolutions want channels next to each other, or in blocks that it
/// chooses (the plain ONNX order is slow), and x and y alike. Integers have
/// them next to each other in a memory that says so, be there a single place or
/// not.
Descs wantedFormats(const ConvDesc &desc, const Descs &plain) {
  Descs wanted = plain;
  wanted.w = withAnyFormat(plain.w);
  if (!isFloat(desc.x.dtype)) {
    wanted.x = withChannelsLast(plain.x);
    wanted.y = withChannelsLast(plain.y);
    return wanted;
  }
  bool x = desc.x.strides[1] == 1, y = desc.y.strides[1] == 1;
  if (!x)
    wanted.x = y ? withChannelsLast(plain.x) : withAnyFormat(plain.x);
  if (!y)
    wanted.y = x ? withChannelsLast(plain.y) : withAnyFormat(plain.y);
  return wanted;
}

DnnlPrimitiveDesc makePrimitive(const ConvDesc &desc, const Descs &d,
                                const dnnl_primitive_attr *attr) {
  std::vector<int64_t> high = highPads(desc);
  std::vector<int64_t> dilations;
  for (int64_t dilation : desc.dilations)
    dilations.push_back(dilation - 1);
  const dnnl_memory_desc_t *bias = desc.hasBias ? &d.bias : nullptr;
  if (desc.kind == ConvKind::Transposed) {
    dnnl_deconvolution_desc_t op;
    if (dnnl_dilated_deconvolution_forward_desc_init(
            &op, dnnl_forward_inference, dnnl_deconvolution_direct, &d.x, &d.w,
            bias, &d.y, desc.strides.data(), dilations.data(),
            desc.padsLow.data(), high.data()) != dnnl_success)
      return nullptr;
    return makeDnnlPrimitiveDesc(&op, attr);
  }
  bool isGradient = desc.kind == ConvKind::WeightGradient;
  dnnl_convolution_desc_t op;
  if (dnnl_dilated_convolution_forward_desc_init(
          &op, isGradient ? dnnl_forward_training : dnnl_forward_inference,
          dnnl_convolution_direct, &d.x, &d.w, bias, &d.y, desc.strides.data(),
          dilations.data(), desc.padsLow.data(), high.data()) != dnnl_success)
    return nullptr;
  DnnlPrimitiveDesc forward = makeDnnlPrimitiveDesc(&op, attr);
  if (!isGradient || !forward)
    return forward;
  if (dnnl_dilated_convolution_backward_weights_desc_init(
          &op, dnnl_convolution_direct, &d.x, &d.w, nullptr, &d.y,
          desc.strides.data(), dilations.data(), desc.padsLow.data(),
          high.data()) != dnnl_success)
    return nullptr;
  return makeDnnlPrimitiveDesc(&op, attr, forward.get());
}

/// Where `plain` is used in the format `chosen`: itself, or a temporary.
DnnlPlace placeFor(DnnlOp &op, const dnnl_memory_desc_t &plain,
                   const dnnl_memory_desc_t &chosen, DnnlPlace place) {
  return dnnl_memory_desc_equal(&plain, &chosen) ? place
                                                 : op.addTemporary(chosen);
}

/// Where the operand `plain` is read in the format `chosen`.
llvm::Expected<DnnlPlace> addOperand(DnnlOp &op,
                                     const dnnl_memory_desc_t &plain,
                                     const dnnl_memory_desc_t &chosen,
                                     DnnlPlace place) {
  DnnlPlace used = placeFor(op, plain, chosen, place);
  if (used.kind == DnnlPlace::Workspace)
    if (llvm::Error error = op.addReorder(plain, place, chosen, used))
      return error;
  return used;
}

/// `op`'s only primitive but reorders.
llvm::Error finishConv(DnnlOp &op, const DnnlPrimitiveDesc &primitive,
                       llvm::ArrayRef<DnnlOp::Operand> operands,
                       const dnnl_memory_desc_t &chosen, DnnlPlace used,
                       const dnnl_memory_desc_t &plain, DnnlPlace result) {
  if (llvm::Error error = op.addPrimitive(primitive, operands))
    return error;
  if (used.kind == DnnlPlace::Workspace)
    if (llvm::Error error = op.addReorder(chosen, used, plain, result))
      return error;
  return op.finish();
}

ExpectedCpuOp prepareWeightGradient(const Descs &plain,
                                    const DnnlPrimitiveDesc &primitive) {
  const dnnl_memory_desc_t &x = queryDnnlDesc(primitive, dnnl_query_src_md);
  const dnnl_memory_desc_t &y =
      queryDnnlDesc(primitive, dnnl_query_diff_dst_md);
  const dnnl_memory_desc_t &w =
      queryDnnlDesc(primitive, dnnl_query_diff_weights_md);
  auto op = std::make_unique<DnnlOp>();
  auto xUsed = addOperand(*op, plain.x, x, DnnlPlace::argument(0));
  if (!xUsed)
    return xUsed.takeError();
  auto yUsed = addOperand(*op, plain.y, y, DnnlPlace::argument(1));
  if (!yUsed)
    return yUsed.takeError();
  DnnlPlace wPlace = DnnlPlace::argument(2);
  DnnlPlace wUsed = placeFor(*op, plain.w, w, wPlace);
  if (llvm::Error error = finishConv(*op, primitive,
                                     {{DNNL_ARG_SRC, x, *xUsed},
                                      {DNNL_ARG_DIFF_DST, y, *yUsed},
                                      {DNNL_ARG_DIFF_WEIGHTS, w, wUsed}},
                                     w, wUsed, plain.w, wPlace))
    return error;
  return op;
}

llvm::StringRef nameOf(const DnnlPrimitiveDesc &primitive) {
  const char *info = nullptr;
  dnnl_primitive_desc_query(primitive.get(), dnnl_query_impl_info_str, 0,
                            &info);
  return info ? info : "";
}

/// Whether some output's window lies between, before or behind all places of x.
bool hasBlindWindows(const ConvDesc &desc) {
  for (size_t d = 0; d < desc.strides.size(); ++d)
    for (int64_t o = 0; o < desc.y.sizes[d + 2]; ++o) {
      int64_t first = o * desc.strides[d] - desc.padsLow[d];
      // The first tap that is not before x.
      int64_t tap =
          first < 0 ? llvm::divideCeil(-first, desc.dilations[d]) : int64_t(0);
      if (tap >= desc.w.sizes[d + 2] ||
          first + tap * desc.dilations[d] >= desc.x.sizes[d + 2])
        return true;
    }
  return false;
}

/// Whether the primitive runs into memory that is not there: oneDNN 2.6 forgets
/// the constants of activations for windows that see nothing but padding.
bool isUnsafe(const ConvDesc &desc, const DnnlPrimitiveDesc &primitive) {
  return desc.kind == ConvKind::Forward &&
         nameOf(primitive).starts_with("brg") && hasBlindWindows(desc);
}

/// Whether our own kernel does a convolution of each channel by itself faster:
/// where a primitive gathers what the windows of a signal see and multiplies
/// it, per channel, or, as of windows whose places are far apart, fills each of
/// many channels up to a block.
bool isSlowDepthwise(const ConvDesc &desc, const DnnlPrimitiveDesc &primitive) {
  constexpr int64_t manyChannels = 48;
  if (!isPlainDepthwiseConv(desc))
    return false;
  llvm::StringRef name = nameOf(primitive);
  return (desc.strides.size() == 1 && name.contains(":gemm:")) ||
         (desc.groups >= manyChannels && name.starts_with("jit:"));
}

} // namespace

ExpectedCpuOp prepareDnnlConv(const ConvDesc &asked,
                              const CpuConstant &constant,
                              PackedWeights &packed) {
  bool isSignal = asked.strides.size() == 1 && isDepthwise(asked);
  ConvDesc desc = isSignal ? withHeight(asked) : asked;
  Descs plain;
  bool hasTypes = dnnlType(desc.x.dtype) ||
                  (desc.kind == ConvKind::Forward &&
                   areDnnlIntegers(desc.x.dtype, desc.w.dtype, desc.y.dtype));
  if (desc.strides.size() > 3 || !hasTypes || !makeDnnlDesc(desc.x, plain.x) ||
      !makeDnnlDesc(weightView(desc), plain.w) ||
      !makeDnnlDesc(desc.y, plain.y) ||
      !makeDnnlDesc(TensorDesc::dense(desc.y.dtype, {desc.y.sizes[1]}),
                    plain.bias))
    return nullptr;
  DnnlAttr attr = makeDnnlAttr(desc.activation, nullptr, desc.hasResidual,
                               desc.activationLast);
  DnnlPrimitiveDesc primitive =
      makePrimitive(desc, wantedFormats(desc, plain), attr.get());
  if (!primitive || isUnsafe(desc, primitive) ||
      isSlowDepthwise(asked, primitive))
    return nullptr;
  if (desc.kind == ConvKind::WeightGradient)
    return prepareWeightGradient(plain, primitive);
  const dnnl_memory_desc_t &x = queryDnnlDesc(primitive, dnnl_query_src_md);
  const dnnl_memory_desc_t &w = queryDnnlDesc(primitive, dnnl_query_weights_md);
  const dnnl_memory_desc_t &y = queryDnnlDesc(primitive, dnnl_query_dst_md);

  auto op = std::make_unique<DnnlOp>();
  int biasIndex = 2, residualIndex = biasIndex + desc.hasBias,
      yIndex = residualIndex + desc.hasResidual;
  DnnlPlace wPlace = DnnlPlace::argument(1),
            yPlace = DnnlPlace::argument(yIndex);
  DnnlPlace yUsed = placeFor(*op, plain.y, y, yPlace);
  bool packs =
      desc.constantW && constant.data && !dnnl_memory_desc_equal(&plain.w, &w);
  auto wUsed = packs ? op->addConstant(constant, plain.w, w, packed)
                     : addOperand(*op, plain.w, w, wPlace);
  if (!wUsed)
    return wUsed.takeError();
  auto xUsed = addOperand(*op, plain.x, x, DnnlPlace::argument(0));
  if (!xUsed)
    return xUsed.takeError();
  // The sum post-operation adds to what is in the destination.
  if (desc.hasResidual)
    if (llvm::Error error = op->addReorder(
            plain.y, DnnlPlace::argument(residualIndex), y, yUsed))
      return error;
  llvm::SmallVector<DnnlOp::Operand, 4> operands{{DNNL_ARG_SRC, x, *xUsed},
                                                 {DNNL_ARG_WEIGHTS, w, *wUsed},
                                                 {DNNL_ARG_DST, y, yUsed}};
  if (desc.hasBias)
    operands.push_back(
        {DNNL_ARG_BIAS, plain.bias, DnnlPlace::argument(biasIndex)});
  if (llvm::Error error =
          finishConv(*op, primitive, operands, y, yUsed, plain.y, yPlace))
    return error;
  return op;
}

} // namespace ax::rt
