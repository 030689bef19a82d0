//===- AlgorithmTest.cpp - Which algorithms products are computed by ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProductSuite.h"
#include "TestSimgpu.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <fstream>

using namespace ax;
using namespace ax::rt;

namespace {

/// Runs of a product by three algorithms, for which there are two alignments:
/// once to warm up, and five that count.
constexpr uint64_t allTimed = 2 * 3 * 6;

/// Each test has a folder for what is kept.
class AlgorithmTest : public ::testing::Test {
protected:
  AlgorithmTest() {
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("algorithms", folder));
    start();
  }
  ~AlgorithmTest() override {
    llvm::sys::fs::remove_directories(folder);
    unsetenv("AXOPT_CACHE");
    unsetenv("SIMGPU_FASTEST");
  }

  /// Another process, as far as can be seen here.
  void start(const std::map<std::string, std::string> &settings = {},
             const char *fastest = "2") {
    startSimgpu(settings);
    setenv("AXOPT_CACHE", folder.c_str(), 1);
    setenv("AXRUN_CUDA_ALGORITHMS", "8", 1);
    setenv("SIMGPU_FASTEST", fastest, 1);
  }
  static MatmulDesc product() { return makeProduct(DType::F32, {}, 4, 5, 6); }

  /// Executions by which a rank gets ready to compute the product.
  static uint64_t countTimed(ProductRunner &runner,
                             const MatmulDesc &desc = product()) {
    uint64_t before = simgpuCounted("cublasLtMatmul");
    llvm::cantFail(runner.device.prepare(desc, {}).takeError());
    return simgpuCounted("cublasLtMatmul") - before;
  }
  static uint64_t countTimed() {
    ProductRunner runner;
    return countTimed(runner);
  }

  std::vector<std::string> files() const {
    std::vector<std::string> found;
    std::error_code error;
    for (llvm::sys::fs::directory_iterator it(folder + "/products", error), end;
         !error && it != end; it.increment(error))
      found.push_back(it->path());
    llvm::sort(found);
    return found;
  }
  static std::string contents(const std::string &path) {
    auto file = llvm::MemoryBuffer::getFile(path);
    return file ? (*file)->getBuffer().str() : "";
  }
  static void write(const std::string &path, const std::string &text) {
    std::ofstream(path, std::ios::trunc) << text;
  }
  /// Which of the library's algorithms a file is about: it has its number in
  /// the third of the words behind the first two lines.
  static std::string numberIn(const std::string &path) {
    llvm::SmallVector<llvm::StringRef> lines;
    std::string text = contents(path);
    llvm::StringRef(text).split(lines, '\n');
    return lines.size() > 4 ? lines[4].ltrim('0').str() : "none";
  }

  llvm::SmallString<128> folder;
};

TEST_F(AlgorithmTest, TheFastestIsKept) {
  EXPECT_EQ(countTimed(), allTimed);
  ASSERT_EQ(files().size(), 2U);
  for (const std::string &file : files())
    EXPECT_EQ(numberIn(file), "2") << contents(file);
  llvm::sys::fs::remove_directories(folder);
  start({}, "1");
  EXPECT_EQ(countTimed(), allTimed);
  for (const std::string &file : files())
    EXPECT_EQ(numberIn(file), "1") << contents(file);
}

TEST_F(AlgorithmTest, EqualProductsAreTimedOnce) {
  {
    ProductRunner runner;
    EXPECT_EQ(countTimed(runner), allTimed);
    EXPECT_EQ(countTimed(runner), 0U);
    EXPECT_EQ(countTimed(runner, makeProduct(DType::F32, {}, 5, 4, 6)),
              allTimed);
  }
  // By other runs, too, whatever is the fastest by then.
  start({}, "1");
  EXPECT_EQ(countTimed(), 0U);
  for (const std::string &file : files())
    EXPECT_EQ(numberIn(file), "2");
}

TEST_F(AlgorithmTest, OtherProductsAreTimedAgain) {
  MatmulDesc desc = product();
  ProductRunner runner;
  auto isNew = [&](const MatmulDesc &other) {
    return countTimed(runner, other) == allTimed;
  };
  EXPECT_TRUE(isNew(desc));
  desc.activation = Activation::Relu;
  EXPECT_TRUE(isNew(desc));
  desc.hasBias = true;
  EXPECT_TRUE(isNew(desc));
  desc.activation = Activation::None;
  EXPECT_TRUE(isNew(desc));
  desc.hasResidual = true;
  desc.residual = desc.c;
  EXPECT_TRUE(isNew(desc));
  desc.residual.strides = {0, 1};
  EXPECT_TRUE(isNew(desc));
  desc.a.strides = {8, 1};
  EXPECT_TRUE(isNew(desc));
  EXPECT_TRUE(isNew(makeProduct(DType::F16, {}, 4, 5, 6)));
  EXPECT_TRUE(isNew(makeProduct(DType::F32, {2}, 4, 5, 6)));
  DeviceOptions tf32;
  tf32.tf32 = true;
  ProductRunner rounding(tf32);
  EXPECT_EQ(countTimed(rounding), allTimed);
}

TEST_F(AlgorithmTest, OtherDriversAndNumbersAreTimedAgain) {
  EXPECT_EQ(countTimed(), allTimed);
  start({{"DRIVER", "13010"}});
  EXPECT_EQ(countTimed(), allTimed);
  start();
  setenv("AXRUN_CUDA_ALGORITHMS", "2", 1);
  EXPECT_EQ(countTimed(), allTimed / 3 * 2);
  start();
  EXPECT_EQ(countTimed(), 0U);
}

TEST_F(AlgorithmTest, DamagedFilesAreMadeAgain) {
  EXPECT_EQ(countTimed(), allTimed);
  std::vector<std::string> paths = files();
  ASSERT_EQ(paths.size(), 2U);
  std::string one = contents(paths[0]), other = contents(paths[1]);
  std::string flipped = one, foreign = one;
  flipped[flipped.size() - 3] ^= 1;
  foreign.replace(0, 5, "other");
  for (const std::string &damaged :
       {std::string(), one.substr(0, one.size() / 2), one + one, flipped,
        foreign, other, std::string(1 << 16, '\0')}) {
    write(paths[0], damaged);
    start();
    EXPECT_EQ(countTimed(), allTimed / 2) << damaged.size() << " bytes";
    EXPECT_EQ(contents(paths[0]), one);
    EXPECT_EQ(contents(paths[1]), other);
  }
  // A folder is none, and nothing takes its place.
  ASSERT_FALSE(llvm::sys::fs::remove(paths[0]));
  ASSERT_FALSE(llvm::sys::fs::create_directories(paths[0] + "/full"));
  start();
  EXPECT_EQ(countTimed(), allTimed / 2);
}

TEST_F(AlgorithmTest, NothingNeedBeKept) {
  // Nobody makes folders there.
  setenv("AXOPT_CACHE", "/proc/none", 1);
  ProductRunner runner;
  EXPECT_EQ(countTimed(runner), allTimed);
  EXPECT_EQ(countTimed(runner), 0U);
  EXPECT_TRUE(files().empty());
}

TEST_F(AlgorithmTest, WhatFailsIsSkipped) {
  start({{"FAIL", "cublasLtMatmul:1:15"}}, "0");
  EXPECT_EQ(countTimed(), allTimed - 5);
  std::vector<std::string> numbers;
  for (const std::string &file : files())
    numbers.push_back(numberIn(file));
  // Number 0, where it worked.
  llvm::sort(numbers);
  ASSERT_EQ(numbers.size(), 2U);
  EXPECT_EQ(numbers[0], "");
  EXPECT_NE(numbers[1], "");
}

TEST_F(AlgorithmTest, ALostCardIsAnError) {
  start({{"FAIL", "work:2:719"}});
  ProductRunner runner;
  ErrorDescription error = runner.refusal(product());
  EXPECT_EQ(error.code, ExitCode::RunFailed);
  EXPECT_NE(error.message.find("CUDA_ERROR_LAUNCH_FAILED"), std::string::npos)
      << error.message;
}

TEST_F(AlgorithmTest, OthersKeepTheirMemory) {
  // 32 KiB, 32 KiB and 64 KiB.
  MatmulDesc large = makeProduct(DType::F32, {}, 128, 64, 128);
  ProductRunner runner;
  // Half of it is left.
  for (int64_t bytes : {int64_t(0), int64_t(2 * (128 << 10) - 2)}) {
    runner.device.setSpareMemory(bytes);
    EXPECT_EQ(countTimed(runner, large), 0U);
    EXPECT_TRUE(files().empty());
  }
  runner.device.setSpareMemory(1 << 20);
  EXPECT_EQ(countTimed(runner, large), allTimed);
  EXPECT_EQ(files().size(), 2U);
}

TEST_F(AlgorithmTest, OtherProcessesMayHaveTheMemory) {
  start({{"MEMORY", std::to_string(1 << 20)}});
  ProductRunner runner;
  auto taken = llvm::cantFail(runner.device.allocate((1 << 20) - (64 << 10)));
  EXPECT_EQ(countTimed(runner, makeProduct(DType::F32, {}, 128, 64, 128)), 0U);
  EXPECT_TRUE(files().empty());
}

TEST_F(AlgorithmTest, TheFirstIsTakenWhenAsked) {
  setenv("AXRUN_CUDA_ALGORITHMS", "1", 1);
  EXPECT_EQ(countTimed(), 0U);
  EXPECT_TRUE(files().empty());
  for (const char *text : {"0", "9", "two", ""}) {
    setenv("AXRUN_CUDA_ALGORITHMS", text, 1);
    ProductRunner runner;
    ErrorDescription error = runner.refusal(product());
    EXPECT_EQ(error.code, ExitCode::Usage);
    EXPECT_NE(error.message.find("AXRUN_CUDA_ALGORITHMS is '" +
                                 std::string(text) +
                                 "': it says how many algorithms are timed for "
                                 "a product, 1 to 8"),
              std::string::npos)
        << error.message;
  }
}

// In any order of what streams do, and of several calls.
TEST_F(AlgorithmTest, ResultsAreRight) {
  MatmulDesc heads = makeProduct(DType::F32, {2, 3}, 4, 5, 6);
  heads.a.strides = {60, 5, 15, 1};
  heads.c.strides = {72, 6, 18, 1};
  MatmulDesc added = product();
  added.hasBias = added.hasResidual = true;
  added.residual = added.c;
  for (const char *order : {"eager", "lazy", "random:1"}) {
    llvm::sys::fs::remove_directories(folder);
    start({{"ORDER", order}});
    ProductRunner runner;
    for (const MatmulDesc &desc :
         {product(), heads, added, makeProduct(DType::F16, {3}, 7, 8, 9)})
      checkProduct(runner, desc);
  }
}

} // namespace
