//===- Sizes.cpp - Sizes of inputs, as flags say them ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Import/Import.h"

#include "ax/Support/Error.h"

using namespace ax;

static llvm::Error usage(const llvm::Twine &message) {
  return makeError(ExitCode::Usage, message);
}

/// `NAME=VALUE`; names have `=`, too.
static llvm::Expected<std::pair<llvm::StringRef, llvm::StringRef>>
splitPair(llvm::StringRef flag, llvm::StringRef text) {
  auto [name, value] = text.rsplit('=');
  if (name.empty() || value.empty())
    return usage("--" + flag + "=" + text + ": expected NAME=VALUE");
  return std::pair(name, value);
}

static llvm::Error twice(llvm::StringRef flag, llvm::StringRef name) {
  return usage("--" + flag + " of '" + name + "' is given twice");
}

/// `NAME=SIZE` of the flag.
static llvm::Error addSize(const char *flag,
                           std::map<std::string, int64_t> &sizes,
                           llvm::StringRef text) {
  auto pair = splitPair(flag, text);
  if (!pair)
    return pair.takeError();
  int64_t size;
  if (pair->second.getAsInteger(10, size) || size < 0)
    return usage(llvm::Twine("--") + flag + "=" + text +
                 ": the size must be 0 or more");
  if (!sizes.try_emplace(pair->first.str(), size).second)
    return twice(flag, pair->first);
  return llvm::Error::success();
}

llvm::Error import::addDim(ImportOptions &options, llvm::StringRef text) {
  return addSize("dim", options.dims, text);
}

llvm::Error import::addPrefill(ImportOptions &options, llvm::StringRef text) {
  return addSize("prefill", options.prefill, text);
}

llvm::Error import::addShape(ImportOptions &options, llvm::StringRef text) {
  auto pair = splitPair("shape", text);
  if (!pair)
    return pair.takeError();
  llvm::SmallVector<llvm::StringRef> parts;
  pair->second.split(parts, 'x');
  Shape shape;
  for (llvm::StringRef part : parts)
    if (int64_t size; !part.getAsInteger(10, size) && size >= 0)
      shape.push_back(size);
  if (shape.size() != parts.size())
    return usage("--shape=" + text + ": expected sizes like 8x128");
  if (!options.shapes.try_emplace(pair->first.str(), shape).second)
    return twice("shape", pair->first);
  return llvm::Error::success();
}
