//===- CudaMatmul.cpp - Matrix products by cuBLASLt -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AlgorithmCache.h"
#include "ColumnProduct.h"
#include "CublasDescriptors.h"
#include "CudaMemory.h"
#include "ProductTimer.h"

#include "ax/Support/CacheFolder.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"

#include <atomic>
#include <cassert>
#include <mutex>
#include <optional>

namespace ax::rt::cuda {

namespace {

using SharedHandle = std::shared_ptr<const CublasHandle>;

constexpr uint64_t workspaceLimit = uint64_t(32) << 20;
/// What cuBLASLt wants workspaces to be aligned to.
constexpr int64_t workspaceAlignment = 256;
/// What its fast kernels want operands to be aligned to.
constexpr uint32_t fastAlignment = 16;

/// How a product is computed where operands are aligned so.
struct Algorithm {
  uint32_t alignment = 0;
  cublasLtMatmulAlgo_t algorithm{};
  uint64_t workspaceBytes = 0;
};

/// With what, and how, algorithms of a card's products are chosen.
struct Choice {
  SharedCard card;
  SharedHandle handle;
  bool tf32;
  /// How many are timed; 1: none.
  int numTimed;
  /// What may be allocated to time them.
  int64_t mostTimedBytes;
  /// Of the card and its software: what is as fast there is so elsewhere.
  std::string place;
  AlgorithmCache &cache;
};

class CudaMatmul : public CudaOp {
public:
  CudaMatmul(const Choice &choice, const MatmulDesc &desc)
      : handle(choice.handle), desc(desc), tf32(choice.tf32),
        operation(handle->getLibrary(), &CublasLt::cublasLtMatmulDescDestroy),
        a(handle->getLibrary()), b(handle->getLibrary()),
        c(handle->getLibrary()), d(handle->getLibrary()) {}

  llvm::Error prepare(ColumnProduct translated, const Choice &choice) {
    if (llvm::Error error = describe(std::move(translated)))
      return error;
    for (uint32_t alignment : getAlignments()) {
      llvm::Expected<std::vector<Algorithm>> candidates =
          findCandidates(alignment, choice);
      if (!candidates)
        return candidates.takeError();
      llvm::Expected<size_t> fastest = findFastest(*candidates, choice);
      if (!fastest)
        return fastest.takeError();
      algorithms.push_back((*candidates)[*fastest]);
      workspaceBytes = std::max(workspaceBytes, roomFor(algorithms.back()));
    }
    return llvm::Error::success();
  }

  /// Returns the most that one of those takes which are to be timed: this and
  /// `prepare` are for operations of their own.
  llvm::Expected<int64_t> findWorkspace(ColumnProduct translated,
                                        const Choice &choice) {
    if (llvm::Error error = describe(std::move(translated)))
      return error;
    int64_t most = 0;
    for (uint32_t alignment : getAlignments()) {
      llvm::Expected<std::vector<Algorithm>> candidates =
          findCandidates(alignment, choice);
      if (!candidates)
        return candidates.takeError();
      for (const Algorithm &candidate : *candidates)
        most = std::max(most, roomFor(candidate));
    }
    return most;
  }

  llvm::Error execute(CUstream stream, const DeviceAddress *arguments,
                      DeviceAddress workspace) override {
    if (product.calls.empty())
      return llvm::Error::success();
    Operands whole = operandsOf(arguments);
    for (const ColumnProduct::Call &call : product.calls) {
      Operands at{whole.a + call.a, whole.b + call.b, whole.c + call.c,
                  whole.d + call.d, whole.bias,       whole.input + call.input};
      if (llvm::Error error = setEpilogue(at.bias, at.input))
        return error;
      CUdeviceptr bits = at.a | at.b | at.c | at.d | at.bias;
      const auto *algorithm =
          llvm::find_if(algorithms, [&](const Algorithm &a) {
            return bits % a.alignment == 0;
          });
      if (algorithm == algorithms.end())
        return makeError(ExitCode::RunFailed,
                         "operands of a product of eight bits are not aligned "
                         "to 16 bytes");
      if (llvm::Error error = multiply(stream, at, *algorithm, workspace))
        return error;
    }
    return llvm::Error::success();
  }

private:
  struct Operands {
    CUdeviceptr a, b, c, d, bias, input;
  };
  /// The first call by one algorithm, on operands that are aligned to all that
  /// there is.
  class Trial : public CudaOp {
  public:
    Trial(CudaMatmul &matmul, const Algorithm &algorithm)
        : matmul(matmul), algorithm(algorithm) {}
    llvm::Error execute(CUstream stream, const DeviceAddress *arguments,
                        DeviceAddress workspace) override {
      Operands at = matmul.operandsOf(arguments);
      if (llvm::Error error = matmul.setEpilogue(at.bias, at.input))
        return error;
      return matmul.multiply(stream, at, algorithm, workspace);
    }

  private:
    CudaMatmul &matmul;
    const Algorithm &algorithm;
  };

  /// As the description has them.
  Operands operandsOf(const DeviceAddress *arguments) const {
    Operands at{};
    at.b = toCuda(arguments[0]);
    at.a = toCuda(arguments[1]);
    int next = 2;
    if (desc.hasBias)
      at.bias = toCuda(arguments[next++]);
    if (desc.hasResidual)
      at.c = toCuda(arguments[next++]);
    if (desc.form == ActivationForm::Gradient)
      at.input = toCuda(arguments[next++]);
    at.d = toCuda(arguments[next++]);
    if (desc.form == ActivationForm::ValueAndInput)
      at.input = toCuda(arguments[next]);
    if (!desc.hasResidual)
      at.c = at.d;
    return at;
  }
  static uint32_t elementBytes(const TensorDesc &view) {
    return static_cast<uint32_t>(byteSize(view.dtype));
  }

  /// How operands may be aligned that an algorithm is chosen for; none where
  /// nothing is computed.
  llvm::SmallVector<uint32_t, 2> getAlignments() const {
    if (product.calls.empty())
      return {};
    // It has no products of eight bits that are aligned less.
    if (hasEightBits(desc))
      return {fastAlignment};
    return {fastAlignment, elementBytes(desc.a)};
  }
  llvm::Error describe(ColumnProduct translated) {
    product = std::move(translated);
    if (product.calls.empty())
      return llvm::Error::success();
    for (auto [layout, matrix] :
         {std::pair(&a, &product.a), std::pair(&b, &product.b),
          std::pair(&c, &product.c), std::pair(&d, &product.d)})
      if (llvm::Error error = layout->make(*matrix, product.batch))
        return error;
    return describe();
  }
  /// What is to be computed; where the bias is, `execute` knows.
  llvm::Error describe() {
    auto [compute, scale] = getTypes();
    if (llvm::Error error = operation.create(
            &CublasLt::cublasLtMatmulDescCreate, compute, scale))
      return error;
    for (auto [attribute, matrix] :
         {std::pair(CUBLASLT_MATMUL_DESC_TRANSA, &product.a),
          std::pair(CUBLASLT_MATMUL_DESC_TRANSB, &product.b)})
      if (llvm::Error error = set(
              attribute, static_cast<int32_t>(
                             matrix->isTransposed ? CUBLAS_OP_T : CUBLAS_OP_N)))
        return error;
    if (product.input) {
      if (llvm::Error error =
              set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, product.input->leading))
        return error;
      if (llvm::Error error =
              set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE,
                  product.input->batchStride))
        return error;
    }
    return set(CUBLASLT_MATMUL_DESC_EPILOGUE, getEpilogue());
  }
  /// What sums are made in, and what they are multiplied with.
  std::pair<cublasComputeType_t, cudaDataType_t> getTypes() const {
    if (desc.a.dtype == DType::F64)
      return {CUBLAS_COMPUTE_64F, CUDA_R_64F};
    if (isOfIntegers(desc))
      return {CUBLAS_COMPUTE_32I, CUDA_R_32I};
    return {tf32 && desc.a.dtype == DType::F32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                               : CUBLAS_COMPUTE_32F,
            CUDA_R_32F};
  }
  uint32_t getEpilogue() const {
    if (desc.form == ActivationForm::Gradient)
      return CUBLASLT_EPILOGUE_DGELU;
    if (desc.form == ActivationForm::ValueAndInput)
      return desc.hasBias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS
                          : CUBLASLT_EPILOGUE_GELU_AUX;
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
  /// Says where the epilogue's operands are.
  llvm::Error setEpilogue(CUdeviceptr bias, CUdeviceptr input) {
    if (desc.hasBias)
      if (llvm::Error error = set(CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                  reinterpret_cast<const void *>(bias)))
        return error;
    if (!product.input)
      return llvm::Error::success();
    if (input % fastAlignment)
      return makeError(ExitCode::RunFailed, "what is put into an activation is "
                                            "not aligned to 16 bytes");
    return set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
               reinterpret_cast<void *>(input));
  }

  /// Returns what cuBLASLt names for operands that are aligned so.
  llvm::Expected<std::vector<Algorithm>> findCandidates(uint32_t alignment,
                                                        const Choice &choice) {
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
    if (llvm::Error error = setEpilogue(ofResults, fastAlignment))
      return error;
    std::vector<cublasLtMatmulHeuristicResult_t> found(
        static_cast<size_t>(choice.numTimed));
    int numFound = 0;
    if (llvm::Error error = handle->call(
            &CublasLt::cublasLtMatmulAlgoGetHeuristic, operation.get(), a.get(),
            b.get(), c.get(), d.get(), preference.get(), choice.numTimed,
            found.data(), &numFound))
      return error;
    found.resize(static_cast<size_t>(numFound));
    std::vector<Algorithm> candidates;
    for (const cublasLtMatmulHeuristicResult_t &result : found)
      if (result.state == CUBLAS_STATUS_SUCCESS)
        candidates.push_back({alignment, result.algo, result.workspaceSize});
    if (candidates.empty())
      return makeError(ExitCode::Unsupported,
                       "cuBLASLt: it knows no algorithm for it");
    return candidates;
  }

  /// Returns the number of the candidate that is the fastest, as far as is
  /// known: the first is what cuBLASLt takes for it.
  llvm::Expected<size_t> findFastest(llvm::ArrayRef<Algorithm> candidates,
                                     const Choice &choice) {
    if (candidates.size() == 1)
      return 0;
    std::vector<cublasLtMatmulAlgo_t> among;
    int64_t scratchBytes = 0;
    for (const Algorithm &candidate : candidates) {
      among.push_back(candidate.algorithm);
      scratchBytes = std::max(scratchBytes, roomFor(candidate));
    }
    std::string key = llvm::formatv(
        "{0}, {1}{2}{3}, epilogue {4}, aligned to {5}, of {6}", choice.place,
        toText(product), tf32 ? " tf32" : "", desc.hasResidual ? " added" : "",
        getEpilogue(), candidates.front().alignment, choice.numTimed);
    auto held = choice.cache.lock();
    if (std::optional<size_t> known = choice.cache.find(key, among))
      return *known;
    auto timer = ProductTimer::create(choice.card, desc, scratchBytes,
                                      choice.mostTimedBytes);
    if (!timer)
      return timer.takeError();
    if (!*timer)
      return 0;
    std::optional<size_t> fastest;
    std::chrono::nanoseconds least{};
    llvm::Error failures = llvm::Error::success();
    for (size_t i = 0; i < candidates.size(); ++i) {
      Trial trial(*this, candidates[i]);
      llvm::Expected<std::chrono::nanoseconds> took = (*timer)->time(trial);
      if (!took) {
        failures = llvm::joinErrors(std::move(failures), took.takeError());
      } else if (!fastest || *took < least) {
        fastest = i;
        least = *took;
      }
    }
    if (!fastest)
      return failures;
    // Those that fail are as good as not there.
    llvm::consumeError(std::move(failures));
    choice.cache.keep(key, among[*fastest]);
    return *fastest;
  }

  /// Bytes of workspace, wherever that begins.
  static int64_t roomFor(const Algorithm &algorithm) {
    auto needed = static_cast<int64_t>(algorithm.workspaceBytes);
    return needed ? needed + workspaceAlignment - 1 : 0;
  }

  llvm::Error multiply(CUstream stream, const Operands &at,
                       const Algorithm &algorithm, DeviceAddress workspace) {
    CUdeviceptr scratch = llvm::alignTo(toCuda(workspace), workspaceAlignment);
    auto pointer = [](CUdeviceptr address) {
      return reinterpret_cast<void *>(address);
    };
    // Of the scale's type; they are read during the call.
    const float one = 1, zero = 0;
    const double doubleOne = 1, doubleZero = 0;
    const int32_t wholeOne = 1, wholeZero = 0;
    const void *alpha = &one, *beta = desc.hasResidual ? &one : &zero;
    if (desc.a.dtype == DType::F64) {
      alpha = &doubleOne;
      beta = desc.hasResidual ? &doubleOne : &doubleZero;
    } else if (isOfIntegers(desc)) {
      alpha = &wholeOne;
      beta = &wholeZero;
    }
    return handle->call(&CublasLt::cublasLtMatmul, operation.get(), alpha,
                        pointer(at.a), a.get(), pointer(at.b), b.get(), beta,
                        pointer(at.c), c.get(), pointer(at.d), d.get(),
                        &algorithm.algorithm, pointer(scratch),
                        size_t(algorithm.workspaceBytes), stream);
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
    auto asked = translate(desc);
    if (!asked)
      return asked.takeError();
    auto &[product, choice] = *asked;
    auto made = std::make_unique<CudaMatmul>(choice, desc);
    if (llvm::Error error = made->prepare(std::move(product), choice))
      return error;
    return made;
  }
  llvm::Expected<int64_t> findWorkspace(const MatmulDesc &desc) override {
    auto asked = translate(desc);
    if (!asked)
      return asked.takeError();
    auto &[product, choice] = *asked;
    return CudaMatmul(choice, desc).findWorkspace(std::move(product), choice);
  }
  void setSpareMemory(int64_t bytes) override { spareBytes = bytes; }

private:
  /// What is asked of cuBLASLt, and by whom.
  llvm::Expected<std::pair<ColumnProduct, Choice>>
  translate(const MatmulDesc &desc) {
    llvm::Expected<ColumnProduct> product = toColumns(desc);
    if (!product)
      return product.takeError();
    llvm::Expected<Choice> choice = getChoice();
    if (!choice)
      return choice.takeError();
    return std::pair(std::move(*product), std::move(*choice));
  }
  llvm::Expected<Choice> getChoice() {
    llvm::Expected<int> numTimed = numTimedAlgorithms();
    if (!numTimed)
      return numTimed.takeError();
    std::lock_guard<std::mutex> held(mutex);
    if (fault)
      return makeError(fault->code, fault->message);
    if (!handle) {
      llvm::Expected<SharedHandle> made = CublasHandle::create(card);
      if (!made) {
        ErrorDescription why = describeError(made.takeError());
        if (why.code == ExitCode::Unsupported)
          fault = why;
        return makeError(why.code, why.message);
      }
      llvm::Expected<std::string> name = card->describe();
      if (!name)
        return name.takeError();
      place =
          *name + ", cuBLASLt " +
          std::to_string((*made)->getLibrary().cublasLtGetVersion.function());
      handle = std::move(*made);
    }
    return Choice{card,  handle, tf32, *numTimed, spareBytes / partOfSpare,
                  place, cache};
  }

  /// What operands that are timed may have of the spare memory: libraries have
  /// memory of their own that nobody told of.
  static constexpr int64_t partOfSpare = 2;

  SharedCard card;
  bool tf32;
  std::atomic<int64_t> spareBytes{0};
  std::mutex mutex;
  SharedHandle handle;
  /// Why there is no library: nobody looks once more.
  std::optional<ErrorDescription> fault;
  std::string place;
  AlgorithmCache cache{cacheFolder("products")};
};

} // namespace

std::unique_ptr<CudaProducts> makeProducts(const SharedCard &card, bool tf32) {
  return std::make_unique<CublasProducts>(card, tf32);
}

} // namespace ax::rt::cuda
