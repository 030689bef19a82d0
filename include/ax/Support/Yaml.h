//===- Yaml.h - Small YAML files that nobody trusts -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_YAML_H
#define AX_SUPPORT_YAML_H

#include "ax/Support/Error.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/YAMLTraits.h"

namespace ax {

/// A Usage error where LLVM's parser, which recurses, is not to be given the
/// text: it is too long or nested too deeply.
llvm::Error checkYaml(llvm::StringRef text, llvm::StringRef fileName);

/// Reads such a file, of which `checkYaml` would refuse more than is read; an
/// InputOutput error, with `advice` behind it.
llvm::Expected<std::string> readYamlFile(llvm::StringRef path,
                                         llvm::StringRef advice = "");

/// Keeps the first message of the parser in the string that `out` points to, as
/// `LINE: ...`.
void keepFirstYamlError(const llvm::SMDiagnostic &diagnostic, void *out);

/// Reads what `llvm::yaml` has traits of. A Usage error `FILE:LINE: ...` for
/// what is none; `adviseKey` returns what is to be said behind a key that is
/// not known. `context` is that of the traits.
template <typename T>
llvm::Error
parseYaml(llvm::StringRef text, llvm::StringRef fileName, T &value,
          llvm::function_ref<std::string(llvm::StringRef key)> adviseKey,
          void *context = nullptr) {
  if (llvm::Error error = checkYaml(text, fileName))
    return error;
  std::string message;
  llvm::yaml::Input input(text, context, keepFirstYamlError, &message);
  input >> value;
  if (!input.error())
    return llvm::Error::success();
  llvm::StringRef key = message;
  if (key.split("unknown key '").second.size())
    message += adviseKey(key.split("unknown key '").second.split('\'').first);
  return makeError(ExitCode::Usage, fileName + ":" + message);
}

/// Writes the same.
template <typename T>
std::string printYaml(T value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::yaml::Output output(os);
  output << value;
  return text;
}

} // namespace ax

#endif // AX_SUPPORT_YAML_H
