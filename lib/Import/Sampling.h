//===- Sampling.h - Reading between the elements ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A value between elements is a weighted sum of some around it, its taps. Which
// they are and their weights are computed for each dimension, and then
// combined. Elements are read as rows of all channels, so that places are
// shared by them and channels lie side by side.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_IMPORT_SAMPLING_H
#define AX_LIB_IMPORT_SAMPLING_H

#include "Emitter.h"

namespace ax::import {

enum class Interpolation { Nearest, Linear, Cubic };
enum class Border { Zeros, Edge, Reflection };

/// How places along one dimension become taps.
struct Line {
  int64_t size = 0;
  Interpolation mode = Interpolation::Linear;
  Border border = Border::Edge;
  /// What is reflected lies between these.
  double low = 0, high = 0;
};

/// Taps of places: [batch..., taps, places].
struct Taps {
  /// The index within the dimension, or the dimensions together.
  Value index;
  /// Whether there is such an element; null when there always is.
  Value isInside;
  /// Null where there is one tap of weight 1.
  Value weight;
};

/// Taps of the places `x` [batch..., places]; for the nearest one x is whole.
Taps findTaps(Emitter &b, Value x, const Line &line);

/// Combines the taps of all dimensions. With `isGrid` places are all
/// combinations of those of each dimension, else each is one place in all of
/// them.
Taps combine(Emitter &b, ArrayRef<Taps> lines, ArrayRef<int64_t> sizes,
             bool isGrid);

/// A tensor [batch, channels, dims...] as rows [batch, places, channels].
Value toRows(Emitter &b, Value x);

/// The elements at `taps` of `rows` [batch..., places, channels], weighted:
/// [batch..., taps, places, channels], in the type of sums.
Value readTaps(Emitter &b, Value rows, const Taps &taps, int64_t batchDims);

/// Returns the sum of the taps: [batch, places, channels].
Value sample(Emitter &b, Value rows, const Taps &taps);

} // namespace ax::import

#endif // AX_LIB_IMPORT_SAMPLING_H
