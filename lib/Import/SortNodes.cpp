//===- SortNodes.cpp - Nodes after those that they read -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SortNodes.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <queue>

using namespace ax;
using namespace ax::import;
using onnx::NodeProto;
using Nodes = google::protobuf::RepeatedPtrField<NodeProto>;

/// Calls `visit` with the names that a node and the graphs in it read, but for
/// what these graphs themselves call so.
static void visitReads(const NodeProto &node,
                       llvm::function_ref<void(llvm::StringRef)> visit) {
  for (const std::string &name : node.input())
    visit(name);
  auto visitGraph = [&](const onnx::GraphProto &graph) {
    llvm::StringSet<> own;
    for (const onnx::ValueInfoProto &input : graph.input())
      own.insert(input.name());
    for (const onnx::TensorProto &initializer : graph.initializer())
      own.insert(initializer.name());
    for (const onnx::SparseTensorProto &initializer :
         graph.sparse_initializer())
      own.insert(initializer.values().name());
    for (const NodeProto &inner : graph.node())
      own.insert(inner.output().begin(), inner.output().end());
    auto visitOuter = [&](llvm::StringRef name) {
      if (!own.contains(name))
        visit(name);
    };
    for (const NodeProto &inner : graph.node())
      visitReads(inner, visitOuter);
    for (const onnx::ValueInfoProto &output : graph.output())
      visitOuter(output.name());
  };
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    visitGraph(attribute.g());
    llvm::for_each(attribute.graphs(), visitGraph);
  }
}

static llvm::Error sortNodes(Nodes &nodes) {
  for (NodeProto &node : nodes)
    for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        if (llvm::Error error =
                sortNodes(*attribute.mutable_g()->mutable_node()))
          return error;
      for (onnx::GraphProto &graph : *attribute.mutable_graphs())
        if (llvm::Error error = sortNodes(*graph.mutable_node()))
          return error;
    }

  llvm::StringMap<int> makers;
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string &name : nodes[i].output())
      if (!name.empty())
        makers.try_emplace(name, i);
  std::vector<std::vector<int>> readers(nodes.size());
  std::vector<int> missing(nodes.size(), 0);
  bool isSorted = true;
  for (int i = 0; i < nodes.size(); ++i)
    visitReads(nodes[i], [&](llvm::StringRef name) {
      auto maker = makers.find(name);
      if (maker == makers.end())
        return;
      isSorted &= maker->second < i;
      readers[maker->second].push_back(i);
      ++missing[i];
    });
  if (isSorted)
    return llvm::Error::success();

  // Of those that may come next the one that was written first.
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i)
    if (!missing[i])
      ready.push(i);
  Nodes sorted;
  while (!ready.empty()) {
    int next = ready.top();
    ready.pop();
    sorted.Add()->Swap(&nodes[next]);
    for (int reader : readers[next])
      if (--missing[reader] == 0)
        ready.push(reader);
  }
  for (int i = 0; i < nodes.size(); ++i)
    if (missing[i])
      return makeErrorf(ExitCode::BadModel,
                        "node '{0}' ({1}) reads, by way of others, what it "
                        "makes itself",
                        nodes[i].name(), nodes[i].op_type());
  nodes.Swap(&sorted);
  return llvm::Error::success();
}

llvm::Error ax::import::sortNodes(onnx::ModelProto &model) {
  for (onnx::FunctionProto &function : *model.mutable_functions())
    if (llvm::Error error = ::sortNodes(*function.mutable_node()))
      return error;
  return ::sortNodes(*model.mutable_graph()->mutable_node());
}
