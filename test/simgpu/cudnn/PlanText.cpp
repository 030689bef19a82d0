//===- PlanText.cpp - The simulated cuDNN's plans as text -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The library's is JSON. Nobody reads it but the library, so that this one is
// numbers.
//
//===----------------------------------------------------------------------===//

#include "Graph.h"

#include <sstream>

namespace simcudnn {

static const char *const magic = "{simulated";

static void write(std::ostream &os, const Tensor &tensor) {
  os << ' ' << tensor.number << ' ' << tensor.type << ' ' << tensor.getRank();
  for (const Sizes &all : {tensor.sizes, tensor.strides})
    for (int64_t one : all)
      os << ' ' << one;
  os << ' ' << tensor.alignment << ' ' << tensor.isVirtual << ' '
     << tensor.isByValue;
}

std::string toText(const Graph &graph, Engine engine) {
  std::ostringstream os;
  os << magic << ' ' << int(engine) << ' ' << graph.nodes.size();
  for (const Node &node : graph.nodes) {
    os << ' ' << int(node.kind) << ' ' << node.mode << ' ' << node.reduction
       << ' ' << node.type << ' ' << node.axis << ' ' << node.window.numDims;
    for (const Sizes *all : {&node.window.strides, &node.window.dilations,
                             &node.window.before, &node.window.behind})
      for (int64_t one : *all)
        os << ' ' << one;
    os << ' ' << node.inputs.size();
    for (const Tensor &input : node.inputs)
      write(os, input);
    write(os, node.output);
  }
  os << " }";
  return os.str();
}

namespace {

class Reader {
public:
  explicit Reader(const std::string &text) : is(text) {}

  int64_t number() {
    int64_t value = 0;
    is >> value;
    return value;
  }
  size_t count() {
    constexpr int64_t most = 1024;
    int64_t value = number();
    if (value < 0 || value > most)
      is.setstate(std::ios::failbit);
    return is ? static_cast<size_t>(value) : 0;
  }
  template <typename Enum>
  void read(Enum &value) {
    value = static_cast<Enum>(number());
  }
  Tensor tensor() {
    Tensor made;
    made.number = number();
    read(made.type);
    size_t rank = count();
    for (Sizes *all : {&made.sizes, &made.strides})
      for (size_t i = 0; i < rank; ++i)
        all->push_back(number());
    made.alignment = number();
    made.isVirtual = number();
    made.isByValue = number();
    return made;
  }
  Node node() {
    Node made;
    read(made.kind);
    read(made.mode);
    read(made.reduction);
    read(made.type);
    made.axis = number();
    size_t dims = count();
    made.window.numDims = static_cast<int64_t>(dims);
    for (Sizes *all : {&made.window.strides, &made.window.dilations,
                       &made.window.before, &made.window.behind})
      for (size_t i = 0; i < dims; ++i)
        all->push_back(number());
    for (size_t left = count(); left-- > 0;)
      made.inputs.push_back(tensor());
    made.output = tensor();
    return made;
  }
  bool takes(const std::string &word) {
    std::string found;
    return is >> found && found == word;
  }

private:
  std::istringstream is;
};

} // namespace

std::optional<Said> parsePlan(const std::string &text) {
  Reader reader(text);
  if (!reader.takes(magic))
    return std::nullopt;
  Said said;
  reader.read(said.engine);
  for (size_t left = reader.count(); left-- > 0;)
    said.nodes.push_back(reader.node());
  if (!reader.takes("}"))
    return std::nullopt;
  return said;
}

} // namespace simcudnn
