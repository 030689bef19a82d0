//===- NativeCode.cpp - From scalar loops to an object file ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "NativeCode.h"

#include "ax/Support/Error.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

#include <algorithm>

using namespace mlir;

namespace ax::codegen {
namespace {

/// What O3 does for one such function, in its order, less what finds nothing
/// here: no calls to inline, no memory to promote, no unrolling before the
/// vectoriser has seen the loops.
constexpr const char *pipeline =
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

llvm::Error lowerToLLVM(ModuleOp module) {
  MLIRContext *context = module.getContext();
  LLVMTypeConverter converter(context);
  RewritePatternSet patterns(context);
  populateSCFToControlFlowConversionPatterns(patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  if (failed(applyFullConversion(module, target, std::move(patterns))))
    return makeError(ExitCode::Internal, "kernel: lowering to LLVM failed");
  return llvm::Error::success();
}

} // namespace

std::string objectFormat(const CpuTarget &target) {
  std::string name = llvm::Triple(target.triple).getArchName().str();
  std::replace(name.begin(), name.end(), '_', '-');
  return "elf-" + name;
}

void loadLoweringDialects(MLIRContext &context) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
  context.loadDialect<arith::ArithDialect, cf::ControlFlowDialect,
                      LLVM::LLVMDialect, math::MathDialect, scf::SCFDialect>();
}

llvm::Expected<llvm::SmallVector<char, 0>>
generateObject(ModuleOp module, const CpuTarget &target) {
  if (llvm::Error error = lowerToLLVM(module))
    return error;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context);
  if (!code)
    return makeError(ExitCode::Internal, "kernel: translation to LLVM failed");

  static std::once_flag initialized;
  std::call_once(initialized, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  llvm::Triple triple(target.triple);
  std::string missing, features = target.featureText();
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(triple, missing);
  if (!backend)
    return makeErrorf(ExitCode::Internal, "no code generator for {0}",
                      target.triple);
  llvm::TargetOptions options;
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(
      triple, target.cpu, features, options, llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Default));
  code->setTargetTriple(triple);
  code->setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : *code) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", features);
    function.addFnAttr("prefer-vector-width",
                       std::to_string(target.vectorBits));
    function.addFnAttr("no-trapping-math", "true");
  }

  llvm::PipelineTuningOptions tuning;
  llvm::PassBuilder builder(machine.get(), tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(passes, pipeline))
    return error;
  passes.run(*code, modules);

  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emit;
  if (machine->addPassesToEmitFile(emit, stream, nullptr,
                                   llvm::CodeGenFileType::ObjectFile))
    return makeError(ExitCode::Internal, "kernel: no object files here");
  emit.run(*code);
  return object;
}

} // namespace ax::codegen
