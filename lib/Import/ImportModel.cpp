//===- ImportModel.cpp - Sizes that a model does not take -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a node says of shapes that do not fit is the same whether the model is
// malformed or a size was given that its tables are too small for. With another
// size in its place the model tells.
//
//===----------------------------------------------------------------------===//

#include "ax/Import/Import.h"

#include "ImportWith.h"

#include "ax/Support/Error.h"

#include "mlir/IR/Diagnostics.h"

#include <algorithm>
#include <set>

using namespace ax;
using namespace ax::import;

/// The flag without whose size the model is well formed; empty if none is.
static std::string findUnfitSize(const ImportOptions &options,
                                 llvm::StringRef path,
                                 mlir::MLIRContext &context) {
  mlir::ScopedDiagnosticHandler silence(
      &context, [](mlir::Diagnostic &) { return mlir::success(); });
  auto fits = [&](const ImportOptions &other) {
    auto module = importWith(other, path, context);
    if (module)
      return true;
    llvm::consumeError(module.takeError());
    return false;
  };
  for (const auto &[name, size] : options.dims) {
    ImportOptions other = options;
    other.dims[name] = 1;
    if (size != 1 && fits(other))
      return "--dim " + name + "=" + std::to_string(size);
  }
  // Inputs share dimensions: where one has the size, others may have to.
  std::set<int64_t> tried{1};
  for (const auto &[name, shape] : options.shapes)
    for (int64_t size : shape) {
      if (!tried.insert(size).second)
        continue;
      ImportOptions other = options;
      for (auto &[input, sizes] : other.shapes)
        std::replace(sizes.begin(), sizes.end(), size, int64_t(1));
      if (fits(other))
        return std::to_string(size) + " in --shape " + name + "=" +
               shapeToString(shape);
    }
  return "";
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
ax::import::importModel(llvm::StringRef path, const ImportOptions &options,
                        mlir::MLIRContext &context) {
  auto module = importWith(options, path, context);
  if (module)
    return module;
  ErrorDescription fault = describeError(module.takeError());
  std::string flag;
  if (fault.code == ExitCode::BadModel)
    flag = findUnfitSize(options, path, context);
  if (flag.empty())
    return makeError(fault.code, fault.message);
  return makeError(ExitCode::Usage, fault.message + "; " + flag +
                                        " does not fit this model, as 1 would: "
                                        "it may take smaller ones only");
}
