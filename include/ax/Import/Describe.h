//===- Describe.h - What a model's file says of itself ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_IMPORT_DESCRIBE_H
#define AX_IMPORT_DESCRIBE_H

#include "ax/Support/HostTensor.h"

#include <optional>
#include <string>
#include <vector>

namespace ax::import {

/// Nodes of one operator.
struct OperatorUse {
  /// Empty: ONNX's own.
  std::string domain, name;
  int64_t count = 0;
  /// Those that cannot be imported: `'NAME'`, or what they make.
  std::vector<std::string> unsupported;
};

struct ModelDim {
  /// The size; nothing where the file leaves it open, then `symbol` may name
  /// it.
  std::optional<int64_t> size;
  std::string symbol;
};

/// An input or output.
struct ModelPort {
  std::string name;
  /// `f32`, or what is no tensor of ours.
  std::string type;
  /// Nothing: not even the rank is known.
  std::optional<std::vector<ModelDim>> dims;
};

struct ModelFile {
  /// Relative to the model's folder.
  std::string name;
  /// Bytes; nothing where it is missing.
  std::optional<int64_t> size;
};

/// A float initializer of more than one element, or a large one.
struct StoredWeight {
  /// The name of the state that a plan has for it.
  std::string name;
  DType type = DType::F32;
  Shape shape;
  std::string file;
  int64_t offset = 0, bytes = 0;
};

struct ModelDescription {
  int64_t irVersion = 0;
  std::string producer, producerVersion;
  /// Which of PyTorch's exporters wrote it: `dynamo` or `TorchScript`; else
  /// empty.
  std::string exporter;
  /// Domain (ONNX's own: `ai.onnx`) and version.
  std::vector<std::pair<std::string, int64_t>> opsets;
  std::vector<ModelPort> inputs, outputs;
  std::vector<OperatorUse> operators;
  std::vector<StoredWeight> weights;
  /// The model's own first.
  std::vector<ModelFile> files;
};

/// Reads the graph, not the weights: files of external data may be missing.
/// Errors as importModel has them, where the file is no ONNX model at all.
llvm::Expected<ModelDescription> describeModel(llvm::StringRef path);

} // namespace ax::import

#endif // AX_IMPORT_DESCRIBE_H
