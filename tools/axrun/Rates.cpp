//===- Rates.cpp - What the time of commands is held against --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Rates.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Runtime/AllBackends.h"
#include "ax/Support/Threads.h"

#include <set>

using namespace ax;

static std::vector<DType> findFactors(const rt::Program &program) {
  std::set<DType> types;
  for (const rt::StageProgram &stage : program.stages)
    for (const rt::Command *command : stage.allCommands())
      if (const auto *library = std::get_if<rt::LibraryCommand>(&command->body))
        if (std::optional<DType> type = rt::rateType(library->desc))
          types.insert(*type);
  return {types.begin(), types.end()};
}

/// Of a device of its own, on the card that rank 0 will have.
static llvm::Expected<std::optional<rt::DeviceRates>>
measure(const Session &session) {
  const rt::BackendOptions &options = session.getBackends();
  auto kind = rt::allBackends().devices.find(options.device);
  if (!kind)
    return kind.takeError();
  int32_t card = options.cards.empty() ? 0 : options.cards.front();
  auto made = kind->create({card}, options.devices);
  if (!made)
    return made.takeError();
  // A device is for a thread that is its own from the beginning.
  std::optional<llvm::Expected<rt::DeviceRates>> rates;
  auto thread = startThread("the device's rates", [&] {
    made->front()->attachThread();
    rates.emplace(
        rt::measureRates(*made->front(), findFactors(session.getProgram())));
  });
  if (!thread)
    return thread.takeError();
  thread->join();
  if (!*rates)
    return rates->takeError();
  return std::move(**rates);
}

llvm::Expected<std::optional<rt::DeviceRates>>
ax::measureRates(const RunOptions &options, const Session &session) {
  if (!options.profile)
    return std::nullopt;
  rt::World &world = *session.getWorld();
  auto measureAtFirst =
      [&]() -> llvm::Expected<std::optional<rt::DeviceRates>> {
    if (!world.isFirst())
      return std::nullopt;
    return measure(session);
  };
  auto rates = measureAtFirst();
  if (llvm::Error error =
          rt::agree(world, "the device's rates", rates.takeError()))
    return error;
  return rates;
}
