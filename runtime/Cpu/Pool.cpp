//===- Pool.cpp - Sliding-window maximum, mean and sum --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The maximum of a window is that of its columns' maxima, so that windows are
// made of whole lines of memory, and several of these where they are short.
// Sums likewise.
//
// An example, the maximum of 3 x 3 at a distance of 2 with a pad of 1, of a
// line of windows: the three lines that these see become one, with a place of
// padding on both sides,
//
//   - a b c d e -
//
// and from it the maxima of three places side by side, of which every second
// one is the result:
//
//   max(-, a, b)   max(a, b, c)   max(b, c, d)   max(c, d, e)   max(d, e, -)
//
//===----------------------------------------------------------------------===//

#include "PoolWindows.h"

#include "ax/Runtime/VectorKernels.h"
#include "ax/Support/Error.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>

namespace ax::rt {

namespace {

using Span = PoolWindows::Span;

/// What a pool works on at a time: lines of windows of one slice.
struct Band {
  Span slices;
  /// What each line's windows see.
  llvm::ArrayRef<Span> lines;
};

/// Windows along a line: window o sees the elements o stride + t dilation,
/// t < taps, of a line of `length`, in which the image begins at `begin`, with
/// `places` of its own from `first` on. Places of windows that are padding in
/// all of them are no taps.
struct LineWindows {
  int64_t taps = 1, stride = 1, dilation = 1;
  int64_t length = 1;
  int64_t begin = 0, first = 0, places = 0;

  explicit LineWindows(const PoolDesc &desc) {
    int64_t size = desc.x.sizes.back(), outputs = desc.y.sizes.back();
    // One window has none beside it.
    if (outputs > 1)
      stride = desc.strides.back();
    dilation = desc.dilations.back();
    int64_t low = desc.padsLow.back(), reach = (outputs - 1) * stride;
    int64_t firstTap =
        std::max<int64_t>(0, llvm::divideCeilSigned(low - reach, dilation));
    int64_t lastTap =
        std::min(desc.kernel.back() - 1,
                 llvm::divideFloorSigned(size - 1 + low, dilation));
    if (firstTap > lastTap) {
      // All of it is padding.
      length = reach + 1;
      return;
    }
    taps = lastTap - firstTap + 1;
    length = reach + (taps - 1) * dilation + 1;
    low -= firstTap * dilation;
    begin = std::max<int64_t>(0, low);
    first = std::max<int64_t>(0, -low);
    places = std::min(size - first, length - begin);
  }
};

template <typename T>
class Pool : public CpuOp {
public:
  using S =
      std::conditional_t<std::is_same_v<T, double>, double,
                         std::conditional_t<std::is_integral_v<T>, T, float>>;

  explicit Pool(PoolDesc descIn)
      : desc(std::move(descIn)), windows(desc), line(desc),
        threads(getNumThreads()), size(desc.x.sizes.back()),
        outputs(desc.y.sizes.back()) {
    PoolWindows::spatialStrides(desc.x, xStrides);
    PoolWindows::spatialStrides(desc.y, yStrides);
    if (desc.x.strides[1] == 1 && desc.y.strides[1] == 1)
      together = std::max<int64_t>(1, desc.x.sizes[1]);
    for (const Span &span : windows.along(2))
      divisors.push_back(static_cast<S>(span.divisor));
    // Lines of a band stay in the first-level cache.
    constexpr int64_t bandElements = 1 << 12;
    auto lines = static_cast<int64_t>(windows.along(1).size());
    int64_t lineElements = std::max(size, line.length) * together;
    bandLines =
        std::clamp<int64_t>(bandElements / std::max<int64_t>(1, lineElements),
                            1, std::max<int64_t>(1, lines));
    threadElements = 3 * bandLines * lineElements + size * together;
    workspaceBytes = threads * threadElements * static_cast<int64_t>(sizeof(S));
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    const T *x = static_cast<const T *>(arguments[0]);
    T *y = static_cast<T *>(arguments[1]);
    llvm::ArrayRef<Span> slices = windows.along(0), lines = windows.along(1);
    int64_t blocks = desc.x.sizes[1] / together;
    auto numLines = static_cast<int64_t>(lines.size());
    int64_t bands = llvm::divideCeil(numLines, bandLines);
    int64_t perImage = static_cast<int64_t>(slices.size()) * bands;
    parallelUnits(
        outputs > 0 ? desc.x.sizes[0] * blocks * perImage : 0, threads,
        [&](int64_t unit, int64_t part) {
          int64_t image = unit / perImage, slice = unit % perImage / bands;
          int64_t first = unit % bands * bandLines;
          auto at = [&](const TensorDesc &view) {
            return image / blocks * view.strides[0] +
                   image % blocks * view.strides[1];
          };
          Band band{slices[slice],
                    lines.slice(first, std::min(bandLines, numLines - first))};
          Scratch scratch(*this,
                          static_cast<S *>(workspace) + part * threadElements);
          joinLines(x + at(desc.x), band, scratch);
          const S *joined = joinTaps(band, scratch);
          write(joined, band,
                y + at(desc.y) + slice * yStrides[0] + first * yStrides[1]);
        });
    return llvm::Error::success();
  }

private:
  struct Scratch {
    /// A line as S, several lines as they lie in the image, lines with padding,
    /// and what the taps of each place of these make.
    S *read, *dense, *padded, *joined;

    Scratch(const Pool &pool, S *memory)
        : read(memory), dense(read + pool.size * pool.together),
          padded(dense + pool.bandLines * pool.size * pool.together),
          joined(padded + pool.bandLines * pool.line.length * pool.together) {}
  };

  /// `count` elements of each of `sources`, one by one, are put into `to`.
  void reduce(llvm::ArrayRef<const void *> sources, S *to,
              int64_t count) const {
    auto op = desc.kind == PoolKind::Max ? ReduceOp::Max : ReduceOp::Sum;
    void *destination = to;
    vectorKernels()
        .reduce[static_cast<int>(op)][static_cast<int>(dtypeOf<S>())](
            sources.data(), static_cast<int32_t>(sources.size()), &destination,
            1, count);
  }

  /// Whether lines of the image can be read as they lie, and whether these lie
  /// one behind another.
  bool isDense() const {
    return std::is_same_v<T, S> && (xStrides[2] == together || size == 1);
  }
  bool isOneRun() const { return isDense() && xStrides[1] == size * together; }

  /// How many lines of windows from `begin` on see lines of the image that are
  /// one further for each, so that they are joined as one.
  static int64_t runFrom(llvm::ArrayRef<Span> lines, size_t begin) {
    const Span &first = lines[begin];
    size_t end = begin + 1;
    while (end < lines.size() &&
           lines[end].begin - first.begin == int64_t(end - begin) &&
           lines[end].end - first.end == int64_t(end - begin))
      ++end;
    return static_cast<int64_t>(end - begin);
  }

  /// The lines that those of windows see become one each, with padding.
  void joinLines(const T *x, const Band &band, const Scratch &scratch) const {
    int64_t pitch = line.length * together, before = line.begin * together,
            inside = line.places * together;
    for (size_t i = 0; i < band.lines.size();) {
      int64_t run = isOneRun() ? runFrom(band.lines, i) : 1;
      S *to = scratch.padded + static_cast<int64_t>(i) * pitch;
      S *dense = run > 1 ? scratch.dense : to + before;
      joinRun(x, band.slices, band.lines[i], run, dense, scratch);
      for (int64_t r = 0; r < run; ++r, to += pitch) {
        if (run > 1)
          std::copy_n(dense + (r * size + line.first) * together, inside,
                      to + before);
        std::fill_n(to, before, neutral());
        std::fill(to + before + inside, to + pitch, neutral());
      }
      i += static_cast<size_t>(run);
    }
  }

  /// Of one line without what no window sees, or of `run` whole ones.
  void joinRun(const T *x, const Span &slices, const Span &rows, int64_t run,
               S *to, const Scratch &scratch) const {
    llvm::SmallVector<const void *, 16> lines;
    int64_t first = run > 1 ? 0 : line.first;
    int64_t count = (run > 1 ? run * size : line.places) * together;
    for (int64_t i = slices.begin; i < slices.end; i += slices.step)
      for (int64_t j = rows.begin; j < rows.end; j += rows.step) {
        const T *from = x + i * xStrides[0] + j * xStrides[1];
        if (isDense()) {
          lines.push_back(from + first * together);
        } else if (lines.empty()) {
          read(from, to);
          lines.push_back(to);
        } else {
          read(from, scratch.read);
          reduce({to, scratch.read}, to, count);
        }
      }
    if (lines.empty())
      std::fill_n(to, count, neutral());
    else if (isDense())
      reduce(lines, to, count);
  }

  void read(const T *from, S *to) const {
    for (int64_t place = 0; place < line.places; ++place)
      for (int64_t ch = 0; ch < together; ++ch)
        *to++ = static_cast<S>(from[(line.first + place) * xStrides[2] + ch]);
  }

  /// Whether windows are joined one by one: what would be made between them,
  /// for whole vectors, would take longer.
  bool areApart() const {
    constexpr int64_t vector = 8, manyTaps = 64;
    return line.length > vector * outputs ||
           (line.taps >= manyTaps && line.stride > 1);
  }

  /// One window's taps, which lie at `from`.
  void joinWindow(const S *from, S *to) const {
    llvm::SmallVector<const void *, 16> parts;
    if (together > 1 || line.dilation > 1) {
      for (int64_t t = 0; t < line.taps; ++t)
        parts.push_back(from + t * line.dilation * together);
      return reduce(parts, to, together);
    }
    // Pieces of the window are added up, then halves of what that gives.
    constexpr int64_t piece = 64, few = 8;
    S joined[piece];
    int64_t first = 0;
    for (; first + piece <= line.taps; first += piece)
      parts.push_back(from + first);
    if (!parts.empty())
      reduce(parts, joined, piece);
    for (int64_t half = piece / 2; half >= few && !parts.empty(); half /= 2)
      reduce({joined, joined + half}, joined, half);
    S result = neutral();
    auto add = [&](const S *begin, const S *end) {
      for (; begin < end; ++begin)
        result = desc.kind != PoolKind::Max            ? result + *begin
                 : *begin > result || *begin != *begin ? *begin
                                                       : result;
    };
    add(joined, joined + (parts.empty() ? 0 : few));
    add(from + first, from + line.taps);
    *to = result;
  }

  /// Returns lines of which a window's result is where its first tap is.
  const S *joinTaps(const Band &band, const Scratch &scratch) const {
    int64_t pitch = line.length * together;
    auto numLines = static_cast<int64_t>(band.lines.size());
    if (line.taps == 1)
      return scratch.padded;
    int64_t last = (outputs - 1) * line.stride;
    if (areApart()) {
      for (int64_t i = 0; i < numLines; ++i)
        for (int64_t place = 0; place <= last; place += line.stride) {
          int64_t at = i * pitch + place * together;
          joinWindow(scratch.padded + at, scratch.joined + at);
        }
      return scratch.joined;
    }
    llvm::SmallVector<const void *, 16> taps;
    for (int64_t t = 0; t < line.taps; ++t)
      taps.push_back(scratch.padded + t * line.dilation * together);
    reduce(taps, scratch.joined,
           (numLines - 1) * pitch + (last + 1) * together);
    return scratch.joined;
  }

  void write(const S *from, const Band &band, T *y) const {
    for (const Span &rows : band.lines) {
      if (desc.kind == PoolKind::Avg) {
        auto others = static_cast<S>(band.slices.divisor * rows.divisor);
        writeLine(from, y, [&](S sum, int64_t output) {
          return sum / (others * divisors[output]);
        });
      } else {
        writeLine(from, y, [](S value, int64_t) { return value; });
      }
      y += yStrides[1];
      from += line.length * together;
    }
  }

  /// `result` makes a window's of what its taps have.
  template <typename Fn>
  void writeLine(const S *from, T *to, Fn result) const {
    int64_t toStep = yStrides[2];
    if (together > 1) {
      for (int64_t o = 0; o < outputs; ++o)
        for (int64_t ch = 0; ch < together; ++ch)
          to[o * toStep + ch] =
              static_cast<T>(result(from[o * line.stride * together + ch], o));
      return;
    }
    // Of steps that it knows the compiler makes vectors.
    auto each = [&](auto step, auto toStep) {
      for (int64_t o = 0; o < outputs; ++o)
        to[o * toStep] = static_cast<T>(result(from[o * step], o));
    };
    constexpr std::integral_constant<int64_t, 1> one;
    constexpr std::integral_constant<int64_t, 2> two;
    if (toStep != 1)
      each(line.stride, toStep);
    else if (line.stride == 1)
      each(one, one);
    else if (line.stride == 2)
      each(two, one);
    else
      each(line.stride, one);
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
  LineWindows line;
  int64_t threads;
  /// Of the last dimension.
  int64_t size, outputs;
  /// Channels, where they lie next to each other in both images; else 1.
  int64_t together = 1;
  int64_t bandLines, threadElements;
  /// Of a mean, in the last dimension.
  std::vector<S> divisors;
  int64_t xStrides[3], yStrides[3];
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
