//===- Executor.cpp - Runs a command program on many ranks ----------------===//

#include "ax/Runtime/Executor.h"

#include "RankThreads.h"
#include "Watchdog.h"

#include "ax/Support/Error.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <system_error>
#include <thread>

namespace ax::rt {

Request::~Request() = default;
Executor::~Executor() = default;

namespace {

/// What kernels may rely on.
constexpr uintptr_t inputAlignment = 64;

class ThreadExecutor : public Executor {
public:
  ThreadExecutor(std::shared_ptr<const Program> program,
                 RankBackends ranks, const ExecutorOptions &options)
      : options(options),
        shared(std::make_shared<SharedRanks>(
            static_cast<size_t>(std::max(1, options.maxInFlight)))) {
    shared->program = std::move(program);
    shared->ranks = std::move(ranks);
  }
  ~ThreadExecutor() override;

  llvm::Error start();

  const Program &getProgram() const override { return *shared->program; }
  llvm::Expected<std::unique_ptr<Request>> createRequest() override;
  llvm::Error submit(Request &request) override;
  llvm::Error wait(Request &request) override;
  bool hasFailed() const override { return shared->stop.load(); }
  llvm::Expected<HostTensor> readState(int32_t state) const override;
  std::vector<HeldPart> getParts(int32_t state) const override;
  llvm::Expected<HostTensor> readPart(int32_t state,
                                      const HeldPart &part) const override;
  std::shared_ptr<StoredStates> getStored() const override;
  std::vector<RankMemory> getMemory() const override;
  void clearTrace() override;
  std::vector<CommandTime> getCommandTimes() const override;
  std::optional<double> getBubble() const override;
  llvm::Error writeTrace(const std::string &path) const override;

private:
  llvm::Error startThreads();
  llvm::Error checkInputs(const Request &request) const;
  llvm::Error waitUntilFinished(uint64_t count);
  void watch();
  Part partOf(const State &state, int32_t rank) const;
  std::vector<const RankTrace *> getTraces() const;

  ExecutorOptions options;
  std::shared_ptr<SharedRanks> shared;
  std::vector<std::thread> threads;
  std::thread watchdog;
  uint64_t numSubmitted = 0;
};

llvm::Error ThreadExecutor::start() {
  const Program &program = *shared->program;
  if (llvm::Error error = checkProgram(program))
    return error;
  const RankBackends &ranks = shared->ranks;
  auto numRanks = static_cast<size_t>(program.mesh.numRanks());
  if (ranks.devices.size() != numRanks ||
      ranks.communicators.size() != numRanks)
    return makeErrorf(ExitCode::Internal,
                      "{0} devices and {1} communicators for {2} ranks",
                      ranks.devices.size(), ranks.communicators.size(),
                      numRanks);
  llvm::Expected<std::unique_ptr<StateStore>> states =
      StateStore::open(program, options.dataFolder, options.prepared);
  if (!states)
    return states.takeError();
  shared->states = std::move(*states);
  int32_t numThreads = 0;
  for (const std::unique_ptr<Device> &device : ranks.devices)
    numThreads += device->getNumThreads();
  shared->idle.spins = WaitPolicy::spinsFor(numThreads);
  shared->idle.aborted = &shared->stop;
  const auto *owner = static_cast<const ThreadExecutor *>(options.owner);
  for (size_t rank = 0; rank < numRanks; ++rank)
    shared->runners.push_back(std::make_unique<RankRunner>(
        program, static_cast<int32_t>(rank), *ranks.devices[rank],
        *ranks.communicators[rank], *shared->states,
        owner ? owner->shared->runners[rank].get() : nullptr, options.trace));
  for (RequestSlot &slot : shared->ring) {
    slot.inputs.reserve(program.inputs.size());
    slot.outputs.reserve(program.outputs.size());
    slot.owners.reserve(program.inputs.size() + program.outputs.size());
  }
  if (llvm::Error error = startThreads())
    shared->fail(std::move(error));
  {
    std::unique_lock<std::mutex> lock(shared->mutex);
    shared->changed.wait(lock, [&] {
      return shared->prepared == shared->runners.size() ||
             shared->failureCode != ExitCode::Success;
    });
  }
  if (shared->failed())
    return shared->takeFailure();
  // What was packed is not needed in its plain form any more.
  shared->states->dropPrepared();
  options.prepared.reset();
  return llvm::Error::success();
}

llvm::Error ThreadExecutor::startThreads() {
  try {
    if (options.timeout.count() > 0)
      watchdog = std::thread([this] { watch(); });
    for (std::unique_ptr<RankRunner> &runner : shared->runners) {
      threads.emplace_back([shared = shared, &runner = *runner] {
        runRank(shared, runner);
        {
          std::lock_guard<std::mutex> lock(shared->mutex);
          --shared->running;
        }
        shared->changed.notify_all();
      });
      std::lock_guard<std::mutex> lock(shared->mutex);
      ++shared->running;
    }
    {
      std::lock_guard<std::mutex> lock(shared->mutex);
      shared->launched = true;
    }
    shared->changed.notify_all();
  } catch (const std::system_error &error) {
    return makeErrorf(ExitCode::RunFailed,
                      "threads for {0} of {1} ranks could be started: {2}",
                      threads.size(), shared->runners.size(),
                      error.code().message());
  }
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
  for (RequestSlot &slot : shared->ring)
    if (slot.request)
      slot.request->slot = nullptr;
}

void ThreadExecutor::watch() {
  Watchdog dog(shared->runners, options.timeout);
  std::unique_lock<std::mutex> lock(shared->mutex);
  while (!shared->changed.wait_for(lock, dog.getInterval(),
                                   [&] { return shared->stop.load(); })) {
    const RankRunner *stuck = dog.findStuck();
    if (!stuck)
      continue;
    lock.unlock();
    shared->fail(makeErrorf(ExitCode::RunFailed,
                            "{0}: no rank got on for {1} ms", stuck->describe(),
                            options.timeout.count()),
                 stuck->getRank());
    return;
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
    if (reinterpret_cast<uintptr_t>(input.data()) % inputAlignment != 0) {
      llvm::Expected<HostTensor> aligned = HostTensor::fromBytes(
          input.getType(), input.getShape(), input.rawBytes());
      if (!aligned)
        return aligned.takeError();
      input = std::move(*aligned);
    }
  // Outputs may have been moved away, or be shared with copies.
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    const Port &port = shared->program->outputs[i];
    HostTensor &output = request.outputs[i];
    if (output.getType() == port.dtype && output.getShape() == port.shape)
      continue;
    llvm::Expected<HostTensor> made =
        HostTensor::allocate(port.dtype, port.shape);
    if (!made)
      return addContext(made.takeError(), "output '" + port.name + "'");
    output = std::move(*made);
  }
  size_t capacity = shared->ring.size();
  if (numSubmitted >= capacity)
    if (llvm::Error error = waitUntilFinished(numSubmitted - capacity + 1))
      return error;
  if (shared->stop.load())
    return shared->takeFailure();
  RequestSlot &slot = shared->ring[numSubmitted % capacity];
  slot.release();
  slot.fill(request, numSubmitted,
            static_cast<int32_t>(shared->runners.size()));
  ++numSubmitted;
  shared->submitted.set(static_cast<uint32_t>(numSubmitted));
  return llvm::Error::success();
}

llvm::Error ThreadExecutor::wait(Request &base) {
  auto &request = static_cast<ThreadRequest &>(base);
  if (!request.isSubmitted)
    return makeError(ExitCode::Internal, "the request was never submitted");
  if (llvm::Error error = waitUntilFinished(request.number + 1))
    return error;
  if (request.slot)
    request.slot->release();
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
      Part part = partOf(state, runner->getRank());
      if (seen.insert(part.number).second)
        part.box.copyBack(tensor->mutableData(), own);
    }
  return tensor;
}

Part ThreadExecutor::partOf(const State &state, int32_t rank) const {
  const sharding::Mesh &mesh = shared->program->mesh;
  return makePart(state.layout, state.dtype, mesh, mesh.coordinates(rank));
}

std::vector<HeldPart> ThreadExecutor::getParts(int32_t number) const {
  const State &state = shared->program->states[static_cast<size_t>(number)];
  int64_t elementBytes = byteSize(state.dtype);
  std::vector<HeldPart> result;
  std::set<int64_t> seen;
  for (const std::unique_ptr<RankRunner> &runner : shared->runners) {
    if (!runner->getOwnState(number))
      continue;
    Part part = partOf(state, runner->getRank());
    // Some are nothing but padding.
    if (!seen.insert(part.number).second || part.box.isEmpty())
      continue;
    HeldPart &held = result.emplace_back();
    held.rank = runner->getRank();
    held.offset = part.box.sourceOffset / elementBytes;
    for (const StridedBox::Dim &dim : part.box.getDims()) {
      held.sizes.push_back(dim.size);
      held.strides.push_back(dim.sourceStride / elementBytes);
    }
    held.sizes.push_back(part.box.getRunBytes() / elementBytes);
    held.strides.push_back(1);
  }
  return result;
}

llvm::Expected<HostTensor>
ThreadExecutor::readPart(int32_t number, const HeldPart &held) const {
  const State &state = shared->program->states[static_cast<size_t>(number)];
  llvm::Expected<HostTensor> tensor =
      HostTensor::allocate(state.dtype, held.sizes);
  if (!tensor)
    return addContext(tensor.takeError(), "state '" + state.name + "'");
  const auto *own = static_cast<const uint8_t *>(
      shared->runners[static_cast<size_t>(held.rank)]->getOwnState(number));
  uint8_t *to = tensor->mutableData();
  partOf(state, held.rank)
      .box.forEachRun([&](int64_t, int64_t at, int64_t bytes) {
        std::memcpy(to, own + at, static_cast<size_t>(bytes));
        to += bytes;
      });
  return tensor;
}

std::shared_ptr<StoredStates> ThreadExecutor::getStored() const {
  auto stored = std::make_shared<StoredStates>();
  for (const State &state : shared->program->states)
    for (const std::unique_ptr<RankRunner> &runner : shared->runners)
      if (auto own = runner->shareOwnState(state.name))
        stored->add(state.name, partOf(state, runner->getRank()).number,
                    std::move(own));
  return stored;
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

std::optional<double> ThreadExecutor::getBubble() const {
  return measureBubble(*shared->program, getTraces());
}

llvm::Error ThreadExecutor::writeTrace(const std::string &path) const {
  return writeChromeTrace(path, *shared->program, getTraces());
}

} // namespace

llvm::Expected<std::unique_ptr<Executor>>
Executor::create(std::shared_ptr<const Program> program, RankBackends ranks,
                 const ExecutorOptions &options) {
  auto executor = std::make_unique<ThreadExecutor>(
      std::move(program), std::move(ranks), options);
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
