//===- PreparedExchanges.h - What ranks are to do together ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Members of a group have to prepare the same operations in the same order, and
// to start them in one order. Where processes have programs of their own, a
// difference would hang in the first step, or mix up what is exchanged.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_PREPAREDEXCHANGES_H
#define AX_RUNTIME_PREPAREDEXCHANGES_H

#include "FlightExchange.h"

#include "ax/Runtime/World.h"

namespace ax::rt {

/// What a rank does with others, group by group.
class PreparedExchanges {
public:
  explicit PreparedExchanges(int32_t rank) : rank(rank) {}

  /// In the order in which they are prepared.
  void add(const FlightExchange &exchange);
  /// In the order in which a step starts them; each was added before.
  void addStart(const FlightExchange &exchange, int32_t microBatch);

  /// What all members of a group have alike.
  struct Group {
    const FlightGroup *group = nullptr;
    std::vector<std::string> operations;
    /// Which operation, and of which micro-batch.
    std::vector<std::pair<size_t, int32_t>> starts;

    /// Of transfers by one name, e.g. of two results of a node, each has its
    /// own order, but they have none among each other: equal here for all that
    /// sort alike.
    Group inOrder() const;
    uint64_t getKey() const;
    uint64_t getDigest() const;
    /// For people: what is prepared, and then what is started.
    std::vector<std::string> describe() const;
  };
  int32_t getRank() const { return rank; }
  const std::vector<Group> &getGroups() const { return groups; }

private:
  int32_t rank;
  std::vector<Group> groups;
  /// Where each is among them, and among their operations.
  std::map<const FlightGroup *, size_t> groupNumbers;
  std::map<const FlightExchange *, size_t> operationNumbers;
};

/// A Usage error in all processes where members of a group have not prepared
/// the same: which, and what is the first that differs. `mine`: of this
/// process's ranks. What goes to process 0 is a number for each group; what the
/// operations are is asked of two ranks that differ.
llvm::Error agreeOnExchanges(World &world,
                             llvm::ArrayRef<PreparedExchanges> mine);

} // namespace ax::rt

#endif // AX_RUNTIME_PREPAREDEXCHANGES_H
