//===- ExportModel.cpp - The model with other weights ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Actions.h"
#include "ax/Import/Export.h"
#include "ax/Runtime/Checkpoint.h"

using namespace ax;

llvm::Error ax::exportModel(const Options &options) {
  auto source = rt::readWeights(options.weights, {warn});
  if (!source)
    return source.takeError();
  import::ExportWeights weights;
  weights.given.path = options.weights;
  for (auto &[name, tensor] : source->tensors)
    weights.given.tensors.emplace(name, std::move(tensor));
  weights.given.ties = options.tied;
  weights.given.leaveOut = options.leaveOut;
  weights.given.isCheckpoint = !source->weights.empty();
  weights.given.warn = warn;
  weights.required = source->weights;
  weights.frozen = source->frozen;
  weights.isPartial = options.isPartial;
  return import::exportModel(options.input, options.exportOnnx,
                             std::move(weights));
}
