//===- Executor.cpp - Runs a command program on many ranks ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Executor.h"

#include "LocalCluster.h"

namespace ax::rt {

Request::~Request() = default;
Executor::~Executor() = default;

llvm::Expected<std::unique_ptr<Executor>>
Executor::create(std::shared_ptr<const Program> program, RankBackends ranks,
                 const ExecutorOptions &options) {
  auto executor = std::make_unique<LocalCluster>(std::move(program),
                                                 std::move(ranks), options);
  if (llvm::Error error = executor->start())
    return error;
  return executor;
}

llvm::Expected<std::vector<HostTensor>>
Executor::run(const std::vector<HostTensor> &inputs) {
  llvm::Expected<std::unique_ptr<Request>> request = createRequest();
  if (!request)
    return request.takeError();
  (*request)->inputs = inputs;
  if (llvm::Error error = submit(**request))
    return error;
  if (llvm::Error error = wait(**request))
    return error;
  return std::move((*request)->outputs);
}

} // namespace ax::rt
