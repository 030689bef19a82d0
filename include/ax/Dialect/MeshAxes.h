//===- MeshAxes.h - What axes of a plan's mesh are called -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_MESHAXES_H
#define AX_DIALECT_MESHAXES_H

namespace ax::meshAxis {

/// The axes in space. The coordinate along `pipe` says which stages a rank has,
/// and is never in a layout; `data` splits the batch, `context` the sequence,
/// as far as attention's keys are not concerned; `row`, `col` and `depth` split
/// weights, `depth` the batch, too. A mesh has `context` only where it is more
/// than one.
inline constexpr char pipe[] = "pipe";
inline constexpr char data[] = "data";
inline constexpr char context[] = "context";
inline constexpr char depth[] = "depth";
inline constexpr char row[] = "row";
inline constexpr char col[] = "col";

/// The axis in time: the slices of a batch.
inline constexpr char micro[] = "micro";

} // namespace ax::meshAxis

#endif // AX_DIALECT_MESHAXES_H
