//===- Target.cpp - What code is made for ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Support/Target.h"

#include "ax/Support/Error.h"
#include "ax/Support/Nearest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ax;

llvm::ArrayRef<llvm::StringRef> GpuTarget::names() {
  static const llvm::StringRef names[] = {"sm_80", "sm_90", "sm_100"};
  return names;
}

std::optional<GpuTarget> GpuTarget::find(llvm::StringRef name) {
  GpuTarget target;
  target.isSimulated = name.consume_back("+sim");
  if (!llvm::is_contained(names(), name) ||
      name.drop_front(3).getAsInteger(10, target.capability))
    return std::nullopt;
  return target;
}

std::optional<GpuTarget> GpuTarget::newestFor(unsigned capability) {
  for (llvm::StringRef name : llvm::reverse(names()))
    if (std::optional<GpuTarget> target = find(name);
        target->capability <= capability)
      return target;
  return std::nullopt;
}

const Target &Target::native() {
  static const Target native(CpuTarget::native());
  return native;
}

llvm::Expected<Target> Target::parse(llvm::StringRef name) {
  if (std::optional<CpuTarget> cpu = CpuTarget::find(name))
    return Target(std::move(*cpu));
  if (std::optional<GpuTarget> gpu = GpuTarget::find(name))
    return Target(*gpu);
  llvm::SmallVector<llvm::StringRef> known(CpuTarget::names());
  llvm::append_range(known, GpuTarget::names());
  return makeErrorf(ExitCode::Usage, "there is no target '{0}', but {1}{2}",
                    name, llvm::join(known, ", "), suggestNearest(name, known));
}

std::string Target::toText() const {
  return getGpu() ? getGpu()->toText() : getCpu()->cpu;
}

std::string Target::describe() const {
  return getGpu() ? "nvptx64 " + getGpu()->toText() : getCpu()->describe();
}

llvm::Error ax::checkTarget(llvm::StringRef target,
                            const std::vector<std::string> &features,
                            const Target &device) {
  const GpuTarget *card = device.getGpu();
  std::optional<GpuTarget> gpu = GpuTarget::find(target);
  if (!gpu && !card)
    return checkProcessor(target, features);
  if (gpu && card && gpu->capability <= card->capability)
    return llvm::Error::success();
  return makeErrorf(ExitCode::Unsupported,
                    "is for '{0}', and the device runs code for '{1}': compile "
                    "it with --target={2}",
                    target, device.toText(),
                    card ? card->toText() : std::string("native"));
}
