//===- SimcudnnConvolutionTest.cpp - Convolutions that cuDNN refuses ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudnnGraph.h"
#include "DriverCalls.h"

using namespace ax::rt;
using namespace ax::rt::cuda;

namespace {

enum Number : int64_t { X = 1, W, Y };
using Sizes = std::vector<int64_t>;

/// One that is well, which tests change.
struct Described {
  Convolution kind = Convolution::Forward;
  ConvolutionWindow window = {{1, 2}, {1, 1}, {1, 0}, {1, 0}};
  Sizes x = {2, 8, 6, 7}, w = {12, 4, 3, 3}, y = {2, 12, 6, 3};
  cudnnDataType_t type = CUDNN_DATA_HALF, typeOfY = type;

  static Sizes packed(const Sizes &sizes) {
    Sizes strides(sizes.size());
    int64_t step = 1;
    for (size_t i = sizes.size(); i-- > 0; step *= sizes[i])
      strides[i] = step;
    return strides;
  }
};

class SimcudnnConvolutionTest : public ::testing::Test {
protected:
  SimcudnnConvolutionTest()
      : cudnn(llvm::cantFail(
            CudnnHandle::create(llvm::cantFail(Card::open(0))))) {}

  std::string build(const Described &from) {
    CudnnGraph graph(cudnn);
    auto tensor = [&](int64_t number, const Sizes &sizes,
                      cudnnDataType_t type) {
      return graph.image(number, sizes, Described::packed(sizes), type);
    };
    graph.convolve(from.kind, from.window, tensor(X, from.x, from.type),
                   tensor(W, from.w, from.type),
                   tensor(Y, from.y, from.typeOfY));
    auto plan = graph.build();
    char text[256];
    cudnn->getLibrary().cudnnGetLastErrorString.function(text, sizeof(text));
    said = text;
    return plan ? "" : llvm::toString(plan.takeError());
  }
  /// Of each kind.
  void refused(const std::string &status, const std::string &why,
               Described from) {
    for (Convolution kind : {Convolution::Forward, Convolution::ImageGradient,
                             Convolution::WeightGradient}) {
      from.kind = kind;
      std::string message = build(from);
      EXPECT_EQ(
          message.find("cudnnBackendFinalize: CUDNN_STATUS_" + status + " ("),
          0U)
          << message;
      EXPECT_NE(message.find("): " + why), std::string::npos) << message;
    }
  }

  DriverCalls driver;
  SharedCudnn cudnn;
  std::string said;
};

TEST_F(SimcudnnConvolutionTest, SizesThatDoNotFit) {
  const std::string status = "BAD_PARAM_SHAPE_MISMATCH";
  EXPECT_EQ(build({}), "");
  Described made;
  made.w = {12, 4, 3, 3, 1};
  refused(status, "the tensors of a convolution have different ranks", made);
  made = {};
  made.x = {2, 8, 6};
  made.w = {12, 4, 3};
  made.y = {2, 12, 6};
  refused(status, "images have neither 2 dimensions nor 3", made);
  made = {};
  made.window.dilations.push_back(1);
  refused(status, "the window has not as many dimensions as the images", made);
  const char *channels = "the channels of a convolution do not fit each other";
  made = {};
  made.y[0] = 1;
  refused(status, channels, made);
  made = {};
  made.y[1] = 6;
  refused(status, channels, made);
  made = {};
  made.w[1] = 3;
  refused(status, channels, made);
  made = {};
  made.w[1] = 1; // 8 groups of 12 channels.
  refused(status, channels, made);
  const char *places = "a convolution has not as many places as its window";
  made = {};
  made.y[3] = 4;
  refused(status, places, made);
  made = {};
  made.window.padsHigh[0] = 0;
  refused(status, places, made);
  made = {};
  made.window.dilations[1] = 4;
  refused(status, places, made);
}

TEST_F(SimcudnnConvolutionTest, WindowsThatCannotBe) {
  const char *least = "a convolution has a stride or a dilation of less than 1";
  Described made;
  made.window.strides[0] = 0;
  refused("BAD_PARAM", least, made);
  made = {};
  made.window.dilations[1] = 0;
  refused("BAD_PARAM", least, made);
  const char *negative = "a convolution has negative padding";
  made = {};
  made.window.padsLow[0] = -1;
  refused("BAD_PARAM", negative, made);
  made = {};
  made.window.padsHigh[1] = -1;
  refused("BAD_PARAM", negative, made);
}

TEST_F(SimcudnnConvolutionTest, TypesThatNoEngineDoes) {
  auto unknown = [&](const std::string &why, const Described &made) {
    EXPECT_EQ(build(made), "cuDNN: it knows no kernel for it");
    EXPECT_EQ(said, "no engine: " + why);
  };
  Described made;
  made.typeOfY = CUDNN_DATA_FLOAT;
  unknown("it is a convolution of several types", made);
  made.type = made.typeOfY = CUDNN_DATA_INT32;
  unknown("it is a convolution of neither f32, f16 nor bf16", made);
  // That is no misuse.
  EXPECT_EQ(simgpuReported(), "");
}

TEST_F(SimcudnnConvolutionTest, WhatIsNotKnownHere) {
  Described from;
  auto window = [&](cudnnConvolutionMode_t mode) {
    auto how = llvm::cantFail(
        CudnnDescriptor::create(cudnn, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
    llvm::cantFail(how->set<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
                                             CUDNN_TYPE_DATA_TYPE,
                                             CUDNN_DATA_FLOAT));
    llvm::cantFail(how->set<cudnnConvolutionMode_t>(
        CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, mode));
    llvm::cantFail(how->set<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
                                     CUDNN_TYPE_INT64, int64_t(2)));
    for (auto [name, list] :
         {std::pair(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
                    &from.window.strides),
          std::pair(CUDNN_ATTR_CONVOLUTION_DILATIONS, &from.window.dilations),
          std::pair(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, &from.window.padsLow),
          std::pair(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
                    &from.window.padsHigh)})
      llvm::cantFail(how->set<int64_t>(name, CUDNN_TYPE_INT64, *list));
    llvm::cantFail(how->finalize());
    return how;
  };
  auto finalize = [&](cudnnConvolutionMode_t mode, float alpha, float beta) {
    CudnnGraph graph(cudnn);
    auto how = window(mode);
    auto made = llvm::cantFail(CudnnDescriptor::create(
        cudnn, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR));
    llvm::cantFail(
        made->set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, *how));
    for (auto [name, number, sizes] :
         {std::tuple(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, X, &from.x),
          std::tuple(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, W, &from.w),
          std::tuple(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, Y, &from.y)})
      llvm::cantFail(
          made->set(name, *graph.image(number, *sizes,
                                       Described::packed(*sizes), from.type)));
    llvm::cantFail(
        made->set<float>(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                         CUDNN_TYPE_FLOAT, alpha));
    llvm::cantFail(made->set<float>(
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, beta));
    return llvm::toString(made->finalize());
  };
  const std::string status = "cudnnBackendFinalize: CUDNN_STATUS_NOT_SUPPORTED "
                             "(3000): ";
  EXPECT_EQ(finalize(CUDNN_CROSS_CORRELATION, 1, 0), "");
  EXPECT_EQ(finalize(CUDNN_CONVOLUTION, 1, 0),
            status + "weights are not turned round here");
  const std::string scaled =
      status + "convolutions are neither scaled nor added here";
  EXPECT_EQ(finalize(CUDNN_CROSS_CORRELATION, 2, 0), scaled);
  EXPECT_EQ(finalize(CUDNN_CROSS_CORRELATION, 1, 1), scaled);
}

} // namespace
