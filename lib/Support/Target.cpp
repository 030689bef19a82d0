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
  target.hasCudnn = name.consume_back("+cudnn");
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
  return makeErrorf(ExitCode::Usage,
                    "there is no target '{0}', but {1} (+cudnn: with cuDNN){2}",
                    name, llvm::join(known, ", "), suggestNearest(name, known));
}

std::string Target::toText() const {
  return getGpu() ? getGpu()->toText() : getCpu()->cpu;
}

std::string Target::describe() const {
  return getGpu() ? "nvptx64 " + getGpu()->toText() : getCpu()->describe();
}

CodeTarget Target::toCode() const {
  return {toText(), getCpu() ? getCpu()->features : std::vector<std::string>()};
}

/// Returns what a processor lacks to run the code; nothing of a GPU.
static std::vector<std::string> findLacking(const CodeTarget &code,
                                            const Target &device) {
  std::vector<std::string> lacking;
  if (const CpuTarget *cpu = device.getCpu())
    for (const std::string &feature : code.features)
      if (!llvm::is_contained(cpu->features, feature))
        lacking.push_back(feature);
  return lacking;
}

/// Returns how well a device runs the code, more is better; nothing where it
/// does not.
static std::optional<size_t> rate(const CodeTarget &code,
                                  const Target &device) {
  std::optional<GpuTarget> gpu = GpuTarget::find(code.name);
  const GpuTarget *card = device.getGpu();
  constexpr size_t beyondAll = 10000;
  if (gpu && card && gpu->capability <= card->capability &&
      (card->hasCudnn || !gpu->hasCudnn))
    return gpu->capability + (gpu->hasCudnn ? beyondAll : 0);
  if (!gpu && !card && findLacking(code, device).empty())
    return code.features.size();
  return std::nullopt;
}

bool ax::runsOn(const Target &target, const Target &device) {
  return rate(target.toCode(), device).has_value();
}

/// Returns the name of the best target that runs on the device: where there is
/// one, of those that mean the same on any machine.
static std::string bestNameFor(const Target &device) {
  if (device.getGpu())
    return device.toText();
  llvm::StringRef best = "native";
  for (llvm::StringRef name : CpuTarget::names())
    if (runsOn(*CpuTarget::find(name), device))
      best = name;
  return best.str();
}

llvm::Expected<size_t> ax::chooseTarget(llvm::ArrayRef<CodeTarget> targets,
                                        const Target &device) {
  std::optional<size_t> best;
  std::string all;
  bool hasGpu = false;
  for (size_t i = 0; i < targets.size(); ++i) {
    const CodeTarget &target = targets[i];
    std::optional<size_t> rating = rate(target, device);
    if (rating && (!best || *rating > *rate(targets[*best], device)))
      best = i;
    hasGpu |= GpuTarget::find(target.name).has_value();
    std::string lacking = llvm::join(findLacking(target, device), ", ");
    all += (i ? ", '" : "'") + target.name + "'" +
           (lacking.empty() ? "" : " (with " + lacking + ")");
  }
  if (best)
    return *best;
  return makeErrorf(
      ExitCode::Unsupported,
      "is for {0}, and the device runs code for '{1}': compile "
      "it with --target={2}{3}",
      all, device.toText(), bestNameFor(device),
      hasGpu && !device.getGpu() ? ", or run it with --device=cuda" : "");
}
