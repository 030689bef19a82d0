//===- LocalCluster.h - Ranks that are threads of this process --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives requests to the threads of this process's ranks, has global inputs cut
// into their parts and global outputs made of them, and ends them all when one
// fails or hangs.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_LOCALCLUSTER_H
#define AX_RUNTIME_LOCALCLUSTER_H

#include "HeldParts.h"
#include "RankReport.h"
#include "RankThreads.h"

#include <algorithm>
#include <thread>

namespace ax::rt {

class PreparedExchanges;

class LocalCluster : public Executor {
public:
  LocalCluster(std::shared_ptr<const Program> program, RankBackends backends,
               const ExecutorOptions &options)
      : options(options),
        shared(std::make_shared<SharedRanks>(
            static_cast<size_t>(std::max(1, options.maxInFlight)))),
        used(*program) {
    shared->program = std::move(program);
    shared->backends = std::move(backends);
    shared->world = options.world ? options.world : makeLoneWorld();
    shared->recorder = options.recorder;
  }
  ~LocalCluster() override;

  llvm::Error start();

  const Program &getProgram() const override { return *shared->program; }
  World &getWorld() const override { return *shared->world; }
  llvm::ArrayRef<int32_t> getRanks() const override { return ranks; }
  std::vector<RowRange> getNeededRows(int32_t input) const override;
  bool hasOutput(int32_t output) const override;
  llvm::Expected<std::unique_ptr<Request>> createRequest() override;
  llvm::Error submit(Request &request) override;
  llvm::Error announce(Request &request) override;
  llvm::Error wait(Request &request) override;
  bool hasFailed() const override { return shared->stop.load(); }
  llvm::Expected<HostTensor> readState(int32_t state) const override;
  std::vector<HeldPart> getParts(int32_t state) const override;
  llvm::Expected<HostTensor> readPart(int32_t state,
                                      const HeldPart &part) const override;
  std::shared_ptr<StoredStates> getStored() const override;
  llvm::Error resetCarried() override;
  llvm::Error gatherReports() override;
  std::vector<RankMemory> getMemory() const override;
  void clearTrace() override;
  std::vector<CommandTime> getCommandTimes() const override;
  std::optional<double> getBubble() const override;
  llvm::Error writeTrace(const std::string &path) const override;

private:
  llvm::Error prepare();
  std::vector<PreparedExchanges> listExchanges() const;
  llvm::Error startThreads();
  /// Once for each kind of operation that devices lack.
  void tellHostOps() const;
  /// Why steps are not captured, once, where that was asked for.
  void tellPlainSteps() const;
  llvm::Error checkInputs(const Request &request) const;
  llvm::Error announceHere(ThreadRequest &request);
  llvm::Expected<HostTensor> allocateOutput(int32_t output) const;
  llvm::Error waitUntilFinished(uint64_t count);
  void watch();
  /// Null where it is in another process.
  RankExecutor *findRank(int32_t rank) const;
  StoredStates::Key keyOf(const State &state, size_t index) const;
  std::vector<const RankTrace *> getTraces() const;

  ExecutorOptions options;
  std::shared_ptr<SharedRanks> shared;
  UsedValues used;
  /// Those of this process; what is of one of them elsewhere has the same
  /// index.
  std::vector<int32_t> ranks;
  /// Of each input.
  std::vector<std::vector<RowRange>> neededRows;
  std::vector<std::thread> threads;
  std::thread watchdog;
  /// Of all processes' ranks, at process 0.
  std::vector<RankReport> gathered;
  uint64_t numAnnounced = 0, numSubmitted = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_LOCALCLUSTER_H
