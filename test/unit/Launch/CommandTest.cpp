//===- CommandTest.cpp - Command lines that run axrun ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "axlaunch/Command.h"
#include "axlaunch/PlanRanks.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace ax;

static std::vector<std::string> split(llvm::StringRef text) {
  std::vector<std::string> words;
  for (llvm::StringRef word : llvm::split(text, ' '))
    words.push_back(word.str());
  return words;
}

static Command parse(llvm::StringRef text) {
  return llvm::cantFail(Command::parse(split(text)));
}

static std::string join(const Command &command) {
  return llvm::join(command.getWords(), " ");
}

static std::string faultOf(llvm::Error error) {
  ErrorDescription description = describeError(std::move(error));
  EXPECT_EQ(description.code, ExitCode::Usage);
  return description.message;
}

TEST(Command, IsTakenApart) {
  Command command =
      parse("/usr/bin/mpirun -np 8 bin/axrun --data d.npz plan.mlir --steps=9 "
            "--save=run --log log --resume old");
  EXPECT_EQ(command.getPlan(), "plan.mlir");
  EXPECT_EQ(command.getSave(), "run");
  EXPECT_EQ(command.getLog(), "log");
  EXPECT_EQ(command.getResume(), "old");
  EXPECT_TRUE(command.hasLauncher());
  Command alone = parse("axrun-core --save run --no-shuffle plan.axc");
  EXPECT_EQ(alone.getPlan(), "plan.axc");
  EXPECT_EQ(alone.getSave(), "run");
  EXPECT_EQ(alone.getLog(), "");
  EXPECT_FALSE(alone.hasLauncher());
}

TEST(Command, NeedsAxrunAPlanAndAFolder) {
  auto fault = [](llvm::StringRef text) {
    return faultOf(Command::parse(split(text)).takeError());
  };
  EXPECT_EQ(fault("mpirun -np 2 hostname"),
            "the command does not run axrun, which is what can go on from a "
            "checkpoint");
  EXPECT_EQ(fault("axrun --save run"), "the command gives axrun no plan");
  EXPECT_EQ(fault("axrun plan.mlir --save-every=2 --steps 3"),
            "the command has no --save=DIR: every restart would begin anew");
}

TEST(Command, GoesOn) {
  EXPECT_EQ(join(parse("mpirun -np 2 axrun plan.mlir --save run --steps=3")
                     .resumedFrom("run")),
            "mpirun -np 2 axrun --resume=run plan.mlir --save run --steps=3");
  // What it began with does not count any more, and axrun would refuse it.
  Command command = parse("axrun --resume old --random-weights=1 --weights=w "
                          "--tied a=b --tied=c=d p.mlir --leave-out x --save "
                          "run --weights w")
                        .resumedFrom("run");
  EXPECT_EQ(join(command), "axrun --resume=run p.mlir --save run");
  EXPECT_EQ(command.getPlan(), "p.mlir");
  EXPECT_EQ(command.getResume(), "run");
  EXPECT_EQ(join(command.resumedFrom("run")), join(command));
  // Values that look like flags are none.
  EXPECT_EQ(
      join(parse("axrun p.mlir --log --resume --save run").resumedFrom("run")),
      "axrun --resume=run p.mlir --log --resume --save run");
}

TEST(Command, GetsFewerRanks) {
  auto fewer = [](llvm::StringRef text) {
    return join(llvm::cantFail(parse(text).withPlan("4.mlir", 4)));
  };
  for (llvm::StringRef count :
       {"-np ", "--np ", "-n ", "--n ", "--ntasks ", "--ntasks=", "-n"}) {
    std::string before = ("srun " + count + "8 axrun p.mlir --save r").str(),
                after = ("srun " + count + "4 axrun 4.mlir --save r").str();
    EXPECT_EQ(fewer(before), after);
  }
  // Nothing else is a number of ranks.
  EXPECT_EQ(fewer("nice -n 10 mpirun --nooversubscribe -np 8 axrun "
                  "--threads-per-rank 8 p.mlir --save r"),
            "nice -n 10 mpirun --nooversubscribe -np 4 axrun "
            "--threads-per-rank 8 4.mlir --save r");
  EXPECT_EQ(fewer("axrun p.mlir --save r"), "axrun 4.mlir --save r");
  Command command =
      llvm::cantFail(parse("mpirun -np 8 axrun p.mlir --save r --weights w")
                         .resumedFrom("r")
                         .withPlan("4.mlir", 4));
  EXPECT_EQ(join(command), "mpirun -np 4 axrun --resume=r 4.mlir --save r");
  EXPECT_EQ(command.getPlan(), "4.mlir");
  EXPECT_EQ(faultOf(parse("mpirun --npernode 4 axrun p.mlir --save r")
                        .withPlan("4.mlir", 4)
                        .takeError()),
            "the command does not say in front of axrun how many ranks there "
            "are (-np N, -n N or --ntasks=N), which --fallback changes");
}

static llvm::Expected<int64_t> ranksOfText(llvm::StringRef text) {
  int file;
  llvm::SmallString<128> path;
  EXPECT_FALSE(
      llvm::sys::fs::createTemporaryFile("axlaunch", "mlir", file, path));
  llvm::FileRemover remover(path);
  llvm::raw_fd_ostream(file, /*shouldClose=*/true) << text;
  return readPlanRanks(path.str().str());
}

TEST(PlanRanks, AreThoseOfTheMesh) {
  auto ranks = [](llvm::StringRef mesh) {
    return llvm::cantFail(
        ranksOfText(("ax.plan @p {\n  // ax.mesh [row = 9]\n" + mesh +
                     "\n  ax.mesh [row = 7]\n}\n")
                        .str()));
  };
  EXPECT_EQ(
      ranks("  ax.mesh [pipe = 2, data = 3, col = 1] in time [micro = 5]"), 6);
  EXPECT_EQ(ranks("ax.mesh [row = 1]"), 1);
  for (const char *text :
       {"", "no plan\n", "ax.mesh []", "ax.mesh [row]", "ax.mesh [row = 0]",
        "ax.mesh [row = 5000000000, col = 5000000000]"})
    EXPECT_NE(describeError(ranksOfText(text).takeError())
                  .message.find("has no mesh of ranks, which every plan has"),
              std::string::npos)
        << text;
  auto missing = readPlanRanks("no such file");
  EXPECT_EQ(describeError(missing.takeError()).code, ExitCode::InputOutput);
}
