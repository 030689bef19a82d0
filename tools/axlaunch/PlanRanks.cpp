//===- PlanRanks.cpp - How many ranks a plan is for -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PlanRanks.h"

#include "ax/Runtime/CompiledPlan.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <optional>

using namespace ax;

/// What the sizes of `pipe = 2, data = 1` multiply to.
static std::optional<int64_t> multiplySizes(llvm::StringRef axes) {
  int64_t product = 1;
  for (llvm::StringRef axis : llvm::split(axes, ',')) {
    int64_t size;
    if (axis.split('=').second.trim().getAsInteger(10, size) || size < 1 ||
        llvm::MulOverflow(product, size, product))
      return std::nullopt;
  }
  return product;
}

llvm::Expected<int64_t> ax::readPlanRanks(const std::string &path) {
  if (rt::isCompiledPlan(path)) {
    auto plan = rt::readCompiledPlan(path);
    if (!plan)
      return plan.takeError();
    return plan->targets.front().programs.front()->mesh.numRanks();
  }
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  for (llvm::StringRef rest = llvm::toStringRef((*file)->bytes());
       !rest.empty();) {
    auto [line, behind] = rest.split('\n');
    rest = behind;
    line = line.trim();
    if (!line.consume_front("ax.mesh ["))
      continue;
    if (auto numRanks = multiplySizes(line.split(']').first))
      return *numRanks;
    break;
  }
  return makeError(ExitCode::BadPlan,
                   "'" + path + "' has no mesh of ranks, which every plan has");
}
