//===- Product.cpp - A product as the simulated cuBLASLt is told ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Product.h"

#include <algorithm>

namespace simcublas {

size_t bytesOf(uint32_t type) {
  switch (type) {
  case CUDA_R_8F_E4M3:
  case CUDA_R_8F_E5M2:
  case CUDA_R_8I:
    return 1;
  case CUDA_R_16F:
  case CUDA_R_16BF:
    return 2;
  case CUDA_R_32F:
  case CUDA_R_32I:
    return 4;
  case CUDA_R_64F:
    return 8;
  default:
    return 0;
  }
}

std::array<int64_t, 2> stridesOf(const Layout &layout) {
  if (layout.order == CUBLASLT_ORDER_ROW)
    return {layout.leading, 1};
  return {1, layout.leading};
}

size_t reachOf(const Layout &layout) {
  auto [row, column] = stridesOf(layout);
  int64_t last = static_cast<int64_t>(layout.rows - 1) * row +
                 static_cast<int64_t>(layout.columns - 1) * column +
                 (layout.batchCount - 1) * layout.batchStride;
  return static_cast<size_t>(last + 1) * bytesOf(layout.type);
}

cublasStatus_t Product::read(cublasLtMatmulDesc_t operationHandle,
                             cublasLtMatrixLayout_t aHandle,
                             cublasLtMatrixLayout_t bHandle,
                             cublasLtMatrixLayout_t cHandle,
                             cublasLtMatrixLayout_t dHandle) {
  Operation *found = operations().find(operationHandle);
  if (!found)
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "there is no such operation");
  operation = *found;
  for (auto [handle, layout] :
       {std::pair(aHandle, &a), std::pair(bHandle, &b), std::pair(cHandle, &c),
        std::pair(dHandle, &d)}) {
    Layout *known = layouts().find(handle);
    if (!known)
      return refuse(CUBLAS_STATUS_INVALID_VALUE, "there is no such layout");
    *layout = *known;
  }
  return CUBLAS_STATUS_SUCCESS;
}

static bool isFloat8Type(uint32_t type) {
  return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

bool Product::isOfIntegers() const {
  return a.type == CUDA_R_8I && b.type == CUDA_R_8I;
}

bool Product::isFloat8() const {
  return isFloat8Type(a.type) && isFloat8Type(b.type);
}

cublasStatus_t Product::check(int capability) const {
  if (cublasStatus_t status = checkTypes())
    return status;
  if (cublasStatus_t status = checkSizes())
    return status;
  if (isFloat8())
    if (cublasStatus_t status = checkFloat8(capability))
      return status;
  if (isOfIntegers())
    if (cublasStatus_t status = checkIntegers())
      return status;
  return checkEpilogue();
}

// What NVIDIA's pages say of IMMA kernels of matrices in the regular order.
cublasStatus_t Product::checkIntegers() const {
  auto unsupported = [](const std::string &why) {
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, why);
  };
  constexpr int64_t multiple = 4;
  if (operation.transposeA != CUBLAS_OP_T ||
      operation.transposeB != CUBLAS_OP_N)
    return unsupported("A of integers is to be transposed, and B is not");
  // Of A, that is k and m.
  if (a.rows % multiple || a.columns % multiple)
    return unsupported("rows of D, or terms of its sums, are no multiple of 4");
  for (const Layout *layout : {&a, &b, &c, &d})
    if (layout->order != CUBLASLT_ORDER_COL || layout->leading % multiple ||
        layout->batchStride % multiple)
      return unsupported("columns of integers do not begin at multiples of 4");
  if (operation.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
    return unsupported("sums of integers have no epilogue");
  return CUBLAS_STATUS_SUCCESS;
}

// What NVIDIA's pages say of FP8 kernels.
cublasStatus_t Product::checkFloat8(int capability) const {
  auto unsupported = [](const std::string &why) {
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, why);
  };
  constexpr int first = 89, anyOrder = 100, anyOrderNoMore = 120;
  if (capability < first)
    return unsupported("factors of eight bits on an sm_" +
                       std::to_string(capability));
  bool mayLieAnyhow = capability >= anyOrder && capability < anyOrderNoMore;
  if (!mayLieAnyhow && (operation.transposeA != CUBLAS_OP_T ||
                        operation.transposeB != CUBLAS_OP_N))
    return unsupported("A of eight bits is to be transposed, and B is not");
  auto isAligned = [](uint64_t elements, uint32_t type) {
    constexpr uint64_t alignment = 16;
    return elements * bytesOf(type) % alignment == 0;
  };
  // Beginnings of columns; rows of op(A) and D, and what is summed over.
  bool areColumnsAligned = true;
  for (const Layout *layout : {&a, &b, &c, &d}) {
    if (layout->order != CUBLASLT_ORDER_COL)
      return unsupported("matrices of eight bits have columns");
    areColumnsAligned &= isAligned(layout->rows, layout->type);
    for (int64_t step : {layout->leading, layout->batchStride})
      areColumnsAligned &= isAligned(static_cast<uint64_t>(step), layout->type);
  }
  if (!areColumnsAligned)
    return unsupported("columns are no multiples of 16 bytes, or do not begin "
                       "at such");
  if (operation.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
    return unsupported("an epilogue of eight bits is not known here");
  return CUBLAS_STATUS_SUCCESS;
}

// The table of cublasLtMatmul in NVIDIA's pages, for real numbers.
cublasStatus_t Product::checkTypes() const {
  struct Row {
    int compute, scale;
    uint32_t factor, result;
  };
  static const Row table[] = {
      {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF},
      {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F},
      {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_32F},
      {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_32F},
      {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
      {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
      {CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F},
      {CUBLAS_COMPUTE_32I, CUDA_R_32I, CUDA_R_8I, CUDA_R_32I}};
  bool isFloat8Row =
      isFloat8() && (a.type == CUDA_R_8F_E4M3 || b.type == CUDA_R_8F_E4M3) &&
      operation.compute == CUBLAS_COMPUTE_32F &&
      operation.scale == CUDA_R_32F && c.type == d.type &&
      (d.type == CUDA_R_32F || d.type == CUDA_R_16BF || d.type == CUDA_R_16F);
  bool isKnown =
      isFloat8Row ||
      std::any_of(std::begin(table), std::end(table), [&](const Row &row) {
        return row.compute == operation.compute &&
               row.scale == operation.scale && row.factor == a.type &&
               row.factor == b.type && row.result == c.type &&
               row.result == d.type;
      });
  if (!isKnown)
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED,
                  "types do not go together: compute " +
                      std::to_string(operation.compute) + ", scale " +
                      std::to_string(operation.scale) + ", A " +
                      std::to_string(a.type) + ", B " + std::to_string(b.type) +
                      ", C " + std::to_string(c.type) + ", D " +
                      std::to_string(d.type));
  return CUBLAS_STATUS_SUCCESS;
}

/// Why a matrix cannot lie so; empty: it can.
static std::string faultOf(const Layout &layout, bool isWritten,
                           bool mayRepeat) {
  if (layout.order != CUBLASLT_ORDER_COL && layout.order != CUBLASLT_ORDER_ROW)
    return "is in an order that is not known here";
  if (layout.rows < 1 || layout.columns < 1 || layout.rows > INT32_MAX ||
      layout.columns > INT32_MAX)
    return "has no such number of rows or columns";
  bool isRow = layout.order == CUBLASLT_ORDER_ROW;
  auto shorter = static_cast<int64_t>(isRow ? layout.columns : layout.rows);
  auto longer = static_cast<int64_t>(isRow ? layout.rows : layout.columns);
  if (layout.leading < shorter && !(mayRepeat && layout.leading == 0))
    return "has a leading dimension that is too small";
  if (layout.batchCount < 1 || layout.batchStride < 0)
    return "has no such batch";
  if (!isWritten || layout.batchCount == 1)
    return "";
  // Each dimension steps over all that those with smaller steps reach.
  std::array<std::array<int64_t, 2>, 3> dims{
      {{1, shorter},
       {layout.leading, longer},
       {layout.batchStride, layout.batchCount}}};
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (auto [stride, size] : dims) {
    if (size > 1 && stride <= reach)
      return "overlaps itself";
    reach += stride * (size - 1);
  }
  return "";
}

cublasStatus_t Product::checkSizes() const {
  auto invalid = [](const std::string &why) {
    return refuse(CUBLAS_STATUS_INVALID_VALUE, why);
  };
  struct Named {
    const char *name;
    const Layout *layout;
  };
  for (auto [name, layout] :
       {Named{"A", &a}, Named{"B", &b}, Named{"C", &c}, Named{"D", &d}}) {
    std::string fault = faultOf(*layout, layout == &d, layout == &c);
    if (!fault.empty())
      return invalid(std::string(name) + " " + fault);
    if (layout->batchCount != d.batchCount)
      return invalid("batches are not of one size");
  }
  for (int32_t transpose : {operation.transposeA, operation.transposeB})
    if (transpose != CUBLAS_OP_N && transpose != CUBLAS_OP_T)
      return invalid("A and B are transposed or not");
  if (operation.transposeC != CUBLAS_OP_N)
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "C cannot be transposed");
  uint64_t m = a.rows, k = a.columns, l = b.rows, n = b.columns;
  if (operation.transposeA == CUBLAS_OP_T)
    std::swap(m, k);
  if (operation.transposeB == CUBLAS_OP_T)
    std::swap(l, n);
  if (m != d.rows || n != d.columns || k != l)
    return invalid("sizes do not fit each other");
  if (c.rows != d.rows || c.columns != d.columns || c.order != d.order)
    return invalid("C and D have different sizes or orders");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t Product::checkEpilogue() const {
  switch (operation.epilogue) {
  case CUBLASLT_EPILOGUE_DEFAULT:
  case CUBLASLT_EPILOGUE_BIAS:
  case CUBLASLT_EPILOGUE_RELU:
  case CUBLASLT_EPILOGUE_RELU_BIAS:
  case CUBLASLT_EPILOGUE_GELU:
  case CUBLASLT_EPILOGUE_GELU_BIAS:
  case CUBLASLT_EPILOGUE_GELU_AUX:
  case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
  case CUBLASLT_EPILOGUE_DGELU:
    break;
  default:
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED,
                  "the epilogue is not known here");
  }
  if (operation.pointerMode != CUBLASLT_POINTER_MODE_HOST)
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED,
                  "alpha and beta are the host's here");
  if (operation.writesAux() || operation.readsAux())
    if (cublasStatus_t status = checkAux())
      return status;
  if (!operation.hasBias())
    return CUBLAS_STATUS_SUCCESS;
  if (d.order == CUBLASLT_ORDER_ROW &&
      operation.epilogue != CUBLASLT_EPILOGUE_BIAS)
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED,
                  "no bias with an activation of a row-major D");
  if (!operation.bias)
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "the bias is nowhere");
  auto address = reinterpret_cast<uintptr_t>(operation.bias);
  if (address % bytesOf(d.type))
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "the bias is not aligned");
  if (operation.biasType != -1 &&
      operation.biasType != static_cast<int32_t>(d.type))
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "the bias is not of D's type");
  if (operation.biasBatchStride)
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED,
                  "one bias for all of the batch is what is known here");
  return CUBLAS_STATUS_SUCCESS;
}

// What NVIDIA's pages say of CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_*.
cublasStatus_t Product::checkAux() const {
  constexpr int64_t multiple = 8;
  constexpr uintptr_t alignment = 16;
  if (bytesOf(d.type) != 2 || d.order != CUBLASLT_ORDER_COL)
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED,
                  "an auxiliary buffer is known of columns of 16 bits here");
  if (operation.auxLeading < static_cast<int64_t>(d.rows) ||
      operation.auxLeading % multiple || operation.auxBatchStride % multiple)
    return refuse(CUBLAS_STATUS_INVALID_VALUE,
                  "columns of the auxiliary buffer do not begin at multiples "
                  "of eight, or are too short");
  if (!operation.aux || reinterpret_cast<uintptr_t>(operation.aux) % alignment)
    return refuse(CUBLAS_STATUS_INVALID_VALUE,
                  "the auxiliary buffer is nowhere, or not aligned");
  std::string fault = faultOf(auxLayout(), operation.writesAux(), false);
  return fault.empty() ? CUBLAS_STATUS_SUCCESS
                       : refuse(CUBLAS_STATUS_INVALID_VALUE,
                                "the auxiliary buffer " + fault);
}

Layout Product::auxLayout() const {
  Layout layout = d;
  layout.leading = operation.auxLeading;
  layout.batchStride = operation.auxBatchStride;
  return layout;
}

uint64_t Product::hash() const {
  uint64_t result = 1469598103934665603ULL;
  auto mix = [&](auto value) {
    result = (result ^ static_cast<uint64_t>(value)) * 1099511628211ULL;
  };
  for (const Layout *layout : {&a, &b, &c, &d}) {
    mix(layout->type);
    mix(layout->order);
    mix(layout->rows);
    mix(layout->columns);
    mix(layout->leading);
    mix(layout->batchCount);
    mix(layout->batchStride);
  }
  mix(operation.compute);
  mix(operation.scale);
  mix(operation.transposeA);
  mix(operation.transposeB);
  mix(operation.epilogue);
  mix(operation.auxLeading);
  mix(operation.auxBatchStride);
  return result;
}

} // namespace simcublas
