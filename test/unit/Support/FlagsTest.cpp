//===- FlagsTest.cpp - Command lines --------------------------------------===//

#include "ax/Support/Flags.h"

#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <filesystem>

using namespace ax;

namespace {

llvm::cl::OptionCategory category("test");
Flag<int64_t> number("number", llvm::cl::cat(category));
Flag<double> real("real", llvm::cl::cat(category));
Flag<bool> yes("yes", llvm::cl::cat(category));

std::string parse(std::vector<std::string> words) {
  words.insert(words.begin(), "/bin/tool");
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  llvm::cl::ResetAllOptionOccurrences();
  ErrorDescription text =
      describeError(parseFlags(static_cast<int>(arguments.size()),
                               arguments.data(), category, "overview"));
  EXPECT_TRUE(text.message.empty() || text.code == ExitCode::Usage);
  return text.message;
}

TEST(FlagsTest, WhatIsWrongIsOneError) {
  EXPECT_EQ(parse({"--number=-3", "--real=1e3", "--yes"}), "");
  EXPECT_EQ(number, -3);
  EXPECT_EQ(real, 1e3);
  EXPECT_TRUE(yes);
  EXPECT_EQ(parse({"--yes=0"}), "");
  EXPECT_FALSE(yes);
  EXPECT_EQ(parse({"--number=many"}),
            "for the --number option: 'many' is no value for it");
  for (const char *word : {"--number=1e3", "--number=99999999999999999999",
                           "--real=x", "--yes=maybe", "--unknown"})
    EXPECT_NE(parse({word}), "") << word;
  std::string text = parse({"--numbr", "3"});
  EXPECT_NE(text.find("\nDid you mean '--number'?"), std::string::npos) << text;
  EXPECT_EQ(text.find("positional"), std::string::npos) << text;
}

TEST(FlagsTest, FilesMayHoldEqualSigns) {
  char pattern[] = "/tmp/axflagsXXXXXX";
  std::string folder = mkdtemp(pattern), file = folder + "/a=b";
  ASSERT_FALSE(bool(writeFileAtomically(file, llvm::StringRef("x"))));
  using Pair = std::pair<llvm::StringRef, llvm::StringRef>;
  EXPECT_EQ(splitAtFile("x=" + file), Pair("x", file));
  EXPECT_EQ(splitAtFile("k=v=" + file), Pair("k=v", file));
  EXPECT_EQ(splitAtFile("x=a=b"), Pair("x", "a=b"));
  EXPECT_EQ(splitAtFile("x"), Pair("x", ""));
  EXPECT_EQ(splitAtFile("=" + file), Pair("", file));
  std::filesystem::remove_all(folder);
}

TEST(FlagsTest, Nesting) {
  EXPECT_FALSE(nestsDeeper("{\"[[[[\\\"[[\": [1, 2], \"b\": {}}", 2));
  EXPECT_TRUE(nestsDeeper("{\"a\": [(1)]}", 2));
  EXPECT_FALSE(nestsDeeper("[][][]", 1));
  EXPECT_TRUE(nestsDeeper(std::string(1000000, '['), 100));
}

} // namespace
