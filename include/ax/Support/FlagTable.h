//===- FlagTable.h - Command lines from tables ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tool's flags are a table that TableGen makes of its Flags.td (classes:
// ax/Support/Flags.td). Parsing, checks of values, help, manual page and
// completions of shells all read that table. LLVM's own flags, which its shared
// library registers, are not among them.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SUPPORT_FLAGTABLE_H
#define AX_SUPPORT_FLAGTABLE_H

#include "llvm/Option/OptTable.h"
#include "llvm/Option/Option.h"
#include "llvm/Support/Error.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace ax {

class FlagTable;

/// What a table says of values; the names are those of Flags.td.
enum FlagProperty : unsigned {
  Integer = 1 << 4,
  Natural = 1 << 5,
  Number = 1 << 6,
  CommaSeparated = 1 << 7,
  Repeatable = 1 << 8,
  Common = 1 << 9,
  Suggested = 1 << 10,
  /// Bits from here on are a tool's own: in which command lines a flag is of
  /// use.
  FirstUse = 1 << 11,
};

/// A command line whose values are what the table says of them. Flags are named
/// by the table's numbers, OPT_....
class CommandLine {
public:
  /// Whether a flag is there, with whatever value.
  bool has(unsigned flag) const { return given.count(flag); }
  /// Whether a switch is there, and not as `--name=false`.
  bool isOn(unsigned flag) const;
  /// The value; empty where the flag is not given.
  std::string text(unsigned flag) const;
  /// Returns all values of the flag, in the order given.
  std::vector<std::string> list(unsigned flag) const;
  /// Puts the value of a flag that is given, or all its values, into `value`,
  /// which is of the kind that the table says; else that stays what it is.
  void read(unsigned flag, std::string &value) const;
  void read(unsigned flag, std::vector<std::string> &value) const;
  void read(unsigned flag, bool &value) const;
  void read(unsigned flag, int64_t &value) const;
  void read(unsigned flag, uint64_t &value) const;
  void read(unsigned flag, double &value) const;
  /// The same of what has a `parse` that takes a text; its error comes back
  /// behind `--name=TEXT`.
  template <typename T>
  llvm::Error parse(unsigned flag, T &value) const;
  template <typename T>
  llvm::Error parse(unsigned flag, std::vector<T> &value) const;
  /// Returns what is no flag.
  const std::vector<std::string> &getInputs() const { return inputs; }
  /// Returns the flags that are given, but for some, with their values.
  std::vector<std::pair<std::string, std::string>>
  describe(llvm::ArrayRef<unsigned> without) const;
  /// What is no flag: there must be one, `what`.
  llvm::Expected<std::string> onlyInput(llvm::StringRef what) const;
  /// `--name` of the first flag of these, or of these sections, that is given;
  /// empty if there is none.
  std::string firstOf(llvm::ArrayRef<unsigned> flagsOrSections) const;
  /// The first flag that is given and of use elsewhere only: whose uses, if the
  /// table says any, are none of `uses`. 0 if there is none.
  unsigned firstUseless(unsigned uses) const;

private:
  friend class FlagTable;
  explicit CommandLine(const FlagTable &table) : table(&table) {}
  llvm::Error addFlag(llvm::Error error, unsigned flag,
                      llvm::StringRef text) const;

  const FlagTable *table;
  std::map<unsigned, std::vector<std::string>> given;
  std::vector<std::string> inputs;
};

class FlagTable : public llvm::opt::GenericOptTable {
public:
  /// `overview` is one sentence, `usage` what stands behind the tool's name.
  FlagTable(llvm::StringRef tool, llvm::StringRef overview,
            llvm::StringRef usage, const llvm::StringTable &names,
            llvm::ArrayRef<llvm::StringTable::Offset> prefixes,
            llvm::ArrayRef<Info> flags);

  /// The values that a flag has, or is offered, where not the table but the
  /// tool knows them. Help lists them behind the flag's text.
  void setValues(unsigned flag, llvm::ArrayRef<llvm::StringRef> known);

  /// Values besides those that the table has.
  void addValues(unsigned flag, llvm::ArrayRef<std::string> more);

  /// Says nothing of a flag to who asks for help: the tool knows it only to say
  /// what to do instead.
  void hide(unsigned flag) { hidden.insert(flag); }

  /// Usage errors: flags that there are not (with the nearest that there is),
  /// values that are none, what is given twice.
  llvm::Expected<CommandLine>
  parseFlags(llvm::ArrayRef<const char *> words) const;
  /// Parses a tool's command line likewise. --help, --version and the like
  /// print and end the process.
  llvm::Expected<CommandLine> parse(int argc, const char *const *argv) const;

  /// Examples have `instead` where the table's have `words`.
  void inExamples(llvm::StringRef words, llvm::StringRef instead) {
    exampleWords = {words.str(), instead.str()};
  }

  /// `--name`, or `-n` of one letter.
  std::string nameOf(unsigned flag) const;

  /// The bits from FirstUse on that the table says of a flag.
  unsigned usesOf(unsigned flag) const;

  /// Sections with their flags; without `all`, those that most need.
  void printHelp(llvm::raw_ostream &os, bool all) const;
  /// Prints the manual page, in man(7)'s language.
  void printMan(llvm::raw_ostream &os) const;
  void printBashCompletion(llvm::raw_ostream &os) const;
  void printZshCompletion(llvm::raw_ostream &os) const;

private:
  struct Section {
    std::string title, example;
    std::vector<unsigned> flags;
  };

  bool is(unsigned flag, unsigned property) const {
    return getOption(flag).hasFlag(property);
  }
  /// `--dp=D, --data-parallel-size=D`.
  std::vector<std::string> spellings(unsigned flag) const;
  std::vector<llvm::StringRef> valuesOf(unsigned flag) const;
  std::string helpOf(unsigned flag) const;
  std::vector<Section> sections() const;
  llvm::Error unknown(llvm::StringRef word) const;
  llvm::Error check(unsigned flag, llvm::StringRef value) const;
  llvm::Error add(CommandLine &line, const llvm::opt::Arg &arg) const;

  std::string tool, overview, usage;
  /// Names of flags without dashes, `=` and other spellings.
  std::map<std::string, unsigned> byName;
  /// The values that a flag may have, between commas, by its number, from 1 up.
  std::vector<std::string> values;
  /// Flags whose values are not in the table.
  std::set<unsigned> ofTool;
  std::set<unsigned> hidden;
  std::pair<std::string, std::string> exampleWords;
};

template <typename T>
llvm::Error CommandLine::parse(unsigned flag, std::vector<T> &value) const {
  if (has(flag))
    value.clear();
  for (const std::string &text : list(flag)) {
    llvm::Expected<T> parsed = T::parse(text);
    if (!parsed)
      return addFlag(parsed.takeError(), flag, text);
    value.push_back(std::move(*parsed));
  }
  return llvm::Error::success();
}

template <typename T>
llvm::Error CommandLine::parse(unsigned flag, T &value) const {
  std::vector<T> values;
  if (llvm::Error error = parse(flag, values))
    return error;
  if (!values.empty())
    value = std::move(values.back());
  return llvm::Error::success();
}

/// Name, version, commit and LLVM's version.
std::string describeVersion(llvm::StringRef tool);

} // namespace ax

#endif // AX_SUPPORT_FLAGTABLE_H
