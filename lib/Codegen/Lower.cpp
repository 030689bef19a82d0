//===- Lower.cpp - From a program to what becomes commands ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Codegen/Codegen.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Codegen/Localize.h"
#include "ax/Support/Error.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"

using namespace mlir;

namespace ax::codegen {

/// Returns a plan with what a local program refers to in that of `program`.
static OwningOpRef<PlanOp> planAround(ProgramOp program) {
  auto plan = program->getParentOfType<PlanOp>();
  OpBuilder builder(program.getContext());
  OwningOpRef<PlanOp> around = PlanOp::create(
      builder, plan.getLoc(), plan.getSymName(), plan.getVersion());
  (*around)->setDiscardableAttrs(plan->getDiscardableAttrDictionary());
  builder.setInsertionPointToEnd(&around->getBody().emplaceBlock());
  for (Operation &op : plan.getBody().front())
    if (isa<MeshOp, StateOp>(op))
      builder.clone(op);
  return around;
}

static LogicalResult runOnStages(std::unique_ptr<Pass> pass, PlanOp plan,
                                 TimingScope &scope) {
  PassManager manager(plan.getContext(), PlanOp::getOperationName());
  manager.enableTiming(scope);
  // The end is verified; axopt-opt looks after each step.
  manager.enableVerifier(false);
  addStagePass(manager, std::move(pass));
  return manager.run(plan);
}

static StringRef stepOf(const Pass &pass) {
  StringRef step = pass.getArgument();
  step.consume_front("axl-");
  return step;
}

std::vector<std::string> stepNames() {
  std::vector<std::string> names{"localize"};
  for (const Target &target : {Target(GpuTarget()), Target::native()})
    for (const std::unique_ptr<Pass> &pass :
         stagePasses(/*separateKernels=*/false, target))
      if (std::string name = stepOf(*pass).str();
          !llvm::is_contained(names, name))
        names.push_back(name);
  names.push_back(stepOf(*createChooseNests()).str());
  return names;
}

/// Shows the nests of a copy: what a kernel is written of is no part of the
/// program.
static llvm::Error showNests(PlanOp plan, const Options &options) {
  OwningOpRef<PlanOp> copy = plan.clone();
  std::unique_ptr<Pass> pass =
      createChooseNests({/*gpu=*/options.target.getGpu() != nullptr});
  StringRef step = stepOf(*pass);
  TimingScope untold;
  if (failed(runOnStages(std::move(pass), *copy, untold)))
    return makeError(ExitCode::Internal, step + " failed");
  options.after(step, *copy);
  return llvm::Error::success();
}

llvm::Expected<OwningOpRef<PlanOp>> lower(ProgramOp program,
                                          const Options &options) {
  OwningOpRef<PlanOp> plan = planAround(program);
  TimingScope root =
      options.timing ? options.timing->getRootScope() : TimingScope();
  TimingScope whole = root.nest("program " + program.getSymName().str());
  auto done = [&](StringRef step) {
    if (options.after)
      options.after(step, *plan);
  };
  TimingScope localizing = whole.nest("localize");
  auto local = localize(program);
  if (!local)
    return local.takeError();
  plan->getBody().front().push_back(local->release());
  localizing.stop();
  done("localize");
  for (std::unique_ptr<Pass> &pass :
       stagePasses(options.separateKernels, options.target)) {
    StringRef step = stepOf(*pass);
    TimingScope scope = whole.nest(step);
    if (failed(runOnStages(std::move(pass), *plan, scope)))
      return makeError(ExitCode::Internal, step + " failed");
    scope.stop();
    done(step);
  }
  if (options.after)
    if (llvm::Error error = showNests(*plan, options))
      return error;
  if (failed(verify(*plan)))
    return makeError(ExitCode::Internal,
                     "program " + program.getSymName() +
                         " was lowered to what is no local program");
  return plan;
}

} // namespace ax::codegen
