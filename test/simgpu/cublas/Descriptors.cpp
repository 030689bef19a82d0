//===- Descriptors.cpp - What the simulated cuBLASLt is told --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Descriptors.h"

#include "../LibraryDriver.h"

#include <cstring>

namespace simcublas {

cublasStatus_t enter(const char *call, uint64_t *context) {
  return static_cast<cublasStatus_t>(
      simgpu::enterLibraryCall(call, CUBLAS_STATUS_NOT_INITIALIZED, context));
}

cublasStatus_t refuse(cublasStatus_t status, const std::string &why) {
  simgpu::refuseLibraryCall(why);
  return status;
}

// Never destroyed: threads may still call.
Living<Handle, cublasLtHandle_t> &handles() {
  static auto *living = new Living<Handle, cublasLtHandle_t>;
  return *living;
}
Living<Layout, cublasLtMatrixLayout_t> &layouts() {
  static auto *living = new Living<Layout, cublasLtMatrixLayout_t>;
  return *living;
}
Living<Operation, cublasLtMatmulDesc_t> &operations() {
  static auto *living = new Living<Operation, cublasLtMatmulDesc_t>;
  return *living;
}
Living<Preference, cublasLtMatmulPreference_t> &preferences() {
  static auto *living = new Living<Preference, cublasLtMatmulPreference_t>;
  return *living;
}

/// Sets one attribute, if it is as large as what is given.
template <typename T>
static cublasStatus_t assign(T &attribute, const void *value, size_t bytes) {
  if (!value || bytes != sizeof(T))
    return refuse(CUBLAS_STATUS_INVALID_VALUE,
                  "the attribute has " + std::to_string(sizeof(T)) + " bytes");
  std::memcpy(&attribute, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Objects, typename Handle>
static cublasStatus_t destroy(const char *call, Objects &objects,
                              Handle handle) {
  if (cublasStatus_t status = enter(call))
    return status;
  return objects.remove(handle)
             ? CUBLAS_STATUS_SUCCESS
             : refuse(CUBLAS_STATUS_INVALID_VALUE, "there is none");
}

} // namespace simcublas

using namespace simcublas;

static cublasStatus_t noAttribute(int attribute) {
  return refuse(CUBLAS_STATUS_INVALID_VALUE, "attribute " +
                                                 std::to_string(attribute) +
                                                 " is not known here");
}

SIMCUBLAS_ENTRY cublasStatus_t
cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                           uint64_t rows, uint64_t columns, int64_t leading) {
  if (cublasStatus_t status = enter("cublasLtMatrixLayoutCreate"))
    return status;
  Layout made;
  made.type = static_cast<uint32_t>(type);
  made.rows = rows;
  made.columns = columns;
  made.leading = leading;
  *layout = layouts().add(made);
  return CUBLAS_STATUS_SUCCESS;
}

SIMCUBLAS_ENTRY cublasStatus_t
cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy("cublasLtMatrixLayoutDestroy", layouts(), layout);
}

SIMCUBLAS_ENTRY cublasStatus_t cublasLtMatrixLayoutSetAttribute(
    cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
    const void *value, size_t bytes) {
  if (cublasStatus_t status = enter("cublasLtMatrixLayoutSetAttribute"))
    return status;
  Layout *found = layouts().find(layout);
  if (!found)
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "there is no such layout");
  switch (attribute) {
  case CUBLASLT_MATRIX_LAYOUT_TYPE:
    return assign(found->type, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_ORDER:
    return assign(found->order, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_ROWS:
    return assign(found->rows, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_COLS:
    return assign(found->columns, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_LD:
    return assign(found->leading, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    return assign(found->batchCount, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    return assign(found->batchStride, value, bytes);
  default:
    return noAttribute(attribute);
  }
}

SIMCUBLAS_ENTRY cublasStatus_t
cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *operation,
                         cublasComputeType_t compute, cudaDataType_t scale) {
  if (cublasStatus_t status = enter("cublasLtMatmulDescCreate"))
    return status;
  Operation made;
  made.compute = compute;
  made.scale = scale;
  *operation = operations().add(made);
  return CUBLAS_STATUS_SUCCESS;
}

SIMCUBLAS_ENTRY cublasStatus_t
cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  return destroy("cublasLtMatmulDescDestroy", operations(), operation);
}

SIMCUBLAS_ENTRY cublasStatus_t cublasLtMatmulDescSetAttribute(
    cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
    const void *value, size_t bytes) {
  if (cublasStatus_t status = enter("cublasLtMatmulDescSetAttribute"))
    return status;
  Operation *found = operations().find(operation);
  if (!found)
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "there is no such operation");
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_POINTER_MODE:
    return assign(found->pointerMode, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return assign(found->transposeA, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return assign(found->transposeB, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSC:
    return assign(found->transposeC, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return assign(found->epilogue, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return assign(found->bias, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
    return assign(found->biasBatchStride, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
    return assign(found->biasType, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
    return assign(found->aux, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
    return assign(found->auxLeading, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
    return assign(found->auxBatchStride, value, bytes);
  default:
    return noAttribute(attribute);
  }
}

SIMCUBLAS_ENTRY cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  if (cublasStatus_t status = enter("cublasLtMatmulPreferenceCreate"))
    return status;
  *preference = preferences().add({});
  return CUBLAS_STATUS_SUCCESS;
}

SIMCUBLAS_ENTRY cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy("cublasLtMatmulPreferenceDestroy", preferences(), preference);
}

SIMCUBLAS_ENTRY cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference,
    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
    size_t bytes) {
  if (cublasStatus_t status = enter("cublasLtMatmulPreferenceSetAttribute"))
    return status;
  Preference *found = preferences().find(preference);
  if (!found)
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "there is no such preference");
  switch (attribute) {
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
    return assign(found->maxWorkspace, value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    return assign(found->alignment[0], value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    return assign(found->alignment[1], value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    return assign(found->alignment[2], value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
    return assign(found->alignment[3], value, bytes);
  default:
    return noAttribute(attribute);
  }
}
