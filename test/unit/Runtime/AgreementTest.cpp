//===- AgreementTest.cpp - What all processes fail with -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Agreement.h"

#include "ThreadWorlds.h"

#include "gtest/gtest.h"

namespace ax::rt {
namespace {

std::string textOf(llvm::Error error) {
  ErrorDescription description = describeError(std::move(error));
  return std::to_string(static_cast<int>(description.code)) + ": " +
         description.message;
}

TEST(AgreementTest, TheFirstErrorIsThatOfAll) {
  ThreadWorlds job(4);
  job.run([&](size_t process) {
    World &world = *job.worlds[process];
    EXPECT_FALSE(bool(agree(world, "good", llvm::Error::success())));
    llvm::Error mine = llvm::Error::success();
    if (process == 1 || process == 2)
      mine = makeError(ExitCode::BadInput, "no " + llvm::Twine(process));
    EXPECT_EQ(textOf(agree(world, "bad", std::move(mine))),
              std::to_string(static_cast<int>(ExitCode::BadInput)) +
                  ": rank 1 on host 'host1': no 1");
  });
  auto alone = makeLoneWorld();
  EXPECT_EQ(llvm::toString(agree(*alone, "bad",
                                 makeError(ExitCode::BadInput, "as it is"))),
            "as it is");
}

TEST(AgreementTest, WhatTheFirstHasAllGet) {
  ThreadWorlds job(3);
  job.run([&](size_t process) {
    World &world = *job.worlds[process];
    auto fn = [&]() -> llvm::Expected<std::string> {
      EXPECT_EQ(process, 0u);
      return "a b";
    };
    EXPECT_EQ(llvm::cantFail(share(world, "name", fn)), "a b");
    auto failing = [&]() -> llvm::Expected<std::string> {
      return makeError(ExitCode::InputOutput, "cannot");
    };
    EXPECT_EQ(textOf(share(world, "name", failing).takeError()),
              std::to_string(static_cast<int>(ExitCode::InputOutput)) +
                  ": cannot");
  });
}

TEST(AgreementTest, TextsOfOthers) {
  EXPECT_EQ(llvm::cantFail(decode(encode(""))), "");
  EXPECT_EQ(llvm::cantFail(decode(encode("two words"))), "two words");
  for (const char *text : {"", "x", "-1 x", "1x", " "})
    EXPECT_EQ(llvm::toString(decode(text).takeError()),
              "another process has sent what it cannot have meant");
}

} // namespace
} // namespace ax::rt
