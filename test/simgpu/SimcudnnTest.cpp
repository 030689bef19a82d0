//===- SimcudnnTest.cpp - Descriptors that the simulated cuDNN refuses ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Cudnn.h"
#include "DriverCalls.h"

using namespace ax::rt;
using namespace ax::rt::cuda;

namespace {

using Made = cudnnBackendDescriptor_t;

class SimcudnnTest : public ::testing::Test {
protected:
  SimcudnnTest() : library(llvm::cantFail(Cudnn::load())) {
    ok(library->cudnnCreate.function(&handle));
  }

  void ok(cudnnStatus_t status) {
    EXPECT_EQ(status, CUDNN_STATUS_SUCCESS) << said();
  }
  std::string said() {
    char text[256];
    library->cudnnGetLastErrorString.function(text, sizeof(text));
    return text;
  }
  /// The call that was made last is refused.
  void refused(cudnnStatus_t got, cudnnStatus_t status,
               const std::string &why) {
    EXPECT_EQ(got, status);
    EXPECT_EQ(said(), why);
    std::string report = simgpuReported();
    EXPECT_NE(report.find(": " + why), std::string::npos) << report;
  }

  Made make(cudnnBackendDescriptorType_t type) {
    Made made = nullptr;
    ok(library->cudnnBackendCreateDescriptor.function(type, &made));
    return made;
  }
  template <typename T>
  cudnnStatus_t set(Made descriptor, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type,
                    const std::vector<T> &values) {
    return library->cudnnBackendSetAttribute.function(
        descriptor, name, type, static_cast<int64_t>(values.size()),
        values.data());
  }
  cudnnStatus_t set(Made descriptor, cudnnBackendAttributeName_t name,
                    Made other) {
    return set<Made>(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, {other});
  }
  cudnnStatus_t finalize(Made descriptor) {
    return library->cudnnBackendFinalize.function(descriptor);
  }
  cudnnStatus_t get(Made descriptor, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t wanted,
                    void *values) {
    int64_t count = 0;
    return library->cudnnBackendGetAttribute.function(descriptor, name, type,
                                                      wanted, &count, values);
  }

  struct Is {
    std::vector<int64_t> sizes = {2, 3, 4, 8}, strides = {96, 32, 8, 1};
    cudnnDataType_t type = CUDNN_DATA_HALF;
    int64_t alignment = 16;
    bool isVirtual = false, isByValue = false;
  };
  /// One that is not final.
  Made describe(const Is &is) {
    Made made = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    ok(set<int64_t>(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, {5}));
    ok(set<cudnnDataType_t>(made, CUDNN_ATTR_TENSOR_DATA_TYPE,
                            CUDNN_TYPE_DATA_TYPE, {is.type}));
    ok(set(made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, is.sizes));
    ok(set(made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, is.strides));
    ok(set<int64_t>(made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64,
                    {is.alignment}));
    for (auto [name, value] :
         {std::pair(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is.isVirtual),
          std::pair(CUDNN_ATTR_TENSOR_IS_BY_VALUE, is.isByValue)})
      ok(library->cudnnBackendSetAttribute.function(
          made, name, CUDNN_TYPE_BOOLEAN, 1, &value));
    return made;
  }
  void refused(const Is &is, cudnnStatus_t status, const std::string &why) {
    refused(finalize(describe(is)), status, "tensor 5 " + why);
  }

  /// A tensor that is final, of a number of its own, or an operation with
  /// other descriptors.
  Made tensor(int64_t number, Is is) {
    Made made = describe(is);
    ok(set<int64_t>(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64,
                    {number}));
    ok(finalize(made));
    return made;
  }
  Made operation(
      cudnnBackendDescriptorType_t type,
      const std::vector<std::pair<cudnnBackendAttributeName_t, Made>> &others) {
    Made made = make(type);
    for (auto [name, other] : others)
      ok(set(made, name, other));
    return made;
  }
  Made matmul(cudnnDataType_t type, Made a, Made b, Made c) {
    Made how = make(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    ok(set<cudnnDataType_t>(how, CUDNN_ATTR_MATMUL_COMP_TYPE,
                            CUDNN_TYPE_DATA_TYPE, {type}));
    ok(finalize(how));
    return operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                     {{CUDNN_ATTR_OPERATION_MATMUL_DESC, how},
                      {CUDNN_ATTR_OPERATION_MATMUL_ADESC, a},
                      {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b},
                      {CUDNN_ATTR_OPERATION_MATMUL_CDESC, c}});
  }
  Made pointwise(cudnnPointwiseMode_t mode, Made x, Made y) {
    Made how = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    ok(set<cudnnPointwiseMode_t>(how, CUDNN_ATTR_POINTWISE_MODE,
                                 CUDNN_TYPE_POINTWISE_MODE, {mode}));
    ok(set<cudnnDataType_t>(how, CUDNN_ATTR_POINTWISE_MATH_PREC,
                            CUDNN_TYPE_DATA_TYPE, {CUDNN_DATA_FLOAT}));
    if (mode == CUDNN_POINTWISE_GEN_INDEX)
      ok(set<int64_t>(how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, {0}));
    ok(finalize(how));
    return operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                     {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how},
                      {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x},
                      {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y}});
  }
  Made reduction(Made x, Made y) {
    Made how = make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    ok(set<cudnnReduceTensorOp_t>(how, CUDNN_ATTR_REDUCTION_OPERATOR,
                                  CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
                                  {CUDNN_REDUCE_TENSOR_ADD}));
    ok(set<cudnnDataType_t>(how, CUDNN_ATTR_REDUCTION_COMP_TYPE,
                            CUDNN_TYPE_DATA_TYPE, {CUDNN_DATA_FLOAT}));
    ok(finalize(how));
    return operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                     {{CUDNN_ATTR_OPERATION_REDUCTION_DESC, how},
                      {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x},
                      {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y}});
  }
  Made reshape(Made x, Made y) {
    return operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                     {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x},
                      {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y}});
  }
  /// What chooses engines for a graph of these.
  Made heuristic(const std::vector<Made> &operations) {
    Made graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    ok(set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
           operations));
    ok(set<cudnnHandle_t>(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
                          CUDNN_TYPE_HANDLE, {handle}));
    ok(finalize(graph));
    Made made = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    ok(set(made, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph));
    ok(set<cudnnBackendHeurMode_t>(made, CUDNN_ATTR_ENGINEHEUR_MODE,
                                   CUDNN_TYPE_HEUR_MODE, {CUDNN_HEUR_MODE_A}));
    ok(finalize(made));
    return made;
  }

  DriverCalls driver;
  std::shared_ptr<const Cudnn> library;
  cudnnHandle_t handle = nullptr;
};

TEST_F(SimcudnnTest, Handles) {
  refused(library->cudnnCreate.function(nullptr),
          CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the handle is nowhere");
  driver.ok(&Driver::cuCtxSetCurrent, static_cast<CUcontext>(nullptr));
  refused(library->cudnnSetStream.function(handle, nullptr),
          CUDNN_STATUS_BAD_PARAM,
          "the handle is of another context than the thread's");
  cudnnHandle_t other = nullptr;
  refused(library->cudnnCreate.function(&other), CUDNN_STATUS_NOT_INITIALIZED,
          "no context is the calling thread's");
  driver.ok(&Driver::cuCtxSetCurrent, driver.context);
  ok(library->cudnnDestroy.function(handle));
  refused(library->cudnnDestroy.function(handle), CUDNN_STATUS_BAD_PARAM,
          "there is no such handle");
  refused(library->cudnnBackendExecute.function(handle, nullptr, nullptr),
          CUDNN_STATUS_BAD_PARAM, "there is no such handle");
  Made plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  refused(set<cudnnHandle_t>(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
                             CUDNN_TYPE_HANDLE, {handle}),
          CUDNN_STATUS_BAD_PARAM, "there is no such handle");
}

TEST_F(SimcudnnTest, DescriptorsThatAreNone) {
  Made made = nullptr;
  refused(library->cudnnBackendCreateDescriptor.function(
              CUDNN_BACKEND_RESAMPLE_DESCRIPTOR, &made),
          CUDNN_STATUS_NOT_SUPPORTED,
          "descriptors of that type are not known here");
  refused(library->cudnnBackendCreateDescriptor.function(
              CUDNN_BACKEND_TENSOR_DESCRIPTOR, nullptr),
          CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the descriptor is nowhere");
  made = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  ok(library->cudnnBackendDestroyDescriptor.function(made));
  refused(library->cudnnBackendDestroyDescriptor.function(made),
          CUDNN_STATUS_BAD_PARAM, "there is no such descriptor");
  refused(finalize(made), CUDNN_STATUS_BAD_PARAM,
          "there is no such descriptor");
  for (auto type :
       {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_BACKEND_ENGINE_DESCRIPTOR})
    refused(finalize(make(type)), CUDNN_STATUS_NOT_SUPPORTED,
            "only the heuristic makes an engine's configuration here");
}

TEST_F(SimcudnnTest, Attributes) {
  Made made = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  refused(finalize(made), CUDNN_STATUS_BAD_PARAM, "attribute 906 is not set");
  const std::vector<int64_t> one = {1}, two = {1, 2}, none;
  refused(set(made, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_INT64, one),
          CUDNN_STATUS_BAD_PARAM, "the descriptor has no such attribute");
  refused(set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_DATA_TYPE, one),
          CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
          "the attribute is of another type");
  for (const auto *values : {&two, &none})
    refused(set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, *values),
            CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            "the attribute has another number of elements");
  refused(library->cudnnBackendSetAttribute.function(
              made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, nullptr),
          CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
          "the attribute's elements are nowhere");
  made = describe({});
  ok(finalize(made));
  refused(finalize(made), CUDNN_STATUS_NOT_INITIALIZED,
          "the descriptor is final already");
  refused(set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, one),
          CUDNN_STATUS_NOT_INITIALIZED, "the descriptor is final already");
  // What went well before has nothing to say.
  ok(library->cudnnSetStream.function(handle, driver.stream));
  EXPECT_EQ(said(), "");
}

TEST_F(SimcudnnTest, AttributesThatAreDescriptors) {
  Made operation = make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  auto name = CUDNN_ATTR_OPERATION_RESHAPE_XDESC;
  Made tensor = describe({});
  refused(set(operation, name, tensor), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
          "the attribute is a descriptor that is not final");
  refused(set(operation, name, operation),
          CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
          "the attribute is a descriptor of another type");
  ok(finalize(tensor));
  ok(set(operation, name, tensor));
  Made graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  refused(set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, tensor),
          CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
          "the attribute is a descriptor of another type");
  ok(library->cudnnBackendDestroyDescriptor.function(tensor));
  refused(set(operation, name, tensor), CUDNN_STATUS_BAD_PARAM,
          "there is no such descriptor");
}

TEST_F(SimcudnnTest, TensorsThatCannotBe) {
  Is is;
  is.type = CUDNN_DATA_FP8_E4M3;
  refused(is, CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
          "is of a type that is not known here");
  is = {};
  is.strides.pop_back();
  refused(is, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
          "has not as many strides as dimensions");
  is = {};
  is.sizes[1] = 0;
  refused(is, CUDNN_STATUS_BAD_PARAM, "has a dimension of less than 1");
  is = {};
  is.strides[1] = 0;
  refused(is, CUDNN_STATUS_BAD_PARAM, "has a stride of less than 1");
  is = {};
  for (int64_t alignment : {1, 12}) {
    is.alignment = alignment;
    refused(is, CUDNN_STATUS_BAD_PARAM, "has no such alignment");
  }
  is = {};
  is.isByValue = true;
  refused(is, CUDNN_STATUS_BAD_PARAM, "is by value, and has several elements");
  is.isVirtual = true;
  refused(is, CUDNN_STATUS_BAD_PARAM, "is virtual, and a number by value");
}

TEST_F(SimcudnnTest, WhatIsTold) {
  Made plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  int64_t bytes = 0;
  refused(get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
              1, &bytes),
          CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "the descriptor is not final");
  Made tensor = describe({});
  ok(finalize(tensor));
  refused(get(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &bytes),
          CUDNN_STATUS_NOT_SUPPORTED, "the attribute is not told here");
  Made y = this->tensor(6, {});
  Made copy = pointwise(CUDNN_POINTWISE_IDENTITY, tensor, y);
  ok(finalize(copy));
  Made engines = heuristic({copy});
  auto results = [&](cudnnBackendAttributeType_t type, int64_t wanted,
                     void *values) {
    return get(engines, CUDNN_ATTR_ENGINEHEUR_RESULTS, type, wanted, values);
  };
  auto type = CUDNN_TYPE_BACKEND_DESCRIPTOR;
  refused(results(CUDNN_TYPE_INT64, 1, &bytes),
          CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
          "the attribute is of another type");
  refused(results(type, -1, &bytes), CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
          "the attribute has another number of elements");
  refused(results(type, 1, nullptr), CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
          "the attribute's elements are nowhere");
  refused(results(type, 1, &copy), CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
          "results are descriptors of another type");
  ok(results(type, 0, nullptr));
}

TEST_F(SimcudnnTest, CardsThatAreDescribed) {
  auto describe = [&](const std::string &text) {
    Made made = make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    ok(set(made, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
           std::vector<char>(text.begin(), text.end())));
    return made;
  };
  refused(finalize(describe("sm_90")), CUDNN_STATUS_BAD_PARAM,
          "what describes a card is no JSON");
  Made card = describe("{}");
  ok(finalize(card));
  Made copy = pointwise(CUDNN_POINTWISE_IDENTITY, tensor(1, {}), tensor(2, {}));
  ok(finalize(copy));
  Made graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  ok(set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, copy));
  ok(finalize(graph));
  Made made = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  ok(set(made, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph));
  ok(set<cudnnBackendHeurMode_t>(made, CUDNN_ATTR_ENGINEHEUR_MODE,
                                 CUDNN_TYPE_HEUR_MODE, {CUDNN_HEUR_MODE_A}));
  refused(finalize(made), CUDNN_STATUS_BAD_PARAM,
          "there is no card to choose for");
  ok(set(made, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, card));
  ok(finalize(made));
}

TEST_F(SimcudnnTest, OperationsThatCannotBe) {
  Is flat;
  flat.sizes = {3, 4, 8};
  flat.strides = {32, 8, 1};
  Made x = tensor(1, flat), y = tensor(2, {}), z = tensor(3, {});
  auto mismatch = CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
  refused(finalize(matmul(CUDNN_DATA_FLOAT, x, y, z)), mismatch,
          "the tensors of a product have different ranks, or none of 3 at "
          "least");
  refused(finalize(matmul(CUDNN_DATA_HALF, x, x, x)),
          CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "sums are made in f32 here");
  refused(finalize(pointwise(CUDNN_POINTWISE_EXP, x, y)), mismatch,
          "the tensors of a pointwise operation have different ranks");
  refused(finalize(pointwise(CUDNN_POINTWISE_GEN_INDEX, y, z)),
          CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "indices are of 32 bits");
  refused(finalize(reduction(x, y)), mismatch,
          "the tensors of a reduction have different ranks");
  refused(finalize(reshape(x, y)), mismatch,
          "a reshape has other elements than what it is of");
}

TEST_F(SimcudnnTest, AttentionOfOtherRanks) {
  Is square;
  square.sizes = {3, 8, 8};
  square.strides = {64, 8, 1};
  Made x = tensor(1, square), y = tensor(2, square), z = tensor(3, square);
  Made first = matmul(CUDNN_DATA_FLOAT, x, x, y),
       second = matmul(CUDNN_DATA_FLOAT, y, x, z);
  ok(finalize(first));
  ok(finalize(second));
  Made engines = heuristic({second, first});
  ok(get(engines, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
         0, nullptr));
  EXPECT_EQ(said(), "no engine: tensor 1 does not have 4 dimensions");
}

TEST_F(SimcudnnTest, VariantPacks) {
  auto pack = [&](const std::vector<int64_t> &numbers) {
    Made made = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    void *place = this;
    ok(set(made, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
           numbers));
    ok(set<void *>(made, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                   CUDNN_TYPE_VOID_PTR, {place, place}));
    ok(set<void *>(made, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
                   {place}));
    return made;
  };
  refused(finalize(pack({1})), CUDNN_STATUS_BAD_PARAM,
          "there are not as many numbers as places");
  refused(finalize(pack({1, 1})), CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES,
          "a tensor is given twice");
  Made made = pack({1, 2});
  ok(finalize(made));
  refused(library->cudnnBackendExecute.function(handle, made, made),
          CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
          "what is executed is not a plan");
  Made plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  refused(library->cudnnBackendExecute.function(handle, plan, plan),
          CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
          "what it is executed with is no variant pack");
  refused(library->cudnnBackendExecute.function(handle, plan, made),
          CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
          "the plan or the variant pack is not final");
}

// As cuDNN 9.19 says it.
TEST_F(SimcudnnTest, GradientsThatAreSummedUpInF32) {
  Is square, sum;
  square.sizes = {1, 2, 8, 8};
  square.strides = {128, 64, 8, 1};
  sum.sizes = {1, 1, 8, 8};
  sum.strides = {64, 64, 8, 1};
  sum.type = CUDNN_DATA_FLOAT;
  sum.isVirtual = true;
  Made x = tensor(1, square);
  std::vector<Made> operations;
  for (int64_t number = 2; number < 7; ++number)
    operations.push_back(
        matmul(CUDNN_DATA_FLOAT, x, x, tensor(number, square)));
  operations.push_back(reduction(x, tensor(7, sum)));
  for (Made one : operations)
    ok(finalize(one));
  Made engines = heuristic(operations);
  ok(get(engines, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
         0, nullptr));
  EXPECT_EQ(said(), "no engine: reduction output datatype in flash bprop "
                    "should be fp16/bf16");
}

} // namespace
