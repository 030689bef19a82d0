//===- Node.cpp - One ONNX node while it is imported ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Node.h"

#include "Types.h"

using namespace ax;
using namespace ax::import;
using onnx::AttributeProto;

Value Node::in(int i) {
  if (failed())
    return {};
  if (!has(i))
    return fail("input " + llvm::Twine(i) + " is missing");
  if (!inputs[i].tensor)
    return unsupported("input " + llvm::Twine(i) + " is no tensor");
  return inputs[i].tensor;
}

std::vector<Value> Node::allInputs() {
  std::vector<Value> values;
  for (int i = 0; i < numInputs(); ++i)
    values.push_back(in(i));
  return values;
}

ArrayRef<Value> Node::sequence(int i) {
  if (failed())
    return {};
  if (!has(i)) {
    fail("input " + llvm::Twine(i) + " is missing");
    return {};
  }
  assert(inputs[i].sequence && "types of inputs are checked before");
  return *inputs[i].sequence;
}

std::optional<HostTensor> Node::known(int i, llvm::StringRef what,
                                      llvm::StringRef decides) {
  Value value = in(i);
  if (!value)
    return std::nullopt;
  if (std::optional<HostTensor> tensor = b.demand(value))
    return tensor;
  if (std::optional<std::string> node = b.countBehind(value)) {
    unsupported("input '" + what + "' (" + proto.input(i) + ") decides " +
                decides +
                ", so it must be known when compiling, but how many results "
                "node '" +
                *node + "' has decides it");
    return std::nullopt;
  }
  std::string flags;
  for (const std::string &name : b.inputsBehind(value))
    flags += " --const " + name + "=FILE.npy";
  bool isComputed = value.getDefiningOp();
  unsupported("input '" + what + "' (" + proto.input(i) + ") decides " +
              decides + ", so it must be known when compiling" +
              (flags.empty() ? ""
               : isComputed  ? "; it is computed from what the plan would then "
                               "have as constants:" +
                                   flags
                             : "; give" + flags));
  return std::nullopt;
}

std::optional<std::vector<int64_t>> Node::knownInts(int i, llvm::StringRef what,
                                                    llvm::StringRef decides) {
  std::optional<HostTensor> tensor = known(i, what, decides);
  if (!tensor)
    return std::nullopt;
  return tensor->toInts();
}

std::optional<int64_t> Node::knownInt(int i, llvm::StringRef what,
                                      llvm::StringRef decides) {
  std::optional<std::vector<int64_t>> values = knownInts(i, what, decides);
  if (!values)
    return std::nullopt;
  if (values->size() != 1) {
    fail("input '" + what + "' must be one number");
    return std::nullopt;
  }
  return values->front();
}

std::optional<Sizes> Node::sizes(int i, llvm::StringRef what) {
  Value value = in(i);
  if (b.countBehind(value))
    return openSizes(value, what);
  std::optional<std::vector<int64_t>> known = knownInts(i, what);
  if (!known)
    return std::nullopt;
  return Sizes{std::move(*known), std::nullopt, {}};
}

std::optional<Sizes> Node::openSizes(Value value, llvm::StringRef what) {
  // As many results as there is room for, and none.
  std::optional<HostTensor> all = b.demand(value, 0);
  std::optional<HostTensor> none =
      b.demand(value, std::numeric_limits<int64_t>::max() / 2);
  if (!all || !none) {
    unsupported("'" + what +
                "' depends on how many results there are in a way "
                "that is not understood");
    return std::nullopt;
  }
  Sizes result{all->toInts(), std::nullopt, {}};
  std::vector<int64_t> least = none->toInts();
  for (size_t d = 0; d < result.most.size(); ++d) {
    if (b.isFixed(value, static_cast<int64_t>(d)))
      continue;
    result.most[d] = std::max<int64_t>({result.most[d], least[d], 0});
    if (result.open) {
      unsupported("more than one of '" + what + "' is known only when it runs");
      return std::nullopt;
    }
    result.open = d;
  }
  if (!result.open)
    return result;
  auto at = static_cast<int64_t>(*result.open);
  Value flat = b.cast(
      b.reshape(value, {static_cast<int64_t>(result.most.size())}), DType::I64);
  result.count =
      b.atMost(b.reshape(b.sliceDim(flat, 0, at, 1), {}), result.most[at]);
  b.dropBounds();
  return result;
}

const AttributeProto *Node::attribute(llvm::StringRef name) const {
  for (const AttributeProto &attribute : proto.attribute())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

int64_t Node::intAttr(llvm::StringRef name, int64_t otherwise) const {
  const AttributeProto *found = attribute(name);
  return found ? found->i() : otherwise;
}

double Node::floatAttr(llvm::StringRef name, double otherwise) const {
  const AttributeProto *found = attribute(name);
  return found ? found->f() : otherwise;
}

std::string Node::stringAttr(llvm::StringRef name,
                             llvm::StringRef otherwise) const {
  const AttributeProto *found = attribute(name);
  return found ? found->s() : otherwise.str();
}

std::vector<int64_t> Node::intsAttr(llvm::StringRef name,
                                    std::vector<int64_t> otherwise) const {
  const AttributeProto *found = attribute(name);
  if (!found)
    return otherwise;
  return {found->ints().begin(), found->ints().end()};
}

std::optional<std::vector<int64_t>>
Node::intsOf(int i, llvm::StringRef name, std::vector<int64_t> otherwise) {
  if (has(i))
    return knownInts(i, name);
  return intsAttr(name, std::move(otherwise));
}

const onnx::GraphProto *Node::graphAttr(llvm::StringRef name) {
  const AttributeProto *found = attribute(name);
  if (found && found->has_g())
    return &found->g();
  fail("attribute '" + name + "' is missing");
  return nullptr;
}

DType Node::typeAttr(llvm::StringRef name, DType otherwise) {
  const AttributeProto *found = attribute(name);
  if (!found)
    return otherwise;
  std::optional<DType> type = fromOnnxType(static_cast<int32_t>(found->i()));
  if (!type) {
    unsupported("element type " +
                onnxTypeName(static_cast<int32_t>(found->i())) +
                " is not supported");
    return otherwise;
  }
  return *type;
}

int64_t Node::dim(int64_t value, int64_t rank) {
  if (value < -rank || value >= rank) {
    fail("axis " + llvm::Twine(value) + " is out of range of rank " +
         llvm::Twine(rank));
    return 0;
  }
  return value < 0 ? value + rank : value;
}

std::vector<int64_t> Node::dims(std::vector<int64_t> values, int64_t rank) {
  for (int64_t &value : values)
    value = dim(value, rank);
  llvm::sort(values);
  values.erase(llvm::unique(values), values.end());
  return values;
}
