//===- NonMaxSuppression.cpp - The best of overlapping boxes --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CpuLibrary.h"
#include "Threads.h"

#include "ax/Support/Error.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace ax::rt {

namespace {

/// A box by its lowest corner and its highest.
template <typename Real>
struct Box {
  Real top, left, bottom, right;

  Real area() const { return (bottom - top) * (right - left); }
  bool overlaps(const Box &other, Real threshold) const {
    Real height = std::min(bottom, other.bottom) - std::max(top, other.top);
    Real width = std::min(right, other.right) - std::max(left, other.left);
    if (height <= 0 || width <= 0)
      return threshold < 0;
    Real shared = height * width;
    return shared / (area() + other.area() - shared) > threshold;
  }
};

template <typename T>
class NonMaxSuppression : public CpuOp {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;

public:
  explicit NonMaxSuppression(NonMaxSuppressionDesc descIn)
      : desc(std::move(descIn)), count(desc.boxes.sizes[1]),
        classes(desc.scores.sizes[1]),
        rows(desc.scores.sizes[0] * desc.scores.sizes[1]) {
    ranges = std::min<int64_t>(getNumThreads(), rows);
    // Candidates and boxes of one row.
    perRange =
        count * static_cast<int64_t>(sizeof(int64_t) + sizeof(Box<Real>));
    workspaceBytes = ranges * perRange;
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    const T *boxes = static_cast<const T *>(arguments[0]);
    const T *scores = static_cast<const T *>(arguments[1]);
    auto *taken = static_cast<int64_t *>(arguments[2]);
    parallelFor(ranges, 1, [&](int64_t begin, int64_t end) {
      for (int64_t range = begin; range < end; ++range) {
        auto *order = reinterpret_cast<int64_t *>(
            static_cast<char *>(workspace) + range * perRange);
        auto *kept = reinterpret_cast<Box<Real> *>(order + count);
        for (int64_t row = range; row < rows; row += ranges)
          runRow(boxes + row / classes * count * 4, scores + row * count, order,
                 kept, taken + row * desc.limit);
      }
    });
    return llvm::Error::success();
  }

private:
  static Box<Real> load(const T *at) {
    auto number = [&](int i) { return static_cast<Real>(at[i]); };
    return {std::min(number(0), number(2)), std::min(number(1), number(3)),
            std::max(number(0), number(2)), std::max(number(1), number(3))};
  }

  void runRow(const T *boxes, const T *scores, int64_t *order, Box<Real> *kept,
              int64_t *taken) const {
    auto isCandidate = [&](Real score) {
      return desc.scoreThreshold
                 ? score > static_cast<Real>(*desc.scoreThreshold)
                 : !std::isnan(score);
    };
    auto threshold = static_cast<Real>(desc.iouThreshold);
    int64_t candidates = 0;
    for (int64_t i = 0; i < count; ++i)
      if (isCandidate(static_cast<Real>(scores[i])))
        order[candidates++] = i;
    std::sort(order, order + candidates, [&](int64_t a, int64_t b) {
      auto left = static_cast<Real>(scores[a]);
      auto right = static_cast<Real>(scores[b]);
      return left > right || (left == right && a < b);
    });
    int64_t found = 0;
    for (int64_t i = 0; i < candidates && found < desc.limit; ++i) {
      Box<Real> box = load(boxes + order[i] * 4);
      if (std::any_of(kept, kept + found, [&](const Box<Real> &other) {
            return box.overlaps(other, threshold);
          }))
        continue;
      kept[found] = box;
      taken[found++] = order[i];
    }
    std::fill(taken + found, taken + desc.limit, int64_t(-1));
  }

  NonMaxSuppressionDesc desc;
  int64_t count, classes, rows, ranges = 1, perRange = 0;
};

} // namespace

ExpectedCpuOp prepareNonMaxSuppression(const NonMaxSuppressionDesc &desc) {
  if (!desc.boxes.isDense() || !desc.scores.isDense() ||
      desc.boxes.dtype != desc.scores.dtype || desc.limit < 0 ||
      desc.limit > desc.boxes.sizes[1])
    return makeError(ExitCode::Unsupported, "impossible sizes or strides");
  return visitDType(desc.boxes.dtype, [&](auto tag) -> ExpectedCpuOp {
    return std::make_unique<NonMaxSuppression<typename decltype(tag)::type>>(
        desc);
  });
}

} // namespace ax::rt
