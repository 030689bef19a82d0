//===- FlagTableTest.cpp - Command lines from tables ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/FlagTable.h"

#include "ax/Support/Error.h"

#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

using namespace ax;

namespace {

#define AX_FLAGS_INC "AxSupportTestsFlags.inc"
#include "ax/Support/FlagTable.def"

const FlagTable &table() {
  static const FlagTable theTable("tool", "does things", "FILE [FLAG]...",
                                  AX_FLAG_TABLE);
  return theTable;
}

llvm::Expected<CommandLine> parse(std::vector<const char *> words) {
  words.insert(words.begin(), "/bin/tool");
  return table().parse(static_cast<int>(words.size()), words.data());
}

std::string errorOf(std::vector<const char *> words) {
  auto line = parse(std::move(words));
  if (line)
    return "";
  ErrorDescription text = describeError(line.takeError());
  EXPECT_EQ(text.code, ExitCode::Usage);
  return text.message;
}

TEST(FlagTableTest, Values) {
  auto line = parse({"--count=-3", "in", "--seed", "18446744073709551615",
                     "--rate=1e3", "--color", "green", "--item=a=b", "--item",
                     "--x", "--loud", "-oout"});
  ASSERT_TRUE(bool(line));
  int64_t count = 0;
  uint64_t seed = 0;
  double rate = 0;
  std::string color, output = "-";
  std::vector<std::string> items;
  bool loud = false;
  line->read(OPT_count, count);
  line->read(OPT_seed, seed);
  line->read(OPT_rate, rate);
  line->read(OPT_color, color);
  line->read(OPT_item, items);
  line->read(OPT_loud, loud);
  line->read(OPT_o, output);
  EXPECT_EQ(count, -3);
  EXPECT_EQ(seed, ~uint64_t(0));
  EXPECT_EQ(rate, 1e3);
  EXPECT_EQ(color, "green");
  EXPECT_EQ(items, (std::vector<std::string>{"a=b", "--x"}));
  EXPECT_TRUE(loud);
  EXPECT_EQ(output, "out");
  EXPECT_EQ(llvm::cantFail(line->onlyInput("FILE")), "in");
}

TEST(FlagTableTest, WhatIsNotGivenStays) {
  auto line = parse({});
  ASSERT_TRUE(bool(line));
  int64_t count = 7;
  std::vector<std::string> items{"kept"};
  line->read(OPT_count, count);
  line->read(OPT_item, items);
  EXPECT_EQ(count, 7);
  EXPECT_EQ(items.size(), 1u);
  EXPECT_FALSE(line->has(OPT_loud) || line->isOn(OPT_loud));
  EXPECT_EQ(line->firstOf({OPT_count, OPT_help2_words}), "");
  EXPECT_EQ(describeError(line->onlyInput("FILE").takeError()).message,
            "FILE is missing: --help says more");
  EXPECT_EQ(describeError(
                llvm::cantFail(parse({"a", "b"})).onlyInput("FILE").takeError())
                .message,
            "'b' is one file too many: there is 'a' already");
}

TEST(FlagTableTest, Spellings) {
  auto line = parse({"--number-of-things=4", "--loud=false", "--explain",
                     "--stage=first,second", "--stage", "first", "--pass-time",
                     "--pass-print=a", "--", "--in"});
  ASSERT_TRUE(bool(line));
  EXPECT_EQ(line->text(OPT_count), "4");
  EXPECT_TRUE(line->has(OPT_loud));
  EXPECT_FALSE(line->isOn(OPT_loud));
  EXPECT_TRUE(line->has(OPT_explain));
  EXPECT_EQ(line->text(OPT_explain), "");
  EXPECT_EQ(line->list(OPT_stage),
            (std::vector<std::string>{"first", "second", "first"}));
  EXPECT_EQ(line->list(OPT_pass),
            (std::vector<std::string>{"time", "print=a"}));
  EXPECT_EQ(llvm::cantFail(line->onlyInput("FILE")), "--in");
  EXPECT_EQ(line->firstOf({OPT_rate, OPT_count}), "--count");
  EXPECT_EQ(line->firstOf({OPT_help2_words}), "--explain");
  EXPECT_EQ(llvm::cantFail(parse({"--explain=json"})).text(OPT_explain),
            "json");
}

TEST(FlagTableTest, WhatIsWrong) {
  EXPECT_EQ(errorOf({"--count=many"}), "--count=many: expected a whole number");
  EXPECT_EQ(errorOf({"--count=99999999999999999999"}),
            "--count=99999999999999999999: expected a whole number");
  EXPECT_EQ(errorOf({"--count="}), "--count=: expected a whole number");
  EXPECT_EQ(errorOf({"--seed=-1"}),
            "--seed=-1: expected a whole number that is not negative");
  for (const char *none : {"x", "", "0x10", "nan", "1s"})
    EXPECT_EQ(errorOf({("--rate=" + llvm::Twine(none)).str().c_str()}),
              ("--rate=" + llvm::Twine(none) + ": expected a number").str());
  EXPECT_EQ(errorOf({"--color=pink"}),
            "--color=pink: expected red, green or blue");
  EXPECT_EQ(errorOf({"--color=bleu"}),
            "--color=bleu: expected red, green or blue; did you mean 'blue'?");
  EXPECT_EQ(errorOf({"--shade=any"}), "");
  EXPECT_EQ(errorOf({"--stage=first,third"}),
            "--stage=third: expected first or second");
  EXPECT_EQ(errorOf({"--explain=xml"}), "--explain=xml: expected text or json");
  EXPECT_EQ(errorOf({"--loud=maybe"}), "--loud=maybe: expected true or false");
  EXPECT_EQ(errorOf({"--count=1", "--number-of-things=2"}),
            "--count is given twice");
  EXPECT_EQ(errorOf({"--count"}), "--count needs a value: --count=N");
  EXPECT_EQ(errorOf({"-o"}), "-o needs a value: -o FILE");
}

TEST(FlagTableTest, UnknownFlagsAndTheNearest) {
  EXPECT_EQ(errorOf({"--cuont=3"}),
            "there is no flag '--cuont'; did you mean '--count'?");
  EXPECT_EQ(errorOf({"--numberofthings=3"}),
            "there is no flag '--numberofthings'; did you mean "
            "'--number-of-things'?");
  // What libraries register, and what only begins like help.
  for (const char *word :
       {"--threads=7", "--unroll-count=4", "--hosts=a,b", "--helpme"})
    EXPECT_EQ(errorOf({word}).find("there is no flag '"), 0u) << word;
  EXPECT_EQ(errorOf({"--unroll-count=4"}),
            "there is no flag '--unroll-count': --help-all lists all");
  // Of names alike, the one that is the same.
  EXPECT_EQ(errorOf({"-item=4"}),
            "there is no flag '-item'; did you mean '--item'?");
  EXPECT_EQ(errorOf({"-count=4"}),
            "there is no flag '-count'; did you mean '--count'?");
}

TEST(FlagTableTest, Help) {
  std::string text;
  llvm::raw_string_ostream os(text);
  table().printHelp(os, /*all=*/false);
  EXPECT_EQ(text, "tool: does things\n"
                  "usage: tool FILE [FLAG]...\n"
                  "Numbers: tool --count=1\n"
                  "  --count=N                 How many\n"
                  "Words: tool --color=red\n"
                  "  --color=COLOR             What it looks like\n"
                  "All flags: --help-all\n");
  text.clear();
  table().printHelp(os, /*all=*/true);
  for (const char *line :
       {"  --count=N, --number-of-things=N\n                            How",
        "  --explain[=text|json]     Why\n", "  --loud                    More",
        "  --pass-NAME               Passed on\n",
        "  -o FILE                   Output\n", "  --help, -h ",
        "Some of [these]: it's long enough that one line of\n"
        "                            eighty columns"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(FlagTableTest, ManualPage) {
  std::string text;
  llvm::raw_string_ostream os(text);
  table().printMan(os);
  EXPECT_EQ(text.find(".TH TOOL 1\n.SH NAME\ntool \\- does things\n"), 0u);
  for (const char *line :
       {".SH NUMBERS\n.nf\ntool \\-\\-count=1\n.fi\n",
        ".TP\n.B \\-\\-count=N, \\-\\-number\\-of\\-things=N\nHow many\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(FlagTableTest, Completions) {
  std::string bash, zsh;
  llvm::raw_string_ostream bashOs(bash), zshOs(zsh);
  table().printBashCompletion(bashOs);
  table().printZshCompletion(zshOs);
  EXPECT_NE(bash.find("--color) COMPREPLY=($(compgen -W \"red green blue\""),
            std::string::npos)
      << bash;
  EXPECT_EQ(zsh.find("#compdef tool\n_arguments \\\n"), 0u) << zsh;
  for (const char *line :
       {"'--color=[What it looks like]:COLOR:(red green blue)'",
        "'--shade=[How dark]:SHADE:(light dark)'",
        "'*--item=[One more]:NAME:_files'", "'--loud[More noise]'",
        "[Some of \\[these\\]\\: it'\\''s"})
    EXPECT_NE(zsh.find(line), std::string::npos) << line << zsh;
}

} // namespace
