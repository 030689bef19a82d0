//===- DamagedCheckpointTest.cpp - Checkpoints that are damaged -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// They are of four processes, which are threads here.
//
//===----------------------------------------------------------------------===//
#include "ExecutorTestSupport.h"
#include "StepProgram.h"
#include "ThreadCheckpoints.h"

#include "ax/Runtime/CheckpointFolder.h"

#include "llvm/Support/FileSystem.h"
#include "gmock/gmock.h"

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

using namespace ax;
using namespace ax::rt;

namespace {

namespace files = std::filesystem;

std::string contentOf(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write(const std::string &path, const std::string &content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

class DamagedCheckpointTest : public ::testing::Test {
protected:
  static constexpr int32_t numProcesses = 4;
  static constexpr int numPlaces = 200;

  void SetUp() override {
    llvm::SmallString<128> made;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("damaged", made));
    folder = made.str().str();
    ThreadWorlds job(numProcesses);
    auto executors = takeAll(job.create(step.builder.program));
    job.run([&](size_t process) {
      llvm::cantFail(executors[process]->run({StepProgram::makeInput()}));
      auto opened = llvm::cantFail(
          CheckpointFolder::open(folder, nullptr, job.worlds[process]));
      llvm::cantFail(opened.write(*executors[process], {}).takeError());
    });
    for (const auto &entry : files::directory_iterator(folder + "/step-0"))
      paths.push_back(entry.path().string());
    std::sort(paths.begin(), paths.end());
    ASSERT_EQ(paths.size(), 5u) << "a manifest, and a file of each process";
  }
  void TearDown() override { files::remove_all(folder); }

  /// What each process gets that reads its part of the checkpoint.
  std::vector<std::string> read() const {
    ThreadWorlds job(numProcesses);
    std::vector<std::string> messages(numProcesses);
    job.run([&](size_t process) {
      CheckpointReading reading =
          readingOf(*step.builder.program, job, process);
      if (auto found = readCheckpoint(folder + "/step-0", reading); !found)
        messages[process] = failureOf(found.takeError(), ExitCode::BadInput);
    });
    return messages;
  }

  /// Each file in turns, at places that are random and always the same: all
  /// processes refuse the checkpoint, with one line that names it.
  void refusesEach(
      llvm::function_ref<void(std::string &content, size_t place)> damage) {
    std::mt19937 choose(1);
    for (int i = 0; i < numPlaces; ++i) {
      const std::string &path = paths[static_cast<size_t>(i) % paths.size()];
      std::string whole = contentOf(path), content = whole;
      size_t place = choose() % whole.size();
      damage(content, place);
      write(path, content);
      for (const std::string &message : read()) {
        EXPECT_THAT(message, testing::HasSubstr("step-0'"))
            << path << " at " << place;
        EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      }
      write(path, whole);
    }
    EXPECT_THAT(read(), testing::Each(""));
  }

  StepProgram step{false, numProcesses};
  std::string folder;
  std::vector<std::string> paths;
};

TEST_F(DamagedCheckpointTest, RefusesWhatIsCutOff) {
  refusesEach(
      [](std::string &content, size_t place) { content.resize(place); });
}

TEST_F(DamagedCheckpointTest, RefusesOneBitThatIsAnother) {
  std::mt19937 choose(2);
  refusesEach([&](std::string &content, size_t place) {
    content[place] = static_cast<char>(content[place] ^ 1 << choose() % 8);
  });
}

} // namespace
