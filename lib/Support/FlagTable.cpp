//===- FlagTable.cpp - Command lines from tables --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/FlagTable.h"

#include "ax/Support/Error.h"
#include "ax/Support/Flags.h"
#include "ax/Support/Nearest.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Option/Arg.h"
#include "llvm/Option/ArgList.h"
#include "llvm/Support/raw_ostream.h"

using namespace ax;
using namespace llvm::opt;

static llvm::Error usageError(const llvm::Twine &message) {
  return makeError(ExitCode::Usage, message);
}

FlagTable::FlagTable(llvm::StringRef tool, llvm::StringRef overview,
                     llvm::StringRef usage, const llvm::StringTable &names,
                     llvm::ArrayRef<llvm::StringTable::Offset> prefixes,
                     llvm::ArrayRef<Info> flags)
    : GenericOptTable(names, prefixes, flags), tool(tool), overview(overview),
      usage(usage) {
  setDashDashParsing(true);
  for (const Info &info : flags) {
    values.emplace_back(info.Values ? info.Values : "");
    llvm::StringRef name = getOptionName(info.ID);
    // `--name=` is found by `--name`, which is there, too.
    if (info.Kind != Option::GroupClass && info.PrefixesOffset &&
        !name.ends_with("="))
      byName[name.str()] = info.AliasID ? info.AliasID : info.ID;
  }
}

/// A name with its dashes.
static std::string spell(llvm::StringRef name) {
  return (name.size() > 1 ? "--" : "-") + name.str();
}

std::string FlagTable::nameOf(unsigned flag) const {
  return getOptionPrefixedName(flag).str();
}

std::vector<llvm::StringRef> FlagTable::valuesOf(unsigned flag) const {
  std::vector<llvm::StringRef> all;
  const std::string &text = values[flag - 1];
  if (!text.empty())
    for (llvm::StringRef value : llvm::split(text, ','))
      all.push_back(value);
  return all;
}

void FlagTable::setValues(unsigned flag,
                          llvm::ArrayRef<llvm::StringRef> known) {
  values[flag - 1] = llvm::join(known, ",");
  ofTool.insert(flag);
}

void FlagTable::addValues(unsigned flag, llvm::ArrayRef<std::string> more) {
  std::string &all = values[flag - 1];
  for (const std::string &value : more)
    all += (all.empty() ? "" : ",") + value;
}

/// `a, b or c`.
static std::string listed(std::vector<llvm::StringRef> known) {
  std::string last = known.back().str();
  known.pop_back();
  return llvm::join(known, ", ") + (known.empty() ? "" : " or ") + last;
}

std::string FlagTable::helpOf(unsigned flag) const {
  std::string text = getOptionHelpText(flag);
  return ofTool.count(flag) ? text + ": " + listed(valuesOf(flag)) : text;
}

llvm::Error FlagTable::unknown(llvm::StringRef word) const {
  llvm::StringRef name = word.split('=').first;
  llvm::StringRef bare = name.ltrim('-');
  std::vector<llvm::StringRef> known;
  for (const auto &[other, flag] : byName)
    known.push_back(other);
  llvm::StringRef nearest = ax::findNearest(bare, known);
  return usageError("there is no flag '" + name + "'" +
                    (nearest.empty()
                         ? ": --help-all lists all"
                         : "; did you mean '" + spell(nearest) + "'?"));
}

llvm::Error FlagTable::check(unsigned flag, llvm::StringRef value) const {
  int64_t integer;
  uint64_t natural;
  const char *expected = is(flag, Integer) && value.getAsInteger(10, integer)
                             ? "a whole number"
                         : is(flag, Natural) && value.getAsInteger(10, natural)
                             ? "a whole number that is not negative"
                         : is(flag, Number) && !parseNumber(value) ? "a number"
                                                                   : nullptr;
  std::string prefix = nameOf(flag) + "=" + value.str() + ": expected ";
  if (expected)
    return usageError(prefix + expected);
  std::vector<llvm::StringRef> known = valuesOf(flag);
  if (known.empty() || is(flag, Suggested) || llvm::is_contained(known, value))
    return llvm::Error::success();
  return usageError(prefix + listed(known) + suggestNearest(value, known));
}

llvm::Error FlagTable::add(CommandLine &line, const Arg &arg) const {
  Option option = arg.getOption();
  llvm::StringRef name = option.getName();
  unsigned flag = byName.at(name.rtrim('=').str());
  bool isJoined = name.ends_with("=");
  bool isSwitch =
      getOption(flag).getKind() == Option::FlagClass && !getOptionMetaVar(flag);
  std::vector<std::string> &values = line.given[flag];
  if (!values.empty() && !is(flag, Repeatable))
    return usageError(nameOf(flag) + " is given twice");
  std::string value = arg.getNumValues() ? arg.getValue() : "";
  if (isSwitch && isJoined) {
    if (value != "true" && value != "false" && value != "1" && value != "0")
      return usageError(nameOf(flag) + "=" + value +
                        ": expected true or false");
    value = value == "true" || value == "1" ? "true" : "false";
  } else if (isSwitch) {
    value = "true";
  }
  // The name alone, where a value may follow.
  bool isBare = !isSwitch && option.getKind() == Option::FlagClass;
  llvm::SmallVector<llvm::StringRef> pieces{value};
  if (is(flag, CommaSeparated))
    pieces = llvm::to_vector(llvm::split(value, ','));
  for (llvm::StringRef piece : pieces) {
    if (!isBare && !isSwitch)
      if (llvm::Error error = check(flag, piece))
        return error;
    values.push_back(piece.str());
  }
  return llvm::Error::success();
}

llvm::Expected<CommandLine>
FlagTable::parseFlags(llvm::ArrayRef<const char *> words) const {
  unsigned missingIndex = 0, missingCount = 0;
  InputArgList args = ParseArgs(words, missingIndex, missingCount);
  CommandLine line(*this);
  for (const Arg *arg : args) {
    if (arg->getOption().getKind() == Option::InputClass) {
      line.inputs.push_back(arg->getValue());
      continue;
    }
    if (arg->getOption().getKind() == Option::UnknownClass)
      return unknown(arg->getSpelling());
    if (llvm::Error error = add(line, *arg))
      return error;
  }
  if (missingCount) {
    unsigned flag =
        byName.at(llvm::StringRef(words[missingIndex]).ltrim('-').str());
    return usageError(nameOf(flag) +
                      " needs a value: " + spellings(flag).front());
  }
  return line;
}

llvm::Expected<CommandLine> FlagTable::parse(int argc,
                                             const char *const *argv) const {
  auto parsed = parseFlags(llvm::ArrayRef(argv + 1, argv + argc));
  if (!parsed)
    return parsed.takeError();
  const CommandLine &line = *parsed;
  auto isOn = [&](llvm::StringRef name) {
    return line.isOn(byName.at(name.str()));
  };
  llvm::raw_ostream &os = llvm::outs();
  std::string shell = line.text(byName.at("print-completion"));
  bool isHelp = isOn("help") || isOn("help-all");
  if (isHelp)
    printHelp(os, isOn("help-all"));
  else if (isOn("version"))
    os << describeVersion(tool);
  else if (isOn("print-man"))
    printMan(os);
  else if (shell == "bash")
    printBashCompletion(os);
  else if (shell == "zsh")
    printZshCompletion(os);
  else
    return parsed;
  os.flush();
  std::exit(static_cast<int>(ExitCode::Success));
}

bool CommandLine::isOn(unsigned flag) const {
  auto found = given.find(flag);
  return found != given.end() && found->second.back() == "true";
}

std::string CommandLine::text(unsigned flag) const {
  auto found = given.find(flag);
  return found == given.end() ? "" : found->second.back();
}

std::vector<std::string> CommandLine::list(unsigned flag) const {
  auto found = given.find(flag);
  return found == given.end() ? std::vector<std::string>() : found->second;
}

unsigned FlagTable::usesOf(unsigned flag) const {
  unsigned uses = 0;
  for (unsigned use = FirstUse; use; use <<= 1)
    if (is(flag, use))
      uses |= use;
  return uses;
}

unsigned CommandLine::firstUseless(unsigned uses) const {
  for (const auto &[flag, values] : given)
    if (unsigned own = table->usesOf(flag); own && !(own & uses))
      return flag;
  return 0;
}

void CommandLine::read(unsigned flag, std::string &value) const {
  if (has(flag))
    value = text(flag);
}

void CommandLine::read(unsigned flag, std::vector<std::string> &value) const {
  if (has(flag))
    value = list(flag);
}

void CommandLine::read(unsigned flag, bool &value) const {
  if (has(flag))
    value = isOn(flag);
}

// FlagTable::check has seen that these are numbers.
void CommandLine::read(unsigned flag, int64_t &value) const {
  if (has(flag))
    llvm::StringRef(text(flag)).getAsInteger(10, value);
}

void CommandLine::read(unsigned flag, uint64_t &value) const {
  if (has(flag))
    llvm::StringRef(text(flag)).getAsInteger(10, value);
}

void CommandLine::read(unsigned flag, double &value) const {
  if (has(flag))
    value = parseNumber(text(flag)).value_or(value);
}

llvm::Error CommandLine::addFlag(llvm::Error error, unsigned flag,
                                 llvm::StringRef text) const {
  return addContext(std::move(error), table->nameOf(flag) + "=" + text);
}

std::vector<std::pair<std::string, std::string>>
CommandLine::describe(llvm::ArrayRef<unsigned> without) const {
  std::vector<std::pair<std::string, std::string>> flags;
  for (const auto &[flag, values] : given)
    if (!llvm::is_contained(without, flag))
      flags.emplace_back(table->nameOf(flag), llvm::join(values, ","));
  return flags;
}

llvm::Expected<std::string> CommandLine::onlyInput(llvm::StringRef what) const {
  if (inputs.empty())
    return usageError(what + " is missing: --help says more");
  if (inputs.size() > 1)
    return usageError("'" + inputs[1] + "' is one file too many: there is '" +
                      inputs[0] + "' already");
  return inputs[0];
}

std::string
CommandLine::firstOf(llvm::ArrayRef<unsigned> flagsOrSections) const {
  for (unsigned wanted : flagsOrSections)
    for (const auto &[flag, values] : given)
      if (table->getOption(flag).matches(wanted))
        return table->nameOf(flag);
  return "";
}
