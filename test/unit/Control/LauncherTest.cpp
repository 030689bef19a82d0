//===- LauncherTest.cpp - What launchers say in the environment -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Launcher.h"
#include "ax/Support/Error.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <map>

namespace ax::rt {
namespace {

using testing::HasSubstr;

/// An environment of these variables and no others.
class Variables {
public:
  const char *operator()(const char *name) const {
    auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  }
  Variables with(const std::string &name, const std::string &value) const {
    Variables changed = *this;
    changed.values[name] = value;
    return changed;
  }
  Variables without(const std::string &name) const {
    Variables changed = *this;
    changed.values.erase(name);
    return changed;
  }

  std::map<std::string, std::string> values;
};

Variables make(std::map<std::string, std::string> values) {
  Variables made;
  made.values = std::move(values);
  return made;
}

const Variables torchrun = make({{"RANK", "5"},
                                 {"WORLD_SIZE", "8"},
                                 {"LOCAL_RANK", "1"},
                                 {"LOCAL_WORLD_SIZE", "4"},
                                 {"MASTER_ADDR", "node0"},
                                 {"MASTER_PORT", "29400"},
                                 {"TORCHELASTIC_RUN_ID", "none"}});

const Variables srun = make({{"SLURM_PROCID", "3"},
                             {"SLURM_STEP_NUM_TASKS", "4"},
                             {"SLURM_LOCALID", "1"},
                             {"SLURM_STEP_NODELIST", "node[017-018,020],big1"},
                             {"SLURM_JOB_ID", "4711"},
                             {"SLURM_STEP_ID", "2"}});

// A job of one process has a command line like any other.
TEST(LauncherTest, LaunchedIsAlsoWhoIsAlone) {
  EXPECT_FALSE(isLaunched(make({})));
  EXPECT_FALSE(isLaunched(make({{"RANK", "1"}})));
  EXPECT_TRUE(isLaunched(make({{"OMPI_COMM_WORLD_SIZE", "1"}})));
  EXPECT_TRUE(isLaunched(torchrun));
  EXPECT_TRUE(isLaunched(torchrun.with("RANK", "0").with("WORLD_SIZE", "1")));
  EXPECT_TRUE(isLaunched(srun.with("SLURM_STEP_NUM_TASKS", "1")));
}

std::string faultOf(const Variables &variables, llvm::StringRef control = "") {
  auto meeting = readMeeting(control, variables);
  if (meeting)
    return "";
  ErrorDescription text = describeError(meeting.takeError());
  EXPECT_EQ(text.code, ExitCode::Usage);
  return text.message;
}

TEST(LauncherTest, KnowsWhoHasStartedAProcess) {
  EXPECT_EQ(findLauncher(make({})), Launcher::None);
  EXPECT_EQ(findLauncher(torchrun), Launcher::Variables);
  EXPECT_EQ(findLauncher(srun), Launcher::Variables);
  EXPECT_EQ(findLauncher(make({{"OMPI_COMM_WORLD_SIZE", "2"}})), Launcher::Mpi);
  EXPECT_EQ(findLauncher(srun.with("PMIX_RANK", "3")), Launcher::Mpi);
  EXPECT_EQ(findLauncher(make({{"PMI_RANK", "0"}})), Launcher::Mpi);
  // mpirun's win; under srun with a PMI, torchrun's do.
  EXPECT_EQ(findLauncher(torchrun.with("OMPI_COMM_WORLD_SIZE", "2")),
            Launcher::Mpi);
  EXPECT_EQ(findLauncher(torchrun.with("PMIX_RANK", "0")), Launcher::Variables);
  EXPECT_EQ(findLauncher(
                torchrun.with("PMIX_RANK", "0").without("TORCHELASTIC_RUN_ID")),
            Launcher::Mpi);
}

TEST(LauncherTest, WhoIsAloneWaitsForNobody) {
  for (const char *name : {"RANK", "WORLD_SIZE", "MASTER_ADDR"}) {
    EXPECT_EQ(findLauncher(torchrun.without(name)), Launcher::None) << name;
    EXPECT_EQ(findLauncher(torchrun.with(name, "")), Launcher::None) << name;
  }
  EXPECT_EQ(findLauncher(torchrun.with("WORLD_SIZE", "1").with("RANK", "0")),
            Launcher::None);
  EXPECT_EQ(findLauncher(srun.with("SLURM_STEP_NUM_TASKS", "1")),
            Launcher::None);
  // A batch script is no step, and has some of a step's variables.
  EXPECT_EQ(findLauncher(make({{"SLURM_PROCID", "0"},
                               {"SLURM_NTASKS", "4"},
                               {"SLURM_JOB_ID", "7"}})),
            Launcher::None);
  EXPECT_EQ(findLauncher(make({{"OMPI_COMM_WORLD_SIZE", "1"}})),
            Launcher::None);
  EXPECT_EQ(findLauncher(make({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}})),
            Launcher::None);
}

TEST(LauncherTest, KnowsWhoSpeaks) {
  EXPECT_TRUE(isFirstOfLauncher(make({})));
  EXPECT_TRUE(isFirstOfLauncher(make({{"RANK", "3"}})));
  EXPECT_FALSE(isFirstOfLauncher(torchrun));
  EXPECT_TRUE(isFirstOfLauncher(torchrun.with("RANK", "0")));
  EXPECT_FALSE(isFirstOfLauncher(srun));
  EXPECT_TRUE(isFirstOfLauncher(srun.with("SLURM_PROCID", "0")));
  EXPECT_FALSE(isFirstOfLauncher(srun.with("PMIX_RANK", "1")));
  EXPECT_TRUE(isFirstOfLauncher(
      make({{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}})));
  // Nobody else has its fault.
  EXPECT_TRUE(isFirstOfLauncher(torchrun.with("RANK", "9")));
  EXPECT_TRUE(isFirstOfLauncher(torchrun.with("RANK", "x")));
  EXPECT_FALSE(isFirstOfLauncher(torchrun.with("WORLD_SIZE", "x")));
}

TEST(LauncherTest, ReadsWhatTorchrunSays) {
  Meeting meeting = llvm::cantFail(readMeeting("", torchrun));
  EXPECT_EQ(meeting.place.process, 5);
  EXPECT_EQ(meeting.place.numProcesses, 8);
  EXPECT_EQ(meeting.place.indexOnHost, 1);
  EXPECT_EQ(meeting.place.numOnHost, 4);
  EXPECT_FALSE(meeting.place.host.empty());
  EXPECT_EQ(meeting.host, "node0");
  EXPECT_EQ(meeting.port, 29401);
  EXPECT_EQ(meeting.address, ":29401");
  EXPECT_EQ(meeting.key.size(), 32u);
  EXPECT_EQ(meeting.source, "RANK=5 and WORLD_SIZE=8");
}

TEST(LauncherTest, ReadsWhatSrunSays) {
  Meeting meeting = llvm::cantFail(readMeeting("", srun));
  EXPECT_EQ(meeting.place.process, 3);
  EXPECT_EQ(meeting.place.numProcesses, 4);
  EXPECT_EQ(meeting.place.indexOnHost, 1);
  EXPECT_EQ(meeting.place.numOnHost, 0);
  EXPECT_EQ(meeting.host, "node017");
  EXPECT_GE(meeting.port, 15000);
  EXPECT_LT(meeting.port, 30000);
  EXPECT_NE(
      llvm::cantFail(readMeeting("", srun.with("SLURM_STEP_ID", "3"))).port,
      meeting.port);
  Meeting other = llvm::cantFail(readMeeting(
      "", srun.with("MASTER_ADDR", "10.0.0.7").with("MASTER_PORT", "99")));
  EXPECT_EQ(other.host, "10.0.0.7");
  EXPECT_EQ(other.port, 100);
}

TEST(LauncherTest, ListensWhereAllReachIt) {
  auto addressOf = [](const std::string &host, llvm::StringRef control = "") {
    return llvm::cantFail(
               readMeeting(control, torchrun.with("MASTER_ADDR", host)))
        .address;
  };
  EXPECT_EQ(addressOf("localhost"), "localhost:29401");
  EXPECT_EQ(addressOf("127.0.0.1"), "127.0.0.1:29401");
  EXPECT_EQ(addressOf("::1"), "[::1]:29401");
  EXPECT_EQ(addressOf("10.0.0.1"), ":29401");
  EXPECT_EQ(addressOf("fd00::1"), "[::]:29401");
  EXPECT_EQ(addressOf("node0", "10.0.0.1:77"), "10.0.0.1:77");
  EXPECT_EQ(addressOf("node0", "10.0.0.1"), "10.0.0.1:29401");
  EXPECT_EQ(addressOf("node0", ":77"), ":77");
  EXPECT_EQ(addressOf("node0", ":0"), ":29401");
}

TEST(LauncherTest, TheKeyIsOfTheJobOrASecret) {
  auto keyOf = [](const Variables &variables) {
    return llvm::cantFail(readMeeting("", variables)).key;
  };
  EXPECT_EQ(keyOf(torchrun), keyOf(torchrun.with("RANK", "2")));
  EXPECT_NE(keyOf(torchrun), keyOf(torchrun.with("TORCHELASTIC_RUN_ID", "b")));
  // The srun that torchrun runs under may have another step on each host.
  EXPECT_EQ(keyOf(torchrun), keyOf(torchrun.with("SLURM_STEP_ID", "1")));
  EXPECT_NE(keyOf(srun), keyOf(srun.with("SLURM_JOB_ID", "4712")));
  EXPECT_NE(keyOf(srun), keyOf(srun.with("SLURM_STEP_ID", "3")));
  std::string secret = keyOf(torchrun.with("AXRUN_KEY", "secret"));
  EXPECT_NE(secret, keyOf(torchrun));
  EXPECT_NE(secret, keyOf(torchrun.with("AXRUN_KEY", "secret2")));
  EXPECT_EQ(secret.size(), 32u);
}

TEST(LauncherTest, SaysWhichVariableIsWrong) {
  EXPECT_EQ(faultOf(torchrun.with("WORLD_SIZE", "many")),
            "WORLD_SIZE=many in the environment: expected a number from 1 to "
            "1048576");
  EXPECT_THAT(faultOf(torchrun.with("WORLD_SIZE", "0")),
              HasSubstr("WORLD_SIZE=0 in the environment: "));
  for (const char *rank : {"8", "-1", "x", "5.5"})
    EXPECT_EQ(faultOf(torchrun.with("RANK", rank)),
              std::string("RANK=") + rank +
                  " in the environment: expected a number from 0 to 7, as "
                  "WORLD_SIZE is 8");
  EXPECT_EQ(faultOf(torchrun.with("LOCAL_RANK", "4")),
            "LOCAL_RANK=4 in the environment: expected a number from 0 to 3");
  EXPECT_EQ(faultOf(torchrun.with("LOCAL_WORLD_SIZE", "9")),
            "LOCAL_WORLD_SIZE=9 in the environment: expected a number from 1 "
            "to 8");
  EXPECT_EQ(faultOf(torchrun.with("MASTER_PORT", "65535")),
            "MASTER_PORT=65535 in the environment: expected a number from 1 to "
            "65534");
  EXPECT_EQ(faultOf(srun.with("SLURM_PROCID", "4")),
            "SLURM_PROCID=4 in the environment: expected a number from 0 to 3, "
            "as SLURM_STEP_NUM_TASKS is 4");
}

TEST(LauncherTest, SaysWhatToSet) {
  EXPECT_EQ(faultOf(torchrun.without("MASTER_PORT")),
            "8 processes were started, and nothing says by which port process "
            "0 is found: set MASTER_PORT to the one below it, or give "
            "--control HOST:PORT");
  EXPECT_EQ(faultOf(torchrun.without("MASTER_PORT"), ":29401"), "");
  EXPECT_EQ(faultOf(srun.without("SLURM_STEP_NODELIST")),
            "4 processes were started, and nothing says where process 0 is: "
            "set MASTER_ADDR to its host, or give --control HOST:PORT");
  EXPECT_EQ(faultOf(srun.without("SLURM_STEP_NODELIST"), "node0"), "");
  EXPECT_EQ(faultOf(torchrun, "node0:http"),
            "--control=node0:http: a port is a number below 65536");
}

TEST(LauncherTest, ReadsListsOfNodes) {
  EXPECT_EQ(firstOfNodes(""), "");
  EXPECT_EQ(firstOfNodes("a"), "a");
  EXPECT_EQ(firstOfNodes("a,b"), "a");
  EXPECT_EQ(firstOfNodes("n[3,5]"), "n3");
  EXPECT_EQ(firstOfNodes("rack[0-3]node[08-11]x,b"), "rack0node08x");
}

TEST(LauncherTest, PlacesAreCountedByHost) {
  ProcessPlace place{3, 4, "b", -1, 0};
  placeAmong(place, {"a", "b", "a", "b"});
  EXPECT_EQ(place.indexOnHost, 1);
  EXPECT_EQ(place.numOnHost, 2);
  // Each in a box with a name of its own, and on the same cards.
  place = {3, 4, "d", 3, 0};
  placeAmong(place, {"a", "b", "c", "d"});
  EXPECT_EQ(place.indexOnHost, 3);
  EXPECT_EQ(place.numOnHost, 4);
  place = {3, 4, "b", 1, 4};
  placeAmong(place, {"a", "b", "a", "b"});
  EXPECT_EQ(place.numOnHost, 4);
}

} // namespace
} // namespace ax::rt
