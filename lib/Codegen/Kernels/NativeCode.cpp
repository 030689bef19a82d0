//===- NativeCode.cpp - From scalar loops to an object file ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "NativeCode.h"

#include "LlvmCode.h"

#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Triple.h"

#include <algorithm>
#include <mutex>

using namespace mlir;

namespace ax::codegen {

/// What O3 does for one such function, in its order, less what finds nothing
/// here: no calls to inline, no memory to promote, no unrolling before the
/// vectoriser has seen the loops.
static constexpr const char *pipeline =
    "function(early-cse,simplifycfg,instcombine<max-iterations=1;"
    "no-verify-fixpoint>,"
    "loop-mssa(loop-rotate<header-duplication>,licm<allowspeculation>,"
    "simple-loop-unswitch<nontrivial;trivial>),"
    "simplifycfg,instcombine<max-iterations=1;no-verify-fixpoint>,"
    "loop(indvars,loop-deletion),early-cse<memssa>,"
    "loop-mssa(licm<allowspeculation>),"
    "loop-vectorize<no-interleave-forced-only;no-vectorize-forced-only>,"
    "instcombine<max-iterations=1;no-verify-fixpoint>,simplifycfg,"
    "slp-vectorizer,vector-combine,loop-unroll<O2>,"
    "instcombine<max-iterations=1;no-verify-fixpoint>,early-cse<memssa>,"
    "loop-mssa(licm<allowspeculation>),simplifycfg)";

std::string objectFormat(const CpuTarget &target) {
  std::string name = llvm::Triple(target.triple).getArchName().str();
  std::replace(name.begin(), name.end(), '_', '-');
  return "elf-" + name;
}

llvm::Expected<llvm::SmallVector<char, 0>>
generateObject(ModuleOp module, const CpuTarget &target) {
  llvm::LLVMContext context;
  auto code = translate(module, context);
  if (!code)
    return code.takeError();
  return generateObject(**code, target);
}

llvm::Expected<llvm::SmallVector<char, 0>>
generateObject(llvm::Module &code, const CpuTarget &target) {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  auto machine = makeMachine(target.triple, target.cpu, target.featureText());
  if (!machine)
    return machine.takeError();
  if (llvm::Error error =
          optimize(code, **machine, pipeline, target.vectorBits))
    return error;
  return emit(code, **machine, llvm::CodeGenFileType::ObjectFile);
}

} // namespace ax::codegen
