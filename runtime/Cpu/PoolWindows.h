//===- PoolWindows.h - What each window of a pool sees ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_POOLWINDOWS_H
#define AX_RUNTIME_POOLWINDOWS_H

#include "CpuLibrary.h"
#include "Threads.h"

#include "llvm/ADT/ArrayRef.h"

#include <algorithm>
#include <vector>

namespace ax::rt {

/// The windows of a pool, always in three dimensions; missing ones have one
/// place.
class PoolWindows {
public:
  /// The indices of x, in one dimension, that one window sees.
  struct Span {
    int64_t begin, end, step;
    /// Elements that count in a mean.
    int64_t divisor;
  };
  struct Window {
    Span spans[3];
    /// Calls fn(offset in x), for views with the strides of x.
    template <typename Fn>
    void forEach(const int64_t *strides, Fn &&fn) const {
      for (int64_t i = spans[0].begin; i < spans[0].end; i += spans[0].step)
        for (int64_t j = spans[1].begin; j < spans[1].end; j += spans[1].step)
          for (int64_t k = spans[2].begin; k < spans[2].end; k += spans[2].step)
            fn(i * strides[0] + j * strides[1] + k * strides[2]);
    }
    /// The offset that the n-th call gets.
    int64_t offset(const int64_t *strides, int64_t n) const {
      int64_t offset = 0;
      for (int d = 2; d >= 0; --d) {
        int64_t count =
            (spans[d].end - spans[d].begin + spans[d].step - 1) / spans[d].step;
        offset += (spans[d].begin + n % count * spans[d].step) * strides[d];
        n /= count;
      }
      return offset;
    }
  };

  explicit PoolWindows(const PoolDesc &desc);

  /// The spatial strides of a view.
  static void spatialStrides(const TensorDesc &view, int64_t *strides);

  /// What windows see along one dimension.
  llvm::ArrayRef<Span> along(int d) const { return lines[d]; }

  /// Calls fn(offset in y, window).
  template <typename Fn>
  void forEach(Fn &&fn) const {
    for (size_t i = 0; i < lines[0].size(); ++i)
      for (size_t j = 0; j < lines[1].size(); ++j)
        for (size_t k = 0; k < lines[2].size(); ++k)
          fn(static_cast<int64_t>(i) * yStrides[0] +
                 static_cast<int64_t>(j) * yStrides[1] +
                 static_cast<int64_t>(k) * yStrides[2],
             Window{{lines[0][i], lines[1][j], lines[2][k]}});
  }

private:
  std::vector<Span> lines[3];
  int64_t yStrides[3];
};

/// Channels that are worked on together where they are neighbours in memory.
constexpr int64_t poolChannels = 64;

/// Calls fn(sample, first channel, number of channels) for all of `view`, from
/// the threads of the rank; of one channel at a time if not `together`.
template <typename Fn>
void forEachPoolChannels(const TensorDesc &view, bool together, Fn &&fn) {
  int64_t block = together ? poolChannels : 1, channels = view.sizes[1];
  int64_t blocks = (channels + block - 1) / block;
  parallelFor(view.sizes[0] * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t channel = i % blocks * block;
      fn(i / blocks, channel, std::min(block, channels - channel));
    }
  });
}

/// Prepares PoolKind::MaxGradient of one to three dimensions, for preparePool.
ExpectedCpuOp prepareMaxPoolGradient(const PoolDesc &desc);

} // namespace ax::rt

#endif // AX_RUNTIME_POOLWINDOWS_H
