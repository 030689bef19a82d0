//===- GraphTensors.cpp - A graph's tensors on the wire -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GraphTensors.h"

#include "ax/Support/Error.h"
#include "ax/Support/WireFormat.h"

#include <onnx/onnx_pb.h>

using namespace ax;
using namespace ax::import;
using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::NodeProto;

static void append(std::string &out, llvm::ArrayRef<uint8_t> bytes) {
  out.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
}

static bool isBytes(const WireField &field, int number) {
  return field.type == WireType::Bytes &&
         field.number == static_cast<uint32_t>(number);
}

static bool isGraph(const WireField &field) {
  return isBytes(field, AttributeProto::kGFieldNumber) ||
         isBytes(field, AttributeProto::kGraphsFieldNumber);
}

/// The fields of `message` that `is` is true of.
template <typename Predicate>
static std::vector<WireField> fieldsOf(llvm::ArrayRef<uint8_t> message,
                                       Predicate is) {
  std::vector<WireField> fields;
  WireReader reader(message);
  WireField field;
  while (reader.read(field))
    if (is(field))
      fields.push_back(field);
  return fields;
}

static std::vector<WireField> graphsOf(llvm::ArrayRef<uint8_t> node) {
  std::vector<WireField> graphs;
  for (const WireField &attribute : fieldsOf(node, [](const WireField &field) {
         return isBytes(field, NodeProto::kAttributeFieldNumber);
       }))
    llvm::append_range(graphs, fieldsOf(attribute.bytes, isGraph));
  return graphs;
}

/// Graphs in nodes: more inside each other are refused when the model is
/// parsed, which is later.
static constexpr int maxDepth = 64;

static void collect(llvm::ArrayRef<uint8_t> graph, const WeightNodes &nodes,
                    std::vector<TensorHeader> &tensors, int depth = 0) {
  if (depth > maxDepth)
    return;
  WireReader reader(graph);
  WireField field;
  while (reader.read(field)) {
    TensorHeader header;
    if (isBytes(field, GraphProto::kInitializerFieldNumber)) {
      if (readTensorHeader(field.bytes, header))
        tensors.push_back(std::move(header));
    } else if (isBytes(field, GraphProto::kNodeFieldNumber)) {
      if (auto constant = nodes.read(field.bytes))
        tensors.push_back(std::move(constant->header));
      else
        for (const WireField &inner : graphsOf(field.bytes))
          collect(inner.bytes, nodes, tensors, depth + 1);
    }
  }
}

std::vector<TensorHeader>
ax::import::findTensors(llvm::ArrayRef<uint8_t> graph) {
  std::vector<TensorHeader> tensors;
  collect(graph, WeightNodes(graph), tensors);
  return tensors;
}

std::string ax::import::withoutTensors(llvm::ArrayRef<uint8_t> graph) {
  std::string out;
  WeightNodes nodes(graph);
  WireReader reader(graph);
  WireField field;
  while (reader.read(field)) {
    bool isTensor = isBytes(field, GraphProto::kInitializerFieldNumber) ||
                    (isBytes(field, GraphProto::kNodeFieldNumber) &&
                     nodes.read(field.bytes));
    if (!isTensor)
      append(out, field.whole);
  }
  return out;
}

namespace {

class Rewriter {
public:
  using Fault = llvm::function_ref<llvm::Error(const llvm::Twine &)>;

  Rewriter(const WeightNodes &nodes, TensorRewriter rewrite, Fault fault)
      : nodes(nodes), rewrite(rewrite), fault(fault) {}

  llvm::Expected<std::string> graph(llvm::ArrayRef<uint8_t> bytes);

private:
  using Optional = llvm::Expected<std::optional<std::string>>;

  Optional initializer(const WireField &field);
  Optional node(const WireField &field);
  Optional attribute(const WireField &field);
  /// `message` with other contents of the fields that `change` changes; nothing
  /// when it changes none.
  template <typename Change>
  Optional withChanges(llvm::ArrayRef<uint8_t> message, Change change);

  const WeightNodes &nodes;
  TensorRewriter rewrite;
  Fault fault;
};

} // namespace

template <typename Change>
Rewriter::Optional Rewriter::withChanges(llvm::ArrayRef<uint8_t> message,
                                         Change change) {
  std::string out;
  bool isChanged = false;
  WireReader reader(message);
  WireField field;
  while (reader.read(field)) {
    Optional changed = change(field);
    if (!changed)
      return changed.takeError();
    if (*changed)
      appendBytesField(out, field.number, **changed);
    else
      append(out, field.whole);
    isChanged |= changed->has_value();
  }
  if (reader.isMalformed())
    return fault("its graph is damaged or cut off");
  return isChanged ? std::optional(std::move(out)) : std::nullopt;
}

Rewriter::Optional Rewriter::initializer(const WireField &field) {
  TensorHeader header;
  if (!readTensorHeader(field.bytes, header))
    return fault("an initializer is damaged");
  return rewrite(header, field.bytes);
}

Rewriter::Optional Rewriter::attribute(const WireField &field) {
  return withChanges(field.bytes, [&](const WireField &part) -> Optional {
    if (!isGraph(part))
      return std::nullopt;
    auto inner = graph(part.bytes);
    if (!inner)
      return inner.takeError();
    return std::move(*inner);
  });
}

Rewriter::Optional Rewriter::node(const WireField &field) {
  auto isAttribute = [](const WireField &part) {
    return isBytes(part, NodeProto::kAttributeFieldNumber);
  };
  auto constant = nodes.read(field.bytes);
  if (!constant) {
    // Most nodes have no graphs.
    if (graphsOf(field.bytes).empty())
      return std::nullopt;
    return withChanges(field.bytes, [&](const WireField &part) -> Optional {
      if (isAttribute(part))
        return attribute(part);
      return std::nullopt;
    });
  }
  Optional tensor = rewrite(constant->header, constant->tensor);
  if (!tensor || !*tensor)
    return tensor;
  return withChanges(field.bytes, [&](const WireField &part) -> Optional {
    if (!isAttribute(part))
      return std::nullopt;
    return withChanges(part.bytes, [&](const WireField &value) -> Optional {
      if (isBytes(value, AttributeProto::kTFieldNumber))
        return *tensor;
      return std::nullopt;
    });
  });
}

llvm::Expected<std::string> Rewriter::graph(llvm::ArrayRef<uint8_t> bytes) {
  auto changed = withChanges(bytes, [&](const WireField &field) -> Optional {
    if (isBytes(field, GraphProto::kInitializerFieldNumber))
      return initializer(field);
    if (isBytes(field, GraphProto::kNodeFieldNumber))
      return node(field);
    return std::nullopt;
  });
  if (!changed)
    return changed.takeError();
  if (*changed)
    return std::move(**changed);
  return std::string(bytes.begin(), bytes.end());
}

llvm::Expected<std::string> ax::import::rewriteTensors(
    llvm::ArrayRef<uint8_t> graph, TensorRewriter rewrite,
    llvm::function_ref<llvm::Error(const llvm::Twine &)> fault) {
  WeightNodes nodes(graph);
  return Rewriter(nodes, rewrite, fault).graph(graph);
}
