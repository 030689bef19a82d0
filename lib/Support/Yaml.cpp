//===- Yaml.cpp - Small YAML files that nobody trusts ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Support/Yaml.h"

#include "ax/Support/Flags.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"

/// Whether LLVM's parser could run out of stack: brackets (as nestsDeeper sees
/// them, and as one sees them who knows no quotes), or blocks that begin on one
/// line or far to the right.
static bool isTooDeep(llvm::StringRef text) {
  constexpr int deepest = 16;
  constexpr size_t longestIndent = 64;
  if (ax::nestsDeeper(text, deepest))
    return true;
  int depth = 0;
  for (char c : text) {
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (depth > deepest)
      return true;
  }
  while (!text.empty()) {
    llvm::StringRef line;
    std::tie(line, text) = text.split('\n');
    size_t blocks = 0;
    for (llvm::StringRef start : {"- ", "-\t", "? ", "?\t"})
      blocks += line.count(start);
    if (blocks > deepest ||
        line.size() - line.ltrim(" -?\t").size() > longestIndent)
      return true;
  }
  return false;
}

static constexpr size_t mostBytes = 1 << 16;

llvm::Expected<std::string> ax::readYamlFile(llvm::StringRef path,
                                             llvm::StringRef advice) {
  auto fail = [&](std::error_code code) {
    return makeError(ExitCode::InputOutput,
                     "cannot read '" + path + "': " + code.message() + advice);
  };
  auto file = llvm::sys::fs::openNativeFileForRead(path);
  if (!file)
    return fail(llvm::errorToErrorCode(file.takeError()));
  llvm::scope_exit close([&] { llvm::sys::fs::closeFile(*file); });
  std::string text(mostBytes + 1, '\0');
  size_t size = 0;
  // Some files have no end.
  while (size < text.size()) {
    auto read = llvm::sys::fs::readNativeFile(
        *file,
        llvm::MutableArrayRef<char>(text.data(), text.size()).drop_front(size));
    if (!read)
      return fail(llvm::errorToErrorCode(read.takeError()));
    if (*read == 0)
      break;
    size += *read;
  }
  text.resize(size);
  return text;
}

llvm::Error ax::checkYaml(llvm::StringRef text, llvm::StringRef fileName) {
  if (text.size() > mostBytes)
    return makeError(ExitCode::Usage, fileName + ": it has at most " +
                                          llvm::Twine(mostBytes) + " bytes");
  if (isTooDeep(text))
    return makeError(ExitCode::Usage, fileName + ": nested too deeply");
  return llvm::Error::success();
}

void ax::keepFirstYamlError(const llvm::SMDiagnostic &diagnostic, void *out) {
  auto &to = *static_cast<std::string *>(out);
  if (!to.empty())
    return;
  llvm::StringRef message = diagnostic.getMessage();
  to = (llvm::Twine(diagnostic.getLineNo()) + ": " + message).str();
  if (!message.starts_with("unknown key '"))
    to += (" in '" + diagnostic.getLineContents().trim() + "'").str();
}
