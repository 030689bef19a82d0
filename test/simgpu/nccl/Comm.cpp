//===- Comm.cpp - Communicators of the simulated NCCL ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Comm.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace simnccl {

std::mutex &globalMutex() {
  // Never destroyed: threads may still call.
  static auto *mutex = new std::mutex;
  return *mutex;
}

std::map<ncclComm_t, std::shared_ptr<Comm>> &comms() {
  static auto *all = new std::map<ncclComm_t, std::shared_ptr<Comm>>;
  return *all;
}

std::shared_ptr<Comm> findComm(ncclComm_t handle) {
  std::lock_guard<std::mutex> lock(globalMutex());
  auto found = comms().find(handle);
  return found == comms().end() ? nullptr : found->second;
}

size_t Step::getSourceBytes(const Comm &comm) const {
  return shape.getBytes() * (shape.kind == Kind::ReduceScatter
                                 ? static_cast<size_t>(comm.table->getSize())
                                 : 1);
}

void Step::computeResult(Comm &comm, unsigned char *destination) const {
  Table &table = *comm.table;
  size_t bytes = shape.getBytes();
  auto rank = static_cast<size_t>(comm.rank);
  size_t offset = shape.kind == Kind::ReduceScatter ? rank * bytes : 0;
  for (int other = 0; other < table.getSize(); ++other) {
    const unsigned char *source = table.getData(other) + offset;
    if (shape.kind == Kind::AllGather)
      std::memcpy(destination + static_cast<size_t>(other) * bytes, source,
                  bytes);
    else if (other == 0)
      std::memcpy(destination, source, bytes);
    else
      combine(static_cast<ncclDataType_t>(shape.type),
              static_cast<ncclRedOp_t>(shape.reduction), destination, source,
              shape.count);
  }
}

/// Each brings its source when all have done the collective before, and makes
/// its result when all have brought theirs.
std::string Step::advanceCollective(Comm &comm, const unsigned char *source,
                                    unsigned char *destination) {
  Table &table = *comm.table;
  Place &mine = table.getCollective(comm.rank);
  if (!hasGiven) {
    for (int other = 0; other < table.getSize(); ++other)
      if (table.getCollective(other).numTaken < number - 1)
        return "";
    std::memcpy(table.getData(comm.rank), source, getSourceBytes(comm));
    mine.shape = shape;
    mine.numGiven = number;
    hasGiven = true;
    if (destination != source)
      std::memset(destination, 0xee, shape.getBytes());
  }
  for (int other = 0; other < table.getSize(); ++other) {
    Place &place = table.getCollective(other);
    if (place.numGiven < number)
      return "";
    if (!(place.shape == shape))
      return "rank " + std::to_string(other) + " makes another call than " +
             shape.describe();
  }
  computeResult(comm, destination);
  mine.numTaken = number;
  done = true;
  return "";
}

/// A send has ended when its receive has taken it.
std::string Step::advanceMessage(Comm &comm, const unsigned char *source,
                                 unsigned char *destination) {
  Table &table = *comm.table;
  int sender = isSend ? comm.rank : peer, receiver = isSend ? peer : comm.rank;
  Place &place = table.getMessages(sender, receiver);
  unsigned char *data = table.getData(sender, receiver);
  if (isSend) {
    if (!hasGiven && place.numTaken == number - 1) {
      std::memcpy(data, source, shape.getBytes());
      place.shape = shape;
      place.numGiven = number;
      hasGiven = true;
    }
    done = hasGiven && place.numTaken >= number;
    return "";
  }
  if (!hasBegun)
    std::memset(destination, 0xee, shape.getBytes());
  hasBegun = true;
  if (place.numGiven < number || place.numTaken != number - 1)
    return "";
  if (!(place.shape == shape))
    return "what was sent is " + place.shape.describe() + ", not " +
           shape.describe();
  std::memcpy(destination, data, shape.getBytes());
  place.numTaken = number;
  done = true;
  return "";
}

void Step::setPass(const std::vector<Step> &before) {
  for (const Step &other : before)
    if (shape.kind == Kind::Message && other.shape.kind == Kind::Message &&
        peer == other.peer && isSend == other.isSend)
      ++pass;
}

std::string Step::advance(Comm &comm,
                          const std::vector<unsigned char *> &places) {
  auto place = [&](int at) {
    return at < 0 ? nullptr : places[static_cast<size_t>(at)];
  };
  if (done)
    return "";
  return shape.kind == Kind::Message
             ? advanceMessage(comm, place(from), place(to))
             : advanceCollective(comm, place(from), place(to));
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

/// Whether SIMGPU_NCCL_FAULT wants this batch, counted from 1, to fail.
static ncclResult_t findFault() {
  static uint64_t numBatches = 0;
  const char *text = std::getenv("SIMGPU_NCCL_FAULT");
  if (!text) {
    numBatches = 0;
    return ncclSuccess;
  }
  unsigned long number = 0;
  int code = 0;
  if (std::sscanf(text, "%lu:%d", &number, &code) == 2 &&
      ++numBatches == number)
    return static_cast<ncclResult_t>(code);
  return ncclSuccess;
}

bool Batch::isReady(const std::vector<unsigned char *> &places) {
  std::lock_guard<std::mutex> lock(globalMutex());
  if (*comm->isAborted)
    return true;
  if (!isOnCard) {
    const Batch *&user = users()[comm->context];
    if (isOneAtATime() && user)
      return false;
    user = this;
    isOnCard = true;
    if (ncclResult_t fault = findFault()) {
      comm->fault = fault;
      hasFailed = true;
    }
  }
  if (hasFailed)
    return false;
  bool isDone = true;
  for (Step &step : steps) {
    bool mayGoOn =
        std::none_of(steps.begin(), steps.end(), [&](const Step &other) {
          return step.isBehind(other) && !other.isDone();
        });
    if (!mayGoOn) {
      isDone = false;
      continue;
    }
    std::string why = step.advance(*comm, places);
    if (!why.empty()) {
      std::fprintf(stderr, "simgpu: NCCL: %s\n", why.c_str());
      comm->fault = ncclInternalError;
      hasFailed = true;
      return false;
    }
    isDone &= step.isDone();
  }
  return isDone;
}

void Batch::end() {
  std::lock_guard<std::mutex> lock(globalMutex());
  auto user = users().find(comm->context);
  if (user != users().end() && user->second == this)
    users().erase(user);
  --comm->numWaiting;
}

} // namespace simnccl
