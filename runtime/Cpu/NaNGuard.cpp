//===- NaNGuard.cpp - Fused activations that keep NaN ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// oneDNN's activations take a maximum or clamp, which makes a number of NaN. So
// they are fused only where no sum can be infinite or NaN: the magnitudes of
// what goes in tell. Otherwise the product or convolution is done without, and
// the activation after it.
//
//===----------------------------------------------------------------------===//

#include "CpuLibrary.h"
#include "PlainMath.h"
#include "Threads.h"

#include "ax/Support/HostTensor.h"

#include "llvm/Support/ErrorHandling.h"

#include <atomic>
#include <cstring>
#include <limits>

namespace ax::rt {

namespace {

/// Returns at least every |element| of what lies in `view`'s memory; infinity
/// if one is NaN.
double largestMagnitude(const TensorDesc &view, const void *data) {
  int64_t count = view.spanBytes() / byteSize(view.dtype);
  bool isWide = view.dtype == DType::F32;
  std::atomic<uint32_t> largest{0};
  parallelFor(count, 1 << 16, [&](int64_t begin, int64_t end) {
    const VectorKernels &kernels = vectorKernels();
    uint32_t bits =
        isWide ? kernels.largestBits32(
                     static_cast<const uint32_t *>(data) + begin, end - begin)
               : uint32_t(kernels.largestBits16(
                     static_cast<const uint16_t *>(data) + begin, end - begin))
                     << 16;
    uint32_t before = largest.load();
    while (before < bits && !largest.compare_exchange_weak(before, bits))
      ;
  });
  uint32_t bits = largest;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value == value ? value : std::numeric_limits<double>::infinity();
}

/// Where c's elements are, and those of the residual.
struct ElementPlaces {
  TensorDesc c, residual;

  template <typename Fn>
  void forEach(Fn &&fn, size_t dim = 0, int64_t at = 0,
               int64_t from = 0) const {
    if (dim == c.sizes.size())
      return fn(at, from);
    for (int64_t i = 0; i < c.sizes[dim]; ++i)
      forEach(fn, dim + 1, at + i * c.strides[dim],
              from +
                  i * (residual.strides.empty() ? 0 : residual.strides[dim]));
  }
};

template <typename Desc>
class NaNGuard : public CpuOp {
public:
  NaNGuard(Desc descIn, std::unique_ptr<CpuOp> fusedIn,
           std::unique_ptr<CpuOp> bareIn, const CpuConstant &constant)
      : desc(std::move(descIn)), fused(std::move(fusedIn)),
        bare(std::move(bareIn)) {
    workspaceBytes =
        std::max(fused->getWorkspaceBytes(), bare->getWorkspaceBytes());
    readsConstantOperand = fused->readsConstant() || bare->readsConstant();
    if (packedArgument(desc) >= 0 && constant.data)
      constantMagnitude = largestMagnitude(factor(1), constant.data);
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    if (isBounded(arguments))
      return fused->execute(arguments, workspace);
    return visitDType(result().dtype, [&](auto tag) -> llvm::Error {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_same_v<T, float> || std::is_same_v<T, BFloat16>)
        return executeBare<T>(arguments, workspace);
      else
        llvm_unreachable("oneDNN computes in f32 and bf16");
    });
  }

private:
  TensorDesc factor(int index) const { return argumentDesc(desc, index); }
  TensorDesc result() const {
    return argumentDesc(desc, numArguments(desc) - 1);
  }
  static int64_t addends(const MatmulDesc &d) { return d.a.sizes.back(); }
  static int64_t addends(const ConvDesc &d) {
    return d.w.numElements() / std::max<int64_t>(1, d.w.sizes[0]) *
           std::max<int64_t>(1, d.groups);
  }
  static bool isLast(const MatmulDesc &) { return false; }
  static bool isLast(const ConvDesc &d) { return d.activationLast; }

  bool isBounded(void *const *arguments) const {
    double a = largestMagnitude(factor(0), arguments[0]);
    double b = constantMagnitude ? *constantMagnitude
                                 : largestMagnitude(factor(1), arguments[1]);
    double sum = a * b * static_cast<double>(addends(desc));
    // The residual, too, is added before the activation, or after it.
    for (int i = 2; i + 1 < numArguments(desc); ++i)
      sum += largestMagnitude(factor(i), arguments[i]);
    return sum < 0.5 * std::numeric_limits<float>::max();
  }

  template <typename T>
  llvm::Error executeBare(void *const *arguments, void *workspace) {
    int last = numArguments(desc) - 1;
    bool addsAfter = desc.hasResidual && !isLast(desc);
    // The residual may lie where the result goes.
    HostTensor residual;
    ElementPlaces places{result(), {}};
    llvm::SmallVector<void *, 5> operands(arguments, arguments + last + 1);
    if (addsAfter) {
      places.residual = factor(last - 1);
      int64_t bytes = places.residual.spanBytes();
      llvm::Expected<HostTensor> copy = HostTensor::fromBytes(
          DType::U8, {bytes},
          {static_cast<const uint8_t *>(arguments[last - 1]),
           static_cast<size_t>(bytes)});
      if (!copy)
        return copy.takeError();
      residual = std::move(*copy);
      operands.erase(operands.end() - 2);
    }
    if (llvm::Error error = bare->execute(operands.data(), workspace))
      return error;
    T *c = static_cast<T *>(arguments[last]);
    const T *added =
        addsAfter ? reinterpret_cast<const T *>(residual.data()) : nullptr;
    places.forEach([&](int64_t at, int64_t from) {
      float value = applyActivation(desc.activation, static_cast<float>(c[at]));
      if (added)
        value += static_cast<float>(added[from]);
      c[at] = static_cast<T>(value);
    });
    return llvm::Error::success();
  }

  Desc desc;
  std::unique_ptr<CpuOp> fused, bare;
  std::optional<double> constantMagnitude;
};

void dropActivation(MatmulDesc &desc) {
  desc.activation = Activation::None;
  desc.hasResidual = false;
}
void dropActivation(ConvDesc &desc) {
  desc.activation = Activation::None;
  desc.hasResidual = desc.hasResidual && desc.activationLast;
}

template <typename Desc>
ExpectedCpuOp guard(const Desc &desc, const CpuConstant &constant,
                    llvm::function_ref<ExpectedCpuOp(const Desc &)> prepare) {
  ExpectedCpuOp fused = prepare(desc);
  if (!fused || !*fused || desc.activation != Activation::Relu)
    return fused;
  Desc without = desc;
  dropActivation(without);
  ExpectedCpuOp bare = prepare(without);
  if (!bare || !*bare)
    return bare;
  return std::make_unique<NaNGuard<Desc>>(desc, std::move(*fused),
                                          std::move(*bare), constant);
}

} // namespace

ExpectedCpuOp
guardNaN(const MatmulDesc &desc, const CpuConstant &constant,
         llvm::function_ref<ExpectedCpuOp(const MatmulDesc &)> prepare) {
  return guard(desc, constant, prepare);
}

ExpectedCpuOp
guardNaN(const ConvDesc &desc, const CpuConstant &constant,
         llvm::function_ref<ExpectedCpuOp(const ConvDesc &)> prepare) {
  return guard(desc, constant, prepare);
}

} // namespace ax::rt
