//===- TryPlan.cpp - What verifies also runs ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TryPlan.h"

#include "ax/Codegen/Codegen.h"
#include "ax/Dialect/Ax.h"
#include "ax/Runtime/AllBackends.h"
#include "ax/Runtime/Executor.h"
#include "ax/Support/Error.h"

#include <cstdio>
#include <cstdlib>

using namespace mlir;

namespace ax::test {

void expectNoFault(llvm::Error error, bool isVerified) {
  if (!error)
    return;
  ErrorDescription why = describeError(std::move(error));
  bool isOurs = why.code == ExitCode::Internal ||
                (isVerified && why.code == ExitCode::BadPlan);
  if (!isOurs)
    return;
  std::fprintf(stderr, "%s\n", why.message.c_str());
  std::abort();
}

/// Few operations on few elements by few ranks.
static bool isSmall(ModuleOp module) {
  constexpr int64_t maxElements = 1 << 14, maxOps = 64, maxParts = 16;
  auto plan = *module.getOps<PlanOp>().begin();
  sharding::Mesh mesh = plan.getMesh();
  int64_t room = maxElements, numOps = 0;
  auto count = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      room -= std::min(tensor.getNumElements(), maxElements + 1);
  };
  module.walk([&](Operation *op) {
    ++numOps;
    llvm::for_each(op->getResultTypes(), count);
    if (auto state = dyn_cast<StateOp>(op))
      count(state.getTensorType());
    // Padding is work without elements.
    if (auto pool = dyn_cast<PoolOp>(op))
      for (int64_t size : pool.getKernel())
        room -= std::min(size, maxElements + 1);
    room = std::max(room, -maxElements);
  });
  return room >= 0 && numOps <= maxOps &&
         mesh.numRanks() * mesh.numTimeSlices() <= maxParts;
}

static llvm::Error run(ProgramOp op) {
  auto generated = codegen::generate(op);
  if (!generated)
    return generated.takeError();
  auto program = std::make_shared<rt::Program>(std::move(*generated));
  for (rt::State &state : program->states)
    if (!state.file.empty() || (state.isPrepared && !state.isMutable)) {
      state.file.clear();
      state.value = HostTensor(state.dtype, state.shape);
    }
  std::vector<HostTensor> inputs;
  for (const rt::Port &port : program->inputs)
    inputs.emplace_back(port.dtype, port.shape);
  auto ranks = rt::allBackends().create(program->mesh.numRanks(), {});
  if (!ranks)
    return ranks.takeError();
  auto executor = rt::Executor::create(program, std::move(*ranks));
  if (!executor)
    return executor.takeError();
  return (*executor)->run(inputs).takeError();
}

void tryPlan(ModuleOp module) {
  if (!isSmall(module))
    return;
  auto plan = *module.getOps<PlanOp>().begin();
  for (ProgramOp program : plan.getBody().getOps<ProgramOp>())
    expectNoFault(run(program), /*isVerified=*/true);
}

} // namespace ax::test
