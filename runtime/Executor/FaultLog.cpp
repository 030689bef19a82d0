//===- FaultLog.cpp - Indices out of range, of one rank -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FaultLog.h"

#include "ax/Support/Error.h"

#include <cstring>

namespace ax::rt {

llvm::Error FaultLog::create(size_t numCommands) {
  if (numCommands == 0)
    return llvm::Error::success();
  auto allocated = context.device.allocatePinned(offsetOf(numCommands, 0));
  if (!allocated)
    return allocated.takeError();
  words = std::move(*allocated);
  return llvm::Error::success();
}

int64_t FaultLog::offsetOf(size_t command, int32_t microBatch) const {
  return (static_cast<int64_t>(command) * context.program.mesh.numTimeSlices() +
          microBatch) *
         faultWordBytes;
}

llvm::Error FaultLog::bring(Stream &stream, DeviceAddress word, size_t command,
                            int32_t microBatch) {
  return stream.download(word, *words, offsetOf(command, microBatch),
                         faultWordBytes);
}

void FaultLog::look(const FaultCommand &body, size_t command,
                    int32_t microBatch,
                    llvm::function_ref<std::string()> name) {
  int64_t word[2];
  static_assert(sizeof(word) == faultWordBytes);
  std::memcpy(word,
              static_cast<const char *>(words->getData()) +
                  offsetOf(command, microBatch),
              sizeof(word));
  auto [place, index] = word;
  if (place < 0 || place >= body.check.indices.numElements())
    return;
  const std::vector<int64_t> &sizes = body.check.sizes;
  keep(body.check,
       {place, index, sizes[static_cast<size_t>(place) % sizes.size()]},
       microBatch, name);
}

llvm::Error FaultLog::keep(const IndexCheckDesc &check, const IndexFault &found,
                           int32_t microBatch,
                           llvm::function_ref<std::string()> name) {
  for (const IndexFault::Entry &entry : found.getEntries()) {
    // There is no 0 to go on with.
    if (entry.size == 0)
      return makeErrorf(ExitCode::RunFailed,
                        "index {0} is out of range of a dimension of {1}",
                        entry.index, entry.size);
    keep(check, entry, microBatch, name);
  }
  return llvm::Error::success();
}

static std::string describeFault(const IndexCheckDesc &check,
                                 const IndexFault::Entry &entry) {
  if (check.isCount && entry.index < 0)
    return llvm::formatv("there cannot be {0}", entry.index);
  if (check.isCount)
    return llvm::formatv(
        "there are {0}, and axopt --max gave room for {1} (a "
        "size made of numbers of results has the room that all "
        "or none of them make)",
        entry.index, entry.size - 1);
  return llvm::formatv("index {0} is out of range of a dimension of {1}",
                       entry.index, entry.size);
}

void FaultLog::keep(const IndexCheckDesc &check, const IndexFault::Entry &entry,
                    int32_t microBatch,
                    llvm::function_ref<std::string()> name) {
  std::vector<int64_t> local(check.indices.sizes.size());
  int64_t rest = entry.place;
  for (size_t d = local.size(); d-- > 0; rest /= check.indices.sizes[d])
    local[d] = rest % check.indices.sizes[d];
  auto at = sharding::globalIndex(check.layout, context.program.mesh,
                                  context.coordinates(microBatch), local);
  if (!at)
    return;
  FirstFault next{check.order, 0, {}};
  for (size_t d = 0; d < at->size(); ++d)
    next.position = next.position * check.layout.dims[d].size() + (*at)[d];
  if (first && !next.isBefore(*first))
    return;
  next.message = name() + ": " + describeFault(check, entry);
  first = std::move(next);
}

} // namespace ax::rt
