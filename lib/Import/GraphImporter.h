//===- GraphImporter.h - Walks graphs, node by node -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_GRAPHIMPORTER_H
#define AX_LIB_IMPORT_GRAPHIMPORTER_H

#include "Node.h"
#include "Prepare.h"

#include "llvm/ADT/StringMap.h"

namespace ax::import {

/// The names visible in a graph: its own, then those of the graphs around it.
/// A function's body has no parent.
struct Scope {
  llvm::StringMap<Entry> entries;
  const Scope *parent = nullptr;

  const Entry *find(llvm::StringRef name) const {
    for (const Scope *scope = this; scope; scope = scope->parent)
      if (auto found = scope->entries.find(name); found != scope->entries.end())
        return &found->second;
    return nullptr;
  }
};

class GraphImporter {
public:
  GraphImporter(Emitter &builder, const PreparedModel &model)
      : b(builder), model(model), opset(model.opset) {}

  /// Initializers of `graph` become entries of `scope`.
  bool importInitializers(const onnx::GraphProto &graph, Scope &scope);
  /// Nodes in their order; false after a failure, which names the node.
  bool
  importNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
              Scope &scope);
  /// Values of a graph's outputs; false when one is missing.
  bool collectOutputs(
      const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> &outputs,
      const Scope &scope, std::vector<Entry> &entries);

private:
  class Subgraphs;
  /// False, and a failure, when there are too many.
  bool countNode();
  bool importNode(const onnx::NodeProto &proto, Scope &scope);
  /// The body of the function that `proto` calls; false when it is none.
  bool findBody(const onnx::NodeProto &proto, ArrayRef<Entry> inputs,
                onnx::FunctionProto &body);
  std::optional<std::vector<Entry>> expandFunction(const onnx::NodeProto &proto,
                                                   ArrayRef<Entry> inputs);
  mlir::Location locationOf(const onnx::NodeProto &proto);

  Emitter &b;
  const PreparedModel &model;
  /// The operator set of the nodes that are imported now: a function's may be
  /// another than the model's.
  int opset;
  /// Whether they are of a function that a schema gives.
  bool isInSchema = false;
  /// The call's place, inside function bodies, whose nodes have no names of
  /// their own.
  std::optional<mlir::Location> outerLocation;
  int depth = 0;
  int64_t numNodes = 0;
};

} // namespace ax::import

#endif // AX_LIB_IMPORT_GRAPHIMPORTER_H
