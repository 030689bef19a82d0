//===- LibraryFaults.cpp - What a library cannot be asked -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices believe descriptions: loops go by their sizes, addresses by their
// strides. So sizes of one operation's tensors are held against each other
// here, before anything is asked of one, argumentDesc included.
//
//===----------------------------------------------------------------------===//

#include "ax/Runtime/LibraryOps.h"
#include "ax/Support/BitBlocks.h"
#include "ax/Support/HostTensor.h"

#include <algorithm>

namespace ax::rt {

namespace {

using Sizes = std::vector<int64_t>;
using Fault = std::string;

constexpr size_t mostDims = 16;
/// A size, a stride, or a pad of a window is at most so large: products of two
/// such, and some sums of these, are no overflow.
constexpr int64_t mostInWindow = int64_t(1) << 30;

const char *const badSizes = "its sizes do not fit each other";
const char *const badTypes = "its types do not fit each other";
const char *const badWindow = "its window is impossible";

/// Returns what is wrong with a view by itself; the elements of a sound one lie
/// within what can be addressed.
Fault findFault(const TensorDesc &view) {
  if (view.sizes.size() != view.strides.size() || view.sizes.size() > mostDims)
    return "sizes and strides do not match";
  if (!checkedNumElements(view.sizes, byteSize(view.dtype)))
    return "impossible sizes";
  int64_t last = 1;
  for (size_t d = 0; d < view.sizes.size(); ++d) {
    int64_t reach = 0;
    if (view.strides[d] < 0)
      return "a stride is negative";
    if (view.sizes[d] > 0 &&
        (__builtin_mul_overflow(view.sizes[d] - 1, view.strides[d], &reach) ||
         __builtin_add_overflow(last, reach, &last)))
      return "impossible strides";
  }
  if (__builtin_mul_overflow(last, byteSize(view.dtype), &last))
    return "impossible strides";
  return "";
}

/// Returns what is wrong with a view that is written: each place of it is to be
/// there once, if there are any.
Fault findResultFault(const TensorDesc &view) {
  if (std::find(view.sizes.begin(), view.sizes.end(), 0) != view.sizes.end())
    return "";
  for (size_t d = 0; d < view.sizes.size(); ++d)
    if (view.sizes[d] > 1 && view.strides[d] == 0)
      return "a result has a stride of 0";
  return "";
}

/// What is wrong with any of them; the last is the result.
Fault findFault(std::initializer_list<const TensorDesc *> views) {
  for (const TensorDesc *view : views)
    if (Fault fault = findFault(*view); !fault.empty())
      return fault;
  return findResultFault(**(views.end() - 1));
}

/// Whether sums of products of the one are kept as the other. What has products
/// or windows at all, the device says.
bool areProducts(DType factors, DType result) {
  bool isHalf = factors == DType::F16 || factors == DType::BF16;
  return result == factors || (isHalf && result == DType::F32);
}

bool isInteger8(DType type) { return type == DType::I8 || type == DType::U8; }

/// Those of a matrix product: of factors of eight bits, each of which may have
/// a type of its own, sums are f32, or rounded to bf16, and of integers i32.
bool areProducts(DType a, DType b, DType result) {
  if (isInteger8(a) && isInteger8(b) && result == DType::I32)
    return true;
  if (isFloat8(a) && isFloat8(b))
    return result == DType::F32 || result == DType::BF16;
  return a == b && areProducts(a, result);
}

bool hasActivation(DType dtype, Activation activation) {
  return isFloat(dtype) || activation == Activation::None ||
         activation == Activation::Relu;
}

Fault faultOf(const MatmulDesc &d) {
  if (Fault fault = findFault({&d.a, &d.b, &d.c}); !fault.empty())
    return fault;
  size_t rank = d.c.sizes.size();
  if (rank < 2 || d.a.sizes.size() != rank || d.b.sizes.size() != rank)
    return badSizes;
  size_t m = rank - 2, n = rank - 1;
  if (d.a.sizes[m] != d.c.sizes[m] || d.b.sizes[n] != d.c.sizes[n] ||
      d.a.sizes[n] != d.b.sizes[m])
    return badSizes;
  for (size_t i = 0; i < m; ++i)
    for (const TensorDesc *view : {&d.a, &d.b})
      if (view->sizes[i] != 1 && view->sizes[i] != d.c.sizes[i])
        return badSizes;
  if (!areProducts(d.a.dtype, d.b.dtype, d.c.dtype) ||
      !hasActivation(d.c.dtype, d.activation))
    return badTypes;
  if (d.hasInput() &&
      (!isFloat(d.c.dtype) || d.activation == Activation::None ||
       d.hasResidual || (d.form == ActivationForm::Gradient && d.hasBias)))
    return "no activation is kept, or has a gradient, so";
  if (d.form == ActivationForm::ValueAndInput)
    if (Fault fault = findResultFault(d.input); !fault.empty())
      return fault;
  for (auto [isThere, view] : {std::pair(d.hasResidual, &d.residual),
                               std::pair(d.hasInput(), &d.input)}) {
    if (!isThere)
      continue;
    if (Fault fault = findFault(*view); !fault.empty())
      return fault;
    if (view->dtype != d.c.dtype)
      return badTypes;
    if (view->sizes != d.c.sizes)
      return badSizes;
  }
  return "";
}

/// One of a window's lists of numbers.
bool areBetween(const Sizes &numbers, size_t count, int64_t least) {
  return numbers.size() == count &&
         std::all_of(numbers.begin(), numbers.end(), [&](int64_t number) {
           return number >= least && number <= mostInWindow;
         });
}

/// Returns what is wrong with what moves over `x`: [batch, channels,
/// spatial...].
template <typename Window>
Fault findWindowFault(const Window &d) {
  size_t spatial = d.x.sizes.size() - 2;
  bool fits = areBetween(d.strides, spatial, 1) &&
              areBetween(d.dilations, spatial, 1) &&
              areBetween(d.padsLow, spatial, -mostInWindow) &&
              areBetween(d.padsHigh, spatial, -mostInWindow);
  for (const TensorDesc *view : {&d.x, &d.y})
    fits &=
        areBetween({view->sizes.begin() + 2, view->sizes.end()}, spatial, 0);
  return fits && d.x.sizes[0] == d.y.sizes[0] ? "" : "impossible windows";
}

Fault faultOf(const ConvDesc &d) {
  bool isGradient = d.kind == ConvKind::WeightGradient;
  const TensorDesc &result = isGradient ? d.w : d.y;
  const TensorDesc &factor = isGradient ? d.y : d.w;
  if (Fault fault = findFault({&d.x, &factor, &result}); !fault.empty())
    return fault;
  size_t rank = d.x.sizes.size();
  if (rank < 3 || d.w.sizes.size() != rank || d.y.sizes.size() != rank)
    return badSizes;
  if (Fault fault = findWindowFault(d); !fault.empty())
    return fault;
  if (!areBetween({d.w.sizes.begin() + 2, d.w.sizes.end()}, rank - 2, 0))
    return "impossible windows";
  // Of a transposed convolution, that whose gradient it is.
  bool isTransposed = d.kind == ConvKind::Transposed;
  int64_t in = (isTransposed ? d.y : d.x).sizes[1];
  int64_t out = (isTransposed ? d.x : d.y).sizes[1];
  if (d.groups < 1 || in % d.groups != 0 || out % d.groups != 0 ||
      d.w.sizes[0] != out || d.w.sizes[1] != in / d.groups)
    return badSizes;
  bool fits =
      isInteger8(d.x.dtype)
          ? areProducts(d.x.dtype, factor.dtype, result.dtype)
          : d.x.dtype == factor.dtype && areProducts(d.x.dtype, result.dtype);
  if (!fits || d.x.dtype == DType::Bool ||
      !hasActivation(result.dtype, d.activation))
    return badTypes;
  return "";
}

Fault faultOf(const PoolDesc &d) {
  bool isGradient = d.kind == PoolKind::MaxGradient;
  if (Fault fault =
          isGradient ? findFault({&d.x, &d.y, &d.dx}) : findFault({&d.x, &d.y});
      !fault.empty())
    return fault;
  size_t rank = d.x.sizes.size();
  if (rank < 3 || d.y.sizes.size() != rank || d.x.sizes[1] != d.y.sizes[1] ||
      (isGradient && d.dx.sizes != d.x.sizes))
    return badSizes;
  if (Fault fault = findWindowFault(d); !fault.empty())
    return fault;
  if (!areBetween(d.kernel, rank - 2, 1))
    return "impossible windows";
  bool isWide = d.x.dtype == DType::F32 || d.x.dtype == DType::F64;
  bool hasKind = isGradient                ? isWide && d.dx.dtype == d.x.dtype
                 : d.kind == PoolKind::Avg ? isFloat(d.x.dtype)
                                           : true;
  return d.x.dtype == d.y.dtype && hasKind ? "" : badTypes;
}

Fault faultOf(const AttentionDesc &d) {
  if (Fault fault = findFault({&d.q, &d.k, &d.v, &d.out}); !fault.empty())
    return fault;
  const Sizes &q = d.q.sizes, &k = d.k.sizes, &v = d.v.sizes;
  if (q.size() != 4 || k.size() != 4 || v.size() != 4 || k[1] < 1 ||
      q[1] % k[1] != 0 || k[0] != q[0] || k[3] != q[3] ||
      v != Sizes{k[0], k[1], k[2], v[3]} ||
      d.out.sizes != Sizes{q[0], q[1], q[2], v[3]})
    return badSizes;
  // No elements may be many keys, whose scores have to be in memory.
  constexpr int64_t mostKeys = int64_t(1) << 40;
  if (k[2] > mostKeys)
    return badSizes;
  if (!isFloat(d.q.dtype) || d.k.dtype != d.q.dtype || d.v.dtype != d.q.dtype ||
      d.out.dtype != d.q.dtype)
    return badTypes;
  bool hasEnd = d.causal || (d.hasMask && d.mask.dtype == DType::I64);
  if (d.window < 0 || d.window > mostKeys || (d.window > 0 && !hasEnd))
    return badWindow;
  if (!d.hasMask)
    return "";
  if (Fault fault = findFault(d.mask); !fault.empty())
    return fault;
  bool isPlace = d.mask.dtype == DType::I64 && d.mask.sizes.size() == 4 &&
                 (d.mask.sizes[2] == 1 || d.mask.strides[2] == 0);
  if (!isPlace && d.mask.dtype != DType::Bool && d.mask.dtype != DType::F32 &&
      d.mask.dtype != d.q.dtype)
    return badTypes;
  return d.mask.sizes == Sizes{q[0], q[1], q[2], k[2]} ? "" : badSizes;
}

Fault faultOf(const AttentionGradientDesc &d) {
  if (Fault fault = faultOf(d.forward); !fault.empty())
    return fault;
  const std::pair<const TensorDesc *, const TensorDesc *> alike[] = {
      {&d.gradient, &d.forward.out},
      {&d.dq, &d.forward.q},
      {&d.dk, &d.forward.k},
      {&d.dv, &d.forward.v}};
  for (auto [view, like] : alike) {
    Fault fault = view == &d.gradient ? findFault(*view) : findFault({view});
    if (!fault.empty())
      return fault;
    if (view->sizes != like->sizes)
      return badSizes;
    if (view->dtype != like->dtype)
      return badTypes;
  }
  return "";
}

Fault faultOf(const TopKDesc &d) {
  if (Fault fault = findFault(d.x); !fault.empty())
    return fault;
  bool fits = d.x.isDense() && d.dim >= 0 && d.dim < d.x.getRank() &&
              d.k >= 0 && d.k <= d.x.sizes[static_cast<size_t>(d.dim)];
  return fits ? "" : badSizes;
}

Fault faultOf(const NonMaxSuppressionDesc &d) {
  for (const TensorDesc *view : {&d.boxes, &d.scores})
    if (Fault fault = findFault(*view); !fault.empty())
      return fault;
  const Sizes &boxes = d.boxes.sizes, &scores = d.scores.sizes;
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 ||
      boxes[0] != scores[0] || boxes[1] != scores[2] || d.limit < 0 ||
      d.limit > boxes[1] || !d.boxes.isDense() || !d.scores.isDense())
    return badSizes;
  return isFloat(d.boxes.dtype) && d.boxes.dtype == d.scores.dtype ? ""
                                                                   : badTypes;
}

Fault faultOf(const IndexCheckDesc &d) {
  if (Fault fault = findFault(d.indices); !fault.empty())
    return fault;
  auto isSize = [](int64_t size) { return size >= 0; };
  if (!d.indices.isDense() || d.sizes.empty() ||
      !std::all_of(d.sizes.begin(), d.sizes.end(), isSize) ||
      d.layout.dims.size() != d.indices.sizes.size())
    return badSizes;
  return d.indices.dtype == DType::I32 || d.indices.dtype == DType::I64
             ? ""
             : badTypes;
}

Fault faultOf(const LookUpDesc &d) {
  for (const TensorDesc *view : {&d.table, &d.x}) {
    if (Fault fault = findFault(*view); !fault.empty())
      return fault;
    if (!view->isDense())
      return badSizes;
    if (view->dtype != DType::I8 && view->dtype != DType::U8)
      return badTypes;
  }
  constexpr int64_t numBytes = 256;
  return d.table.numElements() == numBytes ? "" : badSizes;
}

Fault faultOf(const GroupedMatmulDesc &d) {
  bool isGradient = d.kind == GroupedKind::WeightGradient;
  const TensorDesc &result = isGradient ? d.w : d.y;
  const TensorDesc &factor = isGradient ? d.y : d.w;
  if (Fault fault = findFault({&d.x, &factor, &d.groups, &result});
      !fault.empty())
    return fault;
  const Sizes &x = d.x.sizes, &w = d.w.sizes, &y = d.y.sizes;
  if (x.size() != 2 || w.size() != 3 || y != Sizes{x[0], w[2]} ||
      w[1] != x[1] || d.groups.sizes != Sizes{x[0]} || !d.groups.isDense())
    return badSizes;
  TensorDesc swapped = d.w;
  std::swap(swapped.sizes[1], swapped.sizes[2]);
  std::swap(swapped.strides[1], swapped.strides[2]);
  bool isWhole = isGradient ? d.w.isDense() || swapped.isDense()
                            : d.y.isDense() && hasUnitStride(d.w);
  if (!isWhole || (isGradient && d.constantW) || (x[0] > 0 && w[0] == 0))
    return badSizes;
  bool fits = isFloat(d.x.dtype) && !isFloat8(d.x.dtype) &&
              factor.dtype == d.x.dtype &&
              areProducts(d.x.dtype, result.dtype) &&
              (d.groups.dtype == DType::I32 || d.groups.dtype == DType::I64);
  return fits ? "" : badTypes;
}

Fault faultOf(const BlockMatmulDesc &d) {
  for (const TensorDesc *view : {&d.x, &d.w, &d.scales, &d.y}) {
    if (Fault fault = findFault(*view); !fault.empty())
      return fault;
    if (view->sizes.size() != 2 || !view->isDense())
      return badSizes;
    if (view->dtype != (view == &d.w ? DType::U8 : DType::F32))
      return badTypes;
  }
  constexpr int64_t bitsOfByte = 8;
  if (!isFewBits(d.bits))
    return badTypes;
  int64_t rows = d.x.sizes[0], k = d.x.sizes[1], n = d.w.sizes[0];
  int64_t blocks = d.scales.sizes[1];
  if (blocks == 0 || k % blocks != 0 || d.scales.sizes[0] != n ||
      d.y.sizes != Sizes{rows, n})
    return badSizes;
  bool fits =
      isBlockLength(k / blocks) && d.w.sizes[1] == k / (bitsOfByte / d.bits);
  return fits ? "" : badSizes;
}

} // namespace

std::string findFault(const LibraryDesc &desc) {
  return std::visit([](const auto &d) { return faultOf(d); }, desc);
}

} // namespace ax::rt
