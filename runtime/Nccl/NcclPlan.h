//===- NcclPlan.h - Collectives as calls of NCCL ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NCCL knows tensors that lie in one piece, in parts of equal size, one behind
// another. Parts along an inner dimension are such tensors, one for each place
// in the outer ones: where these slices are large, each is a call of its own.
// Others, and parts with padding, are copied to such places before, or from
// there behind: they are in `scratch` meanwhile.
//
// Example: all-gather of 4x3 along dimension 1 by two members, of 5 columns in
// all. Each gives its 12 elements to ncclAllGather, which puts them one behind
// another into scratch, 24 in all; then two copies bring 4x3 and 4x2 of them
// into the columns of the 4x5 destination.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_NCCL_NCCLPLAN_H
#define AX_RUNTIME_NCCL_NCCLPLAN_H

#include "ax/Runtime/CollectivePieces.h"
#include "ax/Runtime/Program.h"

#include <optional>

namespace ax::rt::nccl {

enum class Where { Source, Destination, Scratch };

/// Bytes of one of the tensors of this run, or of the memory for copies.
struct Place {
  Where where = Where::Source;
  int64_t offset = 0;

  bool operator==(const Place &o) const {
    return where == o.where && offset == o.offset;
  }
};

struct Clearing {
  Place place;
  int64_t bytes = 0;
};

struct Copying {
  Place from, to;
  CopyCommand box;
};

enum class CallKind { AllReduce, AllGather, ReduceScatter, Send, Receive };

struct Call {
  CallKind kind = CallKind::AllReduce;
  /// A send has no destination, a receive no source.
  Place from, to;
  /// Elements of the element type where it reduces, else bytes: of the tensor
  /// (AllReduce), of one member's source (AllGather), of one member's
  /// destination (ReduceScatter), of the message.
  int64_t count = 0;
  /// Send, Receive: the other member.
  int32_t peer = -1;
};

/// What one member does for one tensor: in this order, the calls together.
struct NcclPlan {
  std::vector<Clearing> clearings;
  std::vector<Copying> copiesBefore;
  std::vector<Call> calls;
  std::vector<Copying> copiesBehind;
  int64_t scratchBytes = 0;
};

/// Bytes of a tensor at one place of its outer dimensions, as of which it gets
/// a call. The next call begins some 5 us behind the one before; copies of as
/// much there and back take as long on an H100.
constexpr int64_t largeSlice = int64_t(8) << 20;

/// Whether NCCL reduces elements of this type. Bools are bytes: any is their
/// maximum, all their minimum.
bool canReduce(DType type);

/// The plan of member `me` of `members`, whose scratch begins at `scratch`.
/// `spec` has no fault, and a type that can be reduced if it reduces.
NcclPlan planNccl(const CollectiveSpec &spec, int32_t members, int32_t me,
                  int64_t scratch = 0);

/// Bytes of scratch that the plans of all `specs` take together.
int64_t scratchOf(const CollectiveSpecs &specs, int32_t members, int32_t me);

} // namespace ax::rt::nccl

#endif // AX_RUNTIME_NCCL_NCCLPLAN_H
