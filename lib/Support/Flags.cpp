//===- Flags.cpp - Command lines ------------------------------------------===//

#include "ax/Support/Flags.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <utility>

namespace ax {

static std::string &errorText() {
  static std::string text;
  return text;
}

llvm::raw_ostream &detail::flagErrors() {
  static llvm::raw_string_ostream os(errorText());
  return os;
}

bool detail::parseValue(llvm::StringRef text, bool &value) {
  value = text.empty() || text == "true" || text == "1";
  return value || text == "false" || text == "0";
}

bool detail::parseValue(llvm::StringRef text, int64_t &value) {
  return !text.getAsInteger(10, value);
}

bool detail::parseValue(llvm::StringRef text, uint64_t &value) {
  return !text.getAsInteger(10, value);
}

bool detail::parseValue(llvm::StringRef text, int32_t &value) {
  return !text.getAsInteger(10, value);
}

bool detail::parseValue(llvm::StringRef text, double &value) {
  return llvm::to_float(text, value);
}

llvm::Error parseFlags(int argc, char **argv,
                       llvm::cl::OptionCategory &category,
                       llvm::StringRef overview) {
  llvm::cl::HideUnrelatedOptions(category);
  std::string tool = llvm::sys::path::filename(argv[0]).str();
  llvm::cl::SetVersionPrinter([tool](llvm::raw_ostream &os) {
    os << tool << " " << AX_VERSION << " (LLVM " << LLVM_VERSION_STRING
       << ")\n";
  });
  if (llvm::cl::ParseCommandLineOptions(argc, argv, overview,
                                        &detail::flagErrors()))
    return llvm::Error::success();
  // What comes after the first fault is mostly because of it.
  std::string all = std::exchange(errorText(), {});
  std::string text;
  for (llvm::StringRef line : llvm::split(llvm::StringRef(all).trim(), '\n')) {
    bool isNext = line.consume_front(tool + ": ") && !text.empty();
    if (isNext && !line.starts_with("Did you mean"))
      break;
    text += (text.empty() ? "" : "\n") + line.str();
  }
  return makeError(ExitCode::Usage, text);
}

std::pair<llvm::StringRef, llvm::StringRef> splitAtFile(llvm::StringRef text) {
  for (size_t at = text.find('='); at != llvm::StringRef::npos;
       at = text.find('=', at + 1))
    if (at > 0 && llvm::sys::fs::exists(text.substr(at + 1)))
      return {text.take_front(at), text.substr(at + 1)};
  return text.split('=');
}

bool nestsDeeper(llvm::StringRef text, int limit) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"')
      quoted = !quoted;
    else if (quoted)
      i += c == '\\';
    else if (c == '[' || c == '{' || c == '(')
      ++depth;
    else if (c == ']' || c == '}' || c == ')')
      --depth;
    if (depth > limit)
      return true;
  }
  return false;
}

} // namespace ax
