//===- ThreadWorlds.h - Several processes that are threads ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_THREADWORLDS_H
#define AX_TEST_THREADWORLDS_H

#include "ProgramBuilder.h"

#include "ax/Runtime/CpuDevice.h"
#include "ax/Runtime/LocalCommunicator.h"
#include "ax/Support/Error.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace ax::rt {

/// What the worlds of one job share.
struct ThreadJob {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> values;
  std::vector<std::string> names;
  size_t numCome = 0, numLeft = 0;
  std::string reason;
};

/// One process of a job whose processes are threads.
class ThreadWorld : public World {
public:
  ThreadWorld(int32_t process, int32_t numProcesses,
              std::shared_ptr<ThreadJob> job)
      : World({process, numProcesses, "host" + std::to_string(process)}),
        job(std::move(job)) {}

  llvm::Expected<std::vector<std::string>>
  allGather(llvm::StringRef what, std::string value) override {
    std::unique_lock<std::mutex> lock(job->mutex);
    auto count = static_cast<size_t>(getPlace().numProcesses);
    auto waitFor = [&](auto condition) -> llvm::Error {
      job->changed.wait(lock,
                        [&] { return condition() || !job->reason.empty(); });
      return job->reason.empty()
                 ? llvm::Error::success()
                 : makeError(ExitCode::RunFailed, what + ": " + job->reason);
    };
    // Those of the last exchange have to be gone.
    if (llvm::Error error = waitFor([&] { return job->numLeft == 0; }))
      return error;
    job->values.resize(count);
    job->names.resize(count);
    job->values[static_cast<size_t>(getPlace().process)] = std::move(value);
    job->names[static_cast<size_t>(getPlace().process)] = what.str();
    if (++job->numCome == count)
      job->numLeft = count;
    job->changed.notify_all();
    if (llvm::Error error = waitFor([&] { return job->numLeft > 0; }))
      return error;
    std::vector<std::string> all = job->values;
    for (const std::string &name : job->names)
      if (name != what)
        return makeError(ExitCode::RunFailed, what + ": another is at " + name);
    if (--job->numLeft == 0)
      job->numCome = 0;
    job->changed.notify_all();
    return all;
  }
  llvm::Expected<std::vector<std::string>> gather(llvm::StringRef what,
                                                  std::string value) override {
    auto all = allGather(what, std::move(value));
    if (all && !isFirst())
      all->clear();
    return all;
  }
  llvm::Expected<std::string> broadcast(llvm::StringRef what,
                                        std::string value) override {
    auto all = allGather(what, std::move(value));
    if (!all)
      return all.takeError();
    return all->front();
  }
  llvm::Error barrier(llvm::StringRef what) override {
    return allGather(what, "").takeError();
  }
  void abort(const std::string &why) override {
    std::lock_guard<std::mutex> lock(job->mutex);
    if (job->reason.empty())
      job->reason = why;
    job->changed.notify_all();
  }
  std::string getAbortReason() const override {
    std::lock_guard<std::mutex> lock(job->mutex);
    return job->reason;
  }
  // Executors ask for the reason.
  void setAbortHandler(std::function<void(const std::string &)>) override {}
  void setProgress(std::function<std::string()> newProgress) override {
    progress = std::move(newProgress);
  }
  std::function<std::string()> progress;

private:
  std::shared_ptr<ThreadJob> job;
};

/// The worlds of a job, and what each has to make executors of.
class ThreadWorlds {
public:
  explicit ThreadWorlds(int32_t numProcesses) {
    auto job = std::make_shared<ThreadJob>();
    for (int32_t process = 0; process < numProcesses; ++process)
      worlds.push_back(
          std::make_shared<ThreadWorld>(process, numProcesses, job));
  }

  /// Calls it with the number of each process, in a thread of its own.
  void run(llvm::function_ref<void(size_t)> fn) const {
    std::vector<std::thread> threads;
    for (size_t process = 0; process < worlds.size(); ++process)
      threads.emplace_back([&fn, process] { fn(process); });
    for (std::thread &thread : threads)
      thread.join();
  }

  /// Makes the executor of each process, with one rank.
  std::vector<llvm::Expected<std::unique_ptr<Executor>>>
  create(const std::shared_ptr<Program> &program,
         const ExecutorOptions &options = {}) const {
    return create(std::vector<std::shared_ptr<Program>>(worlds.size(), program),
                  options);
  }
  /// The same where each has a program of its own.
  std::vector<llvm::Expected<std::unique_ptr<Executor>>>
  create(const std::vector<std::shared_ptr<Program>> &programs,
         const ExecutorOptions &options = {},
         llvm::ArrayRef<std::shared_ptr<FlightRecorder>> recorders = {}) const {
    auto count = static_cast<int32_t>(worlds.size());
    auto communicators = createLocalCommunicators(count);
    std::vector<RankBackends> backends(worlds.size());
    for (size_t i = 0; i < worlds.size(); ++i) {
      backends[i].devices = createTestDevices(1);
      backends[i].communicators.push_back(
          wrap ? wrap(std::move(communicators[i]))
               : std::move(communicators[i]));
      if (!backends[i].devices.front()->getHostMapping())
        backends[i].hosts = createCpuDevices(1);
    }
    std::vector<std::optional<llvm::Expected<std::unique_ptr<Executor>>>> made(
        worlds.size());
    run([&](size_t process) {
      ExecutorOptions own = options;
      own.world = worlds[process];
      if (!recorders.empty())
        own.recorder = recorders[process];
      made[process].emplace(Executor::create(
          programs[process], std::move(backends[process]), own));
    });
    std::vector<llvm::Expected<std::unique_ptr<Executor>>> result;
    for (auto &each : made)
      result.push_back(std::move(*each));
    return result;
  }

  std::vector<std::shared_ptr<ThreadWorld>> worlds;
  /// Returns what executors have in place of a communicator, where it is set.
  std::function<std::unique_ptr<Communicator>(std::unique_ptr<Communicator>)>
      wrap;
};

/// The executors, which there have to be.
inline std::vector<std::unique_ptr<Executor>>
takeAll(std::vector<llvm::Expected<std::unique_ptr<Executor>>> made) {
  std::vector<std::unique_ptr<Executor>> executors;
  for (auto &each : made)
    executors.push_back(llvm::cantFail(std::move(each)));
  return executors;
}

} // namespace ax::rt

#endif // AX_TEST_THREADWORLDS_H
