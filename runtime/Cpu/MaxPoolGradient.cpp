//===- MaxPoolGradient.cpp - To each window's largest element -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PoolWindows.h"
#include "ax/Runtime/VectorKernels.h"

#include "ax/Support/Error.h"

#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace ax::rt {

namespace {

template <typename T>
class MaxPoolGradient : public CpuOp {
public:
  explicit MaxPoolGradient(PoolDesc descIn)
      : desc(std::move(descIn)), windows(desc) {
    PoolWindows::spatialStrides(desc.x, xStrides);
    PoolWindows::spatialStrides(desc.dx, dxStrides);
    batched = desc.x.strides[1] == 1 && desc.y.strides[1] == 1 &&
              desc.dx.strides[1] == 1;
  }

  llvm::Error execute(void *const *arguments, void *) override {
    const T *x = static_cast<const T *>(arguments[0]);
    const T *dy = static_cast<const T *>(arguments[1]);
    T *dx = static_cast<T *>(arguments[2]);
    auto run = [&](int64_t batch, int64_t channel, int64_t channels) {
      auto at = [&](const TensorDesc &view) {
        return batch * view.strides[0] + channel * view.strides[1];
      };
      clear(dx + at(desc.dx), channels);
      windows.forEach([&](int64_t y, const PoolWindows::Window &window) {
        add(x + at(desc.x), dy + at(desc.y) + y, dx + at(desc.dx), channels,
            window);
      });
    };
    forEachPoolChannels(desc.x, batched, run);
    return llvm::Error::success();
  }

private:
  void clear(T *dx, int64_t channels) const {
    PoolWindows::Window all;
    size_t missing = 5 - desc.x.sizes.size();
    for (size_t d = 0; d < 3; ++d)
      all.spans[d] = {0, d < missing ? 1 : desc.x.sizes[d - missing + 2], 1, 0};
    all.forEach(dxStrides, [&](int64_t offset) {
      std::fill_n(dx + offset, channels, static_cast<T>(0));
    });
  }

  void add(const T *x, const T *dy, T *dx, int64_t channels,
           const PoolWindows::Window &window) const {
    T best[poolChannels];
    int32_t where[poolChannels];
    std::fill_n(best, channels, -std::numeric_limits<T>::infinity());
    std::fill_n(where, channels, 0);
    int32_t taps = 0;
    window.forEach(xStrides, [&](int64_t offset) {
      findLargest(x + offset, channels, taps++, best, where);
    });
    for (int64_t ch = 0; taps > 0 && ch < channels; ++ch) {
      dx[window.offset(dxStrides, where[ch]) + ch] += dy[ch];
    }
  }

  static void findLargest(const T *x, int64_t channels, int32_t here, T *best,
                          int32_t *where) {
    if constexpr (std::is_same_v<T, float>) {
      vectorKernels().largest(x, channels, here, best, where);
    } else {
      for (int64_t ch = 0; ch < channels; ++ch) {
        T value = x[ch];
        if (value > best[ch] || value != value) {
          best[ch] = value;
          where[ch] = here;
        }
      }
    }
  }

  PoolDesc desc;
  PoolWindows windows;
  int64_t xStrides[3], dxStrides[3];
  bool batched = false;
};

} // namespace

ExpectedCpuOp prepareMaxPoolGradient(const PoolDesc &desc) {
  int64_t places = 1;
  for (size_t d = 2; d < desc.x.sizes.size(); ++d)
    places *= desc.x.sizes[d];
  if (places > std::numeric_limits<int32_t>::max())
    return makeError(ExitCode::Unsupported,
                     "gradients in images of 2^31 places and more");
  return visitDType(desc.x.dtype, [&](auto tag) -> ExpectedCpuOp {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_floating_point_v<T>)
      llvm_unreachable("gradients are added up in f32 or f64");
    else
      return std::make_unique<MaxPoolGradient<T>>(desc);
  });
}

} // namespace ax::rt
