//===- TestModel.h - Small models written by tests --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_UNIT_IMPORT_TESTMODEL_H
#define AX_TEST_UNIT_IMPORT_TESTMODEL_H

#include "ax/Dialect/Ax.h"
#include "ax/Import/Import.h"
#include "ax/Support/Error.h"

#include <onnx/onnx_pb.h>

namespace ax::test {

using Names = std::vector<std::string>;

onnx::NodeProto &addNode(onnx::GraphProto &graph, const std::string &type,
                         const Names &inputs, const Names &outputs);
/// Dimensions are numbers or symbols.
void addInput(onnx::GraphProto &graph, const std::string &name, int32_t type,
              const Names &shape);
void addOutput(onnx::GraphProto &graph, const std::string &name, int32_t type);
void setInts(onnx::NodeProto &node, const std::string &name,
             std::vector<int64_t> values);
void setInt(onnx::NodeProto &node, const std::string &name, int64_t value);
onnx::GraphProto &setGraph(onnx::NodeProto &node, const std::string &name);

/// A model in a temporary folder of its own, at operator set 18. Its nodes are
/// called `the TYPE`.
class TestModel {
public:
  TestModel();
  ~TestModel();

  onnx::ModelProto proto;
  onnx::GraphProto &graph() { return *proto.mutable_graph(); }
  void input(const std::string &name, int32_t type, const Names &shape) {
    addInput(graph(), name, type, shape);
  }
  void output(const std::string &name, int32_t type) {
    addOutput(graph(), name, type);
  }
  onnx::NodeProto &node(const std::string &type, const Names &inputs,
                        const Names &outputs);
  void floats(const std::string &name, Shape shape, std::vector<float> values);
  void ints(const std::string &name, Shape shape, std::vector<int64_t> values);
  /// An f32 initializer whose data is in `file` of the model's folder.
  void external(const std::string &name, Shape shape, const std::string &file,
                const std::string &offset, const std::string &length);
  void writeFile(const std::string &name, const std::string &bytes);

  const std::string &folder() const { return path; }
  /// Writes the model and imports it.
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  import(const import::ImportOptions &options = {});
  /// The error of an import that must fail; Success when it does not.
  ErrorDescription importError(const import::ImportOptions &options = {});

  mlir::MLIRContext context;

private:
  onnx::TensorProto &tensor(const std::string &name, int32_t type,
                            const Shape &shape);
  std::string path;
};

/// All operations of a name in a module.
std::vector<mlir::Operation *> findOps(mlir::ModuleOp module,
                                       llvm::StringRef name);
/// The program of an imported module, interpreted; weights come from their
/// files.
llvm::Expected<llvm::SmallVector<HostTensor>>
interpretModule(mlir::ModuleOp module, llvm::ArrayRef<HostTensor> inputs);

} // namespace ax::test

#endif // AX_TEST_UNIT_IMPORT_TESTMODEL_H
