//===- ProductTimer.cpp - How long products take --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProductTimer.h"

#include "CudaMemory.h"
#include "CudaStream.h"

#include <algorithm>
#include <array>

namespace ax::rt::cuda {

/// Executions whose median counts.
static constexpr size_t numExecutions = 5;

llvm::Expected<std::unique_ptr<ProductTimer>>
ProductTimer::create(const SharedCard &card, const MatmulDesc &desc,
                     int64_t workspaceBytes, int64_t mostBytes) {
  std::vector<int64_t> sizes;
  int64_t total = 0;
  for (int i = 0, count = numArguments(desc); i < count; ++i)
    sizes.push_back(argumentDesc(desc, i).spanBytes());
  sizes.push_back(workspaceBytes);
  for (int64_t bytes : sizes)
    if (__builtin_add_overflow(total, bytes, &total) || total > mostBytes)
      return nullptr;

  std::unique_ptr<ProductTimer> made(new ProductTimer(card));
  for (int64_t bytes : sizes) {
    auto allocated = allocateMemory(card, bytes);
    // Other processes may have taken it: a run does not need this.
    if (!allocated) {
      llvm::consumeError(allocated.takeError());
      return nullptr;
    }
    made->arguments.push_back((*allocated)->getAddress());
    made->memory.push_back(std::move(*allocated));
  }
  made->workspace = made->arguments.back();
  made->arguments.pop_back();
  auto stream = makeStream(card, StreamPriority::Normal);
  if (!stream)
    return stream.takeError();
  made->stream = std::move(*stream);
  for (std::unique_ptr<Event> *event : {&made->begin, &made->end}) {
    auto timed = makeEvent(card, /*isTimed=*/true);
    if (!timed)
      return timed.takeError();
    *event = std::move(*timed);
  }
  return made;
}

llvm::Expected<std::chrono::nanoseconds> ProductTimer::time(CudaOp &op) {
  std::array<std::chrono::nanoseconds, numExecutions> times;
  auto execute = [&]() -> llvm::Error {
    if (llvm::Error error = stream->record(*begin))
      return error;
    // What was put on the stream uses the memory, whatever comes then.
    llvm::Error error = stream->execute(op, arguments.data(), workspace);
    if (!error)
      error = stream->record(*end);
    return llvm::joinErrors(std::move(error), stream->synchronize());
  };
  if (llvm::Error error = execute())
    return error;
  for (std::chrono::nanoseconds &took : times) {
    if (llvm::Error error = execute())
      return error;
    auto since = end->since(*begin);
    if (!since)
      return since.takeError();
    took = *since;
  }
  auto *median = times.begin() + numExecutions / 2;
  std::nth_element(times.begin(), median, times.end());
  return *median;
}

} // namespace ax::rt::cuda
