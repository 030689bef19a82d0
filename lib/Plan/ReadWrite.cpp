//===- ReadWrite.cpp - Plans from and to text -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Constants.h"
#include "Faults.h"
#include "Precheck.h"

#include "ax/Dialect/ProgramNames.h"
#include "ax/Plan/Plan.h"
#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace ax::plan {

static constexpr size_t maxFileBytes = size_t(64) << 20;

/// Plans of older versions say by names alone what training takes a result for.
static void addRoles(PlanOp plan) {
  using Roles = llvm::ArrayRef<ResultRole>;
  static constexpr ResultRole ofStep[] = {
      ResultRole::loss, ResultRole::gradient_norm, ResultRole::learning_rate,
      ResultRole::loss_scale};
  static constexpr ResultRole ofEvaluation[] = {
      ResultRole::loss_sum, ResultRole::loss_count, ResultRole::correct};
  for (auto program : plan.getBody().getOps<ProgramOp>()) {
    StringRef name = program.getSymName();
    if (name == predictionProgram || name == preparationProgram)
      continue;
    bool isStep = program.walk([](StoreOp) { return WalkResult::interrupt(); })
                      .wasInterrupted();
    if (!isStep && name != evaluationProgram)
      continue;
    for (ResultRole role : isStep ? Roles(ofStep) : Roles(ofEvaluation))
      for (unsigned i = 0, e = program.getNumResults(); i < e; ++i)
        if (program.getResultName(i) == stringifyResultRole(role) &&
            !program.findResult(role)) {
          plan.needVersion(PlanOp::rolesVersion);
          program.setRole(i, role);
        }
  }
}

llvm::Expected<OwningOpRef<ModuleOp>>
parsePlan(llvm::StringRef text, llvm::StringRef name, MLIRContext &context) {
  if (text.size() > maxFileBytes)
    return makeErrorf(ExitCode::BadPlan,
                      "{0}: {1} bytes; plans have at most {2}", name,
                      text.size(), maxFileBytes);
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(text, name);
  if (isBytecode(*buffer))
    return makeError(ExitCode::BadPlan,
                     name + ": is MLIR bytecode; plans are text");
  if (llvm::Error error = precheckText(text, name))
    return error;
  Faults faults(&context, text);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(
      sources, ParserConfig(&context, /*verifyAfterParse=*/false));
  if (module && succeeded(precheckModule(*module)) &&
      succeeded(verify(*module))) {
    for (auto plan : module->getOps<PlanOp>())
      if (static_cast<int64_t>(plan.getVersion()) < PlanOp::rolesVersion)
        addRoles(plan);
    return module;
  }
  if (llvm::Error error = faults.take())
    return error;
  return makeError(ExitCode::BadPlan, name + ": is no plan");
}

llvm::Expected<OwningOpRef<ModuleOp>> readPlan(llvm::StringRef path,
                                               MLIRContext &context) {
  auto file = MappedFile::open(path.str());
  if (!file)
    return file.takeError();
  auto module = parsePlan(llvm::toStringRef((*file)->bytes()), path, context);
  if (module)
    if (llvm::Error error = readConstants(**module, path))
      return error;
  return module;
}

llvm::Expected<std::string> printPlan(ModuleOp module, llvm::StringRef path) {
  OwningOpRef<ModuleOp> written = module.clone();
  // The file is never committed.
  auto stored = storeConstants(*written, path.str() + ".data");
  if (!stored)
    return stored.takeError();
  std::string text;
  llvm::raw_string_ostream(text) << *written << '\n';
  return text;
}

llvm::Error writePlan(ModuleOp module, llvm::StringRef path) {
  // Who goes on with the module wants its constants.
  OwningOpRef<ModuleOp> written = module.clone();
  std::optional<std::string> dataPath = constantsFileFor(path);
  std::optional<AtomicFile> data;
  if (dataPath) {
    auto stored = storeConstants(*written, *dataPath);
    if (!stored)
      return stored.takeError();
    if (*stored)
      data.emplace(std::move(**stored));
  } else {
    for (auto plan : written->getOps<PlanOp>())
      plan->removeAttr(kData);
  }
  std::string text;
  llvm::raw_string_ostream(text) << *written << '\n';
  if (text.size() > maxFileBytes)
    return makeErrorf(
        ExitCode::Unsupported,
        "the plan has {0} bytes; plans have at most {1}{2}", text.size(),
        maxFileBytes,
        dataPath ? "" : ": with -o FILE its constants go to FILE.data");
  // A plan without its constants would be refused, constants without their
  // plan do no harm.
  if (data)
    if (llvm::Error error = data->commit())
      return error;
  if (path == "-") {
    llvm::outs() << text;
    llvm::outs().flush();
    return llvm::Error::success();
  }
  return writeFileAtomically(path.str(), llvm::StringRef(text));
}

} // namespace ax::plan
