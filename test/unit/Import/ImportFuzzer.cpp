//===- ImportFuzzer.cpp - Any bytes as a model ----------------------------===//

#include "ax/Import/Import.h"
#include "ax/Support/Error.h"

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace ax;

/// Imports `path`; aborts when a fault of ours is reported.
static ExitCode tryImport(const std::string &path,
                          const import::ImportOptions &options) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = import::importModel(path, options, context);
  if (module)
    return ExitCode::Success;
  ErrorDescription why = describeError(module.takeError());
  if (why.code == ExitCode::Internal) {
    std::fprintf(stderr, "%s\n", why.message.c_str());
    std::abort();
  }
  return why.code;
}

static std::string &folder() {
  static std::string path;
  return path;
}

/// A file of this process, removed at its end.
static std::string modelPath() {
  if (folder().empty()) {
    char name[] = "/tmp/ax-import-fuzz-XXXXXX";
    folder() = mkdtemp(name);
    std::atexit([] {
      unlink((folder() + "/model.onnx").c_str());
      rmdir(folder().c_str());
    });
  }
  return folder() + "/model.onnx";
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string path = modelPath();
  FILE *file = std::fopen(path.c_str(), "wb");
  if (!file)
    return 0;
  std::fwrite(data, 1, size, file);
  std::fclose(file);

  import::ImportOptions options;
  if (tryImport(path, options) != ExitCode::Usage)
    return 0;
  // The symbols of our exports.
  options.dims["batch"] = 2;
  if (tryImport(path, options) != ExitCode::Usage)
    return 0;
  options.dims["sequence"] = 3;
  tryImport(path, options);
  return 0;
}
