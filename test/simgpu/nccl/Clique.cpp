//===- Clique.cpp - Communicators of the simulated NCCL -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Clique.h"

#include <cstdio>
#include <cstdlib>

namespace simnccl {

std::mutex &globalMutex() {
  // Never destroyed: threads may still call.
  static auto *mutex = new std::mutex;
  return *mutex;
}

/// What each card does, by its context, where it does one thing at a time.
static std::map<uint64_t, const Batch *> &users() {
  static auto *all = new std::map<uint64_t, const Batch *>;
  return *all;
}

static bool isOneAtATime() {
  const char *text = std::getenv("SIMGPU_NCCL_TOGETHER");
  return !text || std::string(text) != "1";
}

/// Whether SIMGPU_NCCL_FAULT wants this meeting, counted from 1, to fail.
static ncclResult_t findFault() {
  static uint64_t numMeetings = 0;
  const char *text = std::getenv("SIMGPU_NCCL_FAULT");
  if (!text) {
    numMeetings = 0;
    return ncclSuccess;
  }
  unsigned long number = 0;
  int code = 0;
  if (std::sscanf(text, "%lu:%d", &number, &code) == 2 &&
      ++numMeetings == number)
    return static_cast<ncclResult_t>(code);
  return ncclSuccess;
}

bool Batch::isReady(const std::vector<unsigned char *> &places) {
  std::lock_guard<std::mutex> lock(globalMutex());
  if (comm->isAborted)
    return true;
  if (isOneAtATime() && !isOnCard) {
    const Batch *&user = users()[comm->context];
    if (user)
      return false;
    user = this;
    isOnCard = true;
  }
  bool isDone = true;
  for (const Step &step : steps) {
    auto place = [&](int number) {
      return number < 0 ? nullptr : places[static_cast<size_t>(number)];
    };
    if (step.meeting->arrive(step.member, place(step.from), place(step.to))) {
      if (ncclResult_t fault = findFault()) {
        for (const std::shared_ptr<Comm> &other : comm->clique->comms)
          other->fault = fault;
      } else {
        step.meeting->perform();
      }
    }
    isDone &= step.meeting->isDone();
  }
  return isDone;
}

void Batch::end() {
  std::lock_guard<std::mutex> lock(globalMutex());
  if (isOnCard)
    users().erase(comm->context);
  --comm->numWaiting;
}

} // namespace simnccl
