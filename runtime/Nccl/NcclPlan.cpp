//===- NcclPlan.cpp - Collectives as calls of NCCL ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "NcclPlan.h"

#include <algorithm>
#include <numeric>

namespace ax::rt::nccl {

namespace {

/// At how many places of outer dimensions there are parts of dimension `dim`;
/// at one they lie one behind another.
int64_t numSlicesOf(const CollectiveSpec &spec, int32_t dim) {
  return std::accumulate(spec.shape.begin(), spec.shape.begin() + dim,
                         int64_t(1), std::multiplies<>());
}

/// Whether the source's end of the box is in one piece.
bool hasDenseSource(const StridedBox &box) {
  StridedBox dense = box.withDenseSource();
  return std::equal(box.getDims().begin(), box.getDims().end(),
                    dense.getDims().begin(), dense.getDims().end(),
                    [](const StridedBox::Dim &a, const StridedBox::Dim &b) {
                      return a.sourceStride == b.sourceStride;
                    });
}

class Planner {
public:
  Planner(const CollectiveSpec &spec, int32_t members, int32_t me,
          int64_t scratch)
      : spec(spec), members(members), me(me), begin(scratch), scratch(scratch) {
  }

  NcclPlan make() {
    switch (spec.kind) {
    case CollectiveKind::AllReduce:
      addCall(CallKind::AllReduce, source(), destination(),
              sourceBytes(spec) / byteSize(spec.dtype));
      break;
    case CollectiveKind::ReduceScatter:
      reduceScatter();
      break;
    case CollectiveKind::AllGather:
      allGather();
      break;
    case CollectiveKind::AllToAll:
    case CollectiveKind::Permute:
      exchangeMessages();
      break;
    }
    plan.scratchBytes = scratch - begin;
    return std::move(plan);
  }

private:
  static Place source(int64_t offset = 0) { return {Where::Source, offset}; }
  static Place destination(int64_t offset = 0) {
    return {Where::Destination, offset};
  }
  Place allocate(int64_t bytes) {
    Place place{Where::Scratch, scratch};
    scratch +=
        (bytes + bufferAlignment - 1) / bufferAlignment * bufferAlignment;
    return place;
  }

  void addCall(CallKind kind, Place from, Place to, int64_t count,
               int32_t peer = -1) {
    if (count > 0)
      plan.calls.push_back({kind, from, to, count, peer});
  }
  /// Copies the box: its offsets count from the two places.
  static Copying copying(const StridedBox &box, Place from, Place to) {
    from.offset += box.sourceOffset;
    to.offset += box.destinationOffset;
    return {from, to, copyOf(box)};
  }
  /// Where all members have as much of it, so that no part has padding: a call
  /// for each slice, of `whole` bytes in all. False where copies are better.
  bool addSlices(CallKind kind, int64_t numSlices, int64_t whole) {
    if (numSlices != 1 && (numSlices == 0 || whole / numSlices < largeSlice))
      return false;
    bool gathers = kind == CallKind::AllGather;
    int64_t slice = whole / numSlices, part = slice / members;
    int64_t count = gathers ? part : part / byteSize(spec.dtype);
    for (int64_t i = 0; i < numSlices; ++i)
      addCall(kind, source(i * (gathers ? part : slice)),
              destination(i * (gathers ? slice : part)), count);
    return true;
  }
  void clearDestination() {
    if (int64_t bytes = destinationBytes(spec))
      plan.clearings.push_back({destination(), bytes});
  }

  void reduceScatter() {
    int64_t bytes = destinationBytes(spec);
    if (spec.shape[static_cast<size_t>(spec.scatterDim)] ==
            members * spec.scatterPart &&
        addSlices(CallKind::ReduceScatter, numSlicesOf(spec, spec.scatterDim),
                  members * bytes))
      return;
    Place parts = allocate(members * bytes);
    int64_t covered = 0;
    for (int32_t member = 0; member < members; ++member)
      for (const CollectivePiece &piece :
           planCollective(spec, members, member).pieces) {
        covered += piece.box.numBytes();
        plan.copiesBefore.push_back(
            copying(piece.box, source(),
                    {Where::Scratch, parts.offset + member * bytes}));
      }
    // Zeros of all members are zero, whatever the reduction.
    if (covered < members * bytes)
      plan.clearings.push_back({parts, members * bytes});
    addCall(CallKind::ReduceScatter, parts, destination(),
            bytes / byteSize(spec.dtype));
  }

  void allGather() {
    int64_t bytes = sourceBytes(spec), whole = destinationBytes(spec);
    int64_t numSlices = numSlicesOf(spec, spec.gatherDim);
    if (whole == members * bytes &&
        addSlices(CallKind::AllGather, numSlices, whole))
      return;
    Place parts = allocate(members * bytes);
    addCall(CallKind::AllGather, source(), parts, bytes);
    if (numSlices == 1) {
      // Only the last ones have padding, behind all else.
      StridedBox box(whole);
      box.finish();
      if (whole)
        plan.copiesBehind.push_back(copying(box, parts, destination()));
      return;
    }
    for (const CollectivePiece &piece :
         planCollective(spec, members, me).pieces)
      plan.copiesBehind.push_back(copying(
          piece.box, {Where::Scratch, parts.offset + piece.peer * bytes},
          destination()));
  }

  void exchangeMessages() {
    CollectivePlan mine = planCollective(spec, members, me);
    if (mine.zeroFirst)
      clearDestination();
    for (const CollectivePiece &piece : mine.pieces)
      if (piece.peer == me)
        plan.copiesBefore.push_back(
            copying(piece.box, source(), destination()));
      else
        receive(piece);
    for (int32_t i = 1; i < members; ++i) {
      int32_t peer = (me + i) % members;
      for (const CollectivePiece &piece :
           planCollective(spec, members, peer).pieces)
        if (piece.peer == me)
          send(peer, piece.box);
    }
  }

  void receive(const CollectivePiece &piece) {
    int64_t bytes = piece.box.numBytes();
    if (hasDenseSource(piece.box.reversed()))
      return addCall(CallKind::Receive, {},
                     destination(piece.box.destinationOffset), bytes,
                     piece.peer);
    Place message = allocate(bytes);
    addCall(CallKind::Receive, {}, message, bytes, piece.peer);
    plan.copiesBehind.push_back(
        copying(piece.box.withDenseSource(), message, destination()));
  }

  void send(int32_t peer, const StridedBox &box) {
    int64_t bytes = box.numBytes();
    if (hasDenseSource(box))
      return addCall(CallKind::Send, source(box.sourceOffset), {}, bytes, peer);
    Place message = allocate(bytes);
    // Both ends have the elements of a message in the order of the box.
    plan.copiesBefore.push_back(copying(
        box.reversed().withDenseSource().reversed(), source(), message));
    addCall(CallKind::Send, message, {}, bytes, peer);
  }

  const CollectiveSpec &spec;
  int32_t members, me;
  int64_t begin, scratch;
  NcclPlan plan;
};

} // namespace

bool canReduce(DType type) {
  return type != DType::I16 && type != DType::U16 && !isFloat8(type);
}

NcclPlan planNccl(const CollectiveSpec &spec, int32_t members, int32_t me,
                  int64_t scratch) {
  return Planner(spec, members, me, scratch).make();
}

int64_t scratchOf(const CollectiveSpecs &specs, int32_t members, int32_t me) {
  int64_t bytes = 0;
  for (const CollectiveSpec &spec : specs)
    bytes += planNccl(spec, members, me, bytes).scratchBytes;
  return bytes;
}

} // namespace ax::rt::nccl
