//===- LibraryEntries.cpp - What stand-ins of libraries call --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Simgpu.h"
#include "Simulator.h"

using namespace simgpu;

static Simulator &sim() { return Simulator::get(); }

SIMGPU_ENTRY int simgpuEnter(const char *call, uint64_t *context) {
  return sim().enterLibrary(call, *context);
}

SIMGPU_ENTRY int simgpuCapability() { return sim().capabilityOfThread(); }

SIMGPU_ENTRY void simgpuRefuse(const char *call, const char *why) {
  sim().refuseLibrary(call, why);
}

SIMGPU_ENTRY int simgpuEnqueue(void *handle, const std::string &what,
                               const std::vector<SimgpuRange> &ranges,
                               SimgpuMaker make) {
  return sim().enterStream(
      "simgpuEnqueue", static_cast<CUstream>(handle),
      [&](Context &context, Stream &stream) {
        Item item;
        item.what = what;
        std::vector<unsigned char *> places;
        for (SimgpuRange range : ranges) {
          places.push_back(context.memory.find(range.address, range.bytes));
          item.uses.push_back({range.address, range.address + range.bytes});
          if (places.back())
            continue;
          sim().refuse(CUDA_ERROR_ILLEGAL_ADDRESS,
                       what + " uses what is not memory of the card");
          item.uses.clear();
          item.run = [] { return CUDA_ERROR_ILLEGAL_ADDRESS; };
          break;
        }
        if (!item.run)
          item.renew = [places, make = std::move(make)](Item &renewed) {
            SimgpuPiece piece = make();
            if (piece.isReady)
              renewed.isReady = [places, isReady = std::move(piece.isReady)] {
                return isReady(places);
              };
            renewed.run = [places, work = std::move(piece.work)] {
              work(places);
              return CUDA_SUCCESS;
            };
          };
        sim().scheduler->push(stream, std::move(item));
        return CUDA_SUCCESS;
      });
}
