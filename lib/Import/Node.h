//===- Node.h - One ONNX node while it is imported --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_NODE_H
#define AX_LIB_IMPORT_NODE_H

#include "Emitter.h"

#include <onnx/onnx_pb.h>

#include <memory>

namespace ax::import {

/// What an ONNX name stands for: a tensor, a sequence of tensors (whose length
/// is always known), or nothing (an optional that is empty).
struct Entry {
  Value tensor;
  std::shared_ptr<const std::vector<Value>> sequence;

  Entry() = default;
  Entry(Value tensor) : tensor(tensor) {}
  static Entry makeSequence(std::vector<Value> values) {
    Entry entry;
    entry.sequence =
        std::make_shared<const std::vector<Value>>(std::move(values));
    return entry;
  }
  bool isEmpty() const { return !tensor && !sequence; }
};

/// Runs graphs that nodes hold (branches and bodies).
class SubgraphRunner {
public:
  virtual ~SubgraphRunner() = default;
  /// Outputs of `graph`, whose inputs are `inputs` and which sees the names
  /// around the node. Empty after a failure.
  virtual std::vector<Entry> run(const onnx::GraphProto &graph,
                                 ArrayRef<Entry> inputs) = 0;
};

/// Sizes, of which one may be known only when the program runs: `most` has room
/// for it, and `count` is the i64 scalar that it is.
struct Sizes {
  std::vector<int64_t> most;
  std::optional<size_t> open;
  Value count;
};

class Node {
public:
  Node(Emitter &builder, const onnx::NodeProto &proto, int opset,
       std::vector<Entry> inputs, SubgraphRunner &subgraphs)
      : b(builder), proto(proto), opset(opset), subgraphs(subgraphs),
        inputs(std::move(inputs)), outputs(proto.output_size()) {}

  Emitter &b;
  const onnx::NodeProto &proto;
  /// The operator set whose operator this is.
  const int opset;
  SubgraphRunner &subgraphs;

  // Inputs.
  int numInputs() const { return static_cast<int>(inputs.size()); }
  bool has(int i) const { return i < numInputs() && !inputs[i].isEmpty(); }
  /// A tensor; null and a failure when it is absent or no tensor.
  Value in(int i);
  /// A tensor, or null when it is absent.
  Value optional(int i) { return has(i) ? in(i) : Value(); }
  std::vector<Value> allInputs();
  const Entry &entry(int i) const { return inputs[i]; }
  /// The elements of a sequence.
  ArrayRef<Value> sequence(int i);
  /// The contents of input `i`, which decides shapes or what else is said: a
  /// failure unless they are known. `what` is the input's name in ONNX.
  std::optional<HostTensor> known(int i, llvm::StringRef what,
                                  llvm::StringRef decides = "shapes");
  std::optional<std::vector<int64_t>>
  knownInts(int i, llvm::StringRef what, llvm::StringRef decides = "shapes");
  std::optional<int64_t> knownInt(int i, llvm::StringRef what,
                                  llvm::StringRef decides = "shapes");
  /// The same, where one of them may be a number of results (`--max`).
  std::optional<Sizes> sizes(int i, llvm::StringRef what);
  /// The same of a value that numbers of results decide.
  std::optional<Sizes> openSizes(Value value, llvm::StringRef what);

  // Attributes.
  const onnx::AttributeProto *attribute(llvm::StringRef name) const;
  bool hasAttribute(llvm::StringRef name) const { return attribute(name); }
  int64_t intAttr(llvm::StringRef name, int64_t otherwise) const;
  double floatAttr(llvm::StringRef name, double otherwise) const;
  std::string stringAttr(llvm::StringRef name, llvm::StringRef otherwise) const;
  std::vector<int64_t> intsAttr(llvm::StringRef name,
                                std::vector<int64_t> otherwise = {}) const;
  /// Ints of input `i` when there is one, else of the attribute.
  std::optional<std::vector<int64_t>>
  intsOf(int i, llvm::StringRef name, std::vector<int64_t> otherwise = {});
  const onnx::GraphProto *graphAttr(llvm::StringRef name);
  /// Element type named by an integer attribute; a failure if we lack it.
  DType typeAttr(llvm::StringRef name, DType otherwise);

  // Dimensions: negative ones count from the end.
  int64_t dim(int64_t value, int64_t rank);
  /// Returns dimensions sorted, each once.
  std::vector<int64_t> dims(std::vector<int64_t> values, int64_t rank);

  // Outputs.
  int numOutputs() const { return proto.output_size(); }
  bool wants(int i) const {
    return i < proto.output_size() && !proto.output(i).empty();
  }
  void out(int i, Entry entry) {
    if (i < static_cast<int>(outputs.size()))
      outputs[i] = std::move(entry);
  }
  void out(Entry entry) { out(0, std::move(entry)); }
  std::vector<Entry> takeOutputs() { return std::move(outputs); }

  // Failures.
  Value fail(const llvm::Twine &message) {
    return b.fail(ExitCode::BadModel, message);
  }
  Value unsupported(const llvm::Twine &message) {
    return b.fail(ExitCode::Unsupported, message);
  }
  bool failed() const { return b.hasFailed(); }

private:
  std::vector<Entry> inputs, outputs;
};

using OpImporter = void (*)(Node &);

/// The importer of an operator of operator set `opset`; null when there is
/// none.
OpImporter findImporter(llvm::StringRef domain, llvm::StringRef opType,
                        int opset);

} // namespace ax::import

#endif // AX_LIB_IMPORT_NODE_H
