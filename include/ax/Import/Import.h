//===- Import.h - ONNX model to ax IR ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model file is untrusted: whatever it holds, the functions here return a
// module or an AxError (BadModel, Unsupported, InputOutput, Usage), and never
// read outside the model's folder.
//
//===----------------------------------------------------------------------===//
#ifndef AX_IMPORT_IMPORT_H
#define AX_IMPORT_IMPORT_H

#include "ax/Support/HostTensor.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <optional>
#include <string>

namespace ax::import {

struct NamedTensor {
  std::string name;
  HostTensor tensor;
};

struct ImportOptions {
  /// Size of each symbolic dimension: `--dim batch=8`.
  std::map<std::string, int64_t> dims;
  /// Whole shape of an input: `--shape input_ids=8x128`.
  std::map<std::string, Shape> shapes;
  /// Values that inputs may have, by name or, where no input has the name, in
  /// order: they give the shapes that `shapes` does not.
  std::vector<NamedTensor> examples;
  /// Inputs that become constants: `--const INPUT=FILE.npy`.
  std::map<std::string, HostTensor> constants;
  /// Room for results of nodes of which data decide how many there are, by name
  /// or pattern: `--max NODE=N`. Outputs whose number of results is not known
  /// have so much room, and another output beside them, `NAME.count`.
  std::vector<std::pair<std::string, int64_t>> maxResults;
  /// Weights change from step to step: none decides what is computed. What the
  /// model makes of its states (the running statistics of a
  /// BatchNormalization in training mode) become results of the states' names;
  /// and there are two more programs, `eval` and `predict`: the model in
  /// evaluation mode.
  bool training = false;
  /// Inputs, also such that a loss will add, whose first dimension does not
  /// count samples.
  std::vector<std::string> unbatched;
  /// The model in evaluation mode, as the only program, `predict`. What is
  /// random in it all the same is for who compiles it to refuse.
  bool evaluationMode = false;
  /// External data that is missing is no error: nothing is known of it then.
  bool mayLackData = false;
  /// BatchNormalization of the program that trains by the batch's statistics
  /// (true) or by the running ones (false), whatever the model says.
  std::optional<bool> batchStatistics;
  /// Into how many equal parts, each with statistics of its own, it cuts the
  /// batch; running statistics go from one to the next.
  int64_t batchParts = 1;
  /// Globs over names of values, nodes and modules: what they compute is given
  /// beside the outputs, under the values' names. Of what trains, only by
  /// `predict`.
  std::vector<std::string> keptValues;
  /// Outputs that are inputs of the next step: `--carry OUTPUT=INPUT`. Each may
  /// have one `*`, which stands for the same text in both. Not of models that
  /// train.
  std::vector<std::pair<std::string, std::string>> carried;
  /// Sizes of dimensions in another program, `prefill`, over the same states:
  /// `--prefill sequence_length=64`. Empty: there is none.
  std::map<std::string, int64_t> prefill;
};

/// Adds what a flag says, without its name: `--dim=NAME=SIZE` and
/// `--prefill=NAME=SIZE`, `--shape=INPUT=AxBxC`, `--carry=OUTPUT=INPUT`. Usage
/// errors, also where a size or shape is there already.
llvm::Error addDim(ImportOptions &options, llvm::StringRef text);
llvm::Error addPrefill(ImportOptions &options, llvm::StringRef text);
llvm::Error addShape(ImportOptions &options, llvm::StringRef text);
llvm::Error addCarry(ImportOptions &options, llvm::StringRef text);

/// The module `ax.plan @model { ax.state...; ax.program @main }`: plain tensor
/// types, static shapes, no mesh. Operations carry the name of their ONNX node
/// (and the exporter's scope) as location. Weights are `ax.state`s that refer
/// to files in the model's folder, which the plan's attribute `ax.model_dir`
/// names; they are not read, but `ax.files` has their fingerprints. Weights
/// that became constants, and those that were read, are in `ax.folded`
/// (Interpreter/FoldedWeights.h).
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importModel(llvm::StringRef path, const ImportOptions &options,
            mlir::MLIRContext &context);

/// The model's file, and those that its external data is in. What is wrong with
/// the model is not said here.
std::vector<std::string> filesOfModel(llvm::StringRef model);

/// A serialised TensorProto: `test_data_set_0/input_0.pb`.
llvm::Expected<NamedTensor> readTensorProto(llvm::StringRef path);

/// `PREFIX_0.pb`, `PREFIX_1.pb`, ... of an ONNX test-case folder, or of the
/// `test_data_set_0` in it; there may be none.
std::vector<std::string> filesOfTestData(llvm::StringRef folder,
                                         llvm::StringRef prefix);
llvm::Expected<std::vector<NamedTensor>> readTestData(llvm::StringRef folder,
                                                      llvm::StringRef prefix);

/// Returns the test case's tensors in the order of `names`; BadInput where one
/// is missing.
llvm::Expected<std::vector<HostTensor>>
readTestData(llvm::StringRef folder, llvm::StringRef prefix,
             llvm::ArrayRef<std::string> names);

/// Test data often has no names: who has none of `names` gets that at its
/// place, unless another tensor has it.
void nameByPosition(std::vector<NamedTensor> &tensors,
                    llvm::ArrayRef<std::string> names);

} // namespace ax::import

#endif // AX_IMPORT_IMPORT_H
