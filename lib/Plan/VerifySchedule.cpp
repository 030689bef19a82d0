//===- VerifySchedule.cpp - Every micro-batch once, nobody waits for ever -===//
#include "Verifier.h"

#include "ax/Cost/Simulate.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ax;

/// `F0 F1`: micro-batches in order. Reports what is wrong with an entry.
static FailureOr<std::vector<int64_t>>
parseOrder(ScheduleOp schedule, size_t stage, StringRef text, int64_t slices) {
  std::vector<int64_t> order;
  llvm::BitVector seen(slices);
  auto fault = [&] {
    return schedule.emitOpError() << "of stage " << stage << ": ";
  };
  for (StringRef entry : llvm::split(text, ' ')) {
    if (entry.empty())
      continue;
    StringRef number = entry;
    int64_t slice;
    if (!number.consume_front("F") || number.getAsInteger(10, slice))
      return fault() << "'" << entry
                     << "' is no action; F0 is the forward of micro-batch 0";
    if (slice < 0 || slice >= slices)
      return fault() << "there is no micro-batch " << slice << " of " << slices;
    if (seen[slice])
      return fault() << "F" << slice << " stands there twice";
    seen.set(slice);
    order.push_back(slice);
  }
  seen.flip();
  if (int missing = seen.find_first(); missing >= 0)
    return fault() << "F" << missing << " is missing";
  return order;
}

void plan::verifySchedule(ProgramOp program, const sharding::Mesh &mesh) {
  auto schedules = program.getBody().getOps<ScheduleOp>();
  if (!llvm::hasSingleElement(schedules)) {
    program.emitOpError("needs exactly one ax.schedule");
    return;
  }
  ScheduleOp schedule = *schedules.begin();
  std::vector<cost::SimulatedStage> stages;
  for (auto [i, text] :
       llvm::enumerate(schedule.getOrders().getAsValueRange<StringAttr>())) {
    auto order = parseOrder(schedule, i, text, mesh.numTimeSlices());
    if (failed(order))
      return;
    // Slots of transfers are reused round robin by both sides.
    if (!stages.empty() && *order != stages.front().order) {
      schedule.emitOpError()
          << "of stage " << i << ": takes micro-batches in another order than "
          << "stage 0, so it would read slots that hold others";
      return;
    }
    stages.push_back({1, std::move(*order)});
  }
  std::vector<cost::SimulatedTransfer> transfers;
  for (TransferOp transfer : program.getBody().getOps<TransferOp>())
    transfers.push_back({static_cast<int64_t>(transfer.getFrom()),
                         static_cast<int64_t>(transfer.getTo()),
                         static_cast<int64_t>(transfer.getSlots()), 0});
  cost::Simulation simulation = cost::simulate(stages, transfers);
  if (!simulation.stuck.empty())
    schedule.emitOpError() << "never ends: "
                           << llvm::join(simulation.stuck, "; ");
}
