//===- Meeting.cpp - What ranks do together -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Meeting.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

// Of plain numbers only; nothing of it is linked.
#include "ax/Support/Float16.h"

namespace simnccl {

std::string Shape::describe() const {
  static const char *const names[] = {"an all-reduce", "an all-gather",
                                      "a reduce-scatter", "a message"};
  return std::string(names[static_cast<size_t>(kind)]) + " of " +
         std::to_string(count) + " elements of type " + std::to_string(type);
}

size_t bytesOf(ncclDataType_t type) {
  switch (type) {
  case ncclInt8:
  case ncclUint8:
    return 1;
  case ncclFloat16:
  case ncclBfloat16:
    return 2;
  case ncclInt32:
  case ncclUint32:
  case ncclFloat32:
    return 4;
  case ncclInt64:
  case ncclUint64:
  case ncclFloat64:
    return 8;
  default:
    return 0;
  }
}

bool Meeting::arrive(size_t number, const unsigned char *from,
                     unsigned char *to) {
  Member &member = members[number];
  if (member.isHere)
    return false;
  member = {true, from, to};
  if (to && to != from && shape.kind != Kind::AllGather)
    std::memset(to, 0xee, shape.count * bytesOf(shape.type));
  return ++numHere == members.size();
}

template <typename T>
static T combine(T a, T b, ncclRedOp_t reduction) {
  if (reduction == ncclSum)
    return static_cast<T>(a + b);
  if constexpr (std::is_floating_point_v<T>)
    return reduction == ncclMax ? std::fmax(a, b) : std::fmin(a, b);
  else
    return reduction == ncclMax ? std::max(a, b) : std::min(a, b);
}

/// Combines `count` elements of `into` with those of `from`.
template <typename T>
static void combineAll(unsigned char *into, const unsigned char *from,
                       size_t count, ncclRedOp_t reduction) {
  for (size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, into + i * sizeof(T), sizeof(T));
    std::memcpy(&b, from + i * sizeof(T), sizeof(T));
    a = combine(a, b, reduction);
    std::memcpy(into + i * sizeof(T), &a, sizeof(T));
  }
}

template <float (*Widen)(uint16_t), uint16_t (*Narrow)(float)>
static void combineNarrow(unsigned char *into, const unsigned char *from,
                          size_t count, ncclRedOp_t reduction) {
  for (size_t i = 0; i < count; ++i) {
    uint16_t a, b;
    std::memcpy(&a, into + i * 2, 2);
    std::memcpy(&b, from + i * 2, 2);
    a = Narrow(combine(Widen(a), Widen(b), reduction));
    std::memcpy(into + i * 2, &a, 2);
  }
}

static void combineAll(ncclDataType_t type, unsigned char *into,
                       const unsigned char *from, size_t count,
                       ncclRedOp_t reduction) {
  switch (type) {
  case ncclInt8:
    return combineAll<int8_t>(into, from, count, reduction);
  case ncclUint8:
    return combineAll<uint8_t>(into, from, count, reduction);
  case ncclInt32:
    return combineAll<int32_t>(into, from, count, reduction);
  case ncclUint32:
    return combineAll<uint32_t>(into, from, count, reduction);
  case ncclInt64:
    return combineAll<int64_t>(into, from, count, reduction);
  case ncclUint64:
    return combineAll<uint64_t>(into, from, count, reduction);
  case ncclFloat32:
    return combineAll<float>(into, from, count, reduction);
  case ncclFloat64:
    return combineAll<double>(into, from, count, reduction);
  case ncclFloat16:
    return combineNarrow<ax::f16BitsToFloat, ax::floatToF16Bits>(
        into, from, count, reduction);
  case ncclBfloat16:
    return combineNarrow<ax::bf16BitsToFloat, ax::floatToBF16Bits>(
        into, from, count, reduction);
  default:
    return;
  }
}

std::vector<unsigned char> Meeting::reduce(size_t begin) const {
  size_t size = bytesOf(shape.type), offset = begin * size;
  const unsigned char *first = members.front().from + offset;
  std::vector<unsigned char> result(first, first + shape.count * size);
  for (size_t i = 1; i < members.size(); ++i)
    combineAll(shape.type, result.data(), members[i].from + offset,
               shape.count, shape.reduction);
  return result;
}

void Meeting::perform() {
  size_t bytes = shape.count * bytesOf(shape.type);
  // Results may overwrite sources: all are read before any is written.
  std::vector<std::vector<unsigned char>> results;
  for (size_t i = 0; i < members.size(); ++i)
    switch (shape.kind) {
    case Kind::AllReduce:
      results.push_back(i == 0 ? reduce(0) : results.front());
      break;
    case Kind::ReduceScatter:
      results.push_back(reduce(i * shape.count));
      break;
    case Kind::AllGather:
      results.emplace_back();
      for (const Member &member : members)
        results.back().insert(results.back().end(), member.from,
                              member.from + bytes);
      break;
    case Kind::Message:
      results.emplace_back();
      if (i == 1)
        results.back().assign(members[0].from, members[0].from + bytes);
      break;
    }
  for (size_t i = 0; i < members.size(); ++i)
    if (!results[i].empty())
      std::memcpy(members[i].to, results[i].data(), results[i].size());
  done = true;
}

} // namespace simnccl
