//===- Target.h - What code is made for -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_TARGET_H
#define AX_SUPPORT_TARGET_H

#include "ax/Support/CpuTarget.h"

#include <optional>
#include <variant>

namespace ax {

/// GPUs of NVIDIA's, from those of a compute capability on that code for it
/// runs on.
struct GpuTarget {
  /// 90 is 9.0.
  unsigned capability = 80;
  /// cuDNN is beside it, and does attention.
  bool hasCudnn = false;
  /// Code is made for a processor, too, which stands in for the GPU in tests.
  bool isSimulated = false;

  /// `sm_80`, `sm_90` or `sm_100`, with `+cudnn` behind it where that is there,
  /// and `+sim` for one that is simulated; nothing for others.
  static std::optional<GpuTarget> find(llvm::StringRef name);
  /// All that `find` knows without what may be behind them, the oldest first.
  static llvm::ArrayRef<llvm::StringRef> names();
  /// The newest that runs on cards of this capability; nothing for those that
  /// are too old.
  static std::optional<GpuTarget> newestFor(unsigned capability);

  /// Returns the name as LLVM and ptxas have it: `sm_90`.
  std::string architecture() const {
    return "sm_" + std::to_string(capability);
  }
  std::string toText() const {
    return architecture() + (hasCudnn ? "+cudnn" : "") +
           (isSimulated ? "+sim" : "");
  }
};

/// What code was made for, as who has the code says it.
struct CodeTarget {
  /// As Target::toText.
  std::string name;
  /// What a processor must have to run it (CpuTarget::features).
  std::vector<std::string> features;
};

/// A processor or a GPU.
class Target {
public:
  Target(CpuTarget cpu) : kind(std::move(cpu)) {}
  Target(GpuTarget gpu) : kind(gpu) {}
  /// The machine that this runs on.
  static const Target &native();
  /// What CpuTarget and GpuTarget find; a Usage error for others.
  static llvm::Expected<Target> parse(llvm::StringRef name);

  /// Returns the name by which `parse` knows it; `native` is named by what it
  /// is.
  std::string toText() const;
  /// Returns all of it as text: equal texts are equal code.
  std::string describe() const;
  /// Returns what code that is made for it needs.
  CodeTarget toCode() const;

  /// Null if it is of the other kind.
  const CpuTarget *getCpu() const { return std::get_if<CpuTarget>(&kind); }
  const GpuTarget *getGpu() const { return std::get_if<GpuTarget>(&kind); }

private:
  std::variant<CpuTarget, GpuTarget> kind;
};

/// Returns the place in `targets` of what runs best on a device, of which
/// `device` is what code is made for: what makes use of cuDNN, is for the
/// newest GPU, or makes use of most that a processor has; of equal ones the
/// first. An Unsupported error that lists all of them where none runs there.
llvm::Expected<size_t> chooseTarget(llvm::ArrayRef<CodeTarget> targets,
                                    const Target &device);
/// Whether code for `target` runs on such a device.
bool runsOn(const Target &target, const Target &device);

} // namespace ax

#endif // AX_SUPPORT_TARGET_H
