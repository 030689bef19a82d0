//===- PtxCode.cpp - From what a thread does to PTX -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PtxCode.h"

#include "LibraryMath.h"
#include "LlvmCode.h"
#include "NativeCode.h"
#include "ax/Support/Error.h"

#include "llvm-c/Target.h"
#include "llvm/IR/CallingConv.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <mutex>

using namespace mlir;

namespace ax::codegen {

/// As for processors, but for vectors: a thread of a GPU has none to compute
/// with. It has for memory: the backend makes these of accesses next to each
/// other, if they are known to be aligned.
static constexpr const char *pipeline =
    "function(early-cse,simplifycfg,instcombine<max-iterations=1;"
    "no-verify-fixpoint>,infer-alignment,infer-address-spaces,infer-alignment,"
    "loop-mssa(loop-rotate<header-duplication>,licm<allowspeculation>),"
    "simplifycfg,instcombine<max-iterations=1;no-verify-fixpoint>,"
    "loop(indvars,loop-deletion),early-cse<memssa>,"
    "loop-mssa(licm<allowspeculation>),loop-unroll<O2>,"
    "instcombine<max-iterations=1;no-verify-fixpoint>,early-cse<memssa>,"
    "loop-mssa(licm<allowspeculation>),simplifycfg)";

/// Those that round two floats to eight bits each.
static SmallVector<llvm::Function *> findFloat8(llvm::Module &code) {
  SmallVector<llvm::Function *> found;
  for (auto id : {llvm::Intrinsic::nvvm_ff_to_e4m3x2_rn,
                  llvm::Intrinsic::nvvm_ff_to_e5m2x2_rn})
    if (auto *function = llvm::Intrinsic::getDeclarationIfExists(&code, id))
      found.push_back(function);
  return found;
}

/// The version of PTX of the oldest driver that knows the GPU and what the code
/// has, but for those older than 12.0.
static std::string featuresOf(const GpuTarget &target, llvm::Module &code) {
  constexpr unsigned blackwell = 100;
  if (target.capability >= blackwell)
    return "+ptx86";
  return findFloat8(code).empty() ? "+ptx80" : "+ptx81";
}

/// Nobody links what a kernel's image lacks.
static llvm::Error checkWhole(const llvm::Module &code) {
  for (const llvm::Function &function : code)
    if (function.isDeclaration() && !function.isIntrinsic())
      return makeErrorf(ExitCode::Internal,
                        "kernel: there is no code for {0} on GPUs",
                        function.getName());
  return llvm::Error::success();
}

/// Makes of shared memory what a function gives.
static void askForShared(llvm::Module &code, llvm::Function &kernel) {
  constexpr unsigned sharedSpace = 3;
  llvm::SmallVector<llvm::GlobalVariable *> variables;
  for (llvm::GlobalVariable &variable : code.globals())
    if (variable.getAddressSpace() == sharedSpace)
      variables.push_back(&variable);
  llvm::convertUsersOfConstantsToInstructions(
      llvm::SmallVector<llvm::Constant *>(variables.begin(), variables.end()));
  llvm::IRBuilder<> builder(&*kernel.getEntryBlock().getFirstInsertionPt());
  uint64_t offset = 0;
  for (llvm::GlobalVariable *variable : variables) {
    llvm::FunctionCallee shared = code.getOrInsertFunction(
        "simgpu_shared", variable->getType(), builder.getInt64Ty());
    variable->replaceAllUsesWith(
        builder.CreateCall(shared, builder.getInt64(offset)));
    uint64_t bytes =
        code.getDataLayout().getTypeAllocSize(variable->getValueType());
    offset = llvm::alignTo(offset + bytes, variable->getAlign().valueOrOne());
    variable->eraseFromParent();
  }
}

/// Makes calls of functions of what no processor has: intrinsics that say who a
/// thread is, that meet others, and that have instructions of a GPU.
static void callSimulated(llvm::Module &code) {
  constexpr std::pair<llvm::Intrinsic::ID, const char *> names[] = {
      {llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, "simgpu_tid_x"},
      {llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x, "simgpu_ntid_x"},
      {llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, "simgpu_ctaid_x"},
      {llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x, "simgpu_nctaid_x"},
      {llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, "simgpu_barrier"},
      {llvm::Intrinsic::nvvm_bar_warp_sync, "simgpu_warp_barrier"},
      {llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, "simgpu_shfl_bfly"},
      {llvm::Intrinsic::nvvm_shfl_sync_idx_i32, "simgpu_shfl_idx"},
      {llvm::Intrinsic::nvvm_rcp_approx_ftz_f, "simgpu_rcp"}};
  auto *f32 = llvm::Type::getFloatTy(code.getContext());
  auto replace = [&](llvm::Function *intrinsic, const char *name) {
    if (intrinsic)
      intrinsic->replaceAllUsesWith(
          code.getOrInsertFunction(name, intrinsic->getFunctionType())
              .getCallee());
  };
  replace(llvm::Intrinsic::getDeclarationIfExists(
              &code, llvm::Intrinsic::nvvm_ex2_approx_ftz, {f32}),
          "simgpu_ex2");
  for (llvm::Function *rounding : findFloat8(code))
    replace(rounding,
            rounding->getIntrinsicID() == llvm::Intrinsic::nvvm_ff_to_e5m2x2_rn
                ? "simgpu_e5m2x2"
                : "simgpu_e4m3x2");
  for (auto [intrinsic, name] : names)
    replace(llvm::Intrinsic::getDeclarationIfExists(&code, intrinsic), name);
}

/// Adds `KERNEL_call`, which takes parameters as cuLaunchKernel does: an
/// address of each.
static void addCall(llvm::Function &kernel) {
  llvm::Module &code = *kernel.getParent();
  llvm::IRBuilder<> builder(code.getContext());
  auto *pointer = llvm::PointerType::getUnqual(code.getContext());
  auto *call = llvm::Function::Create(
      llvm::FunctionType::get(builder.getVoidTy(), {pointer}, false),
      llvm::Function::ExternalLinkage, kernel.getName() + "_call", code);
  builder.SetInsertPoint(
      llvm::BasicBlock::Create(code.getContext(), "entry", call));
  llvm::SmallVector<llvm::Value *> arguments;
  for (llvm::Argument &parameter : kernel.args()) {
    llvm::Value *place = builder.CreateConstInBoundsGEP1_64(
        pointer, call->getArg(0), parameter.getArgNo());
    arguments.push_back(builder.CreateLoad(parameter.getType(),
                                           builder.CreateLoad(pointer, place)));
  }
  builder.CreateCall(&kernel, arguments);
  builder.CreateRetVoid();
}

/// The same code for the processor that stands in for a GPU: one without
/// instructions that round to bf16, which lose subnormal numbers.
static llvm::Expected<llvm::SmallVector<char, 0>>
simulate(std::unique_ptr<llvm::Module> code) {
  callSimulated(*code);
  for (llvm::Function &function : *code)
    if (function.getCallingConv() == llvm::CallingConv::PTX_Kernel) {
      function.setCallingConv(llvm::CallingConv::C);
      askForShared(*code, function);
      addCall(function);
      break;
    }
  return generateObject(*code, *CpuTarget::find("x86-64-v3"));
}

llvm::Expected<llvm::SmallVector<char, 0>>
generatePtx(ModuleOp module, const GpuTarget &target) {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::LLVMContext context;
  expandLibraryCalls(module);
  auto code = translate(module, context);
  if (!code)
    return code.takeError();
  if (llvm::Error error = checkWhole(**code))
    return error;
  std::unique_ptr<llvm::Module> copy;
  if (target.isSimulated)
    copy = llvm::CloneModule(**code);
  auto machine = makeMachine("nvptx64-nvidia-cuda", target.architecture(),
                             featuresOf(target, **code));
  if (!machine)
    return machine.takeError();
  if (llvm::Error error = optimize(**code, **machine, pipeline))
    return error;
  auto image = emit(**code, **machine, llvm::CodeGenFileType::AssemblyFile);
  if (!image)
    return image.takeError();
  image->push_back('\0');
  if (!target.isSimulated)
    return image;
  auto object = simulate(std::move(copy));
  if (!object)
    return object.takeError();
  image->append(object->begin(), object->end());
  return image;
}

} // namespace ax::codegen
