//===- FilesTest.cpp - Errors, mapped files, atomic files -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"
#include "ax/Support/Escape.h"
#include "ax/Support/MappedFile.h"
#include "ax/Support/OutputCheck.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <limits>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

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

TEST_F(FilesTest, FingerprintsTellFilesApart) {
  auto fingerprint = [&] {
    auto file = MappedFile::open(path("large"));
    EXPECT_TRUE(bool(file));
    return (*file)->fingerprint();
  };
  // Too large to be read as a whole.
  constexpr int64_t size = int64_t(1) << 36;
  llvm::cantFail(writeFileAtomically(path("large"), llvm::StringRef("begin")));
  fs::resize_file(path("large"), size);
  std::string first = fingerprint();
  EXPECT_EQ(first, fingerprint());
  for (int64_t at : {int64_t(0), size - 1}) {
    int fd = ::open(path("large").c_str(), O_WRONLY);
    EXPECT_EQ(::pwrite(fd, "x", 1, at), 1);
    ::close(fd);
    std::string next = fingerprint();
    EXPECT_NE(next, first);
    first = next;
  }
  fs::resize_file(path("large"), size + 1);
  EXPECT_NE(fingerprint(), first);
  fs::resize_file(path("large"), 0);
  EXPECT_EQ(fingerprint().find("0:"), 0u);
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

std::string contents(const std::string &path) {
  auto file = llvm::cantFail(MappedFile::open(path));
  return std::string((*file).bytes().begin(), (*file).bytes().end());
}

TEST_F(FilesTest, PathsThatLeaveTheFolder) {
  fs::create_directory(path("sub"));
  fs::create_symlink("/etc", path("sub/out"));
  fs::create_symlink("a", path("b"));
  for (const char *inside : {"a", "sub/a", "./sub//a", "none/of/these"})
    EXPECT_EQ(findEscape(folder, inside), "") << inside;
  const char *outside[][2] = {{"", "is not a file name"},
                              {"/etc/passwd", "is an absolute path"},
                              {"sub/../a", "leaves the folder by '..'"},
                              {"b", "is a symbolic link"},
                              {"sub/out/passwd", "is a symbolic link"}};
  for (auto [location, why] : outside)
    EXPECT_EQ(findEscape(folder, location).rfind(why, 0), 0u) << location;
  EXPECT_NE(findEscape(folder, llvm::StringRef("a\0b", 3)), "");
}

TEST_F(FilesTest, LinksStayLinks) {
  fs::create_directory(path("other"));
  ASSERT_FALSE(
      bool(writeFileAtomically(path("other/a"), llvm::StringRef("old"))));
  fs::permissions(path("other/a"), fs::perms::owner_read);
  fs::create_symlink("other/a", path("b"));
  fs::create_symlink(path("b"), path("c"));
  ASSERT_FALSE(bool(writeFileAtomically(path("c"), llvm::StringRef("new"))));
  EXPECT_TRUE(fs::is_symlink(path("b")) && fs::is_symlink(path("c")));
  EXPECT_EQ(contents(path("other/a")), "new");
  EXPECT_EQ(fs::status(path("other/a")).permissions(), fs::perms::owner_read);
  // To nothing yet.
  fs::create_symlink("other/d", path("d"));
  ASSERT_FALSE(bool(writeFileAtomically(path("d"), llvm::StringRef("made"))));
  EXPECT_EQ(contents(path("other/d")), "made");
  fs::create_symlink("e", path("e"));
  EXPECT_EQ(failure(writeFileAtomically(path("e"), llvm::StringRef("x"))).code,
            ExitCode::InputOutput);
  EXPECT_EQ(
      failure(writeFileAtomically(path("other"), llvm::StringRef("x"))).code,
      ExitCode::InputOutput);
}

TEST_F(FilesTest, WhatIsNoRegularFileIsWrittenTo) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_FALSE(
      bool(writeFileAtomically(path("pipe"), llvm::StringRef("hello"))));
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, sizeof(text)), 5);
  EXPECT_STREQ(text, "hello");
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  ::close(reader);
  // A descriptor goes on where it is.
  int file = ::open(path("log").c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_EQ(::write(file, "one ", 4), 4);
  std::string name = "/proc/self/fd/" + std::to_string(file);
  ASSERT_FALSE(bool(writeFileAtomically(name, llvm::StringRef("two"))));
  ::close(file);
  EXPECT_EQ(contents(path("log")), "one two");
  EXPECT_EQ(countFiles(), 2u);
}

TEST_F(FilesTest, TheProcessMaskIsNotTouched) {
  mode_t before = umask(027);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i)
        llvm::cantFail(writeFileAtomically(path("") + std::to_string(t) + "-" +
                                               std::to_string(i),
                                           llvm::StringRef("x")));
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(umask(before), mode_t(027));
  for (const fs::directory_entry &file : fs::directory_iterator(folder))
    EXPECT_EQ(file.status().permissions(), fs::perms(0640)) << file;
  EXPECT_EQ(countFiles(), 200u);
}

TEST_F(FilesTest, OutputsThatWouldDestroySomething) {
  fs::create_directory(path("sub"));
  llvm::cantFail(writeFileAtomically(path("in"), llvm::StringRef("x")));
  fs::create_hard_link(path("in"), path("hard"));
  fs::create_symlink("../in", path("sub/soft"));
  fs::create_symlink("later", path("dangling"));
  auto faultOf = [&](auto fill) {
    OutputCheck files;
    fill(files);
    return failure(files.check()).message;
  };
  for (const char *name : {"in", "hard", "sub/soft", "sub/../in"})
    EXPECT_EQ(faultOf([&](OutputCheck &files) {
                files.reads(path("in"));
                files.writes("--json", path(name));
              }),
              "to write '" + path(name) + "' would destroy '" + path("in") +
                  "': give --json another name");
  EXPECT_EQ(faultOf([&](OutputCheck &files) {
              files.reads(path("in"), "--json");
              files.writes("--json", path("hard"));
              files.writes("--log", path("new"));
              files.writes("--trace", path("sub/new"));
              files.reads("");
              files.writes("--none", "");
              files.writes("--a", "/dev/null");
              files.writes("--b", "/dev/null");
            }),
            "");
  for (auto [one, other] : {std::pair("new", "sub/../new"),
                            {"later", "dangling"},
                            {"no/such/a", "no/such/b/../a"}})
    EXPECT_EQ(faultOf([&, one = one, other = other](OutputCheck &files) {
                files.writes("--a", path(one));
                files.writes("--b", path(other));
              }),
              "--a and --b would both write '" + path(other) +
                  "': give one of them another name");
  EXPECT_NE(faultOf([&](OutputCheck &files) {
              files.writes("--a", path("sub/new"));
              files.replaces("--save", path("sub"));
            }),
            "");
}

TEST_F(FilesTest, MissingFolderIsAnError) {
  llvm::Error error =
      writeFileAtomically(path("no/such"), llvm::StringRef("x"));
  EXPECT_EQ(failure(std::move(error)).code, ExitCode::InputOutput);
}

} // namespace
