//===- Executor.cpp - Runs a command program on many ranks ----------------===//

#include "ax/Runtime/Executor.h"

#include "RankRunner.h"
#include "WaitWord.h"

#include "ax/Runtime/CpuDevice.h"
#include "ax/Runtime/LocalCommunicator.h"
#include "ax/Support/Error.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

namespace ax::rt {

Request::~Request() = default;
Executor::~Executor() = default;

namespace {

/// What kernels may rely on.
constexpr uintptr_t inputAlignment = 64;

class ThreadRequest : public Request {
public:
  /// Of its newest submission.
  uint64_t number = 0;
};

/// A request in flight, as the ranks see it. They never touch the request
/// itself: after a failure it may be gone while a rank still hangs.
struct Slot : RunData {
  uint64_t number = 0;
  /// Ranks that have still to finish it.
  std::atomic<int32_t> remaining{0};
  std::atomic<Clock::rep> begin{0}, end{0};
  /// Until its end was noticed. The caller's side only.
  ThreadRequest *request = nullptr;
  std::vector<std::shared_ptr<const void>> owners;

  void fill(ThreadRequest &from, uint64_t newNumber, int32_t numRanks);
  void release();
};

void Slot::fill(ThreadRequest &from, uint64_t newNumber, int32_t numRanks) {
  inputs.clear();
  outputs.clear();
  for (HostTensor &input : from.inputs) {
    inputs.push_back(input.data());
    owners.push_back(input.getOwner());
  }
  for (HostTensor &output : from.outputs) {
    outputs.push_back(output.mutableData());
    owners.push_back(output.getOwner());
  }
  request = &from;
  request->number = number = newNumber;
  remaining.store(numRanks);
  begin.store(0);
}

void Slot::release() {
  if (!request)
    return;
  request->duration = Clock::duration(end.load() - begin.load());
  request = nullptr;
  owners.clear();
}

/// What the ranks' threads use. They own it together with the executor, so that
/// a thread that hangs in foreign code can be left behind.
struct Shared {
  std::shared_ptr<const Program> program;
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<Communicator>> communicators;
  std::unique_ptr<StateStore> states;
  std::vector<std::unique_ptr<RankRunner>> runners;
  std::vector<Slot> ring;
  /// Requests submitted and finished so far. They finish in order, because
  /// every rank works in order.
  WaitWord submitted, finished;
  std::atomic<bool> stop{false};
  WaitPolicy idle;
  /// Threads that have not ended; guarded by mutex.
  size_t running = 0;
  size_t prepared = 0;
  std::mutex mutex;
  std::condition_variable changed;
  /// The first failure of a rank; guarded by mutex.
  std::string failure;
  ExitCode failureCode = ExitCode::Success;

  explicit Shared(size_t ringSize) : ring(ringSize) {}

  /// `rank`: the one that failed, or -1.
  void fail(llvm::Error error, int32_t rank = -1);
  llvm::Error takeFailure() {
    std::lock_guard<std::mutex> lock(mutex);
    if (failureCode == ExitCode::Success)
      return makeError(ExitCode::RunFailed, "the executor was stopped");
    return makeError(failureCode, failure);
  }
  bool failed() {
    std::lock_guard<std::mutex> lock(mutex);
    return failureCode != ExitCode::Success;
  }
};

void Shared::fail(llvm::Error error, int32_t rank) {
  ErrorDescription description = describeError(std::move(error));
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (failureCode == ExitCode::Success) {
      failure = description.message;
      failureCode = description.code;
      // Who is waited for is often the one at fault.
      for (const std::unique_ptr<RankRunner> &runner : runners) {
        int32_t command = runner->getCurrentCommand();
        if (runner->getRank() != rank && rank >= 0 && command >= 0)
          failure += "; meanwhile " + runner->describeCommand(command);
      }
    }
  }
  communicators.front()->abort(description.message);
  stop.store(true);
  finished.wake();
  changed.notify_all();
}

/// Called by every rank once for each request.
void finishRank(Shared &shared, Slot &slot) {
  if (slot.remaining.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  slot.end.store(Clock::now().time_since_epoch().count());
  shared.finished.set(static_cast<uint32_t>(slot.number + 1));
}

void runRank(const std::shared_ptr<Shared> &shared, RankRunner &runner) {
  llvm::Error error = runner.prepare();
  {
    std::lock_guard<std::mutex> lock(shared->mutex);
    ++shared->prepared;
  }
  shared->changed.notify_all();
  for (uint64_t number = 0; !error; ++number) {
    if (shared->submitted.waitFor(static_cast<uint32_t>(number + 1),
                                  shared->idle) != WaitResult::Reached)
      break;
    Slot &slot = shared->ring[number % shared->ring.size()];
    Clock::rep none = 0;
    slot.begin.compare_exchange_strong(none,
                                       Clock::now().time_since_epoch().count());
    error = runner.run(slot, number);
    if (!error)
      finishRank(*shared, slot);
  }
  if (error)
    shared->fail(std::move(error), runner.getRank());
}

class ThreadExecutor : public Executor {
public:
  ThreadExecutor(std::shared_ptr<const Program> program,
                 const ExecutorOptions &options)
      : options(options), shared(std::make_shared<Shared>(static_cast<size_t>(
                              std::max(1, options.maxInFlight)))) {
    shared->program = std::move(program);
  }
  ~ThreadExecutor() override;

  llvm::Error start();

  const Program &getProgram() const override { return *shared->program; }
  llvm::Expected<std::unique_ptr<Request>> createRequest() override;
  llvm::Error submit(Request &request) override;
  llvm::Error wait(Request &request) override;
  llvm::Expected<HostTensor> readState(int32_t state) const override;
  std::vector<RankMemory> getMemory() const override;
  void clearTrace() override;
  std::vector<CommandTime> getCommandTimes() const override;
  llvm::Error writeTrace(const std::string &path) const override;

private:
  llvm::Error checkInputs(const Request &request) const;
  llvm::Error waitUntilFinished(uint64_t count);
  void watch();
  std::vector<const RankTrace *> getTraces() const;

  ExecutorOptions options;
  std::shared_ptr<Shared> shared;
  std::vector<std::thread> threads;
  std::thread watchdog;
  uint64_t numSubmitted = 0;
};

llvm::Error ThreadExecutor::start() {
  const Program &program = *shared->program;
  if (llvm::Error error = checkProgram(program))
    return error;
  llvm::Expected<std::unique_ptr<StateStore>> states =
      StateStore::open(program, options.dataFolder);
  if (!states)
    return states.takeError();
  shared->states = std::move(*states);
  auto numRanks = static_cast<int32_t>(program.mesh.numRanks());
  int32_t numThreads = numRanks * std::max(1, options.threadsPerRank);
  shared->devices =
      createCpuDevices(numRanks, {std::max(1, options.threadsPerRank)});
  shared->communicators =
      createLocalCommunicators(numRanks, {options.timeout, numThreads});
  shared->idle.spins = WaitPolicy::spinsFor(numThreads);
  shared->idle.aborted = &shared->stop;
  for (int32_t rank = 0; rank < numRanks; ++rank)
    shared->runners.push_back(std::make_unique<RankRunner>(
        program, rank, *shared->devices[static_cast<size_t>(rank)],
        *shared->communicators[static_cast<size_t>(rank)], *shared->states,
        options.trace));
  for (Slot &slot : shared->ring) {
    slot.inputs.reserve(program.inputs.size());
    slot.outputs.reserve(program.outputs.size());
    slot.owners.reserve(program.inputs.size() + program.outputs.size());
  }
  shared->running = shared->runners.size();
  for (std::unique_ptr<RankRunner> &runner : shared->runners)
    threads.emplace_back([shared = shared, &runner = *runner] {
      runRank(shared, runner);
      {
        std::lock_guard<std::mutex> lock(shared->mutex);
        --shared->running;
      }
      shared->changed.notify_all();
    });
  {
    std::unique_lock<std::mutex> lock(shared->mutex);
    shared->changed.wait(lock, [&] {
      return shared->prepared == shared->runners.size() ||
             shared->failureCode != ExitCode::Success;
    });
  }
  if (shared->failed())
    return shared->takeFailure();
  if (options.timeout.count() > 0)
    watchdog = std::thread([this] { watch(); });
  return llvm::Error::success();
}

ThreadExecutor::~ThreadExecutor() {
  {
    std::lock_guard<std::mutex> lock(shared->mutex);
    shared->stop.store(true);
  }
  shared->submitted.wake();
  shared->changed.notify_all();
  if (watchdog.joinable())
    watchdog.join();
  // Ranks end at once; those that hang in a kernel are left behind.
  bool ended;
  {
    std::unique_lock<std::mutex> lock(shared->mutex);
    auto allEnded = [&] { return shared->running == 0; };
    ended = true;
    if (shared->failureCode == ExitCode::Success)
      shared->changed.wait(lock, allEnded);
    else
      ended = shared->changed.wait_for(lock, std::chrono::seconds(2), allEnded);
  }
  for (std::thread &thread : threads)
    ended ? thread.join() : thread.detach();
}

/// Ranks that wait for others have timeouts of their own. This finds the one
/// that they wait for.
void ThreadExecutor::watch() {
  struct Progress {
    int32_t command = -1;
    uint64_t rounds = 0;
  };
  const auto interval = std::chrono::milliseconds(
      std::clamp<int64_t>(options.timeout.count() / 8, 1, 200));
  const auto limit = static_cast<uint64_t>(options.timeout / interval + 4);
  std::vector<Progress> progress(shared->runners.size());
  std::vector<uint64_t> counts(shared->runners.size());
  std::unique_lock<std::mutex> lock(shared->mutex);
  while (!shared->changed.wait_for(lock, interval,
                                   [&] { return shared->stop.load(); })) {
    for (size_t i = 0; i < progress.size(); ++i) {
      const RankRunner &runner = *shared->runners[i];
      uint64_t count = runner.getNumExecuted();
      int32_t command = runner.getCurrentCommand();
      if (command < 0 || count != counts[i]) {
        counts[i] = count;
        progress[i] = {command, 0};
        continue;
      }
      if (++progress[i].rounds < limit)
        continue;
      lock.unlock();
      shared->fail(makeErrorf(ExitCode::RunFailed, "{0}: no end after {1} ms",
                              runner.describeCommand(command),
                              options.timeout.count()));
      return;
    }
  }
}

llvm::Expected<std::unique_ptr<Request>> ThreadExecutor::createRequest() {
  auto request = std::make_unique<ThreadRequest>();
  const Program &program = *shared->program;
  request->inputs.resize(program.inputs.size());
  for (const Port &port : program.outputs) {
    llvm::Expected<HostTensor> tensor =
        HostTensor::allocate(port.dtype, port.shape);
    if (!tensor)
      return addContext(tensor.takeError(), "output '" + port.name + "'");
    request->outputs.push_back(std::move(*tensor));
  }
  return request;
}

llvm::Error ThreadExecutor::checkInputs(const Request &request) const {
  const Program &program = *shared->program;
  std::string faults;
  if (request.inputs.size() != program.inputs.size())
    return makeErrorf(ExitCode::BadInput, "{0} inputs given, {1} needed",
                      request.inputs.size(), program.inputs.size());
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Port &port = program.inputs[i];
    const HostTensor &tensor = request.inputs[i];
    if (tensor.getType() != port.dtype || tensor.getShape() != port.shape)
      faults += (faults.empty() ? "" : "; ") + ("input '" + port.name) +
                "' is " + tensor.typeToString() + ", needed is " +
                HostTensor::borrow(port.dtype, port.shape, nullptr, nullptr)
                    .typeToString();
  }
  if (!faults.empty())
    return makeError(ExitCode::BadInput, faults);
  return llvm::Error::success();
}

llvm::Error ThreadExecutor::waitUntilFinished(uint64_t count) {
  WaitPolicy policy;
  policy.aborted = &shared->stop;
  WaitResult result =
      shared->finished.waitFor(static_cast<uint32_t>(count), policy);
  if (result != WaitResult::Reached)
    return shared->takeFailure();
  return llvm::Error::success();
}

llvm::Error ThreadExecutor::submit(Request &base) {
  auto &request = static_cast<ThreadRequest &>(base);
  if (llvm::Error error = checkInputs(request))
    return error;
  // Ranks use the inputs' memory as it is.
  for (HostTensor &input : request.inputs)
    if (reinterpret_cast<uintptr_t>(input.data()) % inputAlignment != 0)
      input.mutableData();
  // Outputs may have been moved away, or be shared with copies.
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    const Port &port = shared->program->outputs[i];
    HostTensor &output = request.outputs[i];
    if (output.getType() != port.dtype || output.getShape() != port.shape)
      output = HostTensor(port.dtype, port.shape);
  }
  size_t capacity = shared->ring.size();
  if (numSubmitted >= capacity)
    if (llvm::Error error = waitUntilFinished(numSubmitted - capacity + 1))
      return error;
  if (shared->stop.load())
    return shared->takeFailure();
  Slot &slot = shared->ring[numSubmitted % capacity];
  slot.release();
  slot.fill(request, numSubmitted,
            static_cast<int32_t>(shared->runners.size()));
  ++numSubmitted;
  shared->submitted.set(static_cast<uint32_t>(numSubmitted));
  return llvm::Error::success();
}

llvm::Error ThreadExecutor::wait(Request &base) {
  auto &request = static_cast<ThreadRequest &>(base);
  if (llvm::Error error = waitUntilFinished(request.number + 1))
    return error;
  Slot &slot = shared->ring[request.number % shared->ring.size()];
  if (slot.request == &request)
    slot.release();
  return llvm::Error::success();
}

llvm::Expected<HostTensor> ThreadExecutor::readState(int32_t number) const {
  const Program &program = *shared->program;
  const State &state = program.states[static_cast<size_t>(number)];
  llvm::Expected<HostTensor> tensor =
      HostTensor::allocate(state.dtype, state.shape);
  if (!tensor)
    return addContext(tensor.takeError(), "state '" + state.name + "'");
  if (!state.isMutable) {
    shared->states->readWhole(number, tensor->mutableData());
    return tensor;
  }
  std::set<int64_t> seen;
  for (const std::unique_ptr<RankRunner> &runner : shared->runners)
    if (const void *own = runner->getOwnState(number)) {
      Part part = makePart(state.layout, state.dtype, program.mesh,
                           program.mesh.coordinates(runner->getRank()));
      if (seen.insert(part.number).second)
        part.box.copyBack(tensor->mutableData(), own);
    }
  return tensor;
}

std::vector<RankMemory> ThreadExecutor::getMemory() const {
  std::vector<RankMemory> result;
  for (const std::unique_ptr<RankRunner> &runner : shared->runners)
    result.push_back(runner->getMemory());
  return result;
}

void ThreadExecutor::clearTrace() {
  for (std::unique_ptr<RankRunner> &runner : shared->runners)
    runner->getTrace().events.clear();
}

std::vector<const RankTrace *> ThreadExecutor::getTraces() const {
  std::vector<const RankTrace *> traces;
  for (const std::unique_ptr<RankRunner> &runner : shared->runners)
    traces.push_back(&std::as_const(*runner).getTrace());
  return traces;
}

std::vector<CommandTime> ThreadExecutor::getCommandTimes() const {
  if (!options.trace)
    return {};
  return sumCommandTimes(*shared->program, getTraces());
}

llvm::Error ThreadExecutor::writeTrace(const std::string &path) const {
  return writeChromeTrace(path, *shared->program, getTraces());
}

} // namespace

llvm::Expected<std::unique_ptr<Executor>>
Executor::create(std::shared_ptr<const Program> program,
                 const ExecutorOptions &options) {
  auto executor = std::make_unique<ThreadExecutor>(std::move(program), options);
  if (llvm::Error error = executor->start())
    return error;
  return executor;
}

llvm::Expected<std::vector<HostTensor>>
Executor::run(const std::vector<HostTensor> &inputs) {
  llvm::Expected<std::unique_ptr<Request>> request = createRequest();
  if (!request)
    return request.takeError();
  (*request)->inputs = inputs;
  if (llvm::Error error = submit(**request))
    return error;
  if (llvm::Error error = wait(**request))
    return error;
  return std::move((*request)->outputs);
}

} // namespace ax::rt
