//===- CommunicatorSuite.h - What every communicator must do ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A backend's test program links CommunicatorSuite.cpp and
// CommunicatorFailures.cpp, and instantiates CommunicatorSuite with itself.
//
//===----------------------------------------------------------------------===//
#ifndef AX_TEST_COMMUNICATORSUITE_H
#define AX_TEST_COMMUNICATORSUITE_H

#include "ax/Runtime/Communicator.h"
#include "ax/Support/HostTensor.h"

#include "gtest/gtest.h"

#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

namespace ax::rt {

class CommunicatorBackend {
public:
  virtual ~CommunicatorBackend() = default;
  virtual const char *getName() const = 0;
  /// Runs `body` as every one of `numRanks` ranks; returns when all have ended.
  virtual void run(int32_t numRanks, std::chrono::milliseconds timeout,
                   const std::function<void(Communicator &)> &body) = 0;
  /// Whether sums of narrow floats are rounded once.
  virtual bool roundsOnce() const { return true; }
  /// Whether receives are found by their tag, and may be started ahead of what
  /// comes before them; else messages are received in the order in which they
  /// are sent.
  virtual bool findsByTag() const { return true; }
};

class CommunicatorSuite
    : public ::testing::TestWithParam<CommunicatorBackend *> {
protected:
  void run(int32_t numRanks, const std::function<void(Communicator &)> &body) {
    GetParam()->run(numRanks, std::chrono::seconds(60), body);
  }
};

inline std::vector<int32_t> allRanks(const Communicator &comm) {
  std::vector<int32_t> ranks(static_cast<size_t>(comm.getSize()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

inline std::shared_ptr<Group> makeGroup(Communicator &comm,
                                        std::vector<int32_t> ranks) {
  return llvm::cantFail(comm.createGroup(ranks));
}

inline std::unique_ptr<Operation> prepare(Communicator &comm,
                                          const std::shared_ptr<Group> &group,
                                          const CollectiveSpec &spec) {
  return llvm::cantFail(comm.prepare({spec}, group, "op"));
}

inline CollectiveSpec
allReduce(DType type, Shape shape,
          sharding::ReduceKind kind = sharding::ReduceKind::Sum) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::AllReduce;
  spec.dtype = type;
  spec.shape = std::move(shape);
  spec.reduce = kind;
  return spec;
}

} // namespace ax::rt

#endif // AX_TEST_COMMUNICATORSUITE_H
