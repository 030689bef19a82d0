//===- Meeting.h - What ranks do together -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMNCCL_MEETING_H
#define AX_TEST_SIMNCCL_MEETING_H

#include <cstdint>
#include <nccl.h>
#include <string>
#include <vector>

namespace simnccl {

enum class Kind { AllReduce, AllGather, ReduceScatter, Message };

/// A call, as all who take part have it.
struct Shape {
  Kind kind = Kind::AllReduce;
  size_t count = 0;
  ncclDataType_t type = ncclUint8;
  /// Where it reduces.
  ncclRedOp_t reduction = ncclSum;

  bool operator==(const Shape &o) const {
    return kind == o.kind && count == o.count && type == o.type &&
           reduction == o.reduction;
  }
  /// `an all-reduce of 4 elements of type 7`.
  std::string describe() const;
};

/// 0 for no type.
size_t bytesOf(ncclDataType_t type);

/// A collective, or a message: its data moves when all are there, each with its
/// stream. A message has two, its sender first.
class Meeting {
public:
  Meeting(Shape shape, size_t numMembers)
      : shape(shape), members(numMembers) {}

  const Shape &getShape() const { return shape; }
  /// One more is on its way. Returns whether now all are.
  bool announce() { return ++numComing == members.size(); }
  /// Returns whether now all are there, for the first time. What is to be
  /// written is rubbish from now on, until it is done.
  bool arrive(size_t member, const unsigned char *from, unsigned char *to);
  /// Moves the data of all. Sums are rounded to the type at each step from
  /// member to member, and a maximum or minimum forgets NaN.
  void perform();
  bool isDone() const { return done; }

private:
  struct Member {
    bool isHere = false;
    const unsigned char *from = nullptr;
    unsigned char *to = nullptr;
  };
  /// Elements [begin, begin + count) of all sources.
  std::vector<unsigned char> reduce(size_t begin) const;

  Shape shape;
  std::vector<Member> members;
  size_t numComing = 0, numHere = 0;
  bool done = false;
};

} // namespace simnccl

#endif // AX_TEST_SIMNCCL_MEETING_H
