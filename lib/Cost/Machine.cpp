//===- Machine.cpp - How fast a rank's machine is -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/Machine.h"

#include "ax/Dialect/PlanAttrs.h"
#include "ax/Support/Target.h"

using namespace mlir;
using namespace ax;

namespace {

/// What a card's data sheet has: dense products of f32 and of bf16, its memory,
/// and one direction of NVLink.
struct DataSheet {
  unsigned capability;
  StringRef name;
  double flops, narrowFlops, bytes, linkBytes;
};

} // namespace

static constexpr DataSheet sheets[] = {
    {80, "NVIDIA A100", 19.5e12, 312e12, 2.0e12, 300e9},
    {90, "NVIDIA H100", 67e12, 989e12, 3.35e12, 450e9},
    {100, "NVIDIA B200", 80e12, 2250e12, 8.0e12, 900e9},
};

/// A GPU's, of which a rank has all.
static cost::Machine machineOf(const DataSheet &sheet) {
  // Large products and copies get so far on an H100: 798 TFLOP/s, 3.0 TB/s.
  constexpr double reached = 0.8;
  cost::Machine machine;
  machine.name = sheet.name;
  machine.flopsPerSecond = reached * sheet.flops;
  machine.narrowFlopsPerSecond = reached * sheet.narrowFlops;
  machine.bytesPerSecond = reached * sheet.bytes;
  machine.collectiveLatency = 10e-6;
  machine.collectiveBytesPerSecond = reached * sheet.linkBytes;
  machine.overlapsCollectives = true;
  machine.library = &gpuLibrary();
  return machine;
}

static const DataSheet *findSheet(StringRef target) {
  std::optional<GpuTarget> gpu = GpuTarget::find(target);
  if (!gpu)
    return nullptr;
  auto *found = llvm::find_if(sheets, [&](const DataSheet &sheet) {
    return sheet.capability == gpu->capability;
  });
  return found == std::end(sheets) ? nullptr : found;
}

bool cost::isMachine(StringRef target) { return findSheet(target); }

cost::Machine cost::machineOf(Operation *op) {
  auto plan = dyn_cast<PlanOp>(op);
  if (!plan)
    plan = op->getParentOfType<PlanOp>();
  auto target = plan ? plan->getAttrOfType<StringAttr>(kMachine) : StringAttr();
  const DataSheet *sheet = target ? findSheet(target.getValue()) : nullptr;
  return sheet ? ::machineOf(*sheet) : Machine();
}
