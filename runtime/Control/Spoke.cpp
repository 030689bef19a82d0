//===- Spoke.cpp - The control channel at other processes -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Spoke.h"

#include "Gate.h"

#include "ax/Runtime/Listener.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace ax::rt::control {

static constexpr std::chrono::seconds goodbyeWait(1);
/// For one address of several, before the next is tried.
static constexpr std::chrono::milliseconds connectTime(3000);
/// After all of them were refused.
static constexpr std::chrono::milliseconds connectPause(200);
/// So long all addresses of a process 0 that was there refuse connections
/// before it is taken for gone: a network may do so for a moment.
static constexpr std::chrono::seconds goneTime(5);

llvm::Error Spoke::Connection::open(const ControlAddress &address,
                                    const std::string &host) {
  dealer.set(ZMQ_PLAIN_USERNAME, std::string("ax"));
  dealer.set(ZMQ_PLAIN_PASSWORD, address.key);
  // What is lost stays lost, so that it is told.
  dealer.set(ZMQ_RECONNECT_IVL, -1);
  dealer.set(ZMQ_HANDSHAKE_IVL, static_cast<int>(connectTime.count()));
  dealer.set(ZMQ_SNDHWM, 0);
  dealer.set(ZMQ_RCVHWM, 0);
  dealer.setLargestFrame(largestMessage);
  std::string endpoint = "inproc://" + monitorName;
  if (llvm::Error error = dealer.monitor(
          endpoint, ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_CLOSED |
                        ZMQ_EVENT_DISCONNECTED |
                        ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                        ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                        ZMQ_EVENT_HANDSHAKE_FAILED_AUTH))
    return error;
  if (llvm::Error error = monitor.connect(endpoint))
    return error;
  bool isLong = llvm::StringRef(host).contains(':');
  return dealer.connect(
      llvm::formatv(isLong ? "tcp://[{0}]:{1}" : "tcp://{0}:{1}", host,
                    address.port)
          .str());
}

void Spoke::run() {
  first.host = address.hosts.empty() ? "" : address.hosts.front();
  if (!connect())
    return;
  first.lastHeard = Clock::now();
  Message hello{
      MessageKind::Hello, static_cast<uint64_t>(options.place.process),
      static_cast<uint64_t>(options.place.numProcesses), options.place.host};
  for (const auto &[name, value] : options.agreed) {
    hello.list.push_back(name);
    hello.list.push_back(value);
  }
  send(hello);
  while (!state.wantsToLeave()) {
    wait();
    takeRequests();
  }
  sayGoodbye();
}

/// Returns false where process 0 is not found, or nobody waits for it any more.
bool Spoke::connect() {
  Clock::time_point last = Clock::now() + options.joinTimeout;
  for (int attempt = 0; !state.wantsToLeave(); ++attempt) {
    size_t index = static_cast<size_t>(attempt) % address.hosts.size();
    auto made = std::make_unique<Connection>(
        context, "monitor" + std::to_string(attempt));
    if (llvm::Error error = made->open(address, address.hosts[index])) {
      end(llvm::toString(std::move(error)));
      return false;
    }
    if (waitForHandshake(*made, address.hosts[index],
                         std::min(last, Clock::now() + connectTime))) {
      connection = std::move(made);
      return true;
    }
    if (Clock::now() > last) {
      end(describeNoAnswer(), /*isFirstLost=*/true);
      return false;
    }
    if (index + 1 < address.hosts.size())
      continue;
    if (isFirstGone()) {
      end(llvm::formatv(
              "process 0 is not there any more (nobody listens at {0}, port "
              "{1}): the job has ended before this process joined it. What "
              "process 0 has said tells why; then start all processes again",
              llvm::join(address.hosts, ", "), address.port)
              .str(),
          /*isFirstLost=*/true);
      return false;
    }
    made.reset();
    pause(connectPause);
  }
  return false;
}

std::string Spoke::describeNoAnswer() const {
  std::string text = llvm::formatv(
      "process 0 does not answer at {0}, port {1}, within {2:f0} s, to process "
      "{3} on host {4}",
      llvm::join(address.hosts, ", "), address.port,
      std::chrono::duration<double>(options.joinTimeout).count(),
      options.place.process, options.place.host);
  if (!turnedAwayAt.empty())
    text += "; who listened at " + turnedAwayAt + " has another key";
  if (!turnedAwayAt.empty() && options.meeting)
    text += ": " + adviceOnKeys.str();
  return text;
}

/// Sleeps so long whatever connections have to say.
void Spoke::pause(std::chrono::milliseconds time) {
  zmq_pollitem_t item = {nullptr, state.getWakeFile(), ZMQ_POLLIN, 0};
  Clock::time_point last = Clock::now() + time;
  while (!state.wantsToLeave()) {
    auto left =
        std::chrono::ceil<std::chrono::milliseconds>(last - Clock::now());
    if (left.count() <= 0)
      return;
    context.zmq.zmq_poll.function(&item, 1, left.count());
    state.clearWake();
  }
}

/// Who has told its address listened before it did. An address that all know
/// without it says nothing: process 0 may come later.
bool Spoke::isFirstGone() {
  if (options.meeting)
    return false;
  if (!llvm::all_of(address.hosts, [&](const std::string &host) {
        return isRefused(host, address.port);
      })) {
    refusedSince.reset();
    return false;
  }
  Clock::time_point now = Clock::now();
  if (!refusedSince)
    refusedSince = now;
  return now - *refusedSince > goneTime;
}

bool Spoke::waitForHandshake(Connection &made, const std::string &host,
                             Clock::time_point last) {
  while (!state.wantsToLeave()) {
    SocketEvent event;
    if (made.monitor.receive(event)) {
      if (event.kind == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
        turnedAwayAt = host;
      return event.kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
    }
    auto left =
        std::chrono::ceil<std::chrono::milliseconds>(last - Clock::now());
    if (left.count() <= 0)
      return false;
    sleep(made, left.count());
  }
  return false;
}

void Spoke::sleep(Connection &at, long milliseconds) {
  zmq_pollitem_t items[] = {{at.dealer.handle, 0, ZMQ_POLLIN, 0},
                            {at.monitor.handle, 0, ZMQ_POLLIN, 0},
                            {nullptr, state.getWakeFile(), ZMQ_POLLIN, 0}};
  context.zmq.zmq_poll.function(items, 3, milliseconds);
  state.clearWake();
}

void Spoke::wait() {
  // Who is alone waits for nobody but its own process.
  sleep(*connection, isAlone ? -1 : pulse.beforeSleep(Clock::now()));
  // What happens from here on counts in the next turn.
  Clock::time_point now = Clock::now();
  first.excuse(pulse.afterSleep(now), now);
  // What process 0 has said comes before the end of the connection.
  bool isLost = false;
  SocketEvent event;
  while (connection->monitor.receive(event))
    isLost |= event.kind == ZMQ_EVENT_DISCONNECTED;
  readMessages();
  if (isAlone)
    return;
  if (isLost) {
    isAlone = true;
    endWithoutFirst(pulse.describeStop(now) + "lost the connection to", now);
  } else if (!findSilent(&first, now, options.timeout).empty()) {
    isAlone = true;
    endWithoutFirst("nothing is heard any more from", now);
  }
  if (pulse.isDue(now))
    send(state.describeProgress());
}

void Spoke::readMessages() {
  Frames got;
  while (connection->dealer.receive(got)) {
    std::optional<Message> message;
    if (got.frames.size() == 1)
      message = Message::decode(got.frames.front());
    if (message)
      handle(std::move(*message));
    else
      end(first.describe() + " sends what is no message");
  }
}

void Spoke::handle(Message message) {
  first.lastHeard = Clock::now();
  switch (message.kind) {
  case MessageKind::Welcome:
    first.host = std::move(message.name);
    state.markJoined();
    break;
  case MessageKind::Heartbeat:
    first.hearOf(std::move(message));
    break;
  case MessageKind::Result:
    takeResult(std::move(message));
    break;
  case MessageKind::Abort:
    state.end({std::move(message.text), static_cast<ExitCode>(message.detail),
               static_cast<int32_t>(message.number)});
    break;
  case MessageKind::Goodbye:
    if (!isAlone)
      send({MessageKind::Goodbye});
    isAlone = true;
    refuseExchange();
    break;
  default:
    end(first.describe() + " sends what only others do");
  }
}

void Spoke::takeResult(Message result) {
  std::optional<std::vector<std::string>> values;
  if (waiting && waiting->number == result.number) {
    auto kind = static_cast<ExchangeKind>(waiting->detail);
    if (kind == ExchangeKind::AllGather)
      values = unpackRuns(result.list,
                          static_cast<size_t>(options.place.numProcesses));
    else if (result.list.size() == (kind == ExchangeKind::Broadcast ? 1 : 0))
      values = std::move(result.list);
  }
  if (!values)
    return end(first.describe() + " sends what is no result");
  waiting.reset();
  state.giveResult(result.number, std::move(*values));
}

void Spoke::takeRequests() {
  if (std::optional<std::string> reason = state.takeAbort()) {
    Message request;
    request.kind = MessageKind::Abort;
    request.text = std::move(*reason);
    if (isAlone)
      state.end({request.text, ExitCode::RunFailed, options.place.process});
    else
      send(request);
  }
  if (std::optional<Message> asked = state.takeExchange()) {
    waiting = std::move(asked);
    send(*waiting);
    refuseExchange();
  }
}

void Spoke::refuseExchange() {
  if (isAlone && waiting)
    end(llvm::formatv("{0} is done, and process {1} on host {2} is at exchange "
                      "{3}, {4}",
                      first.describe(), options.place.process,
                      options.place.host, waiting->number, waiting->name)
            .str());
}

void Spoke::end(std::string reason, bool isFirstLost) {
  Ending ending{std::move(reason)};
  ending.isFirstLost = isFirstLost;
  ending.isAlone = !connection;
  state.end(std::move(ending));
}

void Spoke::endWithoutFirst(llvm::StringRef what, Clock::time_point now) {
  end(describeMissing(what, &first, now), /*isFirstLost=*/true);
}

/// Who leaves waits for an answer: a connection that is closed with something
/// in it may lose the goodbye.
void Spoke::sayGoodbye() {
  send({MessageKind::Goodbye});
  Clock::time_point last = Clock::now() + goodbyeWait;
  while (!isAlone && Clock::now() < last)
    wait();
}

void Spoke::send(const Message &message) {
  if (!isAlone)
    connection->dealer.send({message.encode()});
}

} // namespace ax::rt::control
