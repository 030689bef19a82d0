//===- FilesTest.cpp - Errors, mapped files, atomic files -----------------===//

#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <filesystem>
#include <limits>

using namespace ax;
namespace fs = std::filesystem;

namespace {

class FilesTest : public ::testing::Test {
protected:
  void SetUp() override {
    char pattern[] = "/tmp/axfilesXXXXXX";
    folder = mkdtemp(pattern);
  }
  void TearDown() override { fs::remove_all(folder); }
  std::string path(const char *name) const { return folder + "/" + name; }
  size_t countFiles() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder),
                                             fs::directory_iterator()));
  }
  std::string folder;
};

ErrorDescription failure(llvm::Error error) {
  return describeError(std::move(error));
}

TEST(ErrorTest, CodeAndContextTravel) {
  llvm::Error error = addContext(
      makeErrorf(ExitCode::BadPlan, "axis {0} is {1}", "col", 3), "stage 2");
  ErrorDescription text = failure(std::move(error));
  EXPECT_EQ(text.code, ExitCode::BadPlan);
  EXPECT_EQ(text.message, "stage 2: axis col is 3");
}

TEST(ErrorTest, SuccessStaysSuccess) {
  EXPECT_FALSE(bool(addContext(llvm::Error::success(), "x")));
  EXPECT_EQ(failure(llvm::Error::success()).code, ExitCode::Success);
}

TEST(ErrorTest, FirstOfJoinedDecides) {
  ErrorDescription text = failure(llvm::joinErrors(
      makeError(ExitCode::Unsupported, "a"), llvm::createStringError("b")));
  EXPECT_EQ(text.code, ExitCode::Unsupported);
  EXPECT_EQ(text.message, "a\nb");
}

TEST_F(FilesTest, WriteThenMap) {
  ASSERT_FALSE(bool(writeFileAtomically(path("a"), llvm::StringRef("hello"))));
  auto file = MappedFile::open(path("a"));
  ASSERT_TRUE(bool(file));
  EXPECT_EQ((*file)->getSize(), 5);
  auto part = (*file)->range(1, 3);
  ASSERT_TRUE(bool(part));
  EXPECT_EQ((*part)[0], 'e');
  EXPECT_TRUE(bool((*file)->range(5, 0)));
}

TEST_F(FilesTest, RangesOutsideAreErrors) {
  ASSERT_FALSE(bool(writeFileAtomically(path("a"), llvm::StringRef("hello"))));
  auto file = MappedFile::open(path("a"));
  ASSERT_TRUE(bool(file));
  const int64_t max = std::numeric_limits<int64_t>::max();
  const int64_t ranges[][2] = {{-1, 2}, {0, 6},   {5, 1},     {6, 0},
                               {1, -1}, {1, max}, {max, max}, {max, 0}};
  for (auto &range : ranges) {
    auto part = (*file)->range(range[0], range[1]);
    ASSERT_FALSE(bool(part));
    EXPECT_EQ(failure(part.takeError()).code, ExitCode::BadModel);
  }
}

TEST_F(FilesTest, ReleasedPagesComeBack) {
  std::string text(20000, 'x');
  ASSERT_FALSE(bool(writeFileAtomically(path("a"), llvm::StringRef(text))));
  auto file = MappedFile::open(path("a"));
  ASSERT_TRUE(bool(file));
  EXPECT_EQ((*file)->bytes()[9000], 'x');
  (*file)->release(1, 19000);
  EXPECT_EQ((*file)->bytes()[9000], 'x');
  (*file)->release(-5, 1 << 30);
}

TEST_F(FilesTest, OnlyRegularFilesMap) {
  for (std::string name : {folder, path("missing"), std::string("/dev/zero")}) {
    auto file = MappedFile::open(name);
    ASSERT_FALSE(bool(file));
    ErrorDescription text = failure(file.takeError());
    EXPECT_EQ(text.code, ExitCode::InputOutput);
    EXPECT_NE(text.message.find(name), std::string::npos);
  }
  ASSERT_FALSE(bool(writeFileAtomically(path("e"), llvm::StringRef(""))));
  auto empty = MappedFile::open(path("e"));
  ASSERT_TRUE(bool(empty));
  EXPECT_EQ((*empty)->getSize(), 0);
}

TEST_F(FilesTest, UncommittedFilesVanish) {
  ASSERT_FALSE(bool(writeFileAtomically(path("a"), llvm::StringRef("old"))));
  {
    auto file = AtomicFile::create(path("a"));
    ASSERT_TRUE(bool(file));
    ASSERT_FALSE(bool(file->write(llvm::StringRef("new"))));
    EXPECT_EQ(file->getPosition(), 3);
    EXPECT_EQ(countFiles(), 2u);
  }
  EXPECT_EQ(countFiles(), 1u);
  auto file = MappedFile::open(path("a"));
  ASSERT_TRUE(bool(file));
  EXPECT_EQ((*file)->bytes()[0], 'o');
}

TEST_F(FilesTest, MissingFolderIsAnError) {
  llvm::Error error =
      writeFileAtomically(path("no/such"), llvm::StringRef("x"));
  EXPECT_EQ(failure(std::move(error)).code, ExitCode::InputOutput);
}

} // namespace
