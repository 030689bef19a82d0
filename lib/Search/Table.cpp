//===- Table.cpp - What a search has found --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Search/Search.h"
#include "ax/Support/ByteText.h"
#include "ax/Support/TimeText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace ax;
using namespace ax::search;

std::string search::flagsOf(const Strategy &strategy) {
  std::string flags;
  auto add = [&](const char *name, const std::string &value) {
    flags += (flags.empty() ? "--" : " --") + std::string(name) +
             (value.empty() ? "" : "=" + value);
  };
  auto addSize = [&](const char *name, int64_t size) {
    if (size > 1)
      add(name, std::to_string(size));
  };
  addSize("dp", strategy.data);
  addSize("cp", strategy.context);
  const TensorGrid &tensor = strategy.tensor;
  if (tensor.row > 1 || tensor.depth > 1)
    add("tp", tensor.toText());
  else
    addSize("tp", tensor.col);
  if (strategy.sequenceParallel)
    add("sequence-parallel", "");
  addSize("pp", strategy.pipe);
  if (strategy.schedule.toText() != ScheduleChoice().toText())
    add("schedule", strategy.schedule.toText());
  if (strategy.virtualStages)
    add("virtual-stages", std::to_string(*strategy.virtualStages));
  addSize("micro-batches", strategy.micro);
  if (strategy.zero)
    add("zero", std::to_string(strategy.zero));
  if (strategy.training &&
      strategy.training->recompute.kind != RecomputeMode::None)
    add("recompute", strategy.training->recompute.toText());
  return flags.empty() ? "--dp=1" : flags;
}

void search::print(const Result &result, llvm::raw_ostream &os) {
  constexpr size_t mostRows = 8;
  auto count = [&](auto &&is) { return llvm::count_if(result.candidates, is); };
  auto impossible =
      count([](const Candidate &one) { return !one.fault.empty(); });
  auto tooLarge = count(
      [](const Candidate &one) { return one.fault.empty() && !one.fits; });
  os << "search: " << result.candidates.size()
     << (result.candidates.size() == 1 ? " layout in " : " layouts in ")
     << timeText(result.seconds);
  if (!result.isWhole)
    os << ", and more that --time-limit left out";
  if (impossible) {
    const Candidate &last = result.candidates.back();
    os << "; " << impossible << " cannot be, as " << flagsOf(last.strategy)
       << " (" << llvm::StringRef(last.fault).split('\n').first << ")";
  }
  if (tooLarge)
    os << "; " << tooLarge << " need more than "
       << bytesText(result.memoryBytes) << " a rank";
  os << '\n';
  bool isMeasured = result.candidates.front().measuredSeconds.has_value();
  os << "        a step  " << (isMeasured ? "    measured  " : "")
     << "memory a rank  layout\n";
  for (const Candidate &one :
       llvm::ArrayRef(result.candidates).take_front(mostRows))
    if (one.fits) {
      os << llvm::format("  %12s", timeText(one.seconds).c_str());
      if (isMeasured)
        os << llvm::format(
            "  %12s",
            one.measuredSeconds ? timeText(*one.measuredSeconds).c_str() : "");
      os << llvm::format("  %13s  %s\n", bytesText(one.peakBytes).c_str(),
                         flagsOf(one.strategy).c_str());
    }
  os << "taken: " << flagsOf(result.candidates.front().strategy)
     << "; one with more flags has to be 1 % faster for each\n";
}
