//===- FoldingTest.cpp - What is computed while importing -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestModel.h"

#include "ax/Interpreter/FoldedWeights.h"

#include <gtest/gtest.h>

using namespace ax;
using namespace ax::test;
using onnx::TensorProto;

static size_t numOps(mlir::ModuleOp module, const char *name) {
  return findOps(module, name).size();
}

TEST(Folding, ShapesOfInputsVanish) {
  // Flattens x the way TorchScript exports do.
  TestModel model;
  model.input("x", TensorProto::FLOAT, {"batch", "3", "4"});
  model.ints("zero", {}, {0});
  model.ints("axis", {1}, {0});
  model.ints("rest", {1}, {-1});
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "zero"}, {"b"});
  model.node("Unsqueeze", {"b", "axis"}, {"b1"});
  setInt(model.node("Concat", {"b1", "rest"}, {"target"}), "axis", 0);
  model.node("Reshape", {"x", "target"}, {"y"});
  model.output("y", TensorProto::FLOAT);
  import::ImportOptions options;
  options.dims["batch"] = 5;
  auto module = model.import(options);
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  EXPECT_EQ(numOps(**module, "ax.reshape"), 1u);
  EXPECT_EQ(numOps(**module, "ax.constant"), 0u);
  EXPECT_EQ(numOps(**module, "ax.gather"), 0u);
}

TEST(Folding, HugeUniformConstantsStayOneNumber) {
  TestModel model;
  model.input("x", TensorProto::FLOAT, {"1"});
  // 4 TiB, were it written down.
  model.ints("shape", {3}, {1 << 14, 1 << 14, 1 << 12});
  model.ints("one", {3}, {1, 1, 1});
  model.ints("zero", {3}, {0, 0, 0});
  model.ints("axes", {3}, {0, 1, 2});
  model.node("ConstantOfShape", {"shape"}, {"c"});
  model.node("Cos", {"c"}, {"d"});
  model.node("Slice", {"d", "zero", "one", "axes"}, {"e"});
  model.node("Add", {"x", "e"}, {"y"});
  model.output("y", TensorProto::FLOAT);
  auto module = model.import();
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  auto y =
      interpretModule(**module, {HostTensor::fromValues<float>({1}, {2.0f})});
  ASSERT_TRUE(bool(y));
  EXPECT_EQ((*y)[0].getDouble(0), 3);
}

TEST(Folding, NothingThatTakesLongIsComputed) {
  TestModel model;
  model.input("x", TensorProto::FLOAT, {"1"});
  model.floats("one", {1, 1, 1, 1, 1}, {1});
  onnx::NodeProto &pool = model.node("MaxPool", {"one"}, {"m"});
  setInts(pool, "kernel_shape", {1 << 10, 1 << 10, 1 << 10});
  setInts(pool, "pads", std::vector<int64_t>(6, 1 << 9));
  model.node("Add", {"x", "m"}, {"y"});
  model.output("y", TensorProto::FLOAT);
  auto module = model.import();
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  EXPECT_EQ(numOps(**module, "ax.pool"), 1u);
}

TEST(Folding, WindowsOfEverythingAreRefused) {
  TestModel model;
  model.input("x", TensorProto::FLOAT, {"1", "1", "1", "1", "1"});
  onnx::NodeProto &pool = model.node("MaxPool", {"x"}, {"y"});
  setInts(pool, "kernel_shape", {1 << 20, 1 << 20, 1 << 20});
  setInts(pool, "pads", std::vector<int64_t>(6, 1 << 19));
  model.output("y", TensorProto::FLOAT);
  ErrorDescription error = model.importError();
  EXPECT_EQ(error.code, ExitCode::BadModel);
  EXPECT_NE(error.message.find("the window is too large"), std::string::npos)
      << error.message;
}

TEST(Folding, NothingOfHugeExtentIsComputed) {
  TestModel model;
  model.input("x", TensorProto::FLOAT, {"1"});
  model.ints("shape", {2}, {0, int64_t(1) << 39});
  model.node("ConstantOfShape", {"shape"}, {"c"});
  setInt(model.node("ReduceSum", {"c"}, {"s"}), "keepdims", 0);
  model.node("Add", {"x", "s"}, {"y"});
  model.output("y", TensorProto::FLOAT);
  auto module = model.import();
  EXPECT_TRUE(bool(module)) << llvm::toString(module.takeError());
}

TEST(Folding, WeightsKeepTheirNames) {
  TestModel model;
  model.input("x", TensorProto::FLOAT, {"2", "2"});
  model.floats("w", {2, 2}, {1, 2, 3, 4});
  setInts(model.node("Transpose", {"w"}, {"wt"}), "perm", {1, 0});
  model.node("MatMul", {"x", "wt"}, {"y"});
  model.output("y", TensorProto::FLOAT);
  auto module = model.import();
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  auto states = findOps(**module, "ax.state");
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(mlir::cast<StateOp>(states[0]).getSymName(), "w");
  EXPECT_EQ(numOps(**module, "ax.transpose"), 1u);
}

TEST(Folding, IsNotOfWeightsButOfNumbers) {
  TestModel model;
  model.input("x", TensorProto::FLOAT, {"2"});
  model.floats("w", {2}, {1, 2});
  model.floats("scale", {}, {3});
  model.node("Exp", {"w"}, {"e"});
  model.node("Exp", {"scale"}, {"s"});
  model.node("Mul", {"x", "e"}, {"m"});
  model.node("Mul", {"m", "s"}, {"y"});
  model.output("y", TensorProto::FLOAT);
  for (bool training : {false, true}) {
    import::ImportOptions options;
    options.training = training;
    auto module = model.import(options);
    ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
    PlanOp plan = *(**module).getOps<PlanOp>().begin();
    auto main = plan.lookupSymbol<ProgramOp>("main");
    EXPECT_EQ(llvm::range_size(main.getBody().getOps<LoadOp>()), 1u);
    EXPECT_EQ(llvm::range_size(main.getBody().getOps<UnaryOp>()), 1u);
    auto folded = plan->getAttrOfType<mlir::DictionaryAttr>(kFolded);
    ASSERT_TRUE(folded && folded.size() == 1u);
    EXPECT_EQ(folded.begin()->getName(), "scale");
  }
}

TEST(Folding, KnownEvenIndicesAreSlices) {
  TestModel model;
  model.input("x", TensorProto::FLOAT, {"2", "6"});
  model.ints("even", {2}, {-5, 3});
  setInt(model.node("Gather", {"x", "even"}, {"y"}), "axis", 1);
  model.output("y", TensorProto::FLOAT);
  auto module = model.import();
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  EXPECT_EQ(numOps(**module, "ax.gather"), 0u);
  std::vector<float> values;
  for (int i = 0; i < 12; ++i)
    values.push_back(static_cast<float>(i));
  auto y = interpretModule(**module,
                           {HostTensor::fromValues<float>({2, 6}, values)});
  ASSERT_TRUE(bool(y));
  EXPECT_EQ((*y)[0].getDouble(0), 1);
  EXPECT_EQ((*y)[0].getDouble(1), 3);
  EXPECT_EQ((*y)[0].getDouble(3), 9);
}

TEST(Folding, LocationsNameNodeAndScope) {
  TestModel model;
  model.input("x", TensorProto::FLOAT, {"2"});
  auto *entry = model.node("Relu", {"x"}, {"y"}).add_metadata_props();
  entry->set_key("pkg.torch.onnx.name_scopes");
  entry->set_value("['', 'encoder', 'encoder.act', 'relu']");
  model.output("y", TensorProto::FLOAT);
  auto module = model.import();
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  mlir::Operation *relu = findOps(**module, "ax.unary")[0];
  EXPECT_EQ(getNodeName(relu), "encoder.act/the Relu");
  for (const char *name : {"encoder.act", "the Relu"})
    EXPECT_TRUE(llvm::is_contained(getNodeNames(relu), name)) << name;
}
