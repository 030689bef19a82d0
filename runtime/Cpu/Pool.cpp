//===- Pool.cpp - Sliding-window maximum, mean and sum --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PoolWindows.h"

#include "ax/Support/Error.h"

#include <algorithm>
#include <limits>

namespace ax::rt {

namespace {

template <typename T>
class Pool : public CpuOp {
public:
  using S =
      std::conditional_t<std::is_same_v<T, double>, double,
                         std::conditional_t<std::is_integral_v<T>, T, float>>;

  explicit Pool(PoolDesc descIn) : desc(std::move(descIn)), windows(desc) {
    PoolWindows::spatialStrides(desc.x, strides);
    batched = desc.x.strides[1] == 1 && desc.y.strides[1] == 1;
  }

  llvm::Error execute(void *const *arguments, void *) override {
    const T *x = static_cast<const T *>(arguments[0]);
    T *y = static_cast<T *>(arguments[1]);
    auto run = [&](int64_t batch, int64_t channel, int64_t channels) {
      const T *from =
          x + batch * desc.x.strides[0] + channel * desc.x.strides[1];
      T *to = y + batch * desc.y.strides[0] + channel * desc.y.strides[1];
      windows.forEach([&](int64_t at, const PoolWindows::Window &window) {
        reduce(from, to + at, channels, window);
      });
    };
    forEachPoolChannels(desc.x, batched, run);
    return llvm::Error::success();
  }

private:
  void reduce(const T *x, T *y, int64_t channels,
              const PoolWindows::Window &window) const {
    S values[poolChannels];
    std::fill_n(values, channels, neutral());
    window.forEach(strides, [&](int64_t offset) {
      const T *from = x + offset;
      if (desc.kind == PoolKind::Max)
        for (int64_t ch = 0; ch < channels; ++ch) {
          S value = static_cast<S>(from[ch]);
          values[ch] =
              value > values[ch] || value != value ? value : values[ch];
        }
      else
        for (int64_t ch = 0; ch < channels; ++ch)
          values[ch] += static_cast<S>(from[ch]);
    });
    if (desc.kind == PoolKind::Avg) {
      auto divisor =
          static_cast<S>(window.spans[0].divisor * window.spans[1].divisor *
                         window.spans[2].divisor);
      for (int64_t ch = 0; ch < channels; ++ch)
        values[ch] /= divisor;
    }
    for (int64_t ch = 0; ch < channels; ++ch)
      y[ch] = static_cast<T>(values[ch]);
  }

  S neutral() const {
    if (desc.kind != PoolKind::Max)
      return S(0);
    return std::numeric_limits<S>::has_infinity
               ? -std::numeric_limits<S>::infinity()
               : std::numeric_limits<S>::lowest();
  }

  PoolDesc desc;
  PoolWindows windows;
  int64_t strides[3];
  bool batched = false;
};

} // namespace

ExpectedCpuOp preparePool(const PoolDesc &desc) {
  if (desc.kernel.empty() || desc.kernel.size() > 3)
    return makeError(ExitCode::Unsupported,
                     "windows of 1, 2 or 3 dimensions only");
  if (desc.kind == PoolKind::MaxGradient)
    return prepareMaxPoolGradient(desc);
  return visitDType(desc.x.dtype, [&](auto tag) -> ExpectedCpuOp {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>)
      return makeError(ExitCode::Unsupported, "no windows of booleans");
    else
      return std::make_unique<Pool<T>>(desc);
  });
}

} // namespace ax::rt
