//===- KernelCacheTest.cpp - Sharing, the cache on disk, refusals ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelTestSupport.h"

#include "ax/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <fstream>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

namespace ax::codegen {
namespace {

FusionText scaled(const char *factor) {
  return {{"16xf32"},
          std::string("%c = ax.constant dense<") + factor +
              "> : tensor<f32> -> tensor<f32>\n%r = ax.binary mul %a, %c : "
              "tensor<16xf32>, tensor<f32> -> tensor<16xf32>",
          {{"%r", "16xf32"}}};
}

class KernelCache : public testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> path;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("ax-kernels", path));
    folder = path.str().str();
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::unique_ptr<KernelCompiler> makeCompiler() {
    return llvm::cantFail(
        KernelCompiler::create({folder, 2, {}, testTarget()}));
  }
  /// The result of the kernel on 1, 1, ...
  double run(KernelCompiler &compiler, const FusionText &text) {
    auto module = parse(text);
    FusionOp fusion = fusionOf(*module);
    CompiledKernel kernel = llvm::cantFail(compiler.compile(fusion));
    HostTensor ones(DType::F32, {16});
    for (int64_t i = 0; i != 16; ++i)
      ones.setDouble(i, 1);
    return runKernel(kernel, fusion, {ones}).front().getDouble(7);
  }
  /// Those of kernels.
  std::vector<std::string> files() {
    std::vector<std::string> found;
    std::error_code error;
    for (llvm::sys::fs::directory_iterator it(folder, error), end;
         !error && it != end; it.increment(error))
      if (llvm::StringRef(it->path()).ends_with(".o"))
        found.push_back(it->path());
    return found;
  }

  std::string folder;
};

TEST_F(KernelCache, EqualFusionsAreCompiledOnce) {
  auto a = parse(scaled("2.0")), b = parse(scaled("2.0")),
       c = parse(scaled("3.0"));
  auto compiler = llvm::cantFail(KernelCompiler::create());
  auto kernels = llvm::cantFail(
      compiler->compileAll({fusionOf(*a), fusionOf(*b), fusionOf(*c)}));
  EXPECT_EQ(kernels[0].image, kernels[1].image);
  EXPECT_NE(kernels[0].image->image, kernels[2].image->image);
  EXPECT_EQ(kernels[0].signature.key, kernels[1].signature.key);
  EXPECT_EQ(compiler->getStatistics().compiled, 2);
  llvm::cantFail(compiler->compile(fusionOf(*b)));
  EXPECT_EQ(compiler->getStatistics().compiled, 2);
}

TEST_F(KernelCache, ValueFromOutsideIsRefused) {
  auto module = parse(scaled("2.0"));
  FusionOp fusion = fusionOf(*module);
  BinaryOp mul = *fusion.getBody().front().getOps<BinaryOp>().begin();
  mul->setOperand(0, fusion->getOperand(0));
  auto kernel = makeCompiler()->compile(fusion);
  ASSERT_FALSE(kernel);
  EXPECT_NE(describeError(kernel.takeError()).message.find("no operand of it"),
            std::string::npos);
}

TEST_F(KernelCache, WhoComesTogetherCompilesOnce) {
  constexpr int numCompilers = 4, numKernels = 8;
  std::vector<std::unique_ptr<KernelCompiler>> compilers;
  for (int i = 0; i < numCompilers; ++i)
    compilers.push_back(makeCompiler());
  std::vector<std::thread> threads;
  for (auto &compiler : compilers)
    threads.emplace_back([&compiler = *compiler] {
      for (int i = 0; i < numKernels; ++i) {
        auto module = parse(scaled((std::to_string(i) + ".5").c_str()));
        llvm::cantFail(compiler.compile(fusionOf(*module)));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  int64_t compiled = 0;
  for (auto &compiler : compilers)
    compiled += compiler->getStatistics().compiled;
  EXPECT_EQ(compiled, numKernels);
  EXPECT_EQ(files().size(), static_cast<size_t>(numKernels));
}

TEST_F(KernelCache, NextProcessLoadsWhatThisOneCompiled) {
  EXPECT_EQ(run(*makeCompiler(), scaled("2.0")), 2.0);
  auto next = makeCompiler();
  EXPECT_EQ(run(*next, scaled("2.0")), 2.0);
  EXPECT_EQ(next->getStatistics().compiled, 0);
  EXPECT_EQ(next->getStatistics().fromDisk, 1);
  EXPECT_EQ(run(*next, scaled("3.0")), 3.0);
  EXPECT_EQ(next->getStatistics().compiled, 1);
}

TEST_F(KernelCache, ScratchAndRowsComeFromDisk) {
  // So long that even a GPU has no room for a row in a block's own memory.
  FusionText softmax = {{"4x20000xf64"},
                        "%r = ax.softmax %a dim 1 : tensor<4x20000xf64> -> "
                        "tensor<4x20000xf64>",
                        {{"%r", "4x20000xf64"}}};
  auto module = parse(softmax);
  CompiledKernel first =
      llvm::cantFail(makeCompiler()->compile(fusionOf(*module)));
  CompiledKernel second =
      llvm::cantFail(makeCompiler()->compile(fusionOf(*module)));
  EXPECT_EQ(first.signature.outerCount, 4);
  EXPECT_EQ(second.signature.outerCount, first.signature.outerCount);
  EXPECT_GT(first.signature.scratchBytes, 0);
  EXPECT_EQ(second.signature.scratchBytes, first.signature.scratchBytes);
  EXPECT_EQ(second.image->launch.blocks, first.image->launch.blocks);
  EXPECT_EQ(second.image->launch.threadsPerBlock,
            first.image->launch.threadsPerBlock);
  EXPECT_EQ(second.image->launch.groupThreads,
            first.image->launch.groupThreads);
}

TEST_F(KernelCache, DamagedFilesAreReplaced) {
  EXPECT_EQ(run(*makeCompiler(), scaled("2.0")), 2.0);
  ASSERT_EQ(files().size(), 1u);
  std::string path = files().front();
  std::string whole =
      llvm::MemoryBuffer::getFile(path).get()->getBuffer().str();
  std::string flipped = whole;
  flipped[flipped.size() / 2] ^= 1;
  std::string otherCount = whole;
  otherCount[8] ^= 1;
  for (const std::string &damaged :
       {otherCount, std::string(), whole.substr(0, 20),
        whole.substr(0, whole.size() - 1), flipped, std::string(100, 'x')}) {
    std::ofstream(path, std::ios::binary) << damaged;
    auto compiler = makeCompiler();
    EXPECT_EQ(run(*compiler, scaled("2.0")), 2.0);
    EXPECT_EQ(compiler->getStatistics().compiled, 1);
    EXPECT_EQ(llvm::MemoryBuffer::getFile(path).get()->getBuffer().size(),
              whole.size());
  }
}

TEST_F(KernelCache, MisplacedEntriesAreNoHits) {
  EXPECT_EQ(run(*makeCompiler(), scaled("2.0")), 2.0);
  std::string two = files().front();
  EXPECT_EQ(run(*makeCompiler(), scaled("3.0")), 3.0);
  ASSERT_EQ(files().size(), 2u);
  for (const std::string &path : files())
    if (path != two) {
      ASSERT_FALSE(llvm::sys::fs::copy_file(two, path));
    }
  auto compiler = makeCompiler();
  EXPECT_EQ(run(*compiler, scaled("3.0")), 3.0);
  EXPECT_EQ(compiler->getStatistics().compiled, 1);
  EXPECT_EQ(compiler->getStatistics().fromDisk, 0);
}

TEST_F(KernelCache, WhatOthersCanWriteIsReplaced) {
  EXPECT_EQ(run(*makeCompiler(), scaled("2.0")), 2.0);
  std::string path = files().front();
  auto modeOf = [&] {
    return llvm::cantFail(
        llvm::errorOrToExpected(llvm::sys::fs::getPermissions(path)));
  };
  using llvm::sys::fs::perms;
  for (perms others : {perms::group_write, perms::others_write}) {
    ASSERT_FALSE(llvm::sys::fs::setPermissions(path, modeOf() | others));
    auto compiler = makeCompiler();
    EXPECT_EQ(run(*compiler, scaled("2.0")), 2.0);
    EXPECT_EQ(compiler->getStatistics().compiled, 1);
    EXPECT_EQ(modeOf() & others, perms::no_perms);
  }
  // Somebody else's, where the test may make such a file.
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
    auto compiler = makeCompiler();
    EXPECT_EQ(run(*compiler, scaled("2.0")), 2.0);
    EXPECT_EQ(compiler->getStatistics().compiled, 1);
  }
  // A link to one of ours could be changed by whom the link belongs to.
  ASSERT_FALSE(llvm::sys::fs::rename(path, folder + "/aside"));
  ASSERT_FALSE(llvm::sys::fs::create_link(folder + "/aside", path));
  auto compiler = makeCompiler();
  EXPECT_EQ(run(*compiler, scaled("2.0")), 2.0);
  EXPECT_EQ(compiler->getStatistics().compiled, 1);
}

TEST_F(KernelCache, AxisIndicesAreScalars) {
  auto module = parse({{"4xi64"},
                       R"(%i = axl.axis_index {col} : tensor<i64>
          %j = axl.axis_index {row, data} : tensor<i64>
          %k = axl.axis_index {col} : tensor<i64>
          %s = ax.binary sub %i, %j : tensor<i64>, tensor<i64> -> tensor<i64>
          %t = ax.binary mul %s, %k : tensor<i64>, tensor<i64> -> tensor<i64>
          %r = ax.binary add %a, %t : tensor<4xi64>, tensor<i64> -> tensor<4xi64>)",
                       {{"%r", "4xi64"}}});
  FusionOp fusion = fusionOf(*module);
  CompiledKernel kernel = llvm::cantFail(testCompiler().compile(fusion));
  ASSERT_EQ(kernel.signature.scalars.size(), 2u);
  HostTensor zeros(DType::I64, {4});
  EXPECT_EQ(runKernel(kernel, fusion, {zeros}, 1, {7, 2}).front().toInts(),
            std::vector<int64_t>(4, 35));
}

TEST_F(KernelCache, RefusesWhatIsNotForKernels) {
  auto module = parse({{"4x4xf32"},
                       "%r = ax.dot %a, %a batch [] x [] contract [1] x [0] : "
                       "tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>",
                       {{"%r", "4x4xf32"}}});
  auto kernel = testCompiler().compile(fusionOf(*module));
  ASSERT_FALSE(kernel);
  EXPECT_NE(describeError(kernel.takeError()).message.find("ax.dot"),
            std::string::npos);
}

TEST_F(KernelCache, FoldersThatCannotBeAreErrors) {
  std::ofstream(folder + "/file") << "no folder";
  auto compiler = KernelCompiler::create({folder + "/file/cache", 2, {}});
  ASSERT_FALSE(compiler);
  ErrorDescription error = describeError(compiler.takeError());
  EXPECT_EQ(error.code, ExitCode::InputOutput);
  EXPECT_NE(error.message.find("cannot create the kernel cache"),
            std::string::npos);
}

TEST_F(KernelCache, EmptyTensors) {
  auto module = parse({{"0x4xf32"},
                       "%n = ax.unary neg %a : tensor<0x4xf32> -> "
                       "tensor<0x4xf32>\n%r = ax.reduce max %n dims [0] : "
                       "tensor<0x4xf32> -> tensor<4xf32>",
                       {{"%n", "0x4xf32"}, {"%r", "4xf32"}}});
  FusionOp fusion = fusionOf(*module);
  CompiledKernel kernel = llvm::cantFail(testCompiler().compile(fusion));
  auto results = runKernel(kernel, fusion, {HostTensor(DType::F32, {0, 4})});
  EXPECT_EQ(results[1].getDouble(3), -INFINITY);
}

} // namespace
} // namespace ax::codegen
