//===- ExecutorTestSupport.h - Programs that run or do not ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_EXECUTORTESTSUPPORT_H
#define AX_TEST_EXECUTORTESTSUPPORT_H

#include "ProgramBuilder.h"

#include "ax/Support/Error.h"

#include "gtest/gtest.h"

namespace ax::rt {

inline std::unique_ptr<Executor> create(const ProgramBuilder &builder,
                                        ExecutorOptions options = {},
                                        DeviceOptions devices = {}) {
  auto executor = createExecutor(builder.program, options, devices);
  if (!executor) {
    ADD_FAILURE() << llvm::toString(executor.takeError());
    return nullptr;
  }
  return std::move(*executor);
}

inline std::string failureOf(llvm::Error error, ExitCode code) {
  ErrorDescription description = describeError(std::move(error));
  EXPECT_EQ(description.code, code) << description.message;
  return description.message;
}

} // namespace ax::rt

#endif // AX_TEST_EXECUTORTESTSUPPORT_H
