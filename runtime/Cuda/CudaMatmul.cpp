//===- CudaMatmul.cpp - Matrix products by cuBLASLt -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ColumnProduct.h"
#include "CublasLt.h"
#include "CudaMemory.h"
#include "CudaProducts.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"

#include <cassert>
#include <mutex>

namespace ax::rt::cuda {

namespace {

using SharedHandle = std::shared_ptr<const CublasHandle>;

constexpr uint64_t workspaceLimit = uint64_t(32) << 20;
/// What cuBLASLt wants workspaces to be aligned to.
constexpr int64_t workspaceAlignment = 256;
/// What its fast kernels want operands to be aligned to.
constexpr uint32_t fastAlignment = 16;

/// A descriptor, which is destroyed with this.
template <typename T>
class Descriptor {
public:
  using Destroy = LibraryFunction<cublasStatus_t(T)> CublasLt::*;
  Descriptor(const CublasLt &library, Destroy destroy)
      : library(library), destroy(destroy) {}
  ~Descriptor() {
    if (value)
      llvm::consumeError(library.call(destroy, value));
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;

  template <typename... Params, typename... Args>
  llvm::Error
  create(LibraryFunction<cublasStatus_t(T *, Params...)> CublasLt::*function,
         Args... args) {
    T made = nullptr;
    if (llvm::Error error = library.call(function, &made, args...))
      return error;
    value = made;
    return llvm::Error::success();
  }
  /// Sets an attribute, whose type is that of the number.
  template <typename Attribute, typename Number>
  llvm::Error
  set(LibraryFunction<cublasStatus_t(T, Attribute, const void *, size_t)>
          CublasLt::*function,
      Attribute attribute, Number number) {
    return library.call(function, value, attribute, &number, sizeof(number));
  }
  T get() const { return value; }

private:
  const CublasLt &library;
  Destroy destroy;
  T value = nullptr;
};

class Layout : public Descriptor<cublasLtMatrixLayout_t> {
public:
  explicit Layout(const CublasLt &library)
      : Descriptor(library, &CublasLt::cublasLtMatrixLayoutDestroy) {}
  llvm::Error make(const ColumnMatrix &matrix, int64_t batch) {
    if (llvm::Error error =
            create(&CublasLt::cublasLtMatrixLayoutCreate, toCuda(matrix.dtype),
                   static_cast<uint64_t>(matrix.rows),
                   static_cast<uint64_t>(matrix.columns), matrix.leading))
      return error;
    auto setter = &CublasLt::cublasLtMatrixLayoutSetAttribute;
    if (llvm::Error error = set(setter, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                static_cast<int32_t>(batch)))
      return error;
    return set(setter, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
               matrix.batchStride);
  }
  static cudaDataType_t toCuda(DType dtype) {
    switch (dtype) {
    case DType::F16:
      return CUDA_R_16F;
    case DType::BF16:
      return CUDA_R_16BF;
    case DType::F64:
      return CUDA_R_64F;
    default:
      return CUDA_R_32F;
    }
  }
};

/// How a product is computed where operands are aligned so.
struct Algorithm {
  uint32_t alignment = 0;
  cublasLtMatmulAlgo_t algorithm{};
};

class CudaMatmul : public CudaOp {
public:
  CudaMatmul(SharedHandle handleIn, const MatmulDesc &desc, bool tf32)
      : handle(std::move(handleIn)), desc(desc), tf32(tf32),
        operation(handle->getLibrary(), &CublasLt::cublasLtMatmulDescDestroy),
        a(handle->getLibrary()), b(handle->getLibrary()),
        c(handle->getLibrary()), d(handle->getLibrary()) {}

  llvm::Error prepare(ColumnProduct translated) {
    product = std::move(translated);
    if (product.calls.empty())
      return llvm::Error::success();
    for (auto [layout, matrix] :
         {std::pair(&a, &product.a), std::pair(&b, &product.b),
          std::pair(&c, &product.c), std::pair(&d, &product.d)})
      if (llvm::Error error = layout->make(*matrix, product.batch))
        return error;
    if (llvm::Error error = describe())
      return error;
    for (uint32_t alignment : {fastAlignment, elementBytes(desc.a)})
      if (llvm::Error error = choose(alignment))
        return error;
    return llvm::Error::success();
  }

  llvm::Error execute(CUstream stream, const DeviceAddress *arguments,
                      DeviceAddress workspace) override {
    if (product.calls.empty())
      return llvm::Error::success();
    // As the description has them.
    CUdeviceptr left = toCuda(arguments[0]), right = toCuda(arguments[1]);
    int next = 2;
    CUdeviceptr bias = desc.hasBias ? toCuda(arguments[next++]) : 0;
    CUdeviceptr residual = desc.hasResidual ? toCuda(arguments[next++]) : 0;
    CUdeviceptr result = toCuda(arguments[next]);
    if (!desc.hasResidual)
      residual = result;
    if (llvm::Error error = setBias(bias))
      return error;
    CUdeviceptr scratch = llvm::alignTo(toCuda(workspace), workspaceAlignment);
    for (const ColumnProduct::Call &call : product.calls)
      if (llvm::Error error =
              multiply(stream,
                       {right + call.a, left + call.b, residual + call.c,
                        result + call.d, bias},
                       scratch))
        return error;
    return llvm::Error::success();
  }

private:
  struct Operands {
    CUdeviceptr a, b, c, d, bias;
  };
  static uint32_t elementBytes(const TensorDesc &view) {
    return static_cast<uint32_t>(byteSize(view.dtype));
  }

  /// What is to be computed; where the bias is, `execute` knows.
  llvm::Error describe() {
    bool isDouble = desc.a.dtype == DType::F64;
    cublasComputeType_t compute =
        isDouble ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
    if (tf32 && desc.a.dtype == DType::F32)
      compute = CUBLAS_COMPUTE_32F_FAST_TF32;
    if (llvm::Error error =
            operation.create(&CublasLt::cublasLtMatmulDescCreate, compute,
                             isDouble ? CUDA_R_64F : CUDA_R_32F))
      return error;
    for (auto [attribute, matrix] :
         {std::pair(CUBLASLT_MATMUL_DESC_TRANSA, &product.a),
          std::pair(CUBLASLT_MATMUL_DESC_TRANSB, &product.b)})
      if (llvm::Error error = set(
              attribute, static_cast<int32_t>(
                             matrix->isTransposed ? CUBLAS_OP_T : CUBLAS_OP_N)))
        return error;
    return set(CUBLASLT_MATMUL_DESC_EPILOGUE, getEpilogue());
  }
  uint32_t getEpilogue() const {
    switch (desc.activation) {
    case Activation::Relu:
      return desc.hasBias ? CUBLASLT_EPILOGUE_RELU_BIAS
                          : CUBLASLT_EPILOGUE_RELU;
    case Activation::GeluTanh:
      return desc.hasBias ? CUBLASLT_EPILOGUE_GELU_BIAS
                          : CUBLASLT_EPILOGUE_GELU;
    default:
      return desc.hasBias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    }
  }
  template <typename Number>
  llvm::Error set(cublasLtMatmulDescAttributes_t attribute, Number number) {
    return operation.set(&CublasLt::cublasLtMatmulDescSetAttribute, attribute,
                         number);
  }
  llvm::Error setBias(CUdeviceptr bias) {
    if (!desc.hasBias)
      return llvm::Error::success();
    return set(CUBLASLT_MATMUL_DESC_BIAS_POINTER,
               reinterpret_cast<const void *>(bias));
  }

  /// Chooses an algorithm for operands that are aligned so: the one that
  /// cuBLASLt takes to be the fastest.
  llvm::Error choose(uint32_t alignment) {
    using Preference = Descriptor<cublasLtMatmulPreference_t>;
    Preference preference(handle->getLibrary(),
                          &CublasLt::cublasLtMatmulPreferenceDestroy);
    if (llvm::Error error =
            preference.create(&CublasLt::cublasLtMatmulPreferenceCreate))
      return error;
    auto setter = &CublasLt::cublasLtMatmulPreferenceSetAttribute;
    if (llvm::Error error = preference.set(
            setter, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspaceLimit))
      return error;
    uint32_t ofFactors = std::max(alignment, elementBytes(desc.a));
    uint32_t ofResults = std::max(alignment, elementBytes(desc.c));
    for (auto [attribute, bytes] :
         {std::pair(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, ofFactors),
          std::pair(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, ofFactors),
          std::pair(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, ofResults),
          std::pair(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, ofResults)})
      if (llvm::Error error = preference.set(setter, attribute, bytes))
        return error;
    // Of a bias it looks at the address itself, and at nothing else of it.
    if (llvm::Error error = setBias(ofResults))
      return error;
    cublasLtMatmulHeuristicResult_t found{};
    int numFound = 0;
    if (llvm::Error error = handle->call(
            &CublasLt::cublasLtMatmulAlgoGetHeuristic, operation.get(), a.get(),
            b.get(), c.get(), d.get(), preference.get(), 1, &found, &numFound))
      return error;
    if (numFound == 0 || found.state != CUBLAS_STATUS_SUCCESS)
      return makeError(ExitCode::Unsupported,
                       "cuBLASLt: it knows no algorithm for it");
    algorithms.push_back({alignment, found.algo});
    auto needed = static_cast<int64_t>(found.workspaceSize);
    if (needed > 0)
      workspaceBytes =
          std::max(workspaceBytes, needed + workspaceAlignment - 1);
    return llvm::Error::success();
  }

  llvm::Error multiply(CUstream stream, const Operands &at,
                       CUdeviceptr scratch) {
    CUdeviceptr bits = at.a | at.b | at.c | at.d | at.bias;
    const auto *algorithm = llvm::find_if(algorithms, [&](const Algorithm &a) {
      return bits % a.alignment == 0;
    });
    assert(algorithm != algorithms.end() && "elements are aligned");
    auto pointer = [](CUdeviceptr address) {
      return reinterpret_cast<void *>(address);
    };
    // Of the scale's type; they are read during the call.
    const float one = 1, zero = 0;
    const double doubleOne = 1, doubleZero = 0;
    const void *alpha = &one, *beta = desc.hasResidual ? &one : &zero;
    if (desc.a.dtype == DType::F64) {
      alpha = &doubleOne;
      beta = desc.hasResidual ? &doubleOne : &doubleZero;
    }
    return handle->call(&CublasLt::cublasLtMatmul, operation.get(), alpha,
                        pointer(at.a), a.get(), pointer(at.b), b.get(), beta,
                        pointer(at.c), c.get(), pointer(at.d), d.get(),
                        &algorithm->algorithm, pointer(scratch),
                        getScratchBytes(), stream);
  }
  size_t getScratchBytes() const {
    return workspaceBytes
               ? static_cast<size_t>(workspaceBytes - workspaceAlignment + 1)
               : 0;
  }

  SharedHandle handle;
  MatmulDesc desc;
  bool tf32;
  ColumnProduct product;
  Descriptor<cublasLtMatmulDesc_t> operation;
  Layout a, b, c, d;
  /// Fast ones first, and at last one for all operands.
  llvm::SmallVector<Algorithm, 2> algorithms;
};

class CublasProducts : public CudaProducts {
public:
  CublasProducts(SharedCard card, bool tf32)
      : card(std::move(card)), tf32(tf32) {}

  llvm::Expected<std::unique_ptr<CudaOp>>
  prepare(const MatmulDesc &desc) override {
    llvm::Expected<ColumnProduct> product = toColumns(desc);
    if (!product)
      return product.takeError();
    llvm::Expected<SharedHandle> used = getHandle();
    if (!used)
      return used.takeError();
    auto made = std::make_unique<CudaMatmul>(std::move(*used), desc, tf32);
    if (llvm::Error error = made->prepare(std::move(*product)))
      return error;
    return made;
  }

private:
  llvm::Expected<SharedHandle> getHandle() {
    std::lock_guard<std::mutex> held(mutex);
    if (handle)
      return handle;
    llvm::Expected<SharedHandle> made = CublasHandle::create(card);
    if (made)
      handle = *made;
    return made;
  }

  SharedCard card;
  bool tf32;
  std::mutex mutex;
  SharedHandle handle;
};

} // namespace

std::unique_ptr<CudaProducts> makeProducts(const SharedCard &card, bool tf32) {
  return std::make_unique<CublasProducts>(card, tf32);
}

} // namespace ax::rt::cuda
