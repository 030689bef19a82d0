//===- ShapesTest.cpp - Symbols, constants, what is refused ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestModel.h"

#include <gtest/gtest.h>

using namespace ax;
using namespace ax::test;
using onnx::TensorProto;

namespace {

/// y = relu(x), w = relu(z), x [batch, 3], z [batch, rows].
struct SymbolicModel : TestModel {
  SymbolicModel() {
    input("x", TensorProto::FLOAT, {"batch", "3"});
    input("z", TensorProto::FLOAT, {"batch", "rows"});
    node("Relu", {"x"}, {"y"});
    node("Relu", {"z"}, {"w"});
    output("y", TensorProto::FLOAT);
    output("w", TensorProto::FLOAT);
  }
};

void expectError(const ErrorDescription &error, ExitCode code,
                 const char *text) {
  EXPECT_EQ(error.code, code) << error.message;
  EXPECT_NE(error.message.find(text), std::string::npos) << error.message;
}

} // namespace

TEST(Shapes, AllUnboundSymbolsAreListed) {
  SymbolicModel model;
  ErrorDescription error = model.importError();
  expectError(error, ExitCode::Usage, "give --dim batch=SIZE");
  expectError(error, ExitCode::Usage, "give --dim rows=SIZE");
}

TEST(Shapes, DimsAndShapesBind) {
  SymbolicModel model;
  import::ImportOptions options;
  options.dims["rows"] = 5;
  // The shape of one input binds the symbols of others.
  options.shapes["x"] = {4, 3};
  auto module = model.import(options);
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  auto program = mlir::cast<ProgramOp>(findOps(**module, "ax.program")[0]);
  auto type = mlir::cast<mlir::RankedTensorType>(program.getResultTypes()[1]);
  EXPECT_EQ(type.getShape(), (llvm::ArrayRef<int64_t>{4, 5}));
  EXPECT_EQ(program.getArgName(1), "z");
  EXPECT_EQ(program.getResultName(1), "w");
}

TEST(Shapes, SizesMadeOfOthers) {
  struct Row {
    const char *dim;
    int64_t size;
  };
  for (Row row :
       {Row{"past + new", 7}, Row{"past_1 - new*2 + 1", 3},
        Row{"(past+new)//2", 3}, Row{"(new + (past))*2", 14}, Row{"past.2", 9},
        // Names behind what has no size for others.
        Row{"(past_1 - new - past)*0 + (past_1 - past)//new + past", 5}}) {
    TestModel model;
    model.input("x", TensorProto::FLOAT, {row.dim});
    model.input("z", TensorProto::FLOAT, {"past", "new", "past_1", "past.2"});
    model.node("Relu", {"x"}, {"y"});
    model.output("y", TensorProto::FLOAT);
    import::ImportOptions options;
    options.dims = {{"past", 4}, {"new", 3}, {"past_1", 8}, {"past.2", 9}};
    auto module = model.import(options);
    ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
    auto program = mlir::cast<ProgramOp>(findOps(**module, "ax.program")[0]);
    auto type = mlir::cast<mlir::RankedTensorType>(program.getResultTypes()[0]);
    EXPECT_EQ(type.getShape(), llvm::ArrayRef(row.size)) << row.dim;
  }
}

TEST(Shapes, SizesThatAreNotMadeOfOthers) {
  std::string deep(100, '(');
  for (std::string dim : {"a +", "a b", "(3) - a", "a // 0", "a // (0 - 2)",
                          "Max(a)", "(a", "a ++ a", "a * 9223372036854775807",
                          "a*99999999999999999999", deep.c_str()}) {
    TestModel model;
    model.input("x", TensorProto::FLOAT, {dim, "a"});
    model.node("Relu", {"x"}, {"y"});
    model.output("y", TensorProto::FLOAT);
    import::ImportOptions options;
    options.dims["a"] = 4;
    auto module = model.import(options);
    ASSERT_FALSE(bool(module)) << dim;
    ErrorDescription error = describeError(module.takeError());
    std::string flag = "give --dim '" + dim + "=SIZE'";
    expectError(error, ExitCode::Usage, flag.c_str());
    // As a name it has what size one says.
    options.dims[dim] = 2;
    auto given = model.import(options);
    EXPECT_TRUE(bool(given)) << llvm::toString(given.takeError());
  }
}

// What is missing is asked for, not what is made of it; names behind a
// difference that is none yet are known, too.
TEST(Shapes, WhatSizesAreMadeOfIsAskedFor) {
  TestModel model;
  model.input("x", TensorProto::FLOAT, {"(a - 5)//2 + b", "batch-size"});
  model.node("Relu", {"x"}, {"y"});
  model.output("y", TensorProto::FLOAT);
  import::ImportOptions options;
  options.dims["a"] = 9;
  auto module = model.import(options);
  ASSERT_FALSE(bool(module));
  ErrorDescription error = describeError(module.takeError());
  expectError(error, ExitCode::Usage, "'b' of input 'x': give --dim b=SIZE");
  expectError(error, ExitCode::Usage, "give --dim batch-size=SIZE");
  options.dims["b"] = 3;
  options.dims["batch-size"] = 2;
  auto given = model.import(options);
  EXPECT_TRUE(bool(given)) << llvm::toString(given.takeError());
}

// As in test cases: with names, or in order.
TEST(Shapes, ExamplesGiveShapes) {
  HostTensor wide(DType::F32, {4, 3}), tall(DType::F32, {4, 5});
  std::vector<import::NamedTensor> examples[] = {
      {{"", wide}, {"", tall}},
      {{"z", tall}, {"x", wide}},
      {{"other", wide}, {"z", tall}},
      {{"z", tall}, {"x", wide}, {"w", wide}}};
  for (const auto &example : examples) {
    SymbolicModel model;
    import::ImportOptions options;
    options.examples = example;
    auto module = model.import(options);
    ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
    auto program = mlir::cast<ProgramOp>(findOps(**module, "ax.program")[0]);
    auto type = mlir::cast<mlir::RankedTensorType>(program.getResultTypes()[1]);
    EXPECT_EQ(type.getShape(), (llvm::ArrayRef<int64_t>{4, 5}));
  }
}

TEST(Shapes, Contradictions) {
  SymbolicModel model;
  import::ImportOptions options;
  options.dims = {{"batch", 2}, {"rows", 2}};
  options.shapes["x"] = {4, 3};
  expectError(model.importError(options), ExitCode::Usage, "'batch' is 2");
  options.shapes["x"] = {2, 4};
  expectError(model.importError(options), ExitCode::Usage, "[batchx3]");
  options.shapes.clear();
  options.dims["sequence"] = 1;
  expectError(model.importError(options), ExitCode::Usage,
              "it has batch, rows");
}

TEST(Shapes, ConstantsReplaceInputs) {
  TestModel model;
  model.input("x", TensorProto::FLOAT, {"6"});
  model.input("shape", TensorProto::INT64, {"2"});
  model.node("Reshape", {"x", "shape"}, {"y"});
  model.output("y", TensorProto::FLOAT);
  ErrorDescription error = model.importError();
  expectError(error, ExitCode::Unsupported, "give --const shape=FILE.npy");
  expectError(error, ExitCode::Unsupported, "'the Reshape'");
  import::ImportOptions options;
  options.constants["shape"] = HostTensor::fromValues<int64_t>({2}, {2, 3});
  auto module = model.import(options);
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  auto program = mlir::cast<ProgramOp>(findOps(**module, "ax.program")[0]);
  EXPECT_EQ(program.getArgumentTypes().size(), 1u);
}

TEST(Shapes, UnknownOperatorsAreAllListed) {
  TestModel model;
  model.input("x", TensorProto::FLOAT, {"2"});
  model.node("Frobnicate", {"x"}, {"a"});
  model.node("Relu", {"a"}, {"b"});
  onnx::NodeProto &node = model.node("Twist", {"b"}, {"c"});
  node.set_domain("com.example");
  node.clear_name();
  model.output("c", TensorProto::FLOAT);
  ErrorDescription error = model.importError();
  expectError(error, ExitCode::Unsupported,
              "Frobnicate: node 'the Frobnicate'");
  expectError(error, ExitCode::Unsupported,
              "of domain com.example, which is not ONNX's own:\n"
              "  Twist: node of output 'c'");
}

TEST(Shapes, WrongTypesAreOneError) {
  TestModel model;
  model.input("x", TensorProto::FLOAT, {"2"});
  model.input("y", TensorProto::INT64, {"2"});
  model.node("Add", {"x", "y"}, {"z"});
  model.output("z", TensorProto::FLOAT);
  expectError(model.importError(), ExitCode::BadModel,
              "node 'the Add' (Add of 2xf32, 2xi64)");
}

TEST(Shapes, CyclesAreRefused) {
  TestModel model;
  model.input("x", TensorProto::FLOAT, {"2"});
  model.node("Add", {"x", "b"}, {"a"});
  model.node("Neg", {"a"}, {"b"});
  model.output("b", TensorProto::FLOAT);
  expectError(model.importError(), ExitCode::BadModel, "b");
}

TEST(Shapes, DamagedFiles) {
  SymbolicModel model;
  std::string whole = model.proto.SerializeAsString();
  for (size_t length :
       {size_t(0), size_t(1), whole.size() / 2, whole.size() - 1}) {
    model.writeFile("cut.onnx", whole.substr(0, length));
    auto module =
        import::importModel(model.folder() + "/cut.onnx", {}, model.context);
    ASSERT_FALSE(bool(module));
    EXPECT_EQ(describeError(module.takeError()).code, ExitCode::BadModel);
  }
}

TEST(Shapes, LargerThanAnyMemory) {
  SymbolicModel model;
  import::ImportOptions options;
  options.dims["batch"] = 1000000000000000;
  options.dims["rows"] = 3;
  expectError(model.importError(options), ExitCode::Usage,
              "is larger than 4 TiB");
}

static ErrorDescription gatherError(std::vector<int64_t> indices) {
  TestModel model;
  model.input("x", TensorProto::FLOAT, {"10", "3"});
  auto size = static_cast<int64_t>(indices.size());
  model.ints("i", {size}, std::move(indices));
  model.node("Gather", {"x", "i"}, {"y"});
  model.output("y", TensorProto::FLOAT);
  return model.importError();
}

TEST(Shapes, ConstantIndicesAreInRange) {
  EXPECT_EQ(gatherError({1, -10, 9, 3}).code, ExitCode::Success);
  expectError(gatherError({1, 99, 2}), ExitCode::BadModel,
              "node 'the Gather': index 99 is out of range of a dimension of "
              "10");
  expectError(gatherError({-11}), ExitCode::BadModel, "index -11");
}

TEST(Shapes, TypedDataIsOfItsType) {
  TestModel model;
  model.input("x", TensorProto::INT32, {"64"});
  onnx::TensorProto *tensor = model.graph().add_initializer();
  tensor->set_name("c");
  tensor->set_data_type(TensorProto::INT32);
  tensor->add_dims(64);
  for (int i = 0; i < 64; ++i)
    tensor->add_float_data(1);
  model.node("Add", {"x", "c"}, {"y"});
  model.output("y", TensorProto::INT32);
  EXPECT_EQ(model.importError().code, ExitCode::BadModel);
}
