//===- Inspect.h - What there is in a model ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before anything is compiled: what the file says, and what Import, Raise and
// the passes that flags concern find.
//
//===----------------------------------------------------------------------===//
#ifndef AX_INSPECT_INSPECT_H
#define AX_INSPECT_INSPECT_H

#include "ax/Import/Describe.h"
#include "ax/Import/Import.h"
#include "ax/Passes/Choices.h"
#include "ax/Plan/Layers.h"

namespace ax::inspect {

struct Weight : import::StoredWeight {
  /// Whether it trains; nothing where the graph could not be read so far.
  std::optional<bool> isTrained;
  std::string why;
};

struct Layer {
  std::string kind, node;
  /// `k`, 768.
  std::vector<std::pair<std::string, int64_t>> dims;
  double flops = 0;
};

/// Operations of one numbered module, such as `encoder.layer.0`.
struct Block {
  std::string name;
  int64_t layers = 0;
  /// How large the weights are that the block reads.
  int64_t weightBytes = 0;
  double flops = 0;
  /// What `--cut` ends a stage with after this block.
  std::string cut;
};

struct Stage {
  int64_t operations = 0, layers = 0, weightBytes = 0;
  double flops = 0;
  std::string first, last;
};

struct Inspection {
  std::string path;
  import::ModelDescription model;
  /// The sizes of symbolic dimensions; those that no flag says are `assumed`.
  std::map<std::string, int64_t> sizes;
  /// Symbols, and inputs whose dimensions have no names.
  std::vector<std::string> assumed;
  std::vector<Weight> weights;
  std::vector<Layer> layers;
  std::vector<Block> blocks;
  /// The pipeline's stages, where there is more than one.
  std::vector<Stage> stages;
  std::vector<PatternMatch> matches;
  /// Why the graph cannot be compiled, or looked into any further.
  std::vector<std::string> problems;
  /// What passes remarked.
  std::vector<std::string> notes;
};

/// Returns what is in the model at `path`, and what the flags would name in it:
/// those that concern import, and `strategy` with its training (of which only
/// what names weights counts). What is wrong with the model is a problem, not
/// an error; errors are of the flags (Usage, as in compiling), and of files
/// that are no ONNX model or cannot be read.
llvm::Expected<Inspection> inspectModel(llvm::StringRef path,
                                        const import::ImportOptions &options,
                                        const Strategy &strategy,
                                        mlir::MLIRContext &context);

/// What repeats is one line, and lists are cut, unless `all`.
void print(const Inspection &inspection, bool all, llvm::raw_ostream &os);
/// docs/user-guide.md says what is in it.
void printJSON(const Inspection &inspection, llvm::raw_ostream &os);

} // namespace ax::inspect

#endif // AX_INSPECT_INSPECT_H
