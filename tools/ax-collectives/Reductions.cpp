//===- Reductions.cpp - Kernels that reduce -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Reductions.h"

#include "ax/Codegen/Kernel.h"
#include "ax/Dialect/Ax.h"
#include "ax/Runtime/AllBackends.h"
#include "ax/Support/Error.h"

#include "mlir/IR/Builders.h"

#include <cstdlib>

using namespace ax;

static llvm::Expected<Target> findTarget(int32_t numRanks,
                                         const rt::BackendOptions &options) {
  const char *known = std::getenv("AXRUN_TARGET");
  if (!known || !*known)
    return rt::allBackends().findTarget(numRanks, options);
  auto target = Target::parse(known);
  if (!target)
    return addContext(target.takeError(), "AXRUN_TARGET");
  return target;
}

llvm::Expected<Reductions>
ax::compileReductions(int32_t numRanks, const rt::BackendOptions &options) {
  Reductions made;
  // NCCL, and the host, add up themselves.
  if (options.communicator != "local" || options.device == "cpu")
    return made;
  auto target = findTarget(numRanks, options);
  if (!target)
    return target.takeError();
  codegen::KernelOptions kernels;
  kernels.target = std::move(*target);
  auto compiler = codegen::KernelCompiler::create(std::move(kernels));
  if (!compiler)
    return compiler.takeError();
  mlir::MLIRContext context;
  codegen::Reduction reduction;
  reduction.type = mlir::Builder(&context).getF32Type();
  reduction.sources = static_cast<size_t>(numRanks);
  for (auto [kernel, destinations] :
       {std::pair(&made.allReduce, reduction.sources),
        std::pair(&made.reduceScatter, size_t(1))}) {
    reduction.destinations = destinations;
    auto compiled = (*compiler)->compileReduction(reduction);
    if (!compiled)
      return compiled.takeError();
    *kernel = std::move(*compiled);
  }
  return made;
}
