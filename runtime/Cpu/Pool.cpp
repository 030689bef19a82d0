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

/// Windows side by side: window o sees the places o stride + t dilation - low
/// of a line of `size`, t < taps. Taps that are padding in all of them are
/// none.
struct LineWindows {
  int64_t taps = 1, stride = 1, dilation = 1, low = 0, size = 0;

  explicit LineWindows(const PoolDesc &desc) {
    int64_t all = desc.x.sizes.back(), outputs = desc.y.sizes.back();
    // One window has none beside it.
    if (outputs > 1)
      stride = desc.strides.back();
    int64_t step = desc.dilations.back(), before = desc.padsLow.back();
    int64_t firstTap = std::max<int64_t>(
        0, llvm::divideCeilSigned(before - (outputs - 1) * stride, step));
    int64_t lastTap = std::min(desc.kernel.back() - 1,
                               llvm::divideFloorSigned(all - 1 + before, step));
    // Of no taps at all one is padding: of a line of no places.
    if (firstTap > lastTap)
      return;
    taps = lastTap - firstTap + 1;
    dilation = step;
    low = before - firstTap * step;
    size = all;
  }

  int64_t reach() const { return (taps - 1) * dilation + 1; }
};

/// Some windows of a line, and what they see of it: `places` from `place` on,
/// behind `before` ones of padding, and with such behind them, `length` in all.
struct Piece {
  int64_t first, count, length, before, place, places;

  Piece(const LineWindows &line, int64_t first, int64_t count)
      : first(first), count(count),
        length((count - 1) * line.stride + line.reach()) {
    int64_t begin = first * line.stride - line.low;
    before = std::clamp<int64_t>(-begin, 0, length);
    place = std::clamp<int64_t>(begin, 0, line.size);
    places = std::max<int64_t>(0, std::min(line.size, begin + length) - place);
  }
};

/// What a pool works on at a time: pieces of lines of windows of one slice.
struct Band {
  Span slices;
  /// What each line's windows see.
  llvm::ArrayRef<Span> lines;
  Piece piece;
};

template <typename T>
class Pool : public CpuOp {
public:
  using S =
      std::conditional_t<std::is_same_v<T, double>, double,
                         std::conditional_t<std::is_integral_v<T>, T, float>>;

  explicit Pool(PoolDesc descIn)
      : desc(std::move(descIn)), windows(desc), line(desc),
        size(desc.x.sizes.back()), outputs(desc.y.sizes.back()) {
    PoolWindows::spatialStrides(desc.x, xStrides);
    PoolWindows::spatialStrides(desc.y, yStrides);
    if (desc.x.strides[1] == 1 && desc.y.strides[1] == 1)
      together = std::max<int64_t>(1, desc.x.sizes[1]);
    for (const Span &span : windows.along(2))
      divisors.push_back(static_cast<S>(span.divisor));
    chooseBands();
    auto slices = static_cast<int64_t>(windows.along(0).size());
    units = desc.x.sizes[0] * (desc.x.sizes[1] / together) * slices * bands *
            pieces;
    threads = std::min<int64_t>(getNumThreads(), std::max<int64_t>(1, units));
    workspaceBytes = threads * threadElements * static_cast<int64_t>(sizeof(S));
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    const T *x = static_cast<const T *>(arguments[0]);
    T *y = static_cast<T *>(arguments[1]);
    llvm::ArrayRef<Span> slices = windows.along(0), lines = windows.along(1);
    int64_t blocks = desc.x.sizes[1] / together;
    auto numSlices = static_cast<int64_t>(slices.size()),
         numLines = static_cast<int64_t>(lines.size());
    parallelUnits(units, threads, [&](int64_t unit, int64_t part) {
      int64_t first = unit % pieces * pieceWindows;
      int64_t line0 = unit / pieces % bands * bandLines;
      int64_t slice = unit / pieces / bands % numSlices;
      int64_t image = unit / pieces / bands / numSlices;
      auto at = [&](const TensorDesc &view) {
        return image / blocks * view.strides[0] +
               image % blocks * view.strides[1];
      };
      Band band{slices[slice],
                lines.slice(line0, std::min(bandLines, numLines - line0)),
                Piece(line, first, std::min(pieceWindows, outputs - first))};
      Scratch scratch(*this,
                      static_cast<S *>(workspace) + part * threadElements);
      joinLines(x + at(desc.x), band, scratch);
      write(joinTaps(band, scratch), band,
            y + at(desc.y) + slice * yStrides[0] + line0 * yStrides[1] +
                first * yStrides[2]);
    });
    return llvm::Error::success();
  }

private:
  struct Scratch {
    /// A line as S, several lines as they lie in the image, lines with padding,
    /// and what the taps of each place of these make.
    S *read, *dense, *padded, *joined;

    Scratch(const Pool &pool, S *memory)
        : read(memory), dense(read + pool.readElements),
          padded(dense + pool.denseElements),
          joined(padded + pool.bandElements) {}
  };

  /// Lines, or pieces of them, that stay in the second-level cache, and of
  /// which there are several for many threads.
  void chooseBands() {
    constexpr int64_t wanted = 1 << 13;
    auto numLines = static_cast<int64_t>(windows.along(1).size());
    // What pieces beside each other both see is little of what they see.
    int64_t fitting = (wanted / together - line.reach()) / line.stride + 1;
    pieceWindows =
        std::clamp<int64_t>(std::max(fitting, line.reach() / line.stride), 1,
                            std::max<int64_t>(1, outputs));
    pieces = llvm::divideCeil(outputs, pieceWindows);
    int64_t pieceElements = Piece(line, 0, pieceWindows).length * together;
    bandLines =
        std::clamp<int64_t>(wanted / std::max<int64_t>(1, pieceElements), 1,
                            std::max<int64_t>(1, numLines));
    bands = llvm::divideCeil(numLines, bandLines);
    bandElements = bandLines * pieceElements;
    readElements = isDense() ? 0 : pieceElements;
    denseElements = isOneRun() ? bandLines * size * together : 0;
    threadElements = readElements + denseElements + 2 * bandElements;
  }

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
  bool isOneRun() const {
    return isDense() && pieces == 1 && xStrides[1] == size * together;
  }

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
    const Piece &piece = band.piece;
    int64_t pitch = piece.length * together, before = piece.before * together,
            inside = piece.places * together;
    for (size_t i = 0; i < band.lines.size();) {
      int64_t run = isOneRun() ? runFrom(band.lines, i) : 1;
      S *to = scratch.padded + static_cast<int64_t>(i) * pitch;
      S *dense = run > 1 ? scratch.dense : to + before;
      joinRun(x, band, band.lines[i], run, dense, scratch);
      for (int64_t r = 0; r < run; ++r, to += pitch) {
        if (run > 1)
          std::copy_n(dense + (r * size + piece.place) * together, inside,
                      to + before);
        std::fill_n(to, before, neutral());
        std::fill(to + before + inside, to + pitch, neutral());
      }
      i += static_cast<size_t>(run);
    }
  }

  /// Of what the piece sees of one line, or of `run` whole ones.
  void joinRun(const T *x, const Band &band, const Span &rows, int64_t run,
               S *to, const Scratch &scratch) const {
    llvm::SmallVector<const void *, 16> lines;
    const Piece &piece = band.piece;
    int64_t first = run > 1 ? 0 : piece.place;
    int64_t count = (run > 1 ? run * size : piece.places) * together;
    for (int64_t i = band.slices.begin; i < band.slices.end;
         i += band.slices.step)
      for (int64_t j = rows.begin; j < rows.end; j += rows.step) {
        const T *from =
            x + i * xStrides[0] + j * xStrides[1] + first * xStrides[2];
        if (isDense()) {
          lines.push_back(from);
        } else if (lines.empty()) {
          read(from, piece.places, to);
          lines.push_back(to);
        } else {
          read(from, piece.places, scratch.read);
          reduce({to, scratch.read}, to, count);
        }
      }
    if (lines.empty())
      std::fill_n(to, count, neutral());
    else if (isDense())
      reduce(lines, to, count);
  }

  void read(const T *from, int64_t places, S *to) const {
    for (int64_t place = 0; place < places; ++place)
      for (int64_t ch = 0; ch < together; ++ch)
        *to++ = static_cast<S>(from[place * xStrides[2] + ch]);
  }

  /// Whether windows are joined one by one: what would be made between them,
  /// for whole vectors, would take longer.
  bool areApart(const Piece &piece) const {
    // Nanoseconds, roughly: one element of a vector takes a tenth, one alone 1,
    // and a call some.
    constexpr int64_t perVector = 10, call = 6, halves = 100;
    int64_t each = together > 1   ? line.taps * (call + together / perVector)
                   : isInPieces() ? line.taps / perVector + halves
                                  : line.taps;
    return piece.count * each < piece.length * together * line.taps / perVector;
  }

  /// Whether one window is added up by vectors.
  bool isInPieces() const {
    return line.taps >= tapsOfPiece && line.dilation == 1;
  }

  /// One window's taps, which lie at `from`.
  void joinWindow(const S *from, S *to) const {
    llvm::SmallVector<const void *, 16> parts;
    if (together > 1) {
      for (int64_t t = 0; t < line.taps; ++t)
        parts.push_back(from + t * line.dilation * together);
      return reduce(parts, to, together);
    }
    S result = neutral();
    auto add = [&](const S *begin, int64_t count, int64_t step) {
      for (int64_t i = 0; i < count; ++i) {
        S value = begin[i * step];
        result = desc.kind != PoolKind::Max         ? result + value
                 : value > result || value != value ? value
                                                    : result;
      }
    };
    int64_t first = 0;
    if (isInPieces()) {
      // Pieces of the window are added up, then halves of what that gives.
      constexpr int64_t few = 8;
      S joined[tapsOfPiece];
      for (; first + tapsOfPiece <= line.taps; first += tapsOfPiece)
        parts.push_back(from + first);
      reduce(parts, joined, tapsOfPiece);
      for (int64_t half = tapsOfPiece / 2; half >= few; half /= 2)
        reduce({joined, joined + half}, joined, half);
      add(joined, few, 1);
    }
    add(from + first * line.dilation, line.taps - first, line.dilation);
    *to = result;
  }

  /// Returns lines of which a window's result is where its first tap is.
  const S *joinTaps(const Band &band, const Scratch &scratch) const {
    int64_t pitch = band.piece.length * together;
    auto numLines = static_cast<int64_t>(band.lines.size());
    if (line.taps == 1)
      return scratch.padded;
    int64_t last = (band.piece.count - 1) * line.stride;
    if (areApart(band.piece)) {
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
        const S *own = divisors.data() + band.piece.first;
        writeLine(from, band.piece.count, y, [&](S sum, int64_t output) {
          return sum / (others * own[output]);
        });
      } else {
        writeLine(from, band.piece.count, y,
                  [](S value, int64_t) { return value; });
      }
      y += yStrides[1];
      from += band.piece.length * together;
    }
  }

  /// `result` makes a window's of what its taps have.
  template <typename Fn>
  void writeLine(const S *from, int64_t count, T *to, Fn result) const {
    int64_t toStep = yStrides[2];
    if (together > 1) {
      for (int64_t o = 0; o < count; ++o)
        for (int64_t ch = 0; ch < together; ++ch)
          to[o * toStep + ch] =
              static_cast<T>(result(from[o * line.stride * together + ch], o));
      return;
    }
    // Of steps that it knows the compiler makes vectors.
    auto each = [&](auto step, auto toStep) {
      for (int64_t o = 0; o < count; ++o)
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

  static constexpr int64_t tapsOfPiece = 64;

  PoolDesc desc;
  PoolWindows windows;
  LineWindows line;
  /// Of the last dimension.
  int64_t size, outputs;
  /// Channels, where they lie next to each other in both images; else 1.
  int64_t together = 1;
  int64_t pieceWindows = 1, pieces = 1, bandLines = 1, bands = 1, units = 0;
  int64_t threads = 1;
  int64_t readElements, denseElements, bandElements, threadElements;
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
