//===- InterpreterTest.cpp - Known answers of the interpreter -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "InterpreterTestSupport.h"

#include <chrono>

using namespace ax;
using namespace ax::interpreter;

static HostTensor unary(const char *kind, const HostTensor &x,
                        std::string resultType = "") {
  std::string type = typeText(toTensorType(x, &testContext()));
  if (resultType.empty())
    resultType = type;
  return run(std::string("%r = ax.unary ") + kind + " %x0 : " + type + " -> " +
                 resultType,
             {x}, resultType);
}

static HostTensor binary(const char *kind, const HostTensor &a,
                         const HostTensor &b, std::string resultType) {
  return run(std::string("%r = ax.binary ") + kind +
                 " %x0, %x1 : " + typeText(toTensorType(a, &testContext())) +
                 ", " + typeText(toTensorType(b, &testContext())) + " -> " +
                 resultType,
             {a, b}, resultType);
}

TEST(Elementwise, UnaryOfFloats) {
  HostTensor x = f32({3}, {-2, 0, 0.5});
  expectValues(unary("neg", x), {2, 0, -0.5});
  expectValues(unary("sign", x), {-1, 0, 1});
  expectValues(unary("relu", x), {0, 0, 0.5});
  expectValues(unary("exp", x), {std::exp(-2), 1, std::exp(0.5)});
  expectValues(unary("sigmoid", x), {0.11920292, 0.5, 0.62245933});
  expectValues(unary("gelu", x), {-0.04550026, 0, 0.34573123});
  expectValues(unary("gelu_tanh", x), {-0.04540231, 0, 0.34571401});
  expectValues(unary("silu", x), {-0.23840584, 0, 0.31122967});
  expectValues(unary("softplus", x), {0.12692801, 0.69314718, 0.97407698});
  expectValues(unary("round", f32({4}, {0.5, 1.5, -2.5, 2.6})), {0, 2, -2, 3});
  expectValues(unary("rsqrt", f32({1}, {4})), {0.5});
  expectValues(unary("is_nan", f32({3}, {NAN, 1, INFINITY}), "tensor<3xi1>"),
               {1, 0, 0});
  expectValues(
      unary("is_neg_inf", f32({3}, {NAN, -INFINITY, INFINITY}), "tensor<3xi1>"),
      {0, 1, 0});
}

TEST(Elementwise, UnaryOfIntegers) {
  HostTensor x = i64({3}, {-3, 0, 5});
  expectValues(unary("abs", x), {3, 0, 5});
  expectValues(unary("bit_not", x), {2, -1, -6});
  expectValues(unary("abs", i64({1}, {-128}).cast(DType::I8)), {-128});
  expectValues(unary("logical_not", boolean({2}, {0, 1})), {1, 0});
  expectValues(unary("bit_not", i64({1}, {1}).cast(DType::U8)), {254});
}

TEST(Elementwise, NarrowFloatsRoundOnce) {
  HostTensor x = f32({2}, {1, 2048}).cast(DType::F16);
  HostTensor y = f32({2}, {0.0003, 1}).cast(DType::F16);
  // Half of the last bit of 1 is 0.00049; 2049 lies between two halves.
  expectValues(binary("add", x, y, "tensor<2xf16>"), {1, 2048});
  expectValues(binary("add", f32({1}, {256}).cast(DType::BF16),
                      f32({1}, {3}).cast(DType::BF16), "tensor<1xbf16>"),
               {260});
}

/// Of any two types of eight bits: exact products, summed up in f32.
TEST(Contraction, FactorsOfEightBits) {
  HostTensor x = f32({1, 3}, {448, 1.125, 0.001953125});
  HostTensor w = f32({3, 1}, {57344, 0.5, 0.25});
  for (auto [ofX, ofW, sum] :
       {std::tuple(DType::F8E4M3FN, DType::F8E5M2, 25690112.5625),
        {DType::F8E5M2, DType::F8E4M3FN, 448 * 448 + 0.5 + 0.00048828125},
        {DType::F8E4M3FN, DType::F8E4M3FN, 448 * 448 + 0.5625}}) {
    HostTensor a = x.cast(ofX), b = w.cast(ofW);
    std::string types = " : " + typeText(toTensorType(a, &testContext())) +
                        ", " + typeText(toTensorType(b, &testContext())) +
                        " -> tensor<1x1xf32>";
    for (const char *op :
         {"%r = ax.linear %x0, %x1",
          "%r = ax.dot %x0, %x1 batch [] x [] contract [1] x [0]"})
      expectValues(run(op + types, {a, b}, "tensor<1x1xf32>"),
                   {static_cast<float>(sum)});
  }
}

TEST(Elementwise, BinaryBroadcasts) {
  expectValues(binary("sub", f32({2, 1}, {1, 2}), f32({3}, {10, 20, 30}),
                      "tensor<2x3xf32>"),
               {-9, -19, -29, -8, -18, -28});
  expectValues(binary("mul", f32({}, {3}), f32({2}, {1, 2}), "tensor<2xf32>"),
               {3, 6});
}

TEST(Elementwise, IntegerArithmetic) {
  HostTensor a = i64({4}, {7, -7, 7, -7}), b = i64({4}, {2, 2, -2, -2});
  expectValues(binary("div", a, b, "tensor<4xi64>"), {3, -3, -3, 3});
  expectValues(binary("floor_mod", a, b, "tensor<4xi64>"), {1, 1, -1, -1});
  expectValues(binary("trunc_mod", a, b, "tensor<4xi64>"), {1, -1, 1, -1});
  expectValues(binary("pow", i64({4}, {2, -1, 3, 2}), i64({4}, {10, 3, 0, -1}),
                      "tensor<4xi64>"),
               {1024, -1, 1, 0});
  expectValues(binary("div", i64({2}, {1, INT64_MIN}), i64({2}, {0, -1}),
                      "tensor<2xi64>"),
               {0, static_cast<double>(INT64_MIN)});
  HostTensor u = i64({2}, {200, 255}).cast(DType::U8);
  expectValues(binary("add", u, u, "tensor<2xui8>"), {144, 254});
  expectValues(
      binary("shr", u, i64({2}, {3, 9}).cast(DType::U8), "tensor<2xui8>"),
      {25, 0});
  expectValues(
      binary("shl", u, i64({2}, {1, 7}).cast(DType::U8), "tensor<2xui8>"),
      {144, 128});
}

TEST(Elementwise, FloatModAndExtremes) {
  HostTensor a = f32({3}, {-5.5, 5.5, NAN}), b = f32({3}, {2, -2, 1});
  expectValues(binary("floor_mod", a, b, "tensor<3xf32>"), {0.5, -0.5, NAN});
  expectValues(binary("trunc_mod", a, b, "tensor<3xf32>"), {-1.5, 1.5, NAN});
  expectValues(binary("max", a, b, "tensor<3xf32>"), {2, 5.5, NAN});
  expectValues(binary("min", b, a, "tensor<3xf32>"), {-5.5, -2, NAN});
}

TEST(Elementwise, CompareSelectCast) {
  expectValues(run("%r = ax.compare le %x0, %x1 : tensor<3xf32>, tensor<f32> "
                   "-> tensor<3xi1>",
                   {f32({3}, {1, 2, 3}), f32({}, {2})}, "tensor<3xi1>"),
               {1, 1, 0});
  expectValues(
      run("%r = ax.select %x0, %x1, %x2 : tensor<2x1xi1>, tensor<2xi64>, "
          "tensor<i64> -> tensor<2x2xi64>",
          {boolean({2, 1}, {1, 0}), i64({2}, {5, 6}), i64({}, {9})},
          "tensor<2x2xi64>"),
      {5, 6, 9, 9});
  expectValues(run("%r = ax.cast %x0 : tensor<3xf32> -> tensor<3xi32>",
                   {f32({3}, {-1.7, 1.7, 3})}, "tensor<3xi32>"),
               {-1, 1, 3});
  expectValues(run("%r = ax.cast %x0 : tensor<2xf32> -> tensor<2xi1>",
                   {f32({2}, {0, -0.5})}, "tensor<2xi1>"),
               {0, 1});
}

TEST(Shape, Layout) {
  HostTensor x = i64({2, 3}, {0, 1, 2, 3, 4, 5});
  expectValues(run("%r = ax.transpose %x0 [1, 0] : tensor<2x3xi64> -> "
                   "tensor<3x2xi64>",
                   {x}, "tensor<3x2xi64>"),
               {0, 3, 1, 4, 2, 5});
  expectValues(run("%r = ax.slice %x0 starts [1, 2] steps [-1, -2] : "
                   "tensor<2x3xi64> -> tensor<2x2xi64>",
                   {x}, "tensor<2x2xi64>"),
               {5, 3, 2, 0});
  expectValues(
      run("%r = ax.broadcast %x0 : tensor<2x1xi64> -> tensor<2x2x2xi64>",
          {i64({2, 1}, {1, 2})}, "tensor<2x2x2xi64>"),
      {1, 1, 2, 2, 1, 1, 2, 2});
  expectValues(run("%r = ax.concat %x0, %x1 dim 1 : tensor<2x1xi64>, "
                   "tensor<2x2xi64> -> tensor<2x3xi64>",
                   {i64({2, 1}, {9, 8}), i64({2, 2}, {1, 2, 3, 4})},
                   "tensor<2x3xi64>"),
               {9, 1, 2, 8, 3, 4});
  expectValues(run("%r = ax.dynamic_slice %x0 [%x1, %x2] : tensor<2x3xi64>, "
                   "tensor<i64>, tensor<i64> -> tensor<2x2xi64>",
                   {x, i64({}, {1}), i64({}, {-1})}, "tensor<2x2xi64>"),
               {0, 3, 0, 0});
  expectValues(
      run("%r = ax.iota dim 1 : tensor<2x3xf32>", {}, "tensor<2x3xf32>"),
      {0, 1, 2, 0, 1, 2});
}

TEST(Shape, Pad) {
  HostTensor x = i64({4}, {1, 2, 3, 4});
  auto pad = [&](const char *mode) {
    return run(std::string("%r = ax.pad %x0 low [3] high [2] {mode = "
                           "#ax<pad_mode ") +
                   mode + ">} : tensor<4xi64> -> tensor<9xi64>",
               {x}, "tensor<9xi64>");
  };
  expectValues(pad("reflect"), {4, 3, 2, 1, 2, 3, 4, 3, 2});
  expectValues(pad("edge"), {1, 1, 1, 1, 2, 3, 4, 4, 4});
  expectValues(pad("wrap"), {2, 3, 4, 1, 2, 3, 4, 1, 2});
  expectValues(run("%r = ax.pad %x0 value %x1 : tensor<i64> low [1] high [1] : "
                   "tensor<4xi64> -> tensor<6xi64>",
                   {x, i64({}, {7})}, "tensor<6xi64>"),
               {7, 1, 2, 3, 4, 7});
}

TEST(Gather, AllForms) {
  HostTensor x = i64({3, 2}, {0, 1, 2, 3, 4, 5});
  expectValues(run("%r = ax.gather %x0[%x1] axis 0 : tensor<3x2xi64>, "
                   "tensor<3xi64> -> tensor<3x2xi64>",
                   {x, i64({3}, {-1, 0, 2})}, "tensor<3x2xi64>"),
               {4, 5, 0, 1, 4, 5});
  expectValues(run("%r = ax.gather %x0[%x1] axis 1 : tensor<3x2xi64>, "
                   "tensor<i64> -> tensor<3xi64>",
                   {x, i64({}, {1})}, "tensor<3xi64>"),
               {1, 3, 5});
  expectValues(run("%r = ax.gather_elements %x0[%x1] axis 0 : tensor<3x2xi64>, "
                   "tensor<2x2xi64> -> tensor<2x2xi64>",
                   {x, i64({2, 2}, {2, 0, -2, 1})}, "tensor<2x2xi64>"),
               {4, 1, 2, 3});
  expectValues(run("%r = ax.gather_nd %x0[%x1] batch_dims 0 : tensor<3x2xi64>, "
                   "tensor<2x2xi64> -> tensor<2xi64>",
                   {x, i64({2, 2}, {0, 1, -1, 0})}, "tensor<2xi64>"),
               {1, 4});
  expectValues(run("%r = ax.gather_nd %x0[%x1] batch_dims 1 : tensor<3x2xi64>, "
                   "tensor<3x1xi64> -> tensor<3xi64>",
                   {x, i64({3, 1}, {1, 0, 1})}, "tensor<3xi64>"),
               {1, 2, 5});
}

TEST(Gather, Scatter) {
  HostTensor x = i64({3, 2}, {0, 1, 2, 3, 4, 5});
  auto scatter = [&](const char *kind) {
    return run(std::string("%r = ax.scatter_elements ") + kind +
                   " %x0[%x1], %x2 axis 0 : tensor<3x2xi64>, tensor<2x1xi64>, "
                   "tensor<2x1xi64> -> tensor<3x2xi64>",
               {x, i64({2, 1}, {2, -1}), i64({2, 1}, {10, 3})},
               "tensor<3x2xi64>");
  };
  expectValues(scatter("set"), {0, 1, 2, 3, 3, 5});
  expectValues(scatter("add"), {0, 1, 2, 3, 17, 5});
  expectValues(scatter("mul"), {0, 1, 2, 3, 120, 5});
  expectValues(scatter("max"), {0, 1, 2, 3, 10, 5});
  expectValues(scatter("min"), {0, 1, 2, 3, 3, 5});
  expectValues(run("%r = ax.scatter_nd add %x0[%x1], %x2 : tensor<3x2xi64>, "
                   "tensor<2x1xi64>, tensor<2x2xi64> -> tensor<3x2xi64>",
                   {x, i64({2, 1}, {0, -1}), i64({2, 2}, {1, 1, 7, 7})},
                   "tensor<3x2xi64>"),
               {1, 2, 2, 3, 11, 12});
}

TEST(Gather, IndicesOutOfRangeAreErrors) {
  HostTensor x = i64({3, 2}, {0, 1, 2, 3, 4, 5}), two = i64({2}, {1, 2});
  struct Case {
    const char *body;
    std::vector<HostTensor> operands;
    const char *type;
  };
  for (int64_t index : {3, -4}) {
    HostTensor one = i64({1, 1}, {index});
    for (const Case &c :
         {Case{"ax.gather %x0[%x1] axis 0 : tensor<3x2xi64>, "
               "tensor<1x1xi64> -> tensor<1x1x2xi64>",
               {x, one},
               "tensor<1x1x2xi64>"},
          Case{"ax.gather_elements %x0[%x1] axis 0 : tensor<3x2xi64>, "
               "tensor<1x1xi64> -> tensor<1x1xi64>",
               {x, one},
               "tensor<1x1xi64>"},
          Case{"ax.gather_nd %x0[%x1] batch_dims 0 : tensor<3x2xi64>, "
               "tensor<1x1xi64> -> tensor<1x2xi64>",
               {x, one},
               "tensor<1x2xi64>"},
          Case{"ax.gather_gradient %x0[%x1] axis 0 size 3 : tensor<3x2xi64>, "
               "tensor<3xi64> -> tensor<3x2xi64>",
               {x, i64({3}, {0, 1, index})},
               "tensor<3x2xi64>"},
          Case{"ax.scatter_elements set %x0[%x1], %x2 axis 0 : "
               "tensor<3x2xi64>, tensor<1x1xi64>, tensor<1x1xi64> -> "
               "tensor<3x2xi64>",
               {x, one, one},
               "tensor<3x2xi64>"},
          Case{"ax.scatter_nd set %x0[%x1], %x2 : tensor<3x2xi64>, "
               "tensor<1xi64>, tensor<2xi64> -> tensor<3x2xi64>",
               {x, i64({1}, {index}), two},
               "tensor<3x2xi64>"}}) {
      auto module =
          parseProgram(std::string("%r = ") + c.body, c.operands, c.type);
      ASSERT_TRUE(module);
      auto results = interpretProgram(programOf(*module), c.operands, nullptr);
      ASSERT_FALSE(bool(results)) << c.body;
      ErrorDescription error = describeError(results.takeError());
      EXPECT_EQ(error.code, ExitCode::RunFailed);
      EXPECT_NE(error.message.find("is out of range of a dimension of 3"),
                std::string::npos)
          << error.message;
    }
  }
}

TEST(Gather, Gradient) {
  expectValues(run("%r = ax.gather_gradient %x0[%x1] axis 1 size 2 : "
                   "tensor<2x3xi64>, tensor<3xi64> -> tensor<2x2xi64>",
                   {i64({2, 3}, {1, 2, 3, 4, 5, 6}), i64({3}, {1, 0, -1})},
                   "tensor<2x2xi64>"),
               {2, 4, 5, 10});
}

TEST(Reduction, Kinds) {
  HostTensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expectValues(run("%r = ax.reduce sum %x0 dims [1] : tensor<2x3xf32> -> "
                   "tensor<2xf32>",
                   {x}, "tensor<2xf32>"),
               {6, 15});
  expectValues(run("%r = ax.reduce prod %x0 dims [0] keep_dims : "
                   "tensor<2x3xf32> -> tensor<1x3xf32>",
                   {x}, "tensor<1x3xf32>"),
               {4, 10, 18});
  expectValues(run("%r = ax.reduce max %x0 dims [0] : tensor<0x2xf32> -> "
                   "tensor<2xf32>",
                   {f32({0, 2}, {})}, "tensor<2xf32>"),
               {-INFINITY, -INFINITY});
  expectValues(
      run("%r = ax.reduce min %x0 dims [0] : tensor<3xi1> -> tensor<i1>",
          {boolean({3}, {1, 0, 1})}, "tensor<i1>"),
      {0});
}

TEST(Reduction, ArgTopKCumulative) {
  HostTensor x = f32({2, 4}, {3, 1, 3, 2, 0, 7, 7, 7});
  expectValues(run("%r = ax.arg_reduce %x0 dim 1 : tensor<2x4xf32> -> "
                   "tensor<2x1xi64>",
                   {x}, "tensor<2x1xi64>"),
               {0, 1});
  expectValues(run("%r = ax.arg_reduce %x0 dim 1 {last} : tensor<2x4xf32> -> "
                   "tensor<2x1xi64>",
                   {x}, "tensor<2x1xi64>"),
               {2, 3});
  expectValues(run("%r, %i = ax.top_k %x0 k 3 dim 1 : tensor<2x4xf32> -> "
                   "tensor<2x3xf32>, tensor<2x3xi64>",
                   {x}, "tensor<2x3xf32>"),
               {3, 3, 2, 7, 7, 7});
  expectValues(run("%v, %r = ax.top_k %x0 k 2 dim 1 {smallest} : "
                   "tensor<2x4xf32> -> tensor<2x2xf32>, tensor<2x2xi64>",
                   {x}, "tensor<2x2xi64>"),
               {1, 3, 0, 1});
  expectValues(run("%r = ax.cumulative sum %x0 dim 0 {exclusive, reverse} : "
                   "tensor<3xi64> -> tensor<3xi64>",
                   {i64({3}, {1, 2, 3})}, "tensor<3xi64>"),
               {5, 3, 0});
}

TEST(Reduction, SoftmaxAndNorms) {
  expectValues(run("%r = ax.softmax %x0 dim 0 : tensor<2x2xf32> -> "
                   "tensor<2x2xf32>",
                   {f32({2, 2}, {0, 1000, 0, 999})}, "tensor<2x2xf32>"),
               {0.5, 0.73105858, 0.5, 0.26894142});
  expectValues(run("%r = ax.softmax %x0 dim 0 {log} : tensor<2xf32> -> "
                   "tensor<2xf32>",
                   {f32({2}, {1000, 999})}, "tensor<2xf32>"),
               {-0.31326169, -1.31326169});
  HostTensor x = f32({1, 4}, {1, 2, 3, 4});
  expectValues(
      run("%r = ax.layer_norm %x0 scale %x1 : tensor<4xf32> bias %x2 : "
          "tensor<4xf32> axis 1 epsilon 0.0 : tensor<1x4xf32> -> "
          "tensor<1x4xf32>",
          {x, f32({4}, {1, 1, 2, 2}), f32({4}, {0, 1, 0, 1})},
          "tensor<1x4xf32>"),
      {-1.34164079, 0.55278640, 0.89442719, 3.68328157});
  expectValues(run("%r = ax.rms_norm %x0 axis 1 epsilon 0.0 : tensor<1x4xf32> "
                   "-> tensor<1x4xf32>",
                   {x}, "tensor<1x4xf32>"),
               {0.36514837, 0.73029674, 1.09544512, 1.46059349});
}

TEST(Contraction, DotAndLinear) {
  // Result: batch, free of lhs, free of rhs.
  expectValues(run("%r = ax.dot %x0, %x1 batch [1] x [0] contract [0] x [2] : "
                   "tensor<2x2xi64>, tensor<2x3x2xi64> -> tensor<2x3xi64>",
                   {i64({2, 2}, {1, 2, 3, 4}),
                    i64({2, 3, 2}, {1, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1})},
                   "tensor<2x3xi64>"),
               {1, 3, 4, 2, 4, 6});
  expectValues(run("%r = ax.linear %x0, %x1 {transpose_w} : tensor<1x3xf32>, "
                   "tensor<2x3xf32> -> tensor<1x2xf32>",
                   {f32({1, 3}, {1, 2, 3}), f32({2, 3}, {1, 1, 1, -1, -1, -1})},
                   "tensor<1x2xf32>"),
               {6, -6});
}

TEST(Window, ConvAndTranspose) {
  HostTensor x = f32({1, 1, 4}, {1, 2, 3, 4});
  expectValues(run("%r = ax.conv %x0, %x1 strides [2] pads [1, 1] dilations "
                   "[1] : tensor<1x1x4xf32>, tensor<1x1x3xf32> -> "
                   "tensor<1x1x2xf32>",
                   {x, f32({1, 1, 3}, {1, 10, 100})}, "tensor<1x1x2xf32>"),
               {210, 432});
  // Two groups of one channel.
  expectValues(
      run("%r = ax.conv %x0, %x1 strides [1, 1] pads [0, 0, 0, 0] "
          "dilations [1, 1] {groups = 2} : tensor<1x2x1x2xf32>, "
          "tensor<2x1x1x1xf32> -> tensor<1x2x1x2xf32>",
          {f32({1, 2, 1, 2}, {1, 2, 3, 4}), f32({2, 1, 1, 1}, {10, 100})},
          "tensor<1x2x1x2xf32>"),
      {10, 20, 300, 400});
  expectValues(run("%r = ax.conv_transpose %x0, %x1 strides [2] pads [0, 1] "
                   "dilations [1] output_pads [0] : tensor<1x1x2xf32>, "
                   "tensor<1x1x3xf32> -> tensor<1x1x4xf32>",
                   {f32({1, 1, 2}, {1, 2}), f32({1, 1, 3}, {1, 10, 100})},
                   "tensor<1x1x4xf32>"),
               {1, 10, 102, 20});
}

TEST(Window, Gradients) {
  HostTensor x = f32({1, 1, 4}, {1, 3, 3, 2});
  // Windows [pad, 1, 3] and [3, 3, 2]; 2 is read by the second alone.
  expectValues(run("%r = ax.conv_weight_gradient %x0, %x1 kernel [3] strides "
                   "[2] pads [1, 0] dilations [1] : tensor<1x1x4xf32>, "
                   "tensor<1x1x2xf32> -> tensor<1x1x3xf32>",
                   {x, f32({1, 1, 2}, {1, 10})}, "tensor<1x1x3xf32>"),
               {30, 31, 23});
  expectValues(run("%r = ax.max_pool_gradient %x0, %x1 kernel [3] strides [2] "
                   "pads [1, 0] dilations [1] ceil_extra [0] : "
                   "tensor<1x1x4xf32>, tensor<1x1x2xf32> -> tensor<1x1x4xf32>",
                   {x, f32({1, 1, 2}, {1, 10})}, "tensor<1x1x4xf32>"),
               {0, 11, 0, 0});
}

TEST(Window, Pool) {
  HostTensor x = f32({1, 1, 4}, {-1, -2, -3, -4});
  auto pool = [&](std::string kind, bool ceil, std::string flags) {
    std::string type = ceil ? "tensor<1x1x3xf32>" : "tensor<1x1x2xf32>";
    return run("%r = ax.pool " + kind +
                   " %x0 kernel [3] strides [2] pads [1, 1] dilations [1] "
                   "ceil_extra [" +
                   (ceil ? "1" : "0") + "] " + flags +
                   " : tensor<1x1x4xf32> -> " + type,
               {x}, type);
  };
  expectValues(pool("max", false, ""), {-1, -2});
  expectValues(pool("sum", false, ""), {-3, -9});
  expectValues(pool("avg", false, ""), {-1.5, -3});
  expectValues(pool("avg", false, "{count_include_pad}"), {-1, -3});
  // The last window holds one element, one of padding, one beyond it.
  expectValues(pool("avg", true, "{count_include_pad}"), {-1, -3, -2});
}

TEST(Program, FusionAndConstants) {
  expectValues(run("%c = ax.constant dense<[1, 2]> : tensor<2xi64> -> "
                   "tensor<2xi64>\n"
                   "%r = axl.fusion(%x0, %c) {\n^bb0(%a: tensor<2xi64>, %b: "
                   "tensor<2xi64>):\n  %s = ax.binary add %a, %b : "
                   "tensor<2xi64>, tensor<2xi64> -> tensor<2xi64>\n  axl.yield "
                   "%s : tensor<2xi64>\n} : (tensor<2xi64>, tensor<2xi64>) -> "
                   "tensor<2xi64>",
                   {i64({2}, {10, 20})}, "tensor<2xi64>"),
               {11, 22});
}

TEST(Program, WrongInputIsRefused) {
  auto module = parseProgram("%r = ax.unary neg %x0 : tensor<2xi64> -> "
                             "tensor<2xi64>",
                             {i64({2}, {1, 2})}, "tensor<2xi64>");
  auto noStates = [](LoadOp) -> llvm::Expected<HostTensor> {
    return makeError(ExitCode::Internal, "no states");
  };
  for (const std::vector<HostTensor> &inputs :
       {std::vector<HostTensor>{}, {i64({3}, {1, 2, 3})}, {f32({2}, {1, 2})}}) {
    auto results = interpretProgram(programOf(*module), inputs, noStates);
    ASSERT_FALSE(static_cast<bool>(results));
    EXPECT_EQ(describeError(results.takeError()).code, ExitCode::BadInput);
  }
}

TEST(Elements, RoundTrips) {
  for (DType type :
       {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8, DType::I16,
        DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64,
        DType::Bool, DType::F8E4M3FN, DType::F8E5M2})
    for (const HostTensor &x :
         {i64({3, 3}, {1, 0, 3, 0, 0, 6, 7, 8, 9}), i64({2, 2}, {1, 1, 1, 1}),
          i64({}, {1}), i64({1}, {0}), i64({0, 3}, {}), i64({2}, {0, 0})}) {
      HostTensor tensor = x.cast(type);
      auto attr = toElementsAttr(tensor, &testContext());
      EXPECT_EQ(attr.getElementType(), toElementType(type, &testContext()));
      auto back = toHostTensor(attr);
      ASSERT_TRUE(static_cast<bool>(back));
      EXPECT_TRUE(back->isIdentical(tensor)) << tensor.typeToString();
    }
  EXPECT_TRUE(toElementsAttr(i64({4}, {5, 5, 5, 5}), &testContext()).isSplat());
}

TEST(Speed, MillionElementMasks) {
  HostTensor line = i64({1024}, std::vector<int64_t>(1024, 3));
  HostTensor column = line.reshaped({1024, 1});
  auto start = std::chrono::steady_clock::now();
  HostTensor mask =
      run("%c = ax.compare le %x0, %x1 : tensor<1024xi64>, tensor<1024x1xi64> "
          "-> tensor<1024x1024xi1>\n"
          "%f = ax.cast %c : tensor<1024x1024xi1> -> tensor<1024x1024xf32>\n"
          "%r = ax.binary mul %f, %f : tensor<1024x1024xf32>, "
          "tensor<1024x1024xf32> -> tensor<1024x1024xf32>",
          {line, column}, "tensor<1024x1024xf32>");
  double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  EXPECT_EQ(mask.getDouble(77), 1);
  // Ten times what it takes, so that a loaded machine passes.
  EXPECT_LT(seconds, 0.5);
}
