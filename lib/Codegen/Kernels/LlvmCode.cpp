//===- LlvmCode.cpp - Steps from scalar loops to code ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LlvmCode.h"

#include "ax/Codegen/Kernel.h"
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
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;

namespace ax::codegen {

void addLoweringDialects(DialectRegistry &registry) {
  registry
      .insert<arith::ArithDialect, cf::ControlFlowDialect, LLVM::LLVMDialect,
              math::MathDialect, NVVM::NVVMDialect, scf::SCFDialect>();
}

void loadLoweringDialects(MLIRContext &context) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  addLoweringDialects(registry);
  context.appendDialectRegistry(registry);
  for (StringRef name : registry.getDialectNames())
    context.getOrLoadDialect(name);
}

static llvm::Error lowerToLLVM(ModuleOp module) {
  MLIRContext *context = module.getContext();
  LLVMTypeConverter converter(context);
  RewritePatternSet patterns(context);
  populateSCFToControlFlowConversionPatterns(patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  target.addLegalDialect<NVVM::NVVMDialect>();
  if (failed(applyFullConversion(module, target, std::move(patterns))))
    return makeError(ExitCode::Internal, "kernel: lowering to LLVM failed");
  // What a loop says of itself comes with its branches, but under another name.
  module.walk([](LLVM::BrOp branch) {
    if (auto note = branch->getAttrOfType<LLVM::LoopAnnotationAttr>(kLoop)) {
      branch->removeAttr(kLoop);
      branch.setLoopAnnotationAttr(note);
    }
  });
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<llvm::Module>>
translate(ModuleOp module, llvm::LLVMContext &context) {
  if (llvm::Error error = lowerToLLVM(module))
    return error;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context);
  if (!code)
    return makeError(ExitCode::Internal, "kernel: translation to LLVM failed");
  return code;
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
makeMachine(const std::string &name, const std::string &cpu,
            const std::string &features) {
  llvm::Triple triple(name);
  std::string missing;
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(triple, missing);
  if (!backend)
    return makeErrorf(ExitCode::Internal, "no code generator for {0}", name);
  llvm::TargetOptions options;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, cpu, features, options, llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Default));
}

llvm::Error optimize(llvm::Module &code, llvm::TargetMachine &machine,
                     StringRef pipeline, unsigned vectorBits) {
  code.setTargetTriple(machine.getTargetTriple());
  code.setDataLayout(machine.createDataLayout());
  for (llvm::Function &function : code) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    if (vectorBits)
      function.addFnAttr("prefer-vector-width", std::to_string(vectorBits));
    function.addFnAttr("no-trapping-math", "true");
  }

  llvm::PipelineTuningOptions tuning;
  llvm::PassBuilder builder(&machine, tuning);
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
  passes.run(code, modules);
  return llvm::Error::success();
}

llvm::Expected<llvm::SmallVector<char, 0>> emit(llvm::Module &code,
                                                llvm::TargetMachine &machine,
                                                llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    return makeError(ExitCode::Internal, "kernel: no object files here");
  passes.run(code);
  return bytes;
}

} // namespace ax::codegen
