//===- ControlTest.cpp - If, Loop and local functions ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestModel.h"

#include <gtest/gtest.h>

using namespace ax;
using namespace ax::test;
using onnx::TensorProto;

TEST(Control, IfTakesABranch) {
  TestModel model;
  model.input("x", TensorProto::FLOAT, {"2"});
  model.input("c", TensorProto::BOOL, {});
  onnx::NodeProto &node = model.node("If", {"c"}, {"y"});
  onnx::GraphProto &yes = setGraph(node, "then_branch");
  addNode(yes, "Neg", {"x"}, {"a"});
  addOutput(yes, "a", TensorProto::FLOAT);
  onnx::GraphProto &no = setGraph(node, "else_branch");
  addNode(no, "Abs", {"x"}, {"b"});
  addOutput(no, "b", TensorProto::FLOAT);
  model.output("y", TensorProto::FLOAT);

  for (bool isKnown : {true, false})
    for (bool condition : {true, false}) {
      import::ImportOptions options;
      std::vector<HostTensor> inputs = {
          HostTensor::fromValues<float>({2}, {-1.0f, 2.0f})};
      if (isKnown)
        options.constants["c"] = HostTensor::scalar<bool>(condition);
      else
        inputs.push_back(HostTensor::scalar<bool>(condition));
      auto module = model.import(options);
      ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
      auto y = interpretModule(**module, inputs);
      ASSERT_TRUE(bool(y));
      EXPECT_EQ((*y)[0].getDouble(1), condition ? -2 : 2);
    }
}

/// y = x + 0 + 1 + 2 + 3, ys the sums on the way; going on while `goes`, or
/// while the sum is below `bound`.
static void addLoop(TestModel &model, bool dependsOnData) {
  model.ints("trips", {}, {4});
  onnx::NodeProto &node = model.node("Loop", {"trips", "", "x"}, {"y", "ys"});
  onnx::GraphProto &body = setGraph(node, "body");
  addInput(body, "i", TensorProto::INT64, {});
  addInput(body, "goes", TensorProto::BOOL, {});
  addInput(body, "v", TensorProto::FLOAT, {});
  setInt(addNode(body, "Cast", {"i"}, {"f"}), "to", TensorProto::FLOAT);
  addNode(body, "Add", {"v", "f"}, {"sum"});
  addNode(body, "Identity", {"sum"}, {"copy"});
  if (dependsOnData)
    addNode(body, "Less", {"sum", "bound"}, {"next"});
  else
    addNode(body, "Identity", {"goes"}, {"next"});
  addOutput(body, "next", TensorProto::BOOL);
  addOutput(body, "sum", TensorProto::FLOAT);
  addOutput(body, "copy", TensorProto::FLOAT);
  model.output("y", TensorProto::FLOAT);
  model.output("ys", TensorProto::FLOAT);
}

TEST(Control, LoopUnrolls) {
  TestModel model;
  model.input("x", TensorProto::FLOAT, {"2"});
  addLoop(model, false);
  auto module = model.import();
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  auto results = interpretModule(
      **module, {HostTensor::fromValues<float>({2}, {0.0f, 10.0f})});
  ASSERT_TRUE(bool(results));
  EXPECT_EQ((*results)[0].getDouble(1), 16);
  EXPECT_EQ((*results)[1].getShape(), (Shape{4, 2}));
  EXPECT_EQ((*results)[1].getDouble(5), 13);
}

TEST(Control, LoopThatDependsOnData) {
  TestModel model;
  model.input("x", TensorProto::FLOAT, {});
  model.floats("bound", {}, {3});
  addLoop(model, true);
  ErrorDescription error = model.importError();
  EXPECT_EQ(error.code, ExitCode::Unsupported);
  EXPECT_NE(error.message.find("have scan outputs"), std::string::npos)
      << error.message;
}

TEST(Control, LocalFunctionsOfOldOpsets) {
  TestModel model;
  model.proto.mutable_opset_import(0)->set_version(12);
  auto *custom = model.proto.add_opset_import();
  custom->set_domain("local");
  custom->set_version(1);
  onnx::FunctionProto *function = model.proto.add_functions();
  function->set_name("SumRows");
  function->set_domain("local");
  function->add_input("a");
  function->add_output("b");
  function->add_opset_import()->set_version(12);
  onnx::NodeProto *inner = function->add_node();
  inner->set_op_type("ReduceSum"); // its axes became an input in set 13
  inner->add_input("a");
  inner->add_output("b");
  setInts(*inner, "axes", {1});
  setInt(*inner, "keepdims", 0);
  model.input("x", TensorProto::FLOAT, {"2", "3"});
  model.node("SumRows", {"x"}, {"y"}).set_domain("local");
  model.output("y", TensorProto::FLOAT);
  auto module = model.import();
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  auto y = interpretModule(
      **module,
      {HostTensor::fromValues<float>({2, 3}, {1.f, 2.f, 3.f, 4.f, 5.f, 6.f})});
  ASSERT_TRUE(bool(y));
  EXPECT_EQ((*y)[0].getShape(), (Shape{2}));
  EXPECT_EQ((*y)[0].getDouble(1), 15);
}

/// Function `name` calls `callee` so many times.
static void addFunction(TestModel &model, const std::string &name,
                        const std::string &callee, int times) {
  onnx::FunctionProto *function = model.proto.add_functions();
  function->set_name(name);
  function->set_domain("local");
  function->add_input("a0");
  function->add_output("a" + std::to_string(times));
  auto *own = function->add_opset_import();
  own->set_version(18);
  auto *local = function->add_opset_import();
  local->set_domain("local");
  local->set_version(1);
  for (int i = 0; i < times; ++i) {
    onnx::NodeProto *node = function->add_node();
    node->set_op_type(callee);
    if (callee != "Neg")
      node->set_domain("local");
    node->add_input("a" + std::to_string(i));
    node->add_output("a" + std::to_string(i + 1));
  }
}

static ErrorDescription callFunctions(int levels, int times,
                                      const std::string &innermost = "Neg") {
  TestModel model;
  auto *custom = model.proto.add_opset_import();
  custom->set_domain("local");
  custom->set_version(1);
  addFunction(model, "F0", innermost, 1);
  for (int i = 1; i <= levels; ++i)
    addFunction(model, "F" + std::to_string(i), "F" + std::to_string(i - 1),
                times);
  model.input("x", TensorProto::FLOAT, {"2"});
  model.node("F" + std::to_string(levels), {"x"}, {"y"}).set_domain("local");
  model.output("y", TensorProto::FLOAT);
  return model.importError();
}

TEST(Control, FunctionsAreWrittenOutWithinBounds) {
  EXPECT_EQ(callFunctions(4, 2).code, ExitCode::Success);
  ErrorDescription error = callFunctions(40, 2);
  EXPECT_EQ(error.code, ExitCode::Unsupported);
  EXPECT_NE(error.message.find("nodes, its functions written out"),
            std::string::npos)
      << error.message;
  error = callFunctions(600, 1);
  EXPECT_EQ(error.code, ExitCode::BadModel);
  error = callFunctions(0, 2, "F0");
  EXPECT_EQ(error.code, ExitCode::BadModel);
}
