//===- InputBinder.h - Static shapes of a model's inputs --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_INPUTBINDER_H
#define AX_LIB_IMPORT_INPUTBINDER_H

#include "Prepare.h"

#include "ax/Import/Import.h"

#include "llvm/ADT/StringSet.h"

#include <map>
#include <string>
#include <vector>

namespace ax::import {

struct ModelInput {
  std::string name;
  DType type = DType::F32;
  Shape shape;
};

/// Gives every input its static shape.
class InputBinder {
public:
  InputBinder(const ImportOptions &options)
      : dims(options.dims), shapes(options.shapes), options(options) {}

  llvm::Error run(const PreparedModel &model);
  /// What the model calls the first dimension of the first input that takes
  /// batches; empty where that has no name.
  std::string getBatchSymbol() const;
  std::vector<ModelInput> inputs;

private:
  llvm::Error bindShape(const PreparedModel &model,
                        const onnx::ValueInfoProto &input);
  llvm::Error bindSymbol(const std::string &symbol, int64_t size,
                         llvm::StringRef input);
  llvm::Error checkNames();
  /// Given as such, or made of sizes that are.
  std::optional<int64_t> sizeOf(llvm::StringRef symbol) const;
  /// What has to be given for a symbol that has no size: itself, or names that
  /// it is made of.
  std::vector<std::string> missingIn(const std::string &symbol) const;
  void takeExamples();

  std::map<std::string, int64_t> dims;
  std::map<std::string, Shape> shapes;
  const ImportOptions &options;
  std::vector<const onnx::ValueInfoProto *> protos;
  llvm::StringSet<> names, symbols;
  /// Symbols without size, and the inputs that have them; inputs without, and
  /// what their shape is like.
  std::map<std::string, std::string> unboundSymbols;
  std::vector<std::pair<std::string, std::string>> unboundShapes;
};

} // namespace ax::import

#endif // AX_LIB_IMPORT_INPUTBINDER_H
