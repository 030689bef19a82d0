//===- GlobalPorts.h - Parts of global tensors in this process --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_GLOBALPORTS_H
#define AX_RUNTIME_GLOBALPORTS_H

#include "RankContext.h"
#include "RankPorts.h"

namespace ax::rt {

/// The global tensors of one request.
struct RunData {
  std::vector<const uint8_t *> inputs;
  std::vector<uint8_t *> outputs;
};

/// Cuts a rank's parts out of global inputs, and puts them into global outputs:
/// of equal parts the first of the stage's ranks hands over its own. Parts that
/// lie in one piece are used where they are.
class GlobalPorts : public RankPorts {
public:
  explicit GlobalPorts(const RankContext &context) : context(context) {}

  /// What the next run is of. It must stay until then.
  void setData(const RunData &next) { data = &next; }

  llvm::Expected<std::unique_ptr<BoundPort>> bindInput(int32_t port) override;
  llvm::Expected<std::unique_ptr<BoundPort>> bindOutput(int32_t port) override;

private:
  RankContext context;
  const RunData *data = nullptr;
};

} // namespace ax::rt

#endif // AX_RUNTIME_GLOBALPORTS_H
