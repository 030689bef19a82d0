//===- Command.cpp - A command line that runs axrun -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Command.h"

#include "ax/Support/Error.h"
#include "ax/Support/FlagTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Option/Arg.h"
#include "llvm/Option/ArgList.h"
#include "llvm/Support/Path.h"

using namespace ax;

namespace {

// Bits of axrun's table that nobody here asks for.
constexpr unsigned ForRuns = 0, ForComparing = 0, ForTiming = 0, ForSamples = 0,
                   ForTraining = 0, ForSaving = 0, ForEvaluation = 0,
                   ForEvaluationInTraining = 0, ForTracedSteps = 0,
                   ForCards = 0, ForProcesses = 0, ForGenerating = 0;

#define AX_FLAGS_INC "axrunFlags.inc"
#include "ax/Support/FlagTable.def"

llvm::Error usage(const llvm::Twine &message) {
  return makeError(ExitCode::Usage, message);
}

llvm::StringRef programOf(llvm::StringRef word) {
  return llvm::sys::path::filename(word);
}

/// One flag of axrun's or its input, and which words it is.
struct Argument {
  /// Without dashes; empty: no flag.
  llvm::StringRef name;
  std::string value;
  size_t begin, end;
};

/// `words` are those behind axrun; places count from its own.
std::vector<Argument> parseArguments(llvm::ArrayRef<std::string> words) {
  FlagTable table("axrun", "", "", AX_FLAG_TABLE);
  std::vector<const char *> texts;
  for (const std::string &word : words)
    texts.push_back(word.c_str());
  unsigned missingIndex = 0, missingCount = 0;
  InputArgList parsed = table.ParseArgs(texts, missingIndex, missingCount);
  std::vector<Argument> arguments;
  for (const Arg *arg : parsed) {
    Option option = arg->getOption();
    bool isInput = option.getKind() == Option::InputClass;
    bool isSeparate = option.getKind() == Option::SeparateClass;
    size_t begin = arg->getIndex() + 1;
    arguments.push_back({isInput ? "" : option.getName().rtrim('='),
                         arg->getNumValues() ? arg->getValue() : "", begin,
                         begin + (isSeparate ? 2 : 1)});
  }
  return arguments;
}

/// What is said of a launcher's number of processes: before it in the same
/// word, or in the word before.
constexpr llvm::StringLiteral separateCounts[] = {"-np", "--np", "-n", "--n",
                                                  "--ntasks"};
constexpr llvm::StringLiteral joinedCounts[] = {"--ntasks=", "-n"};
constexpr llvm::StringLiteral launchers[] = {"mpirun", "mpiexec", "orterun",
                                             "srun"};

bool isNumber(llvm::StringRef text) {
  uint64_t number;
  return !text.getAsInteger(10, number);
}

/// Sets the number of processes in a launcher's words; false: there is none.
bool setCount(llvm::MutableArrayRef<std::string> words, int64_t count) {
  bool isFound = false;
  // Programs in front of it may have an -n of their own.
  size_t begin = 0;
  for (size_t i = 0; i < words.size(); ++i)
    if (llvm::is_contained(launchers, programOf(words[i])))
      begin = i;
  for (size_t i = begin; i < words.size(); ++i) {
    llvm::StringRef word = words[i];
    if (llvm::is_contained(separateCounts, word) && i + 1 < words.size() &&
        isNumber(words[i + 1])) {
      words[++i] = std::to_string(count);
      isFound = true;
      continue;
    }
    for (llvm::StringRef prefix : joinedCounts)
      if (word.starts_with(prefix) &&
          isNumber(word.drop_front(prefix.size()))) {
        words[i] = prefix.str() + std::to_string(count);
        isFound = true;
        break;
      }
  }
  return isFound;
}

} // namespace

llvm::Expected<Command> Command::parse(std::vector<std::string> words) {
  Command command;
  auto axrun = llvm::find_if(words, [](llvm::StringRef word) {
    return programOf(word) == "axrun" || programOf(word) == "axrun-core";
  });
  if (axrun == words.end())
    return usage("the command does not run axrun, which is what can go on from "
                 "a checkpoint");
  command.axrunAt = axrun - words.begin();
  size_t planAt = 0;
  for (const Argument &argument :
       parseArguments(llvm::ArrayRef(words).drop_front(command.axrunAt + 1))) {
    if (argument.name.empty() && !planAt)
      planAt = command.axrunAt + argument.begin;
    else if (argument.name == "save")
      command.save = argument.value;
    else if (argument.name == "log")
      command.log = argument.value;
    else if (argument.name == "resume")
      command.resume = argument.value;
  }
  if (!planAt)
    return usage("the command gives axrun no plan");
  if (command.save.empty())
    return usage("the command has no --save=DIR: every restart would begin "
                 "anew");
  command.planAt = planAt;
  command.words = std::move(words);
  return command;
}

Command Command::resumedFrom(llvm::StringRef folder) const {
  static constexpr llvm::StringLiteral beginnings[] = {
      "resume", "weights", "random-weights", "tied", "leave-out"};
  Command changed = *this;
  auto begin = changed.words.begin() + axrunAt;
  std::vector<Argument> arguments =
      parseArguments(llvm::ArrayRef(words).drop_front(axrunAt + 1));
  // From the last one on: what is before it stays where it is.
  for (const Argument &argument : llvm::reverse(arguments))
    if (llvm::is_contained(beginnings, argument.name)) {
      changed.words.erase(begin + argument.begin, begin + argument.end);
      if (axrunAt + argument.begin < changed.planAt)
        changed.planAt -= argument.end - argument.begin;
    }
  changed.resume = folder.str();
  changed.words.insert(changed.words.begin() + axrunAt + 1,
                       "--resume=" + changed.resume);
  ++changed.planAt;
  return changed;
}

llvm::Expected<Command> Command::withPlan(llvm::StringRef plan,
                                          int64_t numRanks) const {
  Command changed = *this;
  changed.words[planAt] = plan.str();
  llvm::MutableArrayRef<std::string> launcher(changed.words.data(), axrunAt);
  if (hasLauncher() && !setCount(launcher, numRanks))
    return usage("the command does not say in front of axrun how many ranks "
                 "there are (-np N, -n N or --ntasks=N), which --fallback "
                 "changes");
  return changed;
}
