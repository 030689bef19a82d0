//===- CommunicatorSuite.h - What every communicator must do ----*- C++ -*-===//
//
// A backend's test program links CommunicatorSuite.cpp and instantiates
// CommunicatorSuite with itself.
//
//===----------------------------------------------------------------------===//
#ifndef AX_TEST_COMMUNICATORSUITE_H
#define AX_TEST_COMMUNICATORSUITE_H

#include "ax/Runtime/Communicator.h"

#include "gtest/gtest.h"

#include <chrono>
#include <functional>

namespace ax::rt {

class CommunicatorBackend {
public:
  virtual ~CommunicatorBackend() = default;
  virtual const char *getName() const = 0;
  /// Runs `body` as every one of `numRanks` ranks; returns when all have ended.
  virtual void run(int32_t numRanks, std::chrono::milliseconds timeout,
                   const std::function<void(Communicator &)> &body) = 0;
};

class CommunicatorSuite
    : public ::testing::TestWithParam<CommunicatorBackend *> {
protected:
  void run(int32_t numRanks, const std::function<void(Communicator &)> &body) {
    GetParam()->run(numRanks, std::chrono::seconds(60), body);
  }
};

} // namespace ax::rt

#endif // AX_TEST_COMMUNICATORSUITE_H
