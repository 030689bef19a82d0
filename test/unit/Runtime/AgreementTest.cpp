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
  // Whose it is says nothing where all have it.
  job.run([&](size_t process) {
    EXPECT_EQ(textOf(agree(*job.worlds[process], "bad",
                           makeError(ExitCode::BadInput, "no file"))),
              std::to_string(static_cast<int>(ExitCode::BadInput)) +
                  ": no file");
  });
  auto alone = makeLoneWorld();
  EXPECT_EQ(llvm::toString(agree(*alone, "bad",
                                 makeError(ExitCode::BadInput, "as it is"))),
            "as it is");
}

TEST(AgreementTest, FlagsAndTextsOfAll) {
  ThreadWorlds job(3);
  job.run([&](size_t process) {
    World &world = *job.worlds[process];
    EXPECT_EQ(llvm::cantFail(agreeOnFlags(world, "flag", process == 1,
                                          llvm::Error::success())),
              (std::vector<bool>{false, true, false}));
    EXPECT_EQ(llvm::cantFail(agreeOnTexts(world, "text",
                                          std::string(process, 'x') + "\n")),
              (std::vector<std::string>{"\n", "x\n", "xx\n"}));
  });
}

TEST(AgreementTest, LongValuesGoInPieces) {
  ThreadWorlds job(3);
  job.run([&](size_t process) {
    std::string own(10 * process, static_cast<char>('a' + process));
    auto all = llvm::cantFail(gatherLong(*job.worlds[process], "long", own,
                                         /*pieceBytes=*/7));
    if (process == 0)
      EXPECT_EQ(all, (std::vector<std::string>{"", std::string(10, 'b'),
                                               std::string(20, 'c')}));
    else
      EXPECT_TRUE(all.empty());
  });
}

TEST(AgreementTest, SizesThatNobodyHasAreRefused) {
  for (const char *size : {"1099511627777", "-1", "many", ""}) {
    ThreadWorlds job(2);
    job.run([&](size_t process) {
      World &world = *job.worlds[process];
      if (process == 1)
        return (void)llvm::cantFail(
            agreeOnTexts(world, "long", std::string(size)));
      EXPECT_EQ(textOf(gatherLong(world, "long", "own", 7).takeError()),
                std::to_string(static_cast<int>(ExitCode::RunFailed)) +
                    ": another process has sent what it cannot have meant");
    });
  }
}

TEST(AgreementTest, WhoHasAnotherValueIsNamed) {
  ThreadWorlds job(3);
  job.run([&](size_t process) {
    World &world = *job.worlds[process];
    std::vector<std::pair<std::string, std::string>> values{{"plan", "a b"},
                                                            {"seed", ""}};
    EXPECT_FALSE(bool(agreeOnValues(world, "same", values)));
    if (process == 2)
      values[1].second = "7";
    EXPECT_EQ(textOf(agreeOnValues(world, "other", values)),
              std::to_string(static_cast<int>(ExitCode::Usage)) +
                  ": rank 2 on host 'host2' has another seed than rank 0 on "
                  "host 'host0': 7 instead of ");
    if (process == 1)
      values.pop_back();
    EXPECT_NE(textOf(agreeOnValues(world, "fewer", values))
                  .find("rank 1 on host 'host1' has another seed than rank 0 "
                        "on host 'host0': nothing instead of "),
              std::string::npos);
  });
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
