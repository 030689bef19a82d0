//===- KernelCompiler.cpp - Fusions to functions, each once ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Codegen/Kernel.h"

#include "CodeVersion.h"
#include "Decompose.h"
#include "Emitter.h"
#include "LlvmCode.h"
#include "NativeCode.h"
#include "ObjectCache.h"
#include "PtxCode.h"
#include "WriteKernel.h"
#include "WriteReduction.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Support/Error.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/BLAKE3.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

using namespace mlir;

namespace ax::codegen {

namespace {

struct Code {
  std::shared_ptr<const rt::Kernel> image;
  int64_t outerCount = 1;
};

/// Of a text that says what is compiled. Kernels do not depend on libraries.
std::string hashOf(StringRef what, Target target) {
  if (const GpuTarget *gpu = target.getGpu()) {
    GpuTarget alone = *gpu;
    alone.hasCudnn = false;
    target = alone;
  }
  std::string text;
  llvm::raw_string_ostream(text) << AX_CODE_VERSION << "\n"
                                 << LLVM_VERSION_STRING << "\n"
                                 << target.describe() << "\n"
                                 << what;
  llvm::BLAKE3 hasher;
  hasher.update(text);
  return llvm::toHex(hasher.final<16>(), /*LowerCase=*/true);
}

std::string hashOf(FusionOp fusion, const Target &target) {
  std::string text;
  llvm::raw_string_ostream os(text);
  // Operand values have no part in it; types do.
  for (Type type : fusion.getBody().getArgumentTypes())
    os << type << ",";
  if (Attribute places = fusion.getInPlaceAttr())
    os << places;
  OpPrintingFlags flags;
  flags.printGenericOpForm().elideLargeElementsAttrs(
      std::numeric_limits<int64_t>::max());
  flags.useLocalScope();
  for (Operation &op : fusion.getBody().front()) {
    op.print(os, flags);
    os << "\n";
  }
  return hashOf(text, target);
}

std::string hashOf(const Reduction &reduction, const Target &target) {
  std::string text;
  llvm::raw_string_ostream(text)
      << "reduce " << stringifyReduceOpKind(reduction.kind) << " "
      << reduction.type << " " << reduction.sources << " "
      << reduction.destinations;
  return hashOf(text, target);
}

std::string entryOf(const std::string &key) { return "ax_kernel_" + key; }

/// A fusion of its own, without operands: adding uses of shared values would
/// not be thread-safe.
OwningOpRef<FusionOp> cloneBody(FusionOp fusion) {
  OperationState state(fusion.getLoc(), FusionOp::getOperationName());
  Region *region = state.addRegion();
  if (Attribute places = fusion.getInPlaceAttr())
    state.addAttribute(fusion.getInPlaceAttrName(), places);
  IRMapping mapping;
  fusion.getBody().cloneInto(region, mapping);
  return cast<FusionOp>(Operation::create(state));
}

llvm::Error checkFusion(FusionOp fusion) {
  Block &body = fusion.getBody().front();
  for (Operation &op : body) {
    if (!op.hasTrait<OpTrait::IsTerminator>() && !canFuse(&op))
      return makeErrorf(ExitCode::Internal,
                        "{0} ({1}) cannot be part of a kernel",
                        op.getName().getStringRef(), getNodeName(&op));
    // A value from outside is not in the kernel's buffers.
    if (llvm::any_of(op.getOperands(), [&](Value operand) {
          return operand.getParentBlock() != &body;
        }))
      return makeErrorf(ExitCode::Internal,
                        "{0} ({1}) in a kernel reads what is no operand of it",
                        op.getName().getStringRef(), getNodeName(&op));
  }
  return llvm::Error::success();
}

std::string formatOf(const Target &target) {
  return target.getGpu() ? rt::kernelFormat::ptx
                         : objectFormat(*target.getCpu());
}

llvm::Expected<llvm::SmallVector<char, 0>> generateCode(ModuleOp module,
                                                        const Target &target) {
  return target.getGpu() ? generatePtx(module, *target.getGpu())
                         : generateObject(module, *target.getCpu());
}

} // namespace

llvm::Error showNests(FusionOp fusion, const Target &target) {
  if (llvm::Error error = checkFusion(fusion))
    return error;
  decompose(fusion);
  auto nests = chooseNests(fusion, dealingFor(target));
  if (!nests)
    return nests.takeError();
  describe(*nests, fusion);
  return llvm::Error::success();
}

struct KernelCompiler::Impl {
  KernelOptions options;
  std::unique_ptr<ObjectCache> cache;
  mutable std::mutex mutex;
  llvm::StringMap<Code> known;
  Statistics statistics;

  /// What a module that is empty becomes, with a kernel that `write` puts
  /// there.
  llvm::Expected<CachedObject>
  build(const std::string &key, MLIRContext *context,
        llvm::function_ref<llvm::Expected<CachedObject>(ModuleOp)> write);
  llvm::Expected<CachedObject> build(FusionOp fusion, const std::string &key);
  /// An image that says nothing of arguments.
  rt::Kernel imageOf(const CachedObject &object, const std::string &key) const;
  /// What is known by the key; else of `make`, which it is known by then.
  llvm::Expected<Code> find(const std::string &key,
                            llvm::function_ref<llvm::Expected<Code>()> make);
  llvm::Expected<Code> find(FusionOp fusion, const std::string &key);
};

KernelCompiler::KernelCompiler(std::unique_ptr<Impl> impl)
    : impl(std::move(impl)) {}
KernelCompiler::~KernelCompiler() = default;

llvm::Expected<std::unique_ptr<KernelCompiler>>
KernelCompiler::create(KernelOptions options) {
  auto impl = std::make_unique<Impl>();
  if (!options.cacheDir.empty()) {
    auto cache = ObjectCache::create(options.cacheDir);
    if (!cache)
      return cache.takeError();
    impl->cache = std::move(*cache);
  }
  impl->options = std::move(options);
  return std::unique_ptr<KernelCompiler>(new KernelCompiler(std::move(impl)));
}

/// A whole tensor without gaps, from the beginning of a place in a buffer on.
static rt::KernelArgument argumentOf(Value value, bool isWritten) {
  RankedTensorType type = tensorType(value);
  DType element = *interpreter::toDType(type.getElementType());
  return {type.getNumElements() * byteSize(element), rt::bufferAlignment,
          isWritten};
}

rt::Kernel KernelCompiler::Impl::imageOf(const CachedObject &object,
                                         const std::string &key) const {
  rt::Kernel image;
  image.key = key;
  image.format = formatOf(options.target);
  image.entry = entryOf(key);
  image.image.assign(object.code.begin(), object.code.end());
  image.scratchBytes = object.scratchBytes;
  image.iterations = object.outerCount;
  image.launch = object.launch;
  return image;
}

llvm::Expected<CachedObject> KernelCompiler::Impl::build(
    const std::string &key, MLIRContext *context,
    llvm::function_ref<llvm::Expected<CachedObject>(ModuleOp)> write) {
  auto findOnDisk = [&]() -> std::optional<CachedObject> {
    if (!cache)
      return std::nullopt;
    std::optional<CachedObject> object = cache->find(key);
    std::lock_guard<std::mutex> lock(mutex);
    statistics.fromDisk += object.has_value();
    return object;
  };
  if (std::optional<CachedObject> object = findOnDisk())
    return std::move(*object);
  // Of a job's processes that begin together one compiles it.
  std::optional<KeyLock> only;
  if (cache)
    only.emplace(cache->lock(key));
  if (std::optional<CachedObject> object = findOnDisk())
    return std::move(*object);
  OwningOpRef<ModuleOp> module(ModuleOp::create(UnknownLoc::get(context)));
  auto made = write(*module);
  if (!made)
    return made.takeError();
  auto code = generateCode(*module, options.target);
  if (!code)
    return code.takeError();
  made->code = std::move(*code);
  // A cache that cannot be written to costs time, not results.
  if (cache)
    cache->store(key, *made);
  std::lock_guard<std::mutex> lock(mutex);
  ++statistics.compiled;
  return std::move(*made);
}

llvm::Expected<CachedObject>
KernelCompiler::Impl::build(FusionOp fusion, const std::string &key) {
  return build(key, fusion.getContext(),
               [&](ModuleOp module) -> llvm::Expected<CachedObject> {
                 OwningOpRef<FusionOp> copy = cloneBody(fusion);
                 decompose(*copy);
                 auto nests = chooseNests(*copy, dealingFor(options.target));
                 if (!nests)
                   return nests.takeError();
                 KernelFrame frame = writeKernel(*copy, *nests, entryOf(key),
                                                 options.target, module);
                 return CachedObject{
                     nests->numDealt(), frame.scratchBytes, frame.launch, {}};
               });
}

llvm::Expected<Code>
KernelCompiler::Impl::find(const std::string &key,
                           llvm::function_ref<llvm::Expected<Code>()> make) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto it = known.find(key);
    if (it != known.end()) {
      ++statistics.shared;
      return it->second;
    }
  }
  auto code = make();
  if (!code)
    return code.takeError();
  std::lock_guard<std::mutex> lock(mutex);
  return known.try_emplace(key, *code).first->second;
}

llvm::Expected<Code> KernelCompiler::Impl::find(FusionOp fusion,
                                                const std::string &key) {
  return find(key, [&]() -> llvm::Expected<Code> {
    auto object = build(fusion, key);
    if (!object)
      return object.takeError();
    auto image = std::make_shared<rt::Kernel>(imageOf(*object, key));
    for (Value operand : fusion->getOperands())
      image->arguments.push_back(argumentOf(operand, /*isWritten=*/false));
    for (Value result : fusion->getResults())
      image->arguments.push_back(argumentOf(result, /*isWritten=*/true));
    return Code{std::move(image), object->outerCount};
  });
}

bool KernelCompiler::canReduce(const Reduction &reduction) const {
  // A kernel has 4 KiB of parameters.
  constexpr size_t mostBuffers = 256;
  return impl->options.target.getGpu() && reduction.numBuffers() <= mostBuffers;
}

llvm::Expected<std::shared_ptr<const rt::Kernel>>
KernelCompiler::compileReduction(const Reduction &reduction) {
  assert(canReduce(reduction));
  loadLoweringDialects(*reduction.type.getContext());
  std::string key = hashOf(reduction, impl->options.target);
  auto code = impl->find(key, [&]() -> llvm::Expected<Code> {
    auto object = impl->build(
        key, reduction.type.getContext(),
        [&](ModuleOp module) -> llvm::Expected<CachedObject> {
          return CachedObject{
              1, 0, writeReduction(reduction, entryOf(key), module), {}};
        });
    if (!object)
      return object.takeError();
    auto image = std::make_shared<rt::Kernel>(impl->imageOf(*object, key));
    int64_t bytes = byteSize(*interpreter::toDType(reduction.type));
    for (size_t i = 0; i < reduction.numBuffers(); ++i)
      image->arguments.push_back(
          {bytes, bytes, /*isWritten=*/i >= reduction.sources});
    image->scalarBounds.assign(rt::reductionKernel::numScalars, 1);
    return Code{std::move(image), 1};
  });
  if (!code)
    return code.takeError();
  return code->image;
}

llvm::Expected<CompiledKernel> KernelCompiler::compile(FusionOp fusion) {
  auto kernels = compileAll(fusion);
  if (!kernels)
    return kernels.takeError();
  return std::move(kernels->front());
}

llvm::Expected<std::vector<CompiledKernel>>
KernelCompiler::compileAll(llvm::ArrayRef<FusionOp> fusions) {
  auto start = std::chrono::steady_clock::now();
  std::vector<std::string> keys;
  // The first fusion of each key is compiled, and only once.
  std::vector<size_t> first;
  llvm::StringMap<size_t> seen;
  for (FusionOp fusion : fusions) {
    if (llvm::Error error = checkFusion(fusion))
      return error;
    keys.push_back(hashOf(fusion, impl->options.target));
    if (seen.try_emplace(keys.back(), keys.size() - 1).second)
      first.push_back(keys.size() - 1);
    loadLoweringDialects(*fusion.getContext());
  }

  // These take about a second.
  constexpr int64_t many = 32;
  int64_t before = getStatistics().compiled;
  std::once_flag told;
  auto tellMany = [&] {
    if (impl->options.onMany && getStatistics().compiled - before >= many)
      std::call_once(told, [&] {
        impl->options.onMany(static_cast<int64_t>(first.size()));
      });
  };
  std::vector<llvm::Error> errors;
  std::mutex errorMutex;
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i; (i = next++) < first.size();) {
      size_t index = first[i];
      auto code = impl->find(fusions[index], keys[index]);
      tellMany();
      if (!code) {
        std::lock_guard<std::mutex> lock(errorMutex);
        errors.push_back(code.takeError());
      }
    }
  };
  std::vector<std::thread> threads;
  bool parallel =
      !fusions.empty() &&
      FusionOp(fusions.front()).getContext()->isMultithreadingEnabled();
  for (int64_t i = 1;
       parallel && i < impl->options.numThreads && i < int64_t(first.size());
       ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  llvm::Error error = llvm::Error::success();
  for (llvm::Error &e : errors)
    error = llvm::joinErrors(std::move(error), std::move(e));
  if (error)
    return error;

  std::vector<CompiledKernel> kernels;
  std::lock_guard<std::mutex> lock(impl->mutex);
  for (auto [i, fusion] : llvm::enumerate(fusions)) {
    const Code &code = impl->known.find(keys[i])->second;
    CompiledKernel kernel;
    kernel.image = code.image;
    FusionOp op = fusion;
    kernel.signature.numOperands = op->getNumOperands();
    kernel.signature.numResults = op->getNumResults();
    kernel.signature.scalars = collectScalars(op);
    kernel.signature.outerCount = code.outerCount;
    kernel.signature.scratchBytes = code.image->scratchBytes;
    kernel.signature.key = keys[i];
    kernels.push_back(std::move(kernel));
  }
  impl->statistics.shared += fusions.size() - first.size();
  impl->statistics.seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return kernels;
}

KernelCompiler::Statistics KernelCompiler::getStatistics() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->statistics;
}

} // namespace ax::codegen
