//===- Team.h - All ranks, which tell each other numbers --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_COLLECTIVES_TEAM_H
#define AX_TOOLS_COLLECTIVES_TEAM_H

#include "ax/Runtime/Communicator.h"

namespace ax {

/// Ranks that measure at the same time, and agree on what they do next. All of
/// them make the same calls, in the same order; errors are the communicator's,
/// and the device's.
class Team {
public:
  static llvm::Expected<std::unique_ptr<Team>> create(rt::Communicator &comm,
                                                      rt::Device &device);

  const std::shared_ptr<rt::Group> &getGroup() const { return group; }
  /// Returns what all ranks gave, by their numbers, when all have called it.
  llvm::Expected<std::vector<double>> gather(double own);
  /// The largest of these.
  llvm::Expected<double> findLargest(double own);

private:
  explicit Team(rt::Device &device) : device(device) {}
  llvm::Error prepare(rt::Communicator &comm);

  rt::Device &device;
  std::shared_ptr<rt::Group> group;
  std::unique_ptr<rt::Stream> stream;
  std::unique_ptr<rt::DeviceMemory> mine, all;
  std::unique_ptr<rt::StreamOperation> exchange;
};

} // namespace ax

#endif // AX_TOOLS_COLLECTIVES_TEAM_H
