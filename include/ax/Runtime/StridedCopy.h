//===- StridedCopy.h - Copies of strided boxes ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_STRIDEDCOPY_H
#define AX_RUNTIME_STRIDEDCOPY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace ax::rt {

struct CopyCommand;

/// A box of elements that lies strided at both ends. Neighbouring dimensions
/// are merged where both ends allow it, so that few long runs are left. Offsets
/// and strides are in bytes.
class StridedBox {
public:
  struct Dim {
    int64_t size, sourceStride, destinationStride;
  };

  StridedBox() = default;
  explicit StridedBox(int64_t elementBytes) : runBytes(elementBytes) {}
  /// Starts of the box at both ends.
  int64_t sourceOffset = 0, destinationOffset = 0;

  /// Adds a dimension, outermost first.
  void addDim(int64_t size, int64_t sourceStride, int64_t destinationStride);
  /// Call once, after the last addDim.
  void finish();

  bool isEmpty() const { return empty; }
  /// After `finish`: whether one memcpy does it.
  bool isSingleRun() const { return dims.empty() && !empty; }
  int64_t numBytes() const;
  /// After `finish`: the dimensions around the runs, outermost first.
  llvm::ArrayRef<Dim> getDims() const { return dims; }
  int64_t getRunBytes() const { return runBytes; }

  /// After `finish`: returns the same elements of the destination, with a
  /// source that has nothing but these, in order.
  StridedBox withDenseSource() const;

  /// After `finish`: returns the box with its two ends exchanged.
  StridedBox reversed() const;

  /// Calls fn(source offset, destination offset, bytes) for each run.
  template <typename Fn>
  void forEachRun(Fn &&fn) const {
    if (!empty)
      visit(0, sourceOffset, destinationOffset, fn);
  }
  /// Calls fn for each piece of a run that lies at [begin, end) of the
  /// destination, where runs lie in the order of their addresses.
  template <typename Fn>
  void forEachRunWithin(int64_t begin, int64_t end, Fn &&fn) const {
    if (empty)
      return;
    // Behind each dimension's start, how far what is in it reaches.
    llvm::SmallVector<int64_t, 5> extents(dims.size() + 1, runBytes);
    for (size_t d = dims.size(); d-- > 0;)
      extents[d] =
          extents[d + 1] + (dims[d].size - 1) * dims[d].destinationStride;
    visitWithin(0, sourceOffset, destinationOffset, begin, end, extents, fn);
  }
  void copy(const void *source, void *destination) const;
  /// Copies the other way round: from the destination's places to the source's.
  void copyBack(void *source, const void *destination) const;

private:
  template <typename Fn>
  void visit(size_t d, int64_t source, int64_t destination, Fn &fn) const {
    if (d == dims.size()) {
      fn(source, destination, runBytes);
      return;
    }
    for (int64_t i = 0; i < dims[d].size; ++i)
      visit(d + 1, source + i * dims[d].sourceStride,
            destination + i * dims[d].destinationStride, fn);
  }

  template <typename Fn>
  void visitWithin(size_t d, int64_t source, int64_t destination, int64_t begin,
                   int64_t end, llvm::ArrayRef<int64_t> extents, Fn &fn) const {
    if (d == dims.size()) {
      int64_t from = std::max(destination, begin);
      int64_t to = std::min(destination + runBytes, end);
      if (from < to)
        fn(source + from - destination, from, to - from);
      return;
    }
    const Dim &dim = dims[d];
    int64_t before = begin - destination - extents[d + 1];
    for (int64_t i = before < 0 ? 0 : before / dim.destinationStride + 1;
         i < dim.size && destination + i * dim.destinationStride < end; ++i)
      visitWithin(d + 1, source + i * dim.sourceStride,
                  destination + i * dim.destinationStride, begin, end, extents,
                  fn);
  }

  llvm::SmallVector<Dim, 4> dims;
  int64_t runBytes = 1;
  bool empty = false;
};

/// The box that a command copies, at both ends from its buffers on.
StridedBox boxOf(const CopyCommand &command);
/// The command, without buffers, that copies the box of bytes from its offsets
/// on: they are left to the addresses.
CopyCommand copyOf(const StridedBox &box);

} // namespace ax::rt

#endif // AX_RUNTIME_STRIDEDCOPY_H
