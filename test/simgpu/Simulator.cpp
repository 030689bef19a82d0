//===- Simulator.cpp - The simulated driver's state -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Simulator.h"

#include "Simgpu.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

namespace simgpu {

Simulator &Simulator::get() {
  // Never destroyed: threads may still call.
  static auto *simulator = [] {
    auto *made = new Simulator;
    std::atexit([] { get().writeCounts(); });
    return made;
  }();
  return *simulator;
}

void Simulator::reset() {
  writeCounts();
  std::unique_lock<std::mutex> held(mutex);
  settings = readSettings();
  isStarted = false;
  streams.clear();
  events.clear();
  modules.clear();
  functions.clear();
  graphs.clear();
  executables.clear();
  captures.clear();
  gridRandom.seed(settings.seed);
  scheduler = std::make_unique<Scheduler>(settings,
                                          [this] { return countCall("work"); });
  contexts.clear();
  counts.clear();
  waits.clear();
  ++numResets;
  numWaits = 0;
  report.clear();
}

CUresult Simulator::countCall(const std::string &call) {
  std::vector<std::string> names{call};
  if (call.rfind("cublasLt", 0) == 0)
    names.emplace_back("cublasLt*");
  else if (call.rfind("cudnn", 0) == 0)
    names.emplace_back("cudnn*");
  else if (call.rfind("nccl", 0) == 0)
    names.emplace_back("nccl*");
  else if (call != "work")
    names.emplace_back("*");
  bool fails = false;
  for (const std::string &name : names)
    if (++counts[name] == settings.failingNumber)
      fails |= settings.failingCall == name;
  return fails ? static_cast<CUresult>(settings.failingCode) : CUDA_SUCCESS;
}

CUresult Simulator::begin(const char *call) {
  underWay = call;
  if (CUresult result = countCall(call)) {
    note("made to fail");
    return result;
  }
  if (!settings.fault.empty())
    return refuse(CUDA_ERROR_INVALID_VALUE,
                  settings.fault + " is not what it may be");
  bool needsStart = underWay != "cuInit" && underWay != "cuDriverGetVersion";
  if (needsStart && !isStarted)
    return refuse(CUDA_ERROR_NOT_INITIALIZED, "cuInit was not called");
  return CUDA_SUCCESS;
}

void Simulator::note(const std::string &why) {
  if (report.empty())
    report = underWay + ": " + why;
}

CUresult Simulator::refuse(CUresult result, const std::string &why) {
  note(why);
  std::fprintf(stderr, "simgpu: %s: %s\n", underWay.c_str(), why.c_str());
  return result;
}

unsigned char *Simulator::find(Context &context, CUdeviceptr address,
                               size_t bytes) {
  if (unsigned char *found = context.memory.find(address, bytes))
    return found;
  return findPinned(reinterpret_cast<const void *>(address), bytes);
}

unsigned char *Simulator::findPinned(const void *host, size_t bytes) {
  for (const auto &entry : contexts)
    if (unsigned char *found = entry.second->pinned.find(number(host), bytes))
      return found;
  return nullptr;
}

bool Simulator::isThere(Context &context, Range used) {
  if (find(context, used.begin, used.end - used.begin))
    return true;
  return std::any_of(functions.begin(), functions.end(), [&](const auto &each) {
    return number(each.second->grid.getCode()) == used.begin;
  });
}

CUresult Simulator::refuseUnsafe() {
  bool isForbidden = false;
  for (const std::weak_ptr<Capture> &each : captures)
    if (std::shared_ptr<Capture> capture = each.lock())
      if (capture->forbidsUnsafe() && !capture->hasEnded()) {
        capture->isInvalid = true;
        isForbidden = true;
      }
  return isForbidden ? refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                              "a stream is captured, which would not see it")
                     : CUDA_SUCCESS;
}

void Simulator::forget(Context &context) {
  for (auto entry = graphs.begin(); entry != graphs.end();)
    entry = entry->second->context == &context ? graphs.erase(entry)
                                               : std::next(entry);
  for (auto entry = executables.begin(); entry != executables.end();)
    entry = entry->second.graph->context == &context ? executables.erase(entry)
                                                     : std::next(entry);
  for (auto entry = streams.begin(); entry != streams.end();)
    entry = entry->second->context == &context ? streams.erase(entry)
                                               : std::next(entry);
  for (auto entry = events.begin(); entry != events.end();)
    entry = entry->second.context == &context ? events.erase(entry)
                                              : std::next(entry);
  scheduler->dropStreams(context);
  for (auto entry = modules.begin(); entry != modules.end();) {
    auto [module, owner] = *entry++;
    if (owner == &context)
      forgetModule(module);
  }
}

void Simulator::forgetModule(uint64_t module) {
  modules.erase(module);
  for (auto entry = functions.begin(); entry != functions.end();)
    entry = entry->second->module == module ? functions.erase(entry)
                                            : std::next(entry);
}

uint64_t &Simulator::currentContext() {
  thread_local uint64_t current = 0;
  return current;
}

int Simulator::enterLibrary(const char *call, uint64_t &context) {
  std::unique_lock<std::mutex> held(mutex);
  underWay = call;
  context = contexts.count(currentContext()) ? currentContext() : 0;
  int result = countCall(call);
  if (result)
    note("made to fail");
  return result;
}

void Simulator::refuseLibrary(const char *call, const char *why) {
  std::unique_lock<std::mutex> held(mutex);
  underWay = call;
  refuse(CUDA_SUCCESS, why);
}

int Simulator::capabilityOfThread() {
  std::unique_lock<std::mutex> held(mutex);
  auto found = contexts.find(currentContext());
  return found == contexts.end()
             ? 0
             : static_cast<int>(settings.capabilityOf(found->second->card));
}

Simulator::OfThread &Simulator::ofThread() {
  thread_local OfThread counts;
  if (counts.numResets != numResets)
    counts = {numResets, 0, {}, false};
  return counts;
}

bool Simulator::isDroppedWait(uint64_t waiting, const Event &event) {
  std::pair streams(waiting, event.recordedOn);
  ++waits[streams];
  uint64_t number = ofThread().waits[streams]++;
  const DroppedWaits &dropped = settings.droppedWaits;
  return (waiting != 0 && ++numWaits == settings.droppedWait) ||
         (waiting == dropped.waiting && dropped.recorded != 0 &&
          event.recordedOn == dropped.recorded &&
          number % dropped.divisor == dropped.remainder);
}

std::chrono::milliseconds Simulator::beginLoad() {
  std::unique_lock<std::mutex> held(mutex);
  uint64_t &most = counts["loadsTogether"];
  most = std::max(most, ++numLoading);
  return std::chrono::milliseconds(settings.jitMilliseconds);
}

std::chrono::microseconds Simulator::getLateness() {
  std::unique_lock<std::mutex> held(mutex);
  return std::chrono::microseconds(settings.lateMicroseconds);
}

void Simulator::endLoad() {
  std::unique_lock<std::mutex> held(mutex);
  --numLoading;
}

void Simulator::writeCounts() {
  std::unique_lock<std::mutex> held(mutex);
  if (settings.countsFile.empty())
    return;
  std::ofstream file(settings.countsFile);
  for (const auto &[call, count] : counts)
    file << call << ' ' << count << '\n';
  for (const auto &[streams, count] : waits)
    file << streams.first << '<' << streams.second << ' ' << count << '\n';
}

std::string Simulator::takeReport() {
  std::unique_lock<std::mutex> held(mutex);
  return std::exchange(report, {});
}

uint64_t Simulator::count(const std::string &call) {
  std::unique_lock<std::mutex> held(mutex);
  return counts[call];
}

} // namespace simgpu

SIMGPU_ENTRY void simgpuReset() { simgpu::Simulator::get().reset(); }

SIMGPU_ENTRY const char *simgpuReport() {
  thread_local std::string report;
  report = simgpu::Simulator::get().takeReport();
  return report.c_str();
}

SIMGPU_ENTRY uint64_t simgpuCount(const char *call) {
  return simgpu::Simulator::get().count(call);
}
