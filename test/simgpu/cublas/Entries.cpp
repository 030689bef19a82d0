//===- Entries.cpp - The simulated cuBLASLt's handles and products --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../LibraryDriver.h"
#include "Product.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

using namespace simcublas;

namespace {

/// What is behind cublasLtMatmulAlgo_t: nobody else can make one.
struct Algorithm {
  static constexpr uint64_t magic = 0x73696d6375626c61;
  uint64_t mark = magic;
  /// The product that it is for, and which of the algorithms it is.
  uint64_t product = 0, number = 0;
  uint64_t workspace = 0;
  /// Of A, B, C, D and the bias.
  std::array<uint16_t, 5> alignment{};
  std::array<uint16_t, 3> unused{};
  uint64_t sum = 0, end = magic;

  uint64_t getSum() const {
    uint64_t result = product * 31 + number;
    for (uint16_t bytes : alignment)
      result = result * 31 + bytes;
    return result * 31 + workspace;
  }
};
static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));

constexpr uint64_t workspaceAlignment = 256;
/// More than this no algorithm wants operands to be aligned.
constexpr uint64_t mostAligned = 16, leastOfIntegers = 4;
int countAlgorithms() {
  const char *text = std::getenv("SIMGPU_ALGORITHMS");
  return text ? std::atoi(text) : 3;
}

/// Whether SIMGPU_FASTEST names another algorithm than that with this number.
bool isSlow(uint64_t number) {
  const char *text = std::getenv("SIMGPU_FASTEST");
  return text && std::strtoull(text, nullptr, 10) != number;
}

uint64_t numberOf(const void *address) {
  return reinterpret_cast<uintptr_t>(address);
}

cublasStatus_t invalid(const std::string &why) {
  return refuse(CUBLAS_STATUS_INVALID_VALUE, why);
}

/// Begins a call with a handle, which must be of the thread's context.
cublasStatus_t enterWith(const char *call, cublasLtHandle_t handle) {
  uint64_t context = 0;
  if (cublasStatus_t status = enter(call, &context))
    return status;
  Handle *found = handles().find(handle);
  if (!found)
    return refuse(CUBLAS_STATUS_NOT_INITIALIZED, "there is no such handle");
  if (found->context != context)
    return invalid("the handle is of another context than the thread's");
  return CUBLAS_STATUS_SUCCESS;
}

/// Of the card of the thread's context.
int capabilityOfCard() {
  static auto *find = simgpu::findDriverFunction<decltype(simgpuCapability)>(
      "simgpuCapability");
  return find();
}

/// The largest power of two up to `mostAligned` that divides the address.
uint16_t alignmentOf(const void *address) {
  uint64_t bits = numberOf(address) | mostAligned;
  return static_cast<uint16_t>(bits & ~(bits - 1));
}

} // namespace

SIMCUBLAS_ENTRY cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  uint64_t context = 0;
  if (cublasStatus_t status = enter("cublasLtCreate", &context))
    return status;
  if (!context)
    return refuse(CUBLAS_STATUS_NOT_INITIALIZED,
                  "no context is the calling thread's");
  *handle = handles().add({context});
  return CUBLAS_STATUS_SUCCESS;
}

SIMCUBLAS_ENTRY cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  if (cublasStatus_t status = enterWith("cublasLtDestroy", handle))
    return status;
  handles().remove(handle);
  return CUBLAS_STATUS_SUCCESS;
}

SIMCUBLAS_ENTRY const char *cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
#define NAME(STATUS)                                                           \
  case STATUS:                                                                 \
    return #STATUS;
    NAME(CUBLAS_STATUS_SUCCESS)
    NAME(CUBLAS_STATUS_NOT_INITIALIZED)
    NAME(CUBLAS_STATUS_ALLOC_FAILED)
    NAME(CUBLAS_STATUS_INVALID_VALUE)
    NAME(CUBLAS_STATUS_ARCH_MISMATCH)
    NAME(CUBLAS_STATUS_MAPPING_ERROR)
    NAME(CUBLAS_STATUS_EXECUTION_FAILED)
    NAME(CUBLAS_STATUS_INTERNAL_ERROR)
    NAME(CUBLAS_STATUS_NOT_SUPPORTED)
    NAME(CUBLAS_STATUS_LICENSE_ERROR)
#undef NAME
  }
  return "unrecognized status";
}

SIMCUBLAS_ENTRY const char *cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return "success";
  case CUBLAS_STATUS_NOT_INITIALIZED:
    return "the library was not initialized";
  case CUBLAS_STATUS_ALLOC_FAILED:
    return "the resource allocation failed";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "an unsupported value or parameter was passed to the function";
  case CUBLAS_STATUS_ARCH_MISMATCH:
    return "the function requires an architectural feature absent from the "
           "device";
  case CUBLAS_STATUS_MAPPING_ERROR:
    return "an access to GPU memory space failed";
  case CUBLAS_STATUS_EXECUTION_FAILED:
    return "the function failed to launch on the GPU";
  case CUBLAS_STATUS_INTERNAL_ERROR:
    return "an internal operation failed";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "the requested functionality is not supported";
  case CUBLAS_STATUS_LICENSE_ERROR:
    return "the license check failed";
  }
  return "unrecognized status";
}

SIMCUBLAS_ENTRY size_t cublasLtGetVersion() { return 130100; }

SIMCUBLAS_ENTRY cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int numWanted,
    cublasLtMatmulHeuristicResult_t results[], int *numFound) {
  if (cublasStatus_t status =
          enterWith("cublasLtMatmulAlgoGetHeuristic", handle))
    return status;
  Product product;
  if (cublasStatus_t status = product.read(operation, a, b, c, d))
    return status;
  if (cublasStatus_t status = product.check(capabilityOfCard()))
    return status;
  Preference *preferred = preferences().find(preference);
  if (!preferred)
    return invalid("there is no such preference");
  if (numWanted < 1)
    return invalid("no algorithm is asked for");
  Algorithm algorithm;
  algorithm.product = product.hash();
  const Layout *layouts[] = {&product.a, &product.b, &product.c, &product.d};
  for (size_t i = 0; i < 4; ++i) {
    uint32_t bytes = preferred->alignment[i];
    if (bytes == 0 || (bytes & (bytes - 1)) != 0 ||
        bytes < bytesOf(layouts[i]->type))
      return invalid("operands have no such alignment");
    algorithm.alignment[i] =
        static_cast<uint16_t>(std::min<uint64_t>(bytes, mostAligned));
    if (product.isFloat8() && bytes < mostAligned)
      return refuse(CUBLAS_STATUS_NOT_SUPPORTED,
                    "factors of eight bits are aligned to 16 bytes");
    if (product.isOfIntegers() && bytes < leastOfIntegers)
      return refuse(CUBLAS_STATUS_NOT_SUPPORTED,
                    "matrices of integers are aligned to 4 bytes");
  }
  if (product.operation.hasBias())
    algorithm.alignment[4] = alignmentOf(product.operation.bias);
  int numAlgorithms = countAlgorithms();
  *numFound = 0;
  for (; *numFound < std::min(numWanted, numAlgorithms); ++*numFound) {
    algorithm.number = static_cast<uint64_t>(*numFound);
    // The last one needs none.
    uint64_t wanted =
        *numFound + 1 == numAlgorithms ? 0 : 4096 + algorithm.product % 8 * 64;
    algorithm.workspace = wanted <= preferred->maxWorkspace ? wanted : 0;
    algorithm.sum = algorithm.getSum();
    cublasLtMatmulHeuristicResult_t result{};
    std::copy_n(reinterpret_cast<uint64_t *>(&algorithm), 8, result.algo.data);
    result.workspaceSize = algorithm.workspace;
    result.state = CUBLAS_STATUS_SUCCESS;
    result.wavesCount = 1;
    results[*numFound] = result;
  }
  return CUBLAS_STATUS_SUCCESS;
}

namespace {

/// The operands of one call, and what it may use besides.
struct Call {
  const void *a, *b, *c;
  void *d;
  void *workspace;
  size_t workspaceBytes;
};

SimgpuRange rangeOf(const void *address, size_t bytes) {
  return {numberOf(address), bytes};
}

bool overlaps(SimgpuRange one, SimgpuRange other) {
  return one.address < other.address + other.bytes &&
         other.address < one.address + one.bytes;
}

bool hasAux(const Product &product) {
  return product.operation.writesAux() || product.operation.readsAux();
}

SimgpuRange auxRange(const Product &product) {
  return rangeOf(product.operation.aux, reachOf(product.auxLayout()));
}

/// Sets `algorithm` to what is given, if that fits.
cublasStatus_t checkAlgorithm(const cublasLtMatmulAlgo_t *given,
                              const Product &product, const Call &call,
                              Algorithm &algorithm) {
  if (!given)
    return invalid("an algorithm is needed here");
  std::copy_n(given->data, 8, reinterpret_cast<uint64_t *>(&algorithm));
  if (algorithm.mark != Algorithm::magic || algorithm.end != Algorithm::magic ||
      algorithm.sum != algorithm.getSum())
    return invalid("the algorithm is none of this library");
  if (algorithm.product != product.hash())
    return invalid("the algorithm is for another product");
  if (call.workspaceBytes < algorithm.workspace)
    return invalid("the workspace is smaller than the algorithm needs");
  if (numberOf(call.workspace) % workspaceAlignment)
    return invalid("the workspace is not aligned to 256 bytes");
  const void *operands[] = {call.a, call.b, call.c, call.d,
                            product.operation.bias};
  for (size_t i = 0; i < 5; ++i)
    if (algorithm.alignment[i] &&
        numberOf(operands[i]) % algorithm.alignment[i])
      return invalid("operands are less aligned than the algorithm needs");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t checkPlaces(const Product &product, const Call &call,
                           bool addsC) {
  if (!call.a || !call.b || !call.d || (addsC && !call.c))
    return invalid("a matrix is nowhere");
  SimgpuRange d = rangeOf(call.d, reachOf(product.d));
  if (overlaps(d, rangeOf(call.a, reachOf(product.a))) ||
      overlaps(d, rangeOf(call.b, reachOf(product.b))))
    return invalid("D overlaps a factor");
  if (hasAux(product) && overlaps(d, auxRange(product)))
    return invalid("D overlaps the auxiliary buffer");
  if (product.operation.writesAux()) {
    std::vector<SimgpuRange> read{rangeOf(call.a, reachOf(product.a)),
                                  rangeOf(call.b, reachOf(product.b))};
    if (addsC)
      read.push_back(rangeOf(call.c, reachOf(product.c)));
    if (product.operation.hasBias())
      read.push_back(rangeOf(product.operation.bias,
                             product.d.rows * bytesOf(product.d.type)));
    for (SimgpuRange range : read)
      if (overlaps(range, auxRange(product)))
        return invalid("what is read overlaps the auxiliary buffer");
  }
  if (call.c == call.d) {
    if (product.c.leading != product.d.leading ||
        product.c.batchStride != product.d.batchStride)
      return invalid("C is D, and lies otherwise");
  } else if (addsC && overlaps(d, rangeOf(call.c, reachOf(product.c)))) {
    return invalid("D overlaps C");
  }
  return CUBLAS_STATUS_SUCCESS;
}

} // namespace

SIMCUBLAS_ENTRY cublasStatus_t cublasLtMatmul(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void *alpha,
    const void *a, cublasLtMatrixLayout_t aLayout, const void *b,
    cublasLtMatrixLayout_t bLayout, const void *beta, const void *c,
    cublasLtMatrixLayout_t cLayout, void *d, cublasLtMatrixLayout_t dLayout,
    const cublasLtMatmulAlgo_t *algorithm, void *workspace,
    size_t workspaceBytes, cudaStream_t stream) {
  if (cublasStatus_t status = enterWith("cublasLtMatmul", handle))
    return status;
  Product product;
  if (cublasStatus_t status =
          product.read(operation, aLayout, bLayout, cLayout, dLayout))
    return status;
  if (cublasStatus_t status = product.check(capabilityOfCard()))
    return status;
  if (!alpha || !beta)
    return invalid("alpha or beta is nowhere");
  auto scalar = [&](const void *number) -> double {
    if (product.operation.scale == CUDA_R_64F)
      return *static_cast<const double *>(number);
    if (product.operation.scale == CUDA_R_32I)
      return *static_cast<const int32_t *>(number);
    return *static_cast<const float *>(number);
  };
  double alphaValue = scalar(alpha), betaValue = scalar(beta);
  Call call{a, b, c, d, workspace, workspaceBytes};
  bool addsC = betaValue != 0;
  if (cublasStatus_t status = checkPlaces(product, call, addsC))
    return status;
  Algorithm chosen;
  if (cublasStatus_t status = checkAlgorithm(algorithm, product, call, chosen))
    return status;

  // What is not read is nowhere: C, a bias, or a workspace.
  std::vector<SimgpuRange> ranges{rangeOf(a, reachOf(product.a)),
                                  rangeOf(b, reachOf(product.b)),
                                  rangeOf(d, reachOf(product.d))};
  bool hasBias = product.operation.hasBias();
  if (addsC)
    ranges.push_back(rangeOf(c, reachOf(product.c)));
  if (hasBias)
    ranges.push_back(rangeOf(product.operation.bias,
                             product.d.rows * bytesOf(product.d.type)));
  if (hasAux(product))
    ranges.push_back(auxRange(product));
  if (workspaceBytes)
    ranges.push_back(rangeOf(workspace, workspaceBytes));
  auto work = [=](const std::vector<unsigned char *> &at) {
    size_t next = 3;
    Places places{};
    places.a = at[0];
    places.b = at[1];
    places.d = at[2];
    if (addsC)
      places.c = at[next++];
    if (hasBias)
      places.bias = at[next++];
    if (hasAux(product))
      places.aux = at[next++];
    if (workspaceBytes)
      std::fill_n(at[next], workspaceBytes, static_cast<unsigned char>(0xee));
    multiply(product, places, alphaValue, betaValue);
    if (isSlow(chosen.number))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  static auto *enqueue =
      simgpu::findDriverFunction<decltype(simgpuEnqueue)>("simgpuEnqueue");
  if (enqueue(stream, "a product", ranges,
              [work] { return SimgpuPiece{work, nullptr}; }))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  return CUBLAS_STATUS_SUCCESS;
}
