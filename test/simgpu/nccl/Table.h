//===- Table.h - Where ranks meet -------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file that all ranks of a communicator map, whatever processes of this host
// they are in. Each has a place there for what it brings to a collective, and
// one for messages to each other rank.
//
//===----------------------------------------------------------------------===//
#ifndef AX_TEST_SIMNCCL_TABLE_H
#define AX_TEST_SIMNCCL_TABLE_H

#include "Reduction.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace simnccl {

constexpr int mostRanks = 16;
/// Pages that nobody touches take no memory.
constexpr size_t placeBytes = size_t(1) << 26;

enum class Kind : int32_t { AllReduce, AllGather, ReduceScatter, Message };

/// A call, as all who take part have it.
struct Shape {
  Kind kind = Kind::AllReduce;
  int32_t type = ncclUint8, reduction = ncclSum;
  uint64_t count = 0;

  bool operator==(const Shape &o) const {
    return kind == o.kind && count == o.count && type == o.type &&
           reduction == o.reduction;
  }
  size_t getBytes() const {
    return count * bytesOf(static_cast<ncclDataType_t>(type));
  }
  /// `an all-reduce of 4 elements of type 7`.
  std::string describe() const;
};

/// What somebody brings, or sends, one after another: `numGiven` of them, of
/// which the last is there.
struct Place {
  std::atomic<uint64_t> numGiven{0};
  /// Of a collective: how many its owner has done; of messages: how many have
  /// been taken.
  std::atomic<uint64_t> numTaken{0};
  Shape shape;
};

/// What a rank says in splits of a communicator, one after another: `numGiven`
/// of them, of which the last is there; it has read `numTaken` of all ranks'.
struct Split {
  std::atomic<uint64_t> numGiven{0}, numTaken{0};
  int color = 0, key = 0;
};

class Table {
public:
  /// The table of an identity, which the first one makes; null where it cannot.
  static std::shared_ptr<Table> open(const ncclUniqueId &id, int size);
  ~Table();

  int getSize() const { return head->size; }
  /// Returns why not: another rank has it, or the table is of another size, or
  /// one is on the same card; empty: well. `card`: of all cards of the host.
  std::string join(int rank, uint64_t card);
  bool areAllThere() const { return head->numJoined == head->size; }

  Place &getCollective(int rank) { return head->collectives[rank]; }
  Place &getMessages(int from, int to) { return head->messages[from][to]; }
  Split &getSplit(int rank) { return head->splits[rank]; }
  unsigned char *getData(int rank) { return dataOf(rank); }
  unsigned char *getData(int from, int to) {
    return dataOf(mostRanks + from * mostRanks + to);
  }

private:
  struct Head {
    std::atomic<int> size{0}, numJoined{0};
    /// Of each rank; 0: it is not there yet.
    std::atomic<uint64_t> cards[mostRanks];
    Place collectives[mostRanks];
    Place messages[mostRanks][mostRanks];
    Split splits[mostRanks];
  };
  static constexpr size_t headBytes = size_t(1) << 20;
  static_assert(sizeof(Head) <= headBytes);
  static constexpr size_t allBytes =
      headBytes + placeBytes * (mostRanks + mostRanks * mostRanks);

  unsigned char *dataOf(int place) const {
    return reinterpret_cast<unsigned char *>(head) + headBytes +
           static_cast<size_t>(place) * placeBytes;
  }

  Head *head = nullptr;
  std::string path;
};

} // namespace simnccl

#endif // AX_TEST_SIMNCCL_TABLE_H
