//===- Cudnn.cpp - cuDNN, found at run time -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Cudnn.h"

#include "CudaDnn.h"

#include "ax/Support/CacheFolder.h"
#include "ax/Support/Error.h"

#include "llvm/Support/FormatVariadic.h"

namespace ax::rt::cuda {

llvm::Expected<std::shared_ptr<const Cudnn>> Cudnn::load() {
  std::string why;
  // The second loads the first, in some installations from a folder that only
  // it knows.
  void *opened = openCudaLibrary({"libcudnn_graph.so.9", "libcudnn.so.9"}, why);
  if (!opened)
    return makeErrorf(ExitCode::Unsupported,
                      "there is no cuDNN in the folders of AXRUN_CUDA_PATH, or "
                      "where the system has libraries: {0}",
                      why);
  auto library = std::make_shared<Cudnn>();
#define AX_CUDNN_FUNCTION(NAME)                                                \
  if (!bindFunction(opened, #NAME, library->NAME))                             \
    return makeErrorf(ExitCode::Unsupported,                                   \
                      "the cuDNN that is there has no function {0}", #NAME);
#include "CudnnFunctions.def"
  size_t version = library->cudnnGetVersion.function();
  if (version < oldestVersion)
    return makeErrorf(ExitCode::Unsupported,
                      "the cuDNN that is there is of version {0}.{1}, and "
                      "{2}.{3} is needed",
                      version / 10000, version % 10000 / 100,
                      oldestVersion / 10000, oldestVersion % 10000 / 100);
  return library;
}

llvm::Error Cudnn::describe(const char *name, cudnnStatus_t status) const {
  // Those of one thousand are about what is asked for.
  bool isUnsupported = status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000;
  char said[512] = {};
  cudnnGetLastErrorString.function(said, sizeof(said) - 1);
  return makeErrorf(isUnsupported ? ExitCode::Unsupported : ExitCode::RunFailed,
                    "{0}: {1} ({2}): {3}", name,
                    cudnnGetErrorString.function(status),
                    static_cast<int>(status), llvm::StringRef(said).trim());
}

/// Of CUDA's versions only the first number has to be the driver's, or less.
static llvm::Error checkDriver(const Cudnn &library) {
  llvm::Expected<std::shared_ptr<const Driver>> driver = Driver::load();
  if (!driver)
    return driver.takeError();
  int version = 0;
  if (llvm::Error error = (*driver)->call(&Driver::getVersion, &version))
    return error;
  size_t needed = library.cudnnGetCudartVersion.function();
  if (needed / 1000 > static_cast<size_t>(version) / 1000)
    return makeErrorf(ExitCode::Unsupported,
                      "the cuDNN that is there is for CUDA {0}, and the driver "
                      "is of version {1}.{2}",
                      needed / 1000, version / 1000, version % 1000 / 10);
  return llvm::Error::success();
}

CudnnHandle::CudnnHandle(SharedCard card, std::shared_ptr<const Cudnn> library,
                         const std::string &folder, const std::string &cardName)
    : card(std::move(card)), library(std::move(library)),
      plans(folder, llvm::formatv("{0}, cuDNN {1}", cardName,
                                  this->library->cudnnGetVersion.function())) {}

llvm::Expected<std::shared_ptr<const CudnnHandle>>
CudnnHandle::create(const SharedCard &card) {
  llvm::Expected<std::shared_ptr<const Cudnn>> library = Cudnn::load();
  if (!library)
    return library.takeError();
  if (llvm::Error error = checkDriver(**library))
    return error;
  llvm::Expected<std::string> name = card->describe();
  if (!name)
    return name.takeError();
  std::shared_ptr<CudnnHandle> made(
      new CudnnHandle(card, std::move(*library), cacheFolder("cudnn"), *name));
  if (llvm::Error error = card->enter())
    return error;
  if (llvm::Error error =
          made->library->call(&Cudnn::cudnnCreate, &made->handle)) {
    made->handle = nullptr;
    return makeErrorf(ExitCode::Unsupported,
                      "the cuDNN that is there does not start: {0}",
                      llvm::toString(std::move(error)));
  }
  return made;
}

llvm::Expected<std::shared_ptr<const CudnnHandle>>
CudnnHandle::describe(llvm::StringRef properties, const std::string &folder) {
  llvm::Expected<std::shared_ptr<const Cudnn>> library = Cudnn::load();
  if (!library)
    return library.takeError();
  std::shared_ptr<CudnnHandle> made(
      new CudnnHandle(nullptr, std::move(*library), folder, properties.str()));
  if (llvm::Error error = made->library->call(
          &Cudnn::cudnnBackendCreateDescriptor,
          CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &made->description))
    return error;
  if (llvm::Error error = made->library->call(
          &Cudnn::cudnnBackendSetAttribute, made->description,
          CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
          static_cast<int64_t>(properties.size()), properties.data()))
    return error;
  if (llvm::Error error =
          made->library->call(&Cudnn::cudnnBackendFinalize, made->description))
    return error;
  return made;
}

CudnnHandle::~CudnnHandle() {
  if (description)
    llvm::consumeError(
        library->call(&Cudnn::cudnnBackendDestroyDescriptor, description));
  if (!handle)
    return;
  llvm::consumeError(card->enter());
  llvm::consumeError(library->call(&Cudnn::cudnnDestroy, handle));
}

llvm::Error CudnnHandle::execute(cudnnBackendDescriptor_t plan,
                                 cudnnBackendDescriptor_t arguments,
                                 CUstream stream) const {
  if (llvm::Error error = enter())
    return error;
  std::lock_guard<std::mutex> held(mutex);
  if (llvm::Error error = library->call(&Cudnn::cudnnSetStream, handle, stream))
    return error;
  return library->call(&Cudnn::cudnnBackendExecute, handle, plan, arguments);
}

std::string whyNoCudnn() {
  static const std::string why = [] {
    llvm::Expected<std::shared_ptr<const Cudnn>> library = Cudnn::load();
    llvm::Error error = library ? checkDriver(**library) : library.takeError();
    return error ? describeError(std::move(error)).message : std::string();
  }();
  return why;
}

} // namespace ax::rt::cuda
