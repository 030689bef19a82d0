//===- RunSamples.cpp - All samples of a file, in batches -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Actions.h"
#include "Inputs.h"

#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"

using namespace ax;

static llvm::Error start(Session &session) {
  if (session.isUntrained() && session.getWorld()->isFirst())
    tell("axrun",
         "note: the weights are those of the model's file, from before "
         "training: --weights takes others");
  return session.start();
}

llvm::Expected<int> ax::evaluateSamples(const Task &task) {
  if (llvm::Error error = start(task.session))
    return error;
  if (llvm::Error error =
          evaluate(task.session, *task.options.eval, task.options.tokens,
                   llvm::outs(), task.options.session.warn))
    return error;
  return static_cast<int>(ExitCode::Success);
}

llvm::Expected<int> ax::predictSamples(const Task &task) {
  const RunOptions &options = task.options;
  if (llvm::Error error = start(task.session))
    return error;
  auto predicted = predict(task.session, options.predict, options.tokens,
                           options.session.warn);
  if (!predicted)
    return predicted.takeError();
  if (llvm::Error error = checkMappedFiles())
    return error;
  if (task.session.getWorld()->isFirst())
    if (llvm::Error error = writeOutputs(options.output, *predicted))
      return error;
  return static_cast<int>(ExitCode::Success);
}
