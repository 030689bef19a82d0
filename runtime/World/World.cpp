//===- World.cpp - The processes that run a plan together -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/World.h"

#include "ax/Support/Error.h"

#include <mutex>
#include <numeric>

namespace ax::rt {

World::~World() = default;

llvm::Expected<std::vector<int32_t>> World::getRanks(int64_t numRanks) const {
  if (isAlone()) {
    std::vector<int32_t> ranks(static_cast<size_t>(numRanks));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }
  if (place.numProcesses == numRanks)
    return std::vector<int32_t>{place.process};
  return makeError(ExitCode::Usage,
                   "the plan has " + std::to_string(numRanks) +
                       (numRanks == 1 ? " rank" : " ranks") +
                       ", and the job has " +
                       std::to_string(place.numProcesses) +
                       " processes; start one process for each rank");
}

namespace {

class LoneWorld : public World {
public:
  LoneWorld() : World({}) {}

  llvm::Expected<std::vector<std::string>>
  allGather(llvm::StringRef what, std::string value) override {
    if (llvm::Error error = barrier(what))
      return error;
    return std::vector<std::string>{std::move(value)};
  }
  llvm::Expected<std::vector<std::string>> gather(llvm::StringRef what,
                                                  std::string value) override {
    return allGather(what, std::move(value));
  }
  llvm::Expected<std::string> broadcast(llvm::StringRef what,
                                        std::string value) override {
    if (llvm::Error error = barrier(what))
      return error;
    return value;
  }
  llvm::Error barrier(llvm::StringRef what) override {
    std::string reason = getAbortReason();
    if (reason.empty())
      return llvm::Error::success();
    return makeError(ExitCode::RunFailed, what.str() + ": " + reason);
  }
  void abort(const std::string &reason) override {
    std::lock_guard<std::mutex> lock(mutex);
    if (abortReason.empty())
      abortReason = reason;
  }
  std::string getAbortReason() const override {
    std::lock_guard<std::mutex> lock(mutex);
    return abortReason;
  }
  void setAbortHandler(std::function<void(const std::string &)>) override {}
  void setProgress(std::function<std::string()>) override {}

private:
  mutable std::mutex mutex;
  std::string abortReason;
};

} // namespace

std::unique_ptr<World> makeLoneWorld() { return std::make_unique<LoneWorld>(); }

} // namespace ax::rt
