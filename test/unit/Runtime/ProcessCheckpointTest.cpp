//===- ProcessCheckpointTest.cpp - Checkpoints by many processes ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each process is a thread, with an executor that has one rank.
//
//===----------------------------------------------------------------------===//
#include "CheckpointWriter.h"
#include "ExecutorTestSupport.h"
#include "StateStore.h"
#include "StepProgram.h"
#include "ThreadCheckpoints.h"

#include "ax/Runtime/CheckpointFolder.h"
#include "ax/Support/MappedFile.h"

#include "llvm/Support/FileSystem.h"
#include "gmock/gmock.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/syscall.h>
#include <unistd.h>

using namespace ax;
using namespace ax::rt;

/// What syncing a file fails with in this thread; 0: it works.
static thread_local int syncFault = 0;

/// The folder that cannot be synced, if there is one; once that was tried,
/// folders cannot be exchanged, either.
static std::string unsynced;
static bool wasUnsynced = false;

static bool isUnsynced(int file) {
  llvm::SmallString<128> path;
  return !unsynced.empty() &&
         !llvm::sys::fs::real_path("/proc/self/fd/" + llvm::Twine(file),
                                   path) &&
         path == unsynced;
}

extern "C" int fsync(int file) {
  if (isUnsynced(file))
    wasUnsynced = true;
  else if (syncFault == 0)
    return static_cast<int>(::syscall(SYS_fsync, file));
  errno = syncFault ? syncFault : EIO;
  return -1;
}

extern "C" int renameat2(int from, const char *source, int to,
                         const char *destination, unsigned flags) noexcept {
  if (!wasUnsynced || !flags)
    return static_cast<int>(
        ::syscall(SYS_renameat2, from, source, to, destination, flags));
  errno = EIO;
  return -1;
}

namespace {

namespace files = std::filesystem;
using testing::HasSubstr;

/// Everything in a folder, by name.
std::map<std::string, std::string> contentOf(const std::string &folder) {
  std::map<std::string, std::string> content;
  for (const auto &entry : files::recursive_directory_iterator(folder)) {
    std::ostringstream text;
    if (entry.is_regular_file())
      text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    content[files::relative(entry.path(), folder).string()] = text.str();
  }
  return content;
}

class ProcessCheckpointTest : public ::testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> made;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("processes", made));
    folder = made.str().str();
  }
  void TearDown() override { files::remove_all(folder); }

  std::string in(const std::string &name) const { return folder + "/" + name; }

  /// Makes `steps` steps with all processes, and saves; gives what each got.
  static std::vector<std::string> save(const StepProgram &step, int steps,
                                       const std::string &to, int failing = -1,
                                       int64_t number = 7) {
    ThreadWorlds job(step.numRanks());
    auto executors = takeAll(job.create(step.builder.program));
    std::vector<std::string> got(executors.size());
    job.run([&](size_t process) {
      for (int i = 0; i < steps; ++i)
        llvm::cantFail(executors[process]->run({StepProgram::makeInput(i)}));
      auto opened = llvm::cantFail(
          CheckpointFolder::open(to, nullptr, job.worlds[process]));
      syncFault = static_cast<int>(process) == failing ? ENOSPC : 0;
      CheckpointOptions options;
      options.step = number;
      auto path = opened.write(*executors[process], options);
      syncFault = 0;
      got[process] = path ? *path : llvm::toString(path.takeError());
      // The folder stays usable.
      if (failing >= 0) {
        options.step = number + 1;
        EXPECT_EQ(llvm::cantFail(opened.write(*executors[process], options)),
                  to + "/step-" + std::to_string(number + 1));
      }
    });
    return got;
  }

  static void saveAlone(const StepProgram &step, int steps,
                        const std::string &to) {
    auto executor = create(step.builder);
    for (int i = 0; i < steps; ++i)
      llvm::cantFail(executor->run({StepProgram::makeInput(i)}));
    auto opened = llvm::cantFail(CheckpointFolder::open(to));
    CheckpointOptions options;
    options.step = 7;
    llvm::cantFail(opened.write(*executor, options));
  }

  std::string folder;
};

/// The program with its states from a checkpoint.
std::shared_ptr<Program> resume(const StepProgram &step,
                                const std::string &path,
                                const CheckpointReading &reading) {
  auto program = std::make_shared<Program>(*step.builder.program);
  Checkpoint checkpoint = llvm::cantFail(readCheckpoint(path, reading));
  for (auto &[name, tensor] : checkpoint.tensors)
    for (State &state : program->states)
      if (state.name == name)
        state.give(std::move(tensor));
  return program;
}

TEST_F(ProcessCheckpointTest, IsThatOfThreads) {
  for (bool isPipeline : {false, true}) {
    StepProgram step(isPipeline);
    std::string name = isPipeline ? "pipeline" : "flat";
    for (const std::string &path : save(step, 3, in(name)))
      EXPECT_EQ(path, in(name) + "/step-7");
    saveAlone(step, 3, in(name + "-alone"));
    EXPECT_EQ(contentOf(in(name)), contentOf(in(name + "-alone")));
  }
}

TEST_F(ProcessCheckpointTest, AnyLayoutLoadsAnyOther) {
  for (bool wasPipeline : {false, true})
    for (int64_t before : {1, 2, 4}) {
      StepProgram first(wasPipeline, before);
      std::string path = in(std::to_string(before) + (wasPipeline ? "p" : "f"));
      save(first, 2, path);
      auto wanted = create(first.builder);
      for (int i = 0; i < 2; ++i)
        llvm::cantFail(wanted->run({StepProgram::makeInput(i)}));
      for (int64_t now : {1, 2, 4}) {
        StepProgram next(!wasPipeline, now);
        ThreadWorlds job(next.numRanks());
        std::vector<std::shared_ptr<Program>> programs(job.worlds.size());
        job.run([&](size_t process) {
          programs[process] = resume(
              next, path, readingOf(*next.builder.program, job, process));
        });
        auto executors = takeAll(job.create(programs));
        auto threads = llvm::cantFail(createExecutor(resume(next, path, {})));
        for (int32_t state : {next.weights, next.moment}) {
          HostTensor whole = llvm::cantFail(wanted->readState(state));
          EXPECT_TRUE(
              whole.isIdentical(llvm::cantFail(threads->readState(state))));
          for (const HeldPart &part : threads->getParts(state)) {
            Executor &holder = *executors[static_cast<size_t>(part.rank)];
            EXPECT_TRUE(llvm::cantFail(holder.readPart(state, part))
                            .isIdentical(llvm::cantFail(
                                threads->readPart(state, part))));
          }
        }
      }
    }
}

TEST_F(ProcessCheckpointTest, WhatOneCannotWriteIsNone) {
  StepProgram step(false);
  save(step, 1, in("run"));
  auto before = contentOf(in("run"));
  for (int failing : {0, 1}) {
    std::string says = "No space left";
    for (const std::string &message :
         save(step, 2, in("run"), failing, 20 + 2 * failing)) {
      EXPECT_THAT(message, HasSubstr(says));
      EXPECT_THAT(message,
                  HasSubstr("rank " + std::to_string(failing) +
                            " on host 'host" + std::to_string(failing) + "'"));
    }
    EXPECT_FALSE(
        files::exists(in("run/step-" + std::to_string(20 + 2 * failing))));
    for (const auto &[name, content] : contentOf(in("run")))
      EXPECT_EQ(name.find("unfinished"), std::string::npos) << name;
  }
  EXPECT_EQ(contentOf(in("run")).count("step-21"), 1u);
}

TEST_F(ProcessCheckpointTest, WhatIsReplacedStaysWhereNothingIsCertain) {
  StepProgram step(false);
  auto executor = create(step.builder);
  std::string to = files::canonical(folder) / "run";
  auto save = [&](int64_t epoch) {
    auto opened = llvm::cantFail(CheckpointFolder::open(to));
    CheckpointOptions options;
    options.step = 7;
    options.progress["epoch"] = epoch;
    return opened.write(*executor, options);
  };
  auto epochOf = [&](const std::string &name) -> int64_t {
    auto found = llvm::cantFail(readCheckpoint(to + "/" + name, {}));
    return *found.progress.getInteger("epoch");
  };
  llvm::cantFail(save(1));
  unsynced = to;
  auto failed = save(2);
  unsynced.clear();
  wasUnsynced = false;
  ASSERT_FALSE(bool(failed));
  EXPECT_THAT(failureOf(failed.takeError(), ExitCode::InputOutput),
              HasSubstr("; the checkpoint that was there is '" + to +
                        "/before-step-7' now"));
  EXPECT_EQ(epochOf("before-step-7"), 1);
  EXPECT_EQ(epochOf("step-7"), 2);
  // Nor does the next run remove it.
  llvm::cantFail(save(3));
  EXPECT_EQ(epochOf("before-step-7"), 1);
}

/// Changes the last byte of a file.
void damage(const std::string &path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  int last = file.peek();
  file.seekp(-1, std::ios::end);
  file.put(static_cast<char>(last ^ 1));
}

TEST_F(ProcessCheckpointTest, OneThatIsDamagedForOneIsForAll) {
  StepProgram step(false);
  save(step, 1, in("run"), -1, 1);
  save(step, 2, in("run"), -1, 2);
  // Rank 1's half of w, which rank 0 does not read.
  damage(in("run/step-2/rank-1.safetensors"));
  ThreadWorlds job(2);
  std::vector<std::string> warnings(2);
  job.run([&](size_t process) {
    CheckpointReading reading = readingOf(*step.builder.program, job, process);
    reading.warn = [&](const std::string &text) { warnings[process] = text; };
    auto read = readCheckpoint(in("run"), reading);
    ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
    EXPECT_EQ(read->step, 1);
  });
  for (const std::string &warning : warnings)
    EXPECT_THAT(warning,
                HasSubstr("rank 1 on host 'host1': checkpoint '" +
                          in("run/step-2") +
                          "': rank-1.safetensors is damaged: the checksum of "
                          "'w' is another"));
  CheckpointReading alone = readingOf(*step.builder.program, job, 0);
  alone.agree = nullptr;
  EXPECT_EQ(llvm::cantFail(readCheckpoint(in("run"), alone)).step, 2);
  EXPECT_EQ(llvm::cantFail(readCheckpoint(in("run"), {})).step, 1);
}

// Sanitizers take memory of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// In kB, of /proc/self/status.
int64_t statusOf(const std::string &key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (int64_t value; word == key + ":" && status >> value)
      return value;
  return -1;
}

// As each of four processes does that goes on with large states.
TEST_F(ProcessCheckpointTest, ResumingTakesOnesOwnShare) {
  constexpr int64_t ownMegabytes = 48, ranks = 4;
  const Shape shape{ranks * 4, ownMegabytes << 16};
  ProgramBuilder b({{"data", ranks, false}});
  b.stages(1);
  int32_t w =
      b.state("w", countingTensor({1}), b.split(shape, {b.over("data")}));
  State &state = b.program->states.back();
  state.shape = shape;
  state.value = {};
  state.isZeroAtFirst = state.isMutable = state.isWeight = true;
  int32_t buffer = b.buffer(0, Space::State, w, ownMegabytes << 20);
  int32_t to = b.buffer(0, Space::Arena, 0, 64);
  b.kernel(0, "double", doublePlusOne, {buffer, to}, 1);
  {
    auto executor = create(b);
    auto opened = llvm::cantFail(CheckpointFolder::open(in("run")));
    llvm::cantFail(opened.write(*executor, {}));
  }
  std::ofstream("/proc/self/clear_refs") << 5;
  int64_t before = statusOf("VmRSS"), filesBefore = statusOf("RssFile");
  CheckpointReading reading;
  reading.needs = findNeededElements(*b.program, {2});
  Checkpoint checkpoint = llvm::cantFail(readCheckpoint(in("run"), reading));
  state.give(std::move(checkpoint.tensors.front().second));
  auto device = std::move(createTestDevices(1).front());
  auto stream = llvm::cantFail(device->createStream());
  auto communicators = createLocalCommunicators(ranks);
  HostTransfer transfer(*device, *stream);
  StateStore states(*b.program, llvm::cantFail(openHostStates(*b.program, "")));
  auto part = llvm::cantFail(states.copy(
      w, RankContext(*b.program, 2, *device, *communicators[2]), transfer));
  EXPECT_EQ(part->getSize(), ownMegabytes << 20);
  constexpr int64_t most = (ownMegabytes * 12 / 10 + 64) << 10;
  EXPECT_LT(statusOf("VmHWM") - before, most);
  // What was read of files need not stay.
  EXPECT_LT(statusOf("RssFile") - filesBefore, 8 << 10);
}
#endif

TEST_F(ProcessCheckpointTest, WhatOthersHaveWrittenIsOfThePlan) {
  StepProgram step(false);
  auto executor = create(step.builder);
  CheckpointOptions options;
  std::map<std::string, std::string> frozen;
  CheckpointWriter writer(*executor, options, frozen);
  EXPECT_EQ(
      failureOf(writer.writeManifest(folder, {"[]"}), ExitCode::RunFailed),
      "another process has sent no list of parts");
  EXPECT_EQ(failureOf(writer.writeManifest(folder, {"{}", "{\"v\":[]}"}),
                      ExitCode::RunFailed),
            "another process has a state 'v', which is not here");
}

TEST_F(ProcessCheckpointTest, FoldersThatNotAllSee) {
  ThreadWorlds job(2);
  files::create_directory(in("other"));
  job.run([&](size_t process) {
    auto opened = CheckpointFolder::open(in(process == 0 ? "run" : "other"),
                                         nullptr, job.worlds[process]);
    ASSERT_FALSE(bool(opened));
    EXPECT_THAT(
        failureOf(opened.takeError(), ExitCode::Usage),
        HasSubstr("rank 1 on host 'host1': '" + in("other") +
                  "' is not the folder that rank 0 has under this name: save "
                  "to a file system that all hosts share"));
  });
  EXPECT_EQ(contentOf(in("run")).size(), 1u);
}

} // namespace
