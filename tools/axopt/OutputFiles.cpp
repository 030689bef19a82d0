//===- OutputFiles.cpp - What axopt writes replaces no input --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Actions.h"
#include "ax/Import/Export.h"
#include "ax/Plan/Plan.h"
#include "ax/Runtime/Checkpoint.h"
#include "ax/Support/OutputCheck.h"

#include "llvm/Support/FileSystem.h"

using namespace ax;

llvm::Error ax::checkOutputs(const Options &options,
                             llvm::ArrayRef<std::string> inputs,
                             const std::string &constants) {
  OutputCheck files;
  // A plan is read as a whole, with its constants, before it is written.
  bool isReplaced = options.isPlan && options.targets.empty() &&
                    options.output != "-" &&
                    llvm::sys::fs::equivalent(options.input, options.output);
  for (const std::string &input : inputs)
    files.reads(input,
                isReplaced && (input == options.input || input == constants)
                    ? "-o"
                    : "");
  for (const std::string &input : options.otherInputs)
    files.reads(input);
  files.reads(options.strategyFile, "--save-strategy");
  for (const std::string &file : rt::filesOfWeights(options.weights))
    files.reads(file);
  files.writes("--report", options.report);
  files.writes("--save-strategy", options.saveStrategy);
  files.writes("--mlir-pass-pipeline-crash-reproducer", options.reproducer);
  if (options.exportOnnx.empty()) {
    if (!options.verifyOnly) {
      files.writes("-o", options.output);
      if (auto beside = plan::constantsFileFor(options.output))
        files.writes("-o", *beside);
    }
  } else {
    files.writes("--export-onnx", options.exportOnnx);
    files.writes("--export-onnx", import::dataFileOf(options.exportOnnx));
  }
  return files.check();
}
