//===- Control.cpp - What processes of a job tell each other --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Control.h"

#include "Hub.h"
#include "Spoke.h"

#include "ax/Support/Threads.h"

#include "llvm/ADT/STLExtras.h"

#include <csignal>

namespace ax::rt {

using namespace control;

namespace {

/// The signals of a process are for the threads that it had.
class WithoutSignals {
public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
  }
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }

private:
  sigset_t before;
};

class ControlWorld : public World {
public:
  explicit ControlWorld(ControlOptions given)
      : World(given.place), options(std::move(given)),
        state(options.place.process) {}
  ~ControlWorld() override {
    state.leave();
    if (thread.joinable())
      thread.join();
  }

  llvm::Error join();

  llvm::Expected<std::vector<std::string>>
  allGather(llvm::StringRef what, std::string value) override {
    return state.exchange(ExchangeKind::AllGather, what, std::move(value));
  }
  llvm::Expected<std::vector<std::string>> gather(llvm::StringRef what,
                                                  std::string value) override {
    return state.exchange(ExchangeKind::Gather, what, std::move(value));
  }
  llvm::Expected<std::string> broadcast(llvm::StringRef what,
                                        std::string value) override {
    llvm::Expected<std::vector<std::string>> values = state.exchange(
        ExchangeKind::Broadcast, what, isFirst() ? std::move(value) : "");
    if (!values)
      return values.takeError();
    return std::move(values->front());
  }
  llvm::Error barrier(llvm::StringRef what) override {
    return state.exchange(ExchangeKind::Barrier, what, "").takeError();
  }
  void abort(const std::string &reason) override { state.abort(reason); }
  std::string getAbortReason() const override { return state.getReason(); }
  bool isFirstThere() const override { return !state.isFirstLost(); }
  void
  setAbortHandler(std::function<void(const std::string &)> handler) override {
    state.setAbortHandler(std::move(handler));
  }
  void setProgress(std::function<std::string()> progress) override {
    state.setProgress(std::move(progress));
  }

private:
  /// `told` is what the others need.
  llvm::Error startHub(const Zmq &zmq, std::string &told);
  llvm::Error startSpoke(const Zmq &zmq, llvm::StringRef told);
  llvm::Error startSpoke(const Zmq &zmq, ControlAddress address);
  template <typename Fn>
  llvm::Error start(Fn run);
  /// Where nothing has to be told.
  llvm::Error meet(const Zmq &zmq);

  const ControlOptions options;
  ChannelState state;
  std::thread thread;
};

} // namespace

/// Two threads are ZeroMQ's, which ends the process where it lacks one.
static constexpr int numThreads = 3;
static constexpr llvm::StringLiteral forWhat = "the control channel";

/// What the launcher's broadcast carries begins with this, or with an exit code
/// before the reason why there is no address.
static constexpr char addressFollows = 'a';

llvm::Error ControlWorld::startHub(const Zmq &zmq, std::string &told) {
  if (llvm::Error error =
          reserveFiles(static_cast<size_t>(options.place.numProcesses)))
    return error;
  llvm::Expected<Listener> listener = listenAt(options.address);
  if (!listener)
    return listener.takeError();
  if (options.meeting)
    listener->address.key = options.meeting->key;
  auto hub = std::make_unique<Hub>(zmq, options, state, *listener);
  if (llvm::Error error = hub->open())
    return error;
  told = addressFollows + listener->address.encode();
  return start([hub = std::move(hub)] { hub->run(); });
}

llvm::Error ControlWorld::startSpoke(const Zmq &zmq, llvm::StringRef told) {
  if (!told.consume_front(llvm::StringRef(&addressFollows, 1)))
    return makeError(told.empty() ? ExitCode::Internal
                                  : static_cast<ExitCode>(told.front()),
                     told.drop_front(!told.empty()));
  llvm::Expected<ControlAddress> address = ControlAddress::decode(told);
  if (!address)
    return address.takeError();
  return startSpoke(zmq, std::move(*address));
}

llvm::Error ControlWorld::startSpoke(const Zmq &zmq, ControlAddress address) {
  auto spoke = std::make_unique<Spoke>(zmq, options, state, std::move(address));
  return start([spoke = std::move(spoke)] { spoke->run(); });
}

template <typename Fn>
llvm::Error ControlWorld::start(Fn run) {
  WithoutSignals here;
  auto started = startThread(forWhat, std::move(run));
  if (!started)
    return started.takeError();
  thread = std::move(*started);
  return llvm::Error::success();
}

llvm::Error ControlWorld::meet(const Zmq &zmq) {
  if (isFirst()) {
    std::string nobodyAsks;
    if (llvm::Error error = startHub(zmq, nobodyAsks))
      return error;
    return state.waitUntilJoined();
  }
  ControlAddress address = *options.meeting;
  address.hosts.clear();
  for (const std::string &host : options.meeting->hosts) {
    auto found = resolveHost(host);
    if (!found)
      return llvm::make_error<AloneError>(describeError(found.takeError()));
    llvm::append_range(address.hosts, *found);
  }
  llvm::Error error = startSpoke(zmq, std::move(address));
  if (error)
    return llvm::make_error<AloneError>(describeError(std::move(error)));
  error = state.waitUntilJoined();
  if (error && !isFirstThere())
    return llvm::make_error<AloneError>(describeError(std::move(error)));
  return error;
}

llvm::Error ControlWorld::join() {
  llvm::Expected<const Zmq *> zmq = Zmq::load();
  llvm::Error error = zmq ? tryThreads(forWhat, numThreads) : zmq.takeError();
  if (!error && options.meeting)
    return meet(**zmq);
  if (options.meeting)
    return zmq && !isFirst()
               ? llvm::make_error<AloneError>(describeError(std::move(error)))
               : std::move(error);
  std::string own;
  if (isFirst() && !error)
    error = startHub(**zmq, own);
  ErrorDescription why;
  if (error) {
    why = describeError(std::move(error));
    own = static_cast<char>(why.code) + why.message;
  }
  // The others wait for it, whatever it says.
  llvm::Expected<std::string> told = options.broadcast(std::move(own));
  if (!told) {
    if (why.message.empty())
      return told.takeError();
    llvm::consumeError(told.takeError());
  }
  // Process 0 has what this one lacks.
  if (!why.message.empty() && !isFirst() && told &&
      llvm::StringRef(*told).starts_with({&addressFollows, 1}))
    return llvm::make_error<AloneError>(why);
  if (!why.message.empty())
    return makeError(why.code, why.message);
  if (!isFirst())
    if (llvm::Error failed = startSpoke(**zmq, *told))
      return failed;
  return state.waitUntilJoined();
}

llvm::Expected<std::unique_ptr<World>> joinControl(ControlOptions options) {
  auto world = std::make_unique<ControlWorld>(std::move(options));
  if (llvm::Error error = world->join())
    return error;
  return world;
}

} // namespace ax::rt
