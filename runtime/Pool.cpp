//===- Pool.cpp - Sliding-window maximum, mean and sum --------------------===//

#include "CpuLibrary.h"
#include "PlainMath.h"
#include "Threads.h"

#include "ax/Support/Error.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>

namespace ax::rt {

namespace {

/// Channels that are reduced together where they are neighbours in memory.
constexpr int64_t channelBlock = 64;

/// The indices of x, in one dimension, that one window sees.
struct Span {
  int64_t begin, end, step;
  /// Elements that count in a mean.
  int64_t divisor;
};

template <typename T>
class Pool : public CpuOp {
public:
  using S =
      std::conditional_t<std::is_same_v<T, double>, double,
                         std::conditional_t<std::is_integral_v<T>, T, float>>;

  explicit Pool(PoolDesc descIn)
      : desc(std::move(descIn)), spatial(desc.kernel.size()) {
    for (size_t d = 0; d < spatial; ++d) {
      std::vector<Span> line;
      for (int64_t o = 0; o < desc.y.sizes[d + 2]; ++o)
        line.push_back(makeSpan(d, o));
      spans.push_back(std::move(line));
    }
    // Three dimensions always; missing ones have one place.
    for (size_t d = 0; d < 3; ++d) {
      bool missing = d < 3 - spatial;
      size_t from = missing ? 0 : d - (3 - spatial);
      lines[d] = missing ? nullptr : &spans[from];
      xStrides[d] = missing ? 0 : desc.x.strides[from + 2];
      yStrides[d] = missing ? 0 : desc.y.strides[from + 2];
    }
    batched = desc.x.strides[1] == 1 && desc.y.strides[1] == 1;
  }

  llvm::Error execute(void *const *arguments, void *) override {
    const T *x = static_cast<const T *>(arguments[0]);
    T *y = static_cast<T *>(arguments[1]);
    int64_t block = batched ? channelBlock : 1;
    int64_t blocks = (desc.x.sizes[1] + block - 1) / block;
    parallelFor(desc.x.sizes[0] * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t batch = i / blocks, channel = i % blocks * block;
        int64_t count = std::min(block, desc.x.sizes[1] - channel);
        const T *from =
            x + batch * desc.x.strides[0] + channel * desc.x.strides[1];
        T *to = y + batch * desc.y.strides[0] + channel * desc.y.strides[1];
        forEachPlace(from, to, count);
      }
    });
    return llvm::Error::success();
  }

private:
  Span makeSpan(size_t d, int64_t o) const {
    int64_t start = o * desc.strides[d] - desc.padsLow[d];
    int64_t step = desc.dilations[d], size = desc.x.sizes[d + 2];
    /// The first place of the window that is not before `bound`.
    auto firstFrom = [&](int64_t bound) {
      int64_t steps =
          start >= bound ? 0 : llvm::divideCeil(bound - start, step);
      return std::min(steps, desc.kernel[d]);
    };
    int64_t first = firstFrom(0), end = firstFrom(size);
    Span span{0, 0, step, end - first};
    if (first < end) {
      span.begin = start + first * step;
      span.end = start + (end - 1) * step + 1;
    }
    if (desc.countIncludePad)
      span.divisor =
          firstFrom(size + desc.padsHigh[d]) - firstFrom(-desc.padsLow[d]);
    return span;
  }

  void forEachPlace(const T *x, T *y, int64_t channels) const {
    static const std::vector<Span> single{{0, 1, 1, 1}};
    const std::vector<Span> *line[3];
    for (size_t d = 0; d < 3; ++d)
      line[d] = lines[d] ? lines[d] : &single;
    for (size_t i = 0; i < line[0]->size(); ++i)
      for (size_t j = 0; j < line[1]->size(); ++j)
        for (size_t k = 0; k < line[2]->size(); ++k) {
          T *to = y + static_cast<int64_t>(i) * yStrides[0] +
                  static_cast<int64_t>(j) * yStrides[1] +
                  static_cast<int64_t>(k) * yStrides[2];
          window(x, to, channels, (*line[0])[i], (*line[1])[j], (*line[2])[k]);
        }
  }

  void window(const T *x, T *y, int64_t channels, const Span &a, const Span &b,
              const Span &c) const {
    S values[channelBlock];
    std::fill_n(values, channels, neutral());
    for (int64_t i = a.begin; i < a.end; i += a.step)
      for (int64_t j = b.begin; j < b.end; j += b.step)
        for (int64_t k = c.begin; k < c.end; k += c.step) {
          const T *from =
              x + i * xStrides[0] + j * xStrides[1] + k * xStrides[2];
          if (desc.kind == PoolKind::Max)
            for (int64_t ch = 0; ch < channels; ++ch) {
              S value = static_cast<S>(from[ch]);
              values[ch] =
                  value > values[ch] || value != value ? value : values[ch];
            }
          else
            for (int64_t ch = 0; ch < channels; ++ch)
              values[ch] += static_cast<S>(from[ch]);
        }
    if (desc.kind == PoolKind::Avg) {
      auto divisor = static_cast<S>(a.divisor * b.divisor * c.divisor);
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
  size_t spatial;
  std::vector<std::vector<Span>> spans;
  const std::vector<Span> *lines[3];
  int64_t xStrides[3], yStrides[3];
  bool batched = false;
};

} // namespace

ExpectedCpuOp preparePool(const PoolDesc &desc) {
  if (desc.kernel.empty() || desc.kernel.size() > 3)
    return makeError(ExitCode::Unsupported,
                     "windows of 1, 2 or 3 dimensions only");
  return visitDType(desc.x.dtype, [&](auto tag) -> ExpectedCpuOp {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>)
      return makeError(ExitCode::Unsupported, "no windows of booleans");
    else
      return std::make_unique<Pool<T>>(desc);
  });
}

} // namespace ax::rt
