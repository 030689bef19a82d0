//===- SameRun.cpp - Whether all processes run the same -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SameRun.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Runtime/Checkpoint.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/Path.h"

using namespace ax;

namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

/// A file's size and the hash of some of its bytes, or why it cannot be read:
/// blocks at both ends and, evenly, between. Small files are hashed whole.
std::string fingerprintOf(const std::string &path) {
  auto file = MappedFile::open(path);
  if (!file)
    return "'" + path + "', which cannot be read (" +
           describeError(file.takeError()).message + ")";
  constexpr int64_t numBlocks = 64, blockBytes = 16384;
  llvm::BLAKE3 hasher;
  (*file)->visitSamples(
      numBlocks, blockBytes,
      [&](llvm::ArrayRef<uint8_t> block) { hasher.update(block); });
  return "'" + llvm::sys::path::filename(path).str() + "' of " +
         std::to_string((*file)->getSize()) + " bytes, " +
         llvm::toHex(hasher.final<8>(), /*LowerCase=*/true);
}

void addFiles(llvm::StringRef what, llvm::ArrayRef<std::string> paths,
              Facts &facts) {
  for (const std::string &path : paths)
    if (!path.empty())
      facts.emplace_back(what.str(), fingerprintOf(path));
}

} // namespace

llvm::Error ax::checkSameCommand(const RunOptions &options) {
  rt::World &world = *options.session.world;
  if (world.isAlone())
    return llvm::Error::success();
  Facts facts;
  addFiles("plan", {options.plan}, facts);
  std::string flags;
  for (const auto &[name, value] : options.shared)
    flags += (flags.empty() ? "" : " ") + name + "=" + value;
  facts.emplace_back("command line", flags.empty() ? "no flags" : flags);
  return rt::agreeOnValues(world, "what is to be run", facts);
}

llvm::Error ax::checkSameFiles(const RunOptions &options,
                               const Session &session) {
  rt::World &world = *options.session.world;
  if (world.isAlone())
    return llvm::Error::success();
  Facts facts;
  // The plan itself is compared before.
  addFiles("file of the plan", llvm::ArrayRef(session.getFiles()).drop_front(),
           facts);
  addFiles("file of weights", rt::filesToCompare(options.session.weights),
           facts);
  if (const Resumed *resumed = session.getResumed())
    addFiles("checkpoint",
             resumed->path + "/" + rt::checkpoint::manifestName.str(), facts);
  for (const auto &[name, file] : options.inputs)
    addFiles("input", file, facts);
  addFiles("file of inputs", options.inputArchive, facts);
  addFiles("prompt", options.prompt, facts);
  if (!options.testData.empty())
    addFiles("file of test data",
             options.testCases->files(options.testData, "input"), facts);
  auto addData = [&](const std::string &data) {
    if (!data.empty())
      addFiles("file of samples", filesOfData(data, session.getInputs()),
               facts);
  };
  addData(options.predict);
  if (options.eval)
    addData(options.eval->data);
  if (options.training) {
    addData(options.training->data);
    if (options.training->eval)
      addData(options.training->eval->data);
  }
  return rt::agreeOnValues(world, "files of the run", facts);
}
