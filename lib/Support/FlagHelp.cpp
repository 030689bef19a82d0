//===- FlagHelp.cpp - What a table of flags says to readers and shells ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/ExitCode.h"
#include "ax/Support/FlagTable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace ax;
using namespace llvm::opt;

std::vector<FlagTable::Section> FlagTable::sections() const {
  std::map<unsigned, Section> byGroup;
  for (unsigned flag = 1, e = getNumOptions(); flag <= e; ++flag) {
    Option option = getOption(flag);
    if (option.getKind() == Option::GroupClass)
      byGroup[flag] = {getOptionName(flag).str(), getOptionHelpText(flag), {}};
    else if (getOptionHelpText(flag) && !hidden.count(flag))
      byGroup[getOptionGroupID(flag)].flags.push_back(flag);
  }
  std::vector<Section> all;
  const auto &[words, instead] = exampleWords;
  for (auto &[group, section] : byGroup) {
    if (size_t at = section.example.find(words); at != std::string::npos)
      section.example.replace(at, words.size(), instead);
    all.push_back(std::move(section));
  }
  return all;
}

std::vector<std::string> FlagTable::spellings(unsigned flag) const {
  std::string value;
  if (const char *metaVar = getOptionMetaVar(flag))
    value = getOption(flag).getKind() == Option::FlagClass
                ? "[=" + std::string(metaVar) + "]"
                : "=" + std::string(metaVar);
  else if (std::vector<llvm::StringRef> known = valuesOf(flag); !known.empty())
    value = "=" + llvm::join(known, "|");
  // What begins with a name, as --mlir-NAME, and letters.
  if (getOption(flag).getKind() == Option::JoinedClass)
    value.erase(0, 1);
  if (getOptionPrefix(flag) == "-" && !value.empty())
    value[0] = ' ';
  std::vector<std::string> all{nameOf(flag) + value};
  for (const auto &[name, other] : byName)
    if (other == flag && name != getOptionName(flag))
      all.push_back((name.size() > 1 ? "--" : "-") + name + value);
  return all;
}

/// `text` in lines that end before column 80; all but the first begin at
/// `column`.
static void printWrapped(llvm::raw_ostream &os, llvm::StringRef text,
                         size_t column) {
  size_t at = column;
  bool isFirst = true;
  for (llvm::StringRef word : llvm::split(text, ' ')) {
    if (!isFirst && at + 1 + word.size() > 79) {
      os << '\n' << std::string(column, ' ');
      at = column;
      isFirst = true;
    }
    os << (isFirst ? "" : " ") << word;
    at += word.size() + !isFirst;
    isFirst = false;
  }
  os << '\n';
}

void FlagTable::printHelp(llvm::raw_ostream &os, bool all) const {
  constexpr size_t column = 28;
  os << tool << ": " << overview << "\nusage: " << tool << ' ' << usage << '\n';
  for (const Section &section : sections()) {
    bool isEmpty = true;
    for (unsigned flag : section.flags) {
      if (!all && !is(flag, Common))
        continue;
      if (std::exchange(isEmpty, false))
        os << (all ? "\n" : "") << section.title
           << (section.example.empty() ? "" : ": " + section.example) << '\n';
      std::string names = "  " + (all ? llvm::join(spellings(flag), ", ")
                                      : spellings(flag).front());
      os << names;
      if (names.size() + 1 > column)
        os << '\n' << std::string(column, ' ');
      else
        os << std::string(column - names.size(), ' ');
      printWrapped(os, helpOf(flag), column);
    }
  }
  if (!all)
    os << "All flags: --help-all\n";
}

/// Text of a manual page: dashes are dashes, and a line begins with no command.
static std::string inMan(llvm::StringRef text) {
  std::string escaped;
  for (char c : text)
    escaped += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  return (escaped[0] == '.' || escaped[0] == '\'' ? "\\&" : "") + escaped;
}

void FlagTable::printMan(llvm::raw_ostream &os) const {
  os << ".TH " << llvm::StringRef(tool).upper() << " 1\n.SH NAME\n"
     << tool << " \\- " << inMan(overview) << "\n.SH SYNOPSIS\n.B " << tool
     << "\n"
     << inMan(usage) << '\n';
  for (const Section &section : sections()) {
    os << ".SH " << llvm::StringRef(section.title).upper() << '\n';
    if (!section.example.empty())
      os << ".nf\n" << inMan(section.example) << "\n.fi\n";
    for (unsigned flag : section.flags)
      os << ".TP\n.B " << inMan(llvm::join(spellings(flag), ", ")) << '\n'
         << inMan(helpOf(flag)) << '\n';
  }
  os << ".SH EXIT STATUS\n";
  for (ExitCode code :
       {ExitCode::Success, ExitCode::Differs, ExitCode::Usage,
        ExitCode::BadModel, ExitCode::Unsupported, ExitCode::BadPlan,
        ExitCode::BadInput, ExitCode::InputOutput, ExitCode::RunFailed,
        ExitCode::NotFinite, ExitCode::Internal, ExitCode::Interrupted,
        ExitCode::Terminated})
    os << ".TP\n.B " << static_cast<int>(code) << '\n'
       << inMan(toString(code)) << '\n';
}

void FlagTable::printBashCompletion(llvm::raw_ostream &os) const {
  os << "_" << tool << "() {\n"
     << "  local word=$2 flag=$3\n"
     << "  if [[ $word == = ]]; then word=; fi\n"
     << "  if [[ $flag == = ]]; then flag=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
     << "  case $flag in\n";
  std::string names;
  for (const Section &section : sections())
    for (unsigned flag : section.flags) {
      names += " " + nameOf(flag);
      if (std::vector<llvm::StringRef> known = valuesOf(flag); !known.empty())
        os << "  " << nameOf(flag) << ") COMPREPLY=($(compgen -W \""
           << llvm::join(known, " ") << "\" -- \"$word\")); return ;;\n";
    }
  os << "  esac\n"
     << "  if [[ $word == -* ]]; then\n"
     << "    COMPREPLY=($(compgen -W \"" << llvm::StringRef(names).ltrim()
     << "\" -- \"$word\"))\n"
     << "  fi\n}\ncomplete -o bashdefault -o default -F _" << tool << ' '
     << tool << '\n';
}

void FlagTable::printZshCompletion(llvm::raw_ostream &os) const {
  auto escape = [](llvm::StringRef text) {
    std::string escaped;
    for (char c : text) {
      if (c == '\'')
        escaped += "'\\''";
      else
        escaped += (llvm::StringRef("[]:\\").contains(c) ? "\\" : "") +
                   std::string(1, c);
    }
    return escaped;
  };
  os << "#compdef " << tool << "\n_arguments \\\n";
  for (const Section &section : sections())
    for (unsigned flag : section.flags) {
      bool isRepeatable = is(flag, Repeatable);
      bool takesValue = getOption(flag).getKind() != Option::FlagClass;
      bool isLetter = getOptionPrefix(flag) == "-";
      os << "  '" << (isRepeatable ? "*" : "") << nameOf(flag)
         << (takesValue && !isLetter ? "=" : "") << '[' << escape(helpOf(flag))
         << ']';
      if (takesValue) {
        std::vector<llvm::StringRef> known = valuesOf(flag);
        const char *metaVar = getOptionMetaVar(flag);
        os << ':' << escape(metaVar ? metaVar : "") << ':'
           << (known.empty() ? "_files" : "(" + llvm::join(known, " ") + ")");
      }
      os << "' \\\n";
    }
  os << "  '*:file:_files'\n";
}
