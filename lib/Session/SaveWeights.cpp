//===- SaveWeights.cpp - Weights into one .safetensors file ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Session/Train.h"

#include "ax/Runtime/Checkpoint.h"
#include "ax/Runtime/Safetensors.h"

using namespace ax;

llvm::Error ax::saveWeights(const rt::Executor &executor,
                            const std::string &path) {
  const std::vector<rt::State> &states = executor.getProgram().states;
  std::vector<rt::SafetensorsWriter::Entry> entries;
  for (const rt::State &state : states)
    if (state.isWeight)
      entries.push_back({state.name, state.dtype, state.shape});
  // What the plan has as constants is not here: who reads the file is to know
  // that these are the model's.
  auto file = rt::SafetensorsWriter::create(
      path, entries, rt::describeFrozen(executor.getProgram().folded));
  if (!file)
    return file.takeError();
  for (size_t i = 0; i < states.size(); ++i) {
    if (!states[i].isWeight)
      continue;
    auto tensor = executor.readState(static_cast<int32_t>(i));
    if (!tensor)
      return tensor.takeError();
    if (llvm::Error error = file->write(*tensor))
      return error;
  }
  return file->commit();
}
