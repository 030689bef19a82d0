//===- LocalCluster.cpp - Ranks that are threads of this process ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LocalCluster.h"

#include "CheckMemory.h"
#include "PreparedExchanges.h"
#include "StoredStates.h"
#include "Watchdog.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Runtime/LeftThreads.h"
#include "ax/Support/Threads.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

namespace ax::rt {

llvm::Error LocalCluster::start() {
  llvm::Error error = prepare();
  World &world = *shared->world;
  // One that is there is of no use where another is not, or has another
  // program.
  if (!error)
    return agreeOnExchanges(world, listExchanges());
  if (world.isAlone())
    return error;
  ErrorDescription description = describeError(std::move(error));
  // Others wait for this one to come. What its threads have found they know.
  if (!shared->failed())
    description.message =
        describePlace(world.getPlace()) + ": " + description.message;
  world.abort(description.message);
  return makeError(description.code, description.message);
}

std::vector<PreparedExchanges> LocalCluster::listExchanges() const {
  std::vector<PreparedExchanges> all;
  for (const std::unique_ptr<LocalRank> &rank : shared->ranks) {
    PreparedExchanges &made = all.emplace_back(rank->executor.getRank());
    rank->executor.listExchanges(made);
    if (rank->exchange)
      rank->exchange->list(made);
  }
  return all;
}

llvm::Error LocalCluster::prepare() {
  const Program &program = *shared->program;
  if (llvm::Error error = checkProgram(program))
    return error;
  World &world = *shared->world;
  llvm::Expected<std::vector<int32_t>> here =
      world.getRanks(program.mesh.numRanks());
  if (!here)
    return here.takeError();
  ranks = std::move(*here);
  const RankBackends &backends = shared->backends;
  if (backends.devices.size() != ranks.size() ||
      backends.communicators.size() != ranks.size())
    return makeErrorf(
        ExitCode::Internal, "{0} devices and {1} communicators for {2} ranks",
        backends.devices.size(), backends.communicators.size(), ranks.size());
  if (!world.isAlone())
    for (size_t i = 0; i < program.inputs.size(); ++i)
      neededRows.push_back(getNeededRows(static_cast<int32_t>(i)));
  llvm::Expected<std::vector<HostState>> states =
      openHostStates(program, options.dataFolder);
  if (!states)
    return states.takeError();
  if (options.prepared && options.othersTakePrepared)
    options.prepared = options.prepared->share();
  shared->states = std::make_unique<StateStore>(program, std::move(*states),
                                                options.prepared);
  int32_t numThreads = 0;
  for (const std::unique_ptr<Device> &device : backends.devices)
    numThreads += device->getNumThreads();
  shared->idle.spins =
      WaitPolicy::spinsFor(numThreads * world.getPlace().numOnHost);
  shared->idle.aborted = &shared->stop;
  const auto *owner = static_cast<const LocalCluster *>(options.owner);
  std::vector<RankContext> contexts;
  for (size_t i = 0; i < ranks.size(); ++i)
    contexts.emplace_back(
        program, ranks[i], *backends.devices[i], *backends.communicators[i],
        backends.hosts.empty() ? nullptr : backends.hosts[i].get());
  if (llvm::Error error = checkMemory(contexts, owner != nullptr))
    return error;
  std::vector<ExchangeOrder> orders;
  if (backends.communicators.front()->isOrdered()) {
    llvm::Expected<std::vector<ExchangeOrder>> found = orderExchanges(program);
    if (!found)
      return found.takeError();
    orders = std::move(*found);
  }
  // What one rank cannot capture, others mostly cannot, either.
  auto warnOnce =
      [warn = options.warn,
       told = std::make_shared<std::once_flag>()](const std::string &text) {
        if (warn)
          std::call_once(*told, [&] { warn(text); });
      };
  FlightRecorder *recorder = options.recorder.get();
  if (recorder)
    if (llvm::Error error = recorder->join(world, program.mesh.numRanks()))
      return error;
  for (size_t i = 0; i < ranks.size(); ++i) {
    FlightLog &log =
        recorder ? recorder->openLog(ranks[i])
                 : *shared->logs.emplace_back(std::make_unique<FlightLog>(
                       ranks[i], /*keepsTimes=*/false));
    std::unique_ptr<OutputExchange> exchange;
    if (!world.isAlone())
      exchange = std::make_unique<OutputExchange>(
          contexts[i], world, static_cast<int32_t>(shared->ring.size()), log);
    shared->ranks.push_back(std::make_unique<LocalRank>(
        contexts[i], *shared->states,
        owner ? &owner->shared->ranks[i]->executor : nullptr,
        RankOptions{options.trace, options.blocking, &log,
                    orders.empty() ? nullptr : &orders[contexts[i].stageIndex],
                    options.capture != CaptureMode::Off, warnOnce},
        std::move(exchange)));
  }
  for (RequestSlot &slot : shared->ring) {
    slot.inputs.reserve(program.inputs.size());
    slot.outputs.reserve(program.outputs.size());
    slot.owners.reserve(program.inputs.size() + program.outputs.size());
  }
  if (owner)
    owner->shared->setUser(shared);
  else
    world.setProgress([weak = std::weak_ptr<SharedRanks>(shared)] {
      std::shared_ptr<SharedRanks> there = weak.lock();
      return there ? there->describeProgress() : std::string();
    });
  if (llvm::Error error = startThreads())
    shared->fail(std::move(error));
  {
    std::unique_lock<std::mutex> lock(shared->mutex);
    shared->changed.wait(lock, [&] {
      return shared->prepared == shared->ranks.size() ||
             shared->failureCode != ExitCode::Success;
    });
  }
  if (shared->failed())
    return shared->takeFailure();
  tellHostOps();
  tellPlainSteps();
  // What was packed is not needed in its plain form any more.
  shared->states->dropPrepared();
  options.prepared.reset();
  return llvm::Error::success();
}

llvm::Error LocalCluster::startThreads() {
  try {
    if (options.timeout.count() > 0 || !shared->world->isAlone())
      watchdog = std::thread([this] { watch(); });
    for (std::unique_ptr<LocalRank> &rank : shared->ranks) {
      threads.emplace_back([shared = shared, &rank = *rank] {
        runRank(shared, rank);
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
                      "threads for {0} of {1} ranks could be started: {2}: {3}",
                      threads.size(), shared->ranks.size(),
                      error.code().message(), threadLimits);
  }
  return llvm::Error::success();
}

LocalCluster::~LocalCluster() {
  {
    std::lock_guard<std::mutex> lock(shared->mutex);
    shared->stop.store(true);
  }
  shared->submitted.wake();
  shared->changed.notify_all();
  // Ranks end what they have begun. The watchdog ends those that do not within
  // its timeout, or when the job has ended; those that hang in a kernel are
  // left behind.
  constexpr std::chrono::seconds patience(2);
  bool ended = true;
  {
    std::unique_lock<std::mutex> lock(shared->mutex);
    auto allEnded = [&] { return shared->running == 0; };
    shared->changed.wait(lock, [&] {
      return allEnded() || shared->failureCode != ExitCode::Success;
    });
    ended = shared->changed.wait_for(lock, patience, allEnded);
  }
  if (watchdog.joinable())
    watchdog.join();
  if (!ended)
    noteThreadsLeft();
  for (std::thread &thread : threads)
    ended ? thread.join() : thread.detach();
  // Devices may still do what they were given, with memory of any rank.
  auto until = std::chrono::steady_clock::now() + patience;
  if (ended)
    for (std::unique_ptr<LocalRank> &rank : shared->ranks)
      rank->executor.settle(until);
  for (RequestSlot &slot : shared->ring)
    if (slot.request)
      slot.request->slot = nullptr;
}

void LocalCluster::watch() {
  const World &world = *shared->world;
  Watchdog dog(shared->ranks, options.timeout, world.isAlone());
  // Ranks that were told to stop may not.
  auto isStopped = [&] {
    std::unique_lock<std::mutex> lock(shared->mutex);
    return shared->changed.wait_for(lock, dog.getInterval(), [&] {
      return shared->stop.load() &&
             (shared->running == 0 || shared->failureCode != ExitCode::Success);
    });
  };
  FlightRecorder *recorder = shared->recorder.get();
  llvm::scope_exit atEnd([&] {
    if (recorder)
      recorder->endTicks();
  });
  while (!isStopped()) {
    if (recorder)
      recorder->tick();
    if (std::string reason = world.getAbortReason(); !reason.empty())
      return shared->failAsOthers(reason);
    if (const RankExecutor *stuck = dog.findStuck()) {
      std::string last = stuck->describeLast();
      return shared->fail(makeErrorf(ExitCode::RunFailed,
                                     "{0}: no rank got on for {1} ms{2}",
                                     stuck->describe(), options.timeout.count(),
                                     last.empty() ? "" : "; " + last),
                          stuck->getRank());
    }
  }
}

std::vector<RowRange> LocalCluster::getNeededRows(int32_t input) const {
  return findNeededRows(*shared->program, used, input, ranks);
}

bool LocalCluster::hasOutput(int32_t output) const {
  return shared->world->isFirst() ||
         isEverywhere(shared->program->outputs[static_cast<size_t>(output)]);
}

llvm::Expected<HostTensor> LocalCluster::allocateOutput(int32_t output) const {
  const Port &port = shared->program->outputs[static_cast<size_t>(output)];
  if (!hasOutput(output))
    return HostTensor();
  llvm::Expected<HostTensor> tensor =
      HostTensor::allocate(port.dtype, port.shape);
  if (!tensor)
    return addContext(tensor.takeError(), "output '" + port.name + "'");
  return tensor;
}

llvm::Expected<std::unique_ptr<Request>> LocalCluster::createRequest() {
  auto request = std::make_unique<ThreadRequest>();
  const Program &program = *shared->program;
  request->inputs.resize(program.inputs.size());
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    llvm::Expected<HostTensor> tensor = allocateOutput(static_cast<int32_t>(i));
    if (!tensor)
      return tensor.takeError();
    request->outputs.push_back(std::move(*tensor));
  }
  return request;
}

/// A label that is no class would count, with a loss of nothing.
static llvm::Error checkLabels(const Port &port, const HostTensor &tensor,
                               int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    if (!port.labels->allow(tensor.getInt(i)))
      return makeErrorf(ExitCode::BadInput,
                        "label {0} of input '{1}', element {2}, is none of {3}",
                        tensor.getInt(i), port.name, i,
                        port.labels->describe());
  return llvm::Error::success();
}

llvm::Error LocalCluster::checkInputs(const Request &request) const {
  const Program &program = *shared->program;
  std::string faults;
  if (request.inputs.size() != program.inputs.size())
    return makeErrorf(ExitCode::BadInput, "{0} inputs given, {1} needed",
                      request.inputs.size(), program.inputs.size());
  bool isAlone = neededRows.empty();
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Port &port = program.inputs[i];
    const HostTensor &tensor = request.inputs[i];
    if (!isAlone && neededRows[i].empty())
      continue;
    if (tensor.getType() != port.dtype || tensor.getShape() != port.shape)
      faults += (faults.empty() ? "" : "; ") + ("input '" + port.name) +
                "' is " + tensor.typeToString() + ", needed is " +
                HostTensor::borrow(port.dtype, port.shape, nullptr, nullptr)
                    .typeToString();
  }
  if (!faults.empty())
    return makeError(ExitCode::BadInput, faults);
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Port &port = program.inputs[i];
    const HostTensor &tensor = request.inputs[i];
    int64_t count = tensor.numElements();
    if (!port.labels)
      continue;
    if (isAlone) {
      if (llvm::Error error = checkLabels(port, tensor, 0, count))
        return error;
      continue;
    }
    int64_t perRow =
        port.shape.empty() || count == 0 ? count : count / port.shape[0];
    for (const RowRange &rows : neededRows[i])
      if (llvm::Error error = checkLabels(port, tensor, rows.first * perRow,
                                          rows.second * perRow))
        return error;
  }
  return llvm::Error::success();
}

llvm::Error LocalCluster::waitUntilFinished(uint64_t count) {
  WaitPolicy policy;
  policy.aborted = &shared->stop;
  WaitResult result =
      shared->finished.waitFor(static_cast<uint32_t>(count), policy);
  if (result != WaitResult::Reached)
    return shared->takeFailure();
  return llvm::Error::success();
}

llvm::Error LocalCluster::submit(Request &base) {
  auto &request = static_cast<ThreadRequest &>(base);
  bool isAnnounced = request.slot && request.number >= numSubmitted;
  if (isAnnounced ? request.number != numSubmitted
                  : numAnnounced != numSubmitted)
    return makeError(ExitCode::Internal,
                     "a request was announced before this one, and is not "
                     "submitted");
  if (!isAnnounced)
    if (llvm::Error error = announce(request))
      return error;
  ++numSubmitted;
  shared->submitted.set(static_cast<uint32_t>(numSubmitted));
  return llvm::Error::success();
}

llvm::Error LocalCluster::announce(Request &base) {
  llvm::Error error = announceHere(static_cast<ThreadRequest &>(base));
  if (!error || shared->world->isAlone())
    return error;
  // Others have submitted it, and wait for this one's ranks.
  shared->fail(std::move(error), ranks.front());
  return shared->takeFailure();
}

llvm::Error LocalCluster::announceHere(ThreadRequest &request) {
  if (llvm::Error error = checkInputs(request))
    return error;
  // Ranks use the inputs' memory as it is.
  for (HostTensor &input : request.inputs)
    if (reinterpret_cast<uintptr_t>(input.data()) % bufferAlignment != 0) {
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
    auto number = static_cast<int32_t>(i);
    if (!hasOutput(number) ||
        (output.getType() == port.dtype && output.getShape() == port.shape))
      continue;
    llvm::Expected<HostTensor> made = allocateOutput(number);
    if (!made)
      return made.takeError();
    output = std::move(*made);
  }
  size_t capacity = shared->ring.size();
  if (numAnnounced - numSubmitted >= capacity)
    return makeErrorf(ExitCode::Internal,
                      "{0} requests are announced, and none is submitted",
                      capacity);
  if (numAnnounced >= capacity)
    if (llvm::Error error = waitUntilFinished(numAnnounced - capacity + 1))
      return error;
  if (shared->stop.load())
    return shared->takeFailure();
  RequestSlot &slot = shared->ring[numAnnounced % capacity];
  slot.release();
  slot.fill(request, numAnnounced, static_cast<int32_t>(shared->ranks.size()));
  ++numAnnounced;
  shared->announced.set(static_cast<uint32_t>(numAnnounced));
  return llvm::Error::success();
}

llvm::Error LocalCluster::wait(Request &base) {
  auto &request = static_cast<ThreadRequest &>(base);
  if (!request.isAnnounced || request.number >= numSubmitted)
    return makeError(ExitCode::Internal, "the request was never submitted");
  if (llvm::Error error = waitUntilFinished(request.number + 1))
    return error;
  if (request.slot)
    request.slot->release();
  return llvm::Error::success();
}

llvm::Expected<HostTensor> LocalCluster::readState(int32_t number) const {
  const Program &program = *shared->program;
  const State &state = program.states[static_cast<size_t>(number)];
  llvm::Expected<HostTensor> tensor =
      state.isMutable ? HostTensor::allocate(state.dtype, state.shape)
                      : shared->states->readWhole(number);
  if (!tensor)
    return addContext(tensor.takeError(), "state '" + state.name + "'");
  if (!state.isMutable)
    return tensor;
  for (const HeldPart &held : getParts(number)) {
    RankExecutor *executor = findRank(held.rank);
    if (!executor)
      return makeErrorf(ExitCode::Unsupported,
                        "state '{0}' cannot be read as a whole in one process: "
                        "rank {1}, which has part of it, is in another",
                        state.name, held.rank);
    if (llvm::Error error = executor->readOwnState(
            number, partOf(*shared->program, state, held.rank).box,
            tensor->mutableData()))
      return error;
  }
  return inModelOrder(std::move(*tensor), state.dealt);
}

RankExecutor *LocalCluster::findRank(int32_t rank) const {
  auto found = llvm::find(ranks, rank);
  return found == ranks.end()
             ? nullptr
             : &shared->ranks[static_cast<size_t>(found - ranks.begin())]
                    ->executor;
}

StoredStates::Key LocalCluster::keyOf(const State &state, size_t index) const {
  const Device &device = *shared->backends.devices[index];
  return {state.name, partOf(*shared->program, state, ranks[index]).number,
          device.getMemorySpace()};
}

std::vector<HeldPart> LocalCluster::getParts(int32_t number) const {
  return findHeldParts(*shared->program, used, number);
}

llvm::Expected<HostTensor> LocalCluster::readPart(int32_t number,
                                                  const HeldPart &held) const {
  const State &state = shared->program->states[static_cast<size_t>(number)];
  llvm::Expected<HostTensor> tensor =
      HostTensor::allocate(state.dtype, held.sizes);
  if (!tensor)
    return addContext(tensor.takeError(), "state '" + state.name + "'");
  const StridedBox box =
      partOf(*shared->program, state, held.rank).box.withDenseSource();
  if (llvm::Error error =
          findRank(held.rank)->readOwnState(number, box, tensor->mutableData()))
    return error;
  return tensor;
}

std::shared_ptr<StoredStates> LocalCluster::getStored() const {
  auto stored = std::make_shared<StoredStates>();
  for (const State &state : shared->program->states)
    for (size_t i = 0; i < ranks.size(); ++i)
      if (auto own = shared->ranks[i]->executor.shareOwnState(state.name))
        stored->add(keyOf(state, i), std::move(own));
  return stored;
}

} // namespace ax::rt
