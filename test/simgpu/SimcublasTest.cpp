//===- SimcublasTest.cpp - What the simulated cuBLASLt refuses ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CublasLt.h"
#include "DriverCalls.h"

using namespace ax::rt;
using namespace ax::rt::cuda;

namespace {

/// A product of f32 matrices of 4 x 4, which tests change; all is well at
/// first.
class SimcublasTest : public ::testing::Test {
protected:
  SimcublasTest() : library(llvm::cantFail(CublasLt::load())) {
    EXPECT_EQ(library->cublasLtCreate.function(&handle), CUBLAS_STATUS_SUCCESS);
    library->cublasLtMatmulDescCreate.function(&operation, CUBLAS_COMPUTE_32F,
                                               CUDA_R_32F);
    for (cublasLtMatrixLayout_t *layout : {&a, &b, &c, &d})
      library->cublasLtMatrixLayoutCreate.function(layout, CUDA_R_32F, 4, 4, 4);
    library->cublasLtMatmulPreferenceCreate.function(&preference);
  }

  template <typename T>
  void set(cublasLtMatrixLayout_t layout,
           cublasLtMatrixLayoutAttribute_t attribute, T value) {
    EXPECT_EQ(library->cublasLtMatrixLayoutSetAttribute.function(
                  layout, attribute, &value, sizeof(value)),
              CUBLAS_STATUS_SUCCESS);
  }
  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    EXPECT_EQ(library->cublasLtMatmulDescSetAttribute.function(
                  operation, attribute, &value, sizeof(value)),
              CUBLAS_STATUS_SUCCESS);
  }
  template <typename T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    EXPECT_EQ(library->cublasLtMatmulPreferenceSetAttribute.function(
                  preference, attribute, &value, sizeof(value)),
              CUBLAS_STATUS_SUCCESS);
  }
  cublasStatus_t choose(int wanted = 1) {
    return library->cublasLtMatmulAlgoGetHeuristic.function(
        handle, operation, a, b, c, d, preference, wanted, &found, &numFound);
  }
  void refused(cublasStatus_t got, cublasStatus_t status,
               const std::string &why) {
    EXPECT_EQ(got, status);
    std::string report = simgpuReported();
    EXPECT_NE(report.find(": " + why), std::string::npos) << report;
  }
  /// The heuristic refuses what was set.
  void refused(cublasStatus_t status, const std::string &why) {
    refused(choose(), status, why);
  }
  /// Matrix `number` of those that lie in the card's memory.
  void *place(int number) {
    return reinterpret_cast<void *>(memory + static_cast<uint64_t>(number));
  }
  cublasStatus_t multiply(void *aAt, void *bAt, void *cAt, void *dAt,
                          const cublasLtMatmulAlgo_t *algorithm,
                          void *workspace, size_t bytes) {
    const float one = 1;
    return library->cublasLtMatmul.function(
        handle, operation, &one, aAt, a, bAt, b, &one, cAt, c, dAt, d,
        algorithm, workspace, bytes, driver.stream);
  }
  cublasStatus_t multiply(void *dAt, size_t workspaceBytes = 0) {
    return multiply(place(0), place(64), place(128), dAt, &found.algo,
                    workspaceBytes ? place(1024) : nullptr, workspaceBytes);
  }

  DriverCalls driver;
  std::shared_ptr<const CublasLt> library;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr, d = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t found{};
  int numFound = 0;
  CUdeviceptr memory = [this] {
    CUdeviceptr made = 0;
    driver.ok(&Driver::cuMemAlloc, &made, size_t(16384));
    return made;
  }();
};

constexpr cublasStatus_t invalid = CUBLAS_STATUS_INVALID_VALUE,
                         unsupported = CUBLAS_STATUS_NOT_SUPPORTED;

TEST_F(SimcublasTest, DoesWhatIsRight) {
  EXPECT_EQ(choose(), CUBLAS_STATUS_SUCCESS) << simgpuReported();
  EXPECT_EQ(numFound, 1);
  EXPECT_EQ(multiply(place(256)), CUBLAS_STATUS_SUCCESS) << simgpuReported();
  // In place.
  EXPECT_EQ(multiply(place(128)), CUBLAS_STATUS_SUCCESS) << simgpuReported();
  driver.synchronize();
  EXPECT_EQ(simgpuReported(), "");
}

TEST_F(SimcublasTest, TypesThatDoNotGoTogether) {
  set(a, CUBLASLT_MATRIX_LAYOUT_TYPE, uint32_t(CUDA_R_16F));
  refused(unsupported, "types do not go together");
  set(b, CUBLASLT_MATRIX_LAYOUT_TYPE, uint32_t(CUDA_R_16F));
  EXPECT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  set(d, CUBLASLT_MATRIX_LAYOUT_TYPE, uint32_t(CUDA_R_16F));
  refused(unsupported, "types do not go together");
}

TEST_F(SimcublasTest, FactorsOfEightBits) {
  constexpr uint64_t size = 32;
  for (cublasLtMatrixLayout_t layout : {a, b, c, d}) {
    set(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, size);
    set(layout, CUBLASLT_MATRIX_LAYOUT_COLS, size);
    set(layout, CUBLASLT_MATRIX_LAYOUT_LD, int64_t(size));
  }
  set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t(CUBLAS_OP_T));
  auto setTypes = [&](cudaDataType_t ofA, cudaDataType_t ofB) {
    set(a, CUBLASLT_MATRIX_LAYOUT_TYPE, uint32_t(ofA));
    set(b, CUBLASLT_MATRIX_LAYOUT_TYPE, uint32_t(ofB));
  };
  auto accepted = [&] {
    EXPECT_EQ(choose(), CUBLAS_STATUS_SUCCESS) << simgpuReported();
  };
  setTypes(CUDA_R_8F_E5M2, CUDA_R_8F_E5M2);
  refused(unsupported, "types do not go together");
  setTypes(CUDA_R_8F_E4M3, CUDA_R_16BF);
  refused(unsupported, "types do not go together");
  setTypes(CUDA_R_8F_E4M3, CUDA_R_8F_E5M2);
  accepted();
  setTypes(CUDA_R_8F_E5M2, CUDA_R_8F_E4M3);
  accepted();
  setTypes(CUDA_R_8F_E4M3, CUDA_R_8F_E4M3);
  accepted();

  for (auto [ofA, ofB] : {std::pair(CUBLAS_OP_N, CUBLAS_OP_N),
                          std::pair(CUBLAS_OP_N, CUBLAS_OP_T),
                          std::pair(CUBLAS_OP_T, CUBLAS_OP_T)}) {
    set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t(ofA));
    set(CUBLASLT_MATMUL_DESC_TRANSB, int32_t(ofB));
    refused(unsupported, "A of eight bits is to be transposed, and B is not");
  }
  set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t(CUBLAS_OP_T));
  set(CUBLASLT_MATMUL_DESC_TRANSB, int32_t(CUBLAS_OP_N));

  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint32_t(8));
  refused(unsupported, "factors of eight bits are aligned to 16 bytes");
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint32_t(16));
  const char *columns = "columns are no multiples of 16 bytes, or do not begin "
                        "at such";
  set(b, CUBLASLT_MATRIX_LAYOUT_LD, int64_t(size + 8));
  refused(unsupported, columns);
  set(b, CUBLASLT_MATRIX_LAYOUT_LD, int64_t(size + 16));
  // Columns of B and D may be any number; rows of both factors may not.
  for (cublasLtMatrixLayout_t layout : {b, c, d})
    set(layout, CUBLASLT_MATRIX_LAYOUT_COLS, uint64_t(5));
  accepted();
  for (cublasLtMatrixLayout_t layout : {a, b})
    set(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t(24));
  refused(unsupported, columns);
  for (cublasLtMatrixLayout_t layout : {a, b})
    set(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, size);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(CUBLASLT_EPILOGUE_RELU));
  refused(unsupported, "an epilogue of eight bits is not known here");
}

TEST_F(SimcublasTest, Integers) {
  library->cublasLtMatmulDescDestroy.function(operation);
  library->cublasLtMatmulDescCreate.function(&operation, CUBLAS_COMPUTE_32I,
                                             CUDA_R_32I);
  for (cublasLtMatrixLayout_t factor : {a, b})
    set(factor, CUBLASLT_MATRIX_LAYOUT_TYPE, uint32_t(CUDA_R_8I));
  refused(unsupported, "types do not go together");
  for (cublasLtMatrixLayout_t sum : {c, d})
    set(sum, CUBLASLT_MATRIX_LAYOUT_TYPE, uint32_t(CUDA_R_32I));
  const char *transposed = "A of integers is to be transposed, and B is not";
  refused(unsupported, transposed);
  set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t(CUBLAS_OP_T));
  set(CUBLASLT_MATMUL_DESC_TRANSB, int32_t(CUBLAS_OP_T));
  refused(unsupported, transposed);
  set(CUBLASLT_MATMUL_DESC_TRANSB, int32_t(CUBLAS_OP_N));
  for (auto alignment : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES})
    set(alignment, uint32_t(1));
  refused(unsupported, "matrices of integers are aligned to 4 bytes");
  for (auto alignment : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES})
    set(alignment, uint32_t(4));
  EXPECT_EQ(choose(), CUBLAS_STATUS_SUCCESS) << simgpuReported();
  // Rows of D, and columns of it, which may be any number.
  for (cublasLtMatrixLayout_t matrix : {b, c, d})
    set(matrix, CUBLASLT_MATRIX_LAYOUT_COLS, uint64_t(3));
  EXPECT_EQ(choose(), CUBLAS_STATUS_SUCCESS) << simgpuReported();
  for (cublasLtMatrixLayout_t matrix : {a, c, d})
    set(matrix,
        matrix == a ? CUBLASLT_MATRIX_LAYOUT_COLS : CUBLASLT_MATRIX_LAYOUT_ROWS,
        uint64_t(2));
  refused(unsupported, "rows of D, or terms of its sums, are no multiple of 4");
  for (cublasLtMatrixLayout_t matrix : {a, c, d})
    set(matrix,
        matrix == a ? CUBLASLT_MATRIX_LAYOUT_COLS : CUBLASLT_MATRIX_LAYOUT_ROWS,
        uint64_t(4));
  set(b, CUBLASLT_MATRIX_LAYOUT_LD, int64_t(6));
  refused(unsupported, "columns of integers do not begin at multiples of 4");
  set(b, CUBLASLT_MATRIX_LAYOUT_LD, int64_t(8));
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(CUBLASLT_EPILOGUE_RELU));
  refused(unsupported, "sums of integers have no epilogue");
}

TEST_F(SimcublasTest, SizesThatDoNotFit) {
  set(a, CUBLASLT_MATRIX_LAYOUT_COLS, uint64_t(3));
  refused(invalid, "sizes do not fit each other");
  set(b, CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t(3));
  EXPECT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t(CUBLAS_OP_T));
  refused(invalid, "sizes do not fit each other");
  set(a, CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t(0));
  refused(invalid, "A has no such number of rows or columns");
}

TEST_F(SimcublasTest, LayoutsThatCannotBe) {
  set(a, CUBLASLT_MATRIX_LAYOUT_LD, int64_t(3));
  refused(invalid, "A has a leading dimension that is too small");
  set(a, CUBLASLT_MATRIX_LAYOUT_LD, int64_t(5));
  set(c, CUBLASLT_MATRIX_LAYOUT_LD, int64_t(0));
  EXPECT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  set(d, CUBLASLT_MATRIX_LAYOUT_LD, int64_t(0));
  refused(invalid, "D has a leading dimension that is too small");
  set(d, CUBLASLT_MATRIX_LAYOUT_LD, int64_t(4));
  set(d, CUBLASLT_MATRIX_LAYOUT_ORDER, int32_t(CUBLASLT_ORDER_ROW));
  refused(invalid, "C and D have different sizes or orders");
  set(d, CUBLASLT_MATRIX_LAYOUT_ORDER, int32_t(CUBLASLT_ORDER_COL32));
  refused(invalid, "D is in an order that is not known here");
}

TEST_F(SimcublasTest, BatchesThatCannotBe) {
  set(d, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t(2));
  set(d, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t(16));
  refused(invalid, "batches are not of one size");
  for (cublasLtMatrixLayout_t layout : {a, b, c})
    set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t(2));
  EXPECT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  set(d, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t(15));
  refused(invalid, "D overlaps itself");
  // One beside the other.
  set(d, CUBLASLT_MATRIX_LAYOUT_LD, int64_t(8));
  set(d, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t(4));
  EXPECT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  set(a, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t(-1));
  refused(invalid, "A has no such batch");
}

TEST_F(SimcublasTest, OperationsThatCannotBe) {
  set(CUBLASLT_MATMUL_DESC_TRANSB, int32_t(CUBLAS_OP_C));
  refused(invalid, "A and B are transposed or not");
  set(CUBLASLT_MATMUL_DESC_TRANSB, int32_t(CUBLAS_OP_N));
  set(CUBLASLT_MATMUL_DESC_TRANSC, int32_t(CUBLAS_OP_T));
  refused(unsupported, "C cannot be transposed");
  set(CUBLASLT_MATMUL_DESC_TRANSC, int32_t(CUBLAS_OP_N));
  set(CUBLASLT_MATMUL_DESC_POINTER_MODE, int32_t(CUBLASLT_POINTER_MODE_DEVICE));
  refused(unsupported, "alpha and beta are the host's here");
  set(CUBLASLT_MATMUL_DESC_POINTER_MODE, int32_t(CUBLASLT_POINTER_MODE_HOST));
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(CUBLASLT_EPILOGUE_BGRADA));
  refused(unsupported, "the epilogue is not known here");
}

TEST_F(SimcublasTest, BiasesThatCannotBe) {
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(CUBLASLT_EPILOGUE_RELU_BIAS));
  refused(invalid, "the bias is nowhere");
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void *>(place(2)));
  refused(invalid, "the bias is not aligned");
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void *>(place(4)));
  EXPECT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  set(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, int64_t(4));
  refused(unsupported, "one bias for all of the batch is what is known here");
  set(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, int64_t(0));
  set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, int32_t(CUDA_R_16F));
  refused(unsupported, "the bias is not of D's type");
  set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, int32_t(-1));
  for (cublasLtMatrixLayout_t layout : {c, d})
    set(layout, CUBLASLT_MATRIX_LAYOUT_ORDER, int32_t(CUBLASLT_ORDER_ROW));
  refused(unsupported, "no bias with an activation of a row-major D");
}

TEST_F(SimcublasTest, AttributesHaveTheirSizes) {
  int64_t value = 1;
  refused(library->cublasLtMatrixLayoutSetAttribute.function(
              a, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &value, sizeof(value)),
          invalid, "the attribute has 4 bytes");
  refused(library->cublasLtMatmulDescSetAttribute.function(
              operation, CUBLASLT_MATMUL_DESC_EPILOGUE, nullptr, 4),
          invalid, "the attribute has 4 bytes");
  refused(library->cublasLtMatmulPreferenceSetAttribute.function(
              preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &value, 4),
          invalid, "the attribute has 8 bytes");
  refused(library->cublasLtMatmulDescSetAttribute.function(
              operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &value, 1),
          invalid, "attribute 25 is not known here");
}

TEST_F(SimcublasTest, WhatIsGoneIsNotUsed) {
  EXPECT_EQ(library->cublasLtMatrixLayoutDestroy.function(a),
            CUBLAS_STATUS_SUCCESS);
  refused(library->cublasLtMatrixLayoutDestroy.function(a), invalid,
          "there is none");
  refused(invalid, "there is no such layout");
  library->cublasLtMatmulDescDestroy.function(operation);
  refused(invalid, "there is no such operation");
  library->cublasLtDestroy.function(handle);
  refused(CUBLAS_STATUS_NOT_INITIALIZED, "there is no such handle");
}

TEST_F(SimcublasTest, ContextsAreTheThreads) {
  driver.ok(&Driver::cuCtxSetCurrent, CUcontext(nullptr));
  refused(invalid, "the handle is of another context than the thread's");
  cublasLtHandle_t other = nullptr;
  refused(library->cublasLtCreate.function(&other),
          CUBLAS_STATUS_NOT_INITIALIZED, "no context is the calling thread's");
}

TEST_F(SimcublasTest, PreferencesThatCannotBe) {
  refused(choose(0), invalid, "no algorithm is asked for");
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, uint32_t(2));
  refused(invalid, "operands have no such alignment");
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, uint32_t(12));
  refused(invalid, "operands have no such alignment");
  library->cublasLtMatmulPreferenceDestroy.function(preference);
  refused(invalid, "there is no such preference");
}

TEST_F(SimcublasTest, AlgorithmsAreForWhatTheyWereChosenFor) {
  ASSERT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  cublasLtMatmulAlgo_t foreign{};
  auto with = [&](const cublasLtMatmulAlgo_t *algorithm) {
    return multiply(place(0), place(64), place(128), place(256), algorithm,
                    nullptr, 0);
  };
  refused(with(nullptr), invalid, "an algorithm is needed here");
  refused(with(&foreign), invalid, "the algorithm is none of this library");
  foreign = found.algo;
  foreign.data[2] += 1;
  refused(with(&foreign), invalid, "the algorithm is none of this library");
  refused(multiply(place(260)), invalid,
          "operands are less aligned than the algorithm needs");
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(CUBLASLT_EPILOGUE_RELU));
  refused(with(&found.algo), invalid, "the algorithm is for another product");
}

TEST_F(SimcublasTest, WorkspacesAreLargeEnough) {
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t(1) << 20);
  ASSERT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  ASSERT_GT(found.workspaceSize, 0U);
  refused(multiply(place(256), found.workspaceSize - 1), invalid,
          "the workspace is smaller than the algorithm needs");
  EXPECT_EQ(multiply(place(256), found.workspaceSize), CUBLAS_STATUS_SUCCESS);
  refused(multiply(place(0), place(64), place(128), place(256), &found.algo,
                   place(1024 + 64), found.workspaceSize),
          invalid, "the workspace is not aligned to 256 bytes");
}

TEST_F(SimcublasTest, OperandsThatCannotBe) {
  ASSERT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  refused(multiply(nullptr), invalid, "a matrix is nowhere");
  refused(multiply(place(32)), invalid, "D overlaps a factor");
  refused(multiply(place(128 + 32)), invalid, "D overlaps C");
  set(c, CUBLASLT_MATRIX_LAYOUT_LD, int64_t(8));
  ASSERT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  refused(multiply(place(128)), invalid, "C is D, and lies otherwise");
}

// As a kernel does.
TEST_F(SimcublasTest, MemoryThatIsNotTheCardsIsFoundOutLate) {
  ASSERT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  alignas(16) float host[16];
  EXPECT_EQ(multiply(host), CUBLAS_STATUS_EXECUTION_FAILED);
  std::string report = simgpuReported();
  EXPECT_NE(report.find("simgpuEnqueue: a product uses what is not memory of "
                        "the card"),
            std::string::npos)
      << report;
  EXPECT_EQ(driver.call(&Driver::cuStreamSynchronize, driver.stream),
            CUDA_ERROR_ILLEGAL_ADDRESS);
}

} // namespace
