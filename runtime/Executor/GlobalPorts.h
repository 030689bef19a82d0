//===- GlobalPorts.h - Parts of global tensors in this process --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_GLOBALPORTS_H
#define AX_RUNTIME_GLOBALPORTS_H

#include "RankContext.h"
#include "RankPorts.h"

namespace ax::rt {

class OutputExchange;

/// The global tensors of one request, as far as they are in this process.
struct RunData {
  std::vector<const uint8_t *> inputs;
  std::vector<uint8_t *> outputs;
};

/// Cuts a rank's parts out of global inputs, and puts them into global outputs:
/// of equal parts the first of the stage's ranks hands over its own. Parts that
/// lie in one piece are used where they are, and so are parts of messages to
/// other processes.
class GlobalPorts : public RankPorts {
public:
  /// `exchange`: the rank's; null where there are no other processes.
  explicit GlobalPorts(const RankContext &context,
                       const OutputExchange *exchange = nullptr)
      : context(context), exchange(exchange) {}

  /// Of whose inputs parts are from now on, and of whose outputs: the next
  /// request's inputs are read while the last one's outputs are not there yet.
  /// Both must stay as long.
  void setInputs(const RunData &next) { inputs = &next; }
  void setOutputs(const RunData &next) { outputs = &next; }

  std::unique_ptr<BoundInput> bindInput(int32_t port) override;
  std::unique_ptr<BoundOutput> bindOutput(int32_t port) override;

private:
  RankContext context;
  const OutputExchange *exchange;
  const RunData *inputs = nullptr, *outputs = nullptr;
};

} // namespace ax::rt

#endif // AX_RUNTIME_GLOBALPORTS_H
