//===- TestModel.cpp - Small models written by tests ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestModel.h"

#include "ax/Interpreter/Elements.h"
#include "ax/Interpreter/Interpreter.h"
#include "ax/Support/MappedFile.h"

#include "llvm/Support/FileSystem.h"

#include <fstream>

using namespace ax;
using namespace ax::test;
using onnx::AttributeProto;
using onnx::TensorProto;

onnx::NodeProto &ax::test::addNode(onnx::GraphProto &graph,
                                   const std::string &type, const Names &inputs,
                                   const Names &outputs) {
  onnx::NodeProto *node = graph.add_node();
  node->set_op_type(type);
  for (const std::string &name : inputs)
    node->add_input(name);
  for (const std::string &name : outputs)
    node->add_output(name);
  return *node;
}

void ax::test::addInput(onnx::GraphProto &graph, const std::string &name,
                        int32_t type, const Names &shape) {
  onnx::ValueInfoProto *input = graph.add_input();
  input->set_name(name);
  auto *tensor = input->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();
  for (const std::string &size : shape) {
    auto *dim = tensor->mutable_shape()->add_dim();
    if (std::isdigit(size[0]))
      dim->set_dim_value(std::stoll(size));
    else
      dim->set_dim_param(size);
  }
}

void ax::test::addOutput(onnx::GraphProto &graph, const std::string &name,
                         int32_t type) {
  onnx::ValueInfoProto *output = graph.add_output();
  output->set_name(name);
  output->mutable_type()->mutable_tensor_type()->set_elem_type(type);
}

static AttributeProto &attribute(onnx::NodeProto &node, const std::string &name,
                                 AttributeProto::AttributeType type) {
  AttributeProto *attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return *attribute;
}

void ax::test::setInts(onnx::NodeProto &node, const std::string &name,
                       std::vector<int64_t> values) {
  AttributeProto &list = attribute(node, name, AttributeProto::INTS);
  for (int64_t value : values)
    list.add_ints(value);
}

void ax::test::setInt(onnx::NodeProto &node, const std::string &name,
                      int64_t value) {
  attribute(node, name, AttributeProto::INT).set_i(value);
}

onnx::GraphProto &ax::test::setGraph(onnx::NodeProto &node,
                                     const std::string &name) {
  onnx::GraphProto *graph =
      attribute(node, name, AttributeProto::GRAPH).mutable_g();
  graph->set_name(name);
  return *graph;
}

TestModel::TestModel() {
  llvm::SmallString<64> name;
  llvm::sys::fs::createUniqueDirectory("ax-import-test", name);
  path = name.str().str();
  proto.set_ir_version(10);
  proto.add_opset_import()->set_version(18);
  graph().set_name("test");
}

TestModel::~TestModel() { llvm::sys::fs::remove_directories(path); }

onnx::NodeProto &TestModel::node(const std::string &type, const Names &inputs,
                                 const Names &outputs) {
  onnx::NodeProto &node = addNode(graph(), type, inputs, outputs);
  node.set_name("the " + type);
  return node;
}

TensorProto &TestModel::tensor(const std::string &name, int32_t type,
                               const Shape &shape) {
  TensorProto *tensor = graph().add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  for (int64_t size : shape)
    tensor->add_dims(size);
  return *tensor;
}

void TestModel::floats(const std::string &name, Shape shape,
                       std::vector<float> values) {
  TensorProto &proto = tensor(name, TensorProto::FLOAT, shape);
  for (float value : values)
    proto.add_float_data(value);
}

void TestModel::ints(const std::string &name, Shape shape,
                     std::vector<int64_t> values) {
  TensorProto &proto = tensor(name, TensorProto::INT64, shape);
  for (int64_t value : values)
    proto.add_int64_data(value);
}

void TestModel::external(const std::string &name, Shape shape,
                         const std::string &file, const std::string &offset,
                         const std::string &length) {
  TensorProto &proto = tensor(name, TensorProto::FLOAT, shape);
  proto.set_data_location(TensorProto::EXTERNAL);
  auto entry = [&](const char *key, const std::string &value) {
    auto *pair = proto.add_external_data();
    pair->set_key(key);
    pair->set_value(value);
  };
  entry("location", file);
  entry("offset", offset);
  entry("length", length);
}

void TestModel::writeFile(const std::string &name, const std::string &bytes) {
  std::ofstream(path + "/" + name, std::ios::binary) << bytes;
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
TestModel::import(const import::ImportOptions &options) {
  writeFile("model.onnx", proto.SerializeAsString());
  return import::importModel(path + "/model.onnx", options, context);
}

ErrorDescription TestModel::importError(const import::ImportOptions &options) {
  auto module = import(options);
  return module ? ErrorDescription() : describeError(module.takeError());
}

std::vector<mlir::Operation *> ax::test::findOps(mlir::ModuleOp module,
                                                 llvm::StringRef name) {
  std::vector<mlir::Operation *> found;
  module.walk([&](mlir::Operation *op) {
    if (op->getName().getStringRef() == name)
      found.push_back(op);
  });
  return found;
}

static llvm::Expected<HostTensor> readState(LoadOp load) {
  auto plan = load->getParentOfType<PlanOp>();
  auto state = mlir::cast<StateOp>(
      mlir::SymbolTable::lookupNearestSymbolFrom(load, load.getStateAttr()));
  auto folder = plan->getAttrOfType<mlir::StringAttr>("ax.model_dir");
  auto file =
      MappedFile::open((folder.getValue() + "/" + state.getFile()).str());
  if (!file)
    return file.takeError();
  auto bytes = (*file)->range(state.getOffset(), state.getLength());
  if (!bytes)
    return bytes.takeError();
  mlir::RankedTensorType type = state.getTensorType();
  return HostTensor::fromBytes(*interpreter::toDType(type.getElementType()),
                               Shape(type.getShape()), *bytes);
}

llvm::Expected<llvm::SmallVector<HostTensor>>
ax::test::interpretModule(mlir::ModuleOp module,
                          llvm::ArrayRef<HostTensor> inputs) {
  auto program = mlir::cast<ProgramOp>(findOps(module, "ax.program").front());
  return interpreter::interpretProgram(program, inputs, readState);
}
