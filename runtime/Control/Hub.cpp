//===- Hub.cpp - The control channel at process 0 -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Hub.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cerrno>

namespace ax::rt::control {

static constexpr std::chrono::seconds goodbyeWait(1), callersWait(2);
/// In milliseconds; who has not shown the key by then is dropped.
static constexpr int handshakeTime = 5000;

Hub::Hub(const Zmq &zmq, const ControlOptions &options, ChannelState &state,
         const Listener &listener)
    : options(options), state(state), listener(listener), context(zmq),
      gate(context, listener.address.key), router(context, ZMQ_ROUTER),
      monitor(context, ZMQ_PAIR),
      numAway(static_cast<size_t>(options.place.numProcesses) - 1),
      pulse(options.timeout), start(Clock::now()) {
  members.resize(static_cast<size_t>(options.place.numProcesses));
  for (size_t i = 0; i < members.size(); ++i)
    members[i].peer.process = static_cast<int32_t>(i);
  Member &self = members.front();
  self.peer.host = options.place.host;
  self.stage = Stage::Here;
}

llvm::Error Hub::open() {
  if (llvm::Error error = gate.open())
    return error;
  router.set(ZMQ_PLAIN_SERVER, 1);
  router.set(ZMQ_ZAP_DOMAIN, std::string("ax"));
  router.set(ZMQ_HANDSHAKE_IVL, handshakeTime);
  router.set(ZMQ_ROUTER_MANDATORY, 1);
  router.set(ZMQ_SNDHWM, 0);
  router.set(ZMQ_RCVHWM, 0);
  router.setLargestFrame(largestMessage);
  router.set(ZMQ_USE_FD, listener.socket);
  if (llvm::Error error = router.monitor(
          "inproc://monitor", ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_ACCEPT_FAILED |
                                  ZMQ_EVENT_DISCONNECTED))
    return error;
  if (llvm::Error error = monitor.connect("inproc://monitor"))
    return error;
  // The socket listens already: of this, it reads the protocol.
  return router.bind("tcp://127.0.0.1:*");
}

void Hub::run() {
  while (!state.wantsToLeave()) {
    wait();
    takeRequests();
    if (!joined)
      checkJoined(Clock::now());
    else if (numCome == members.size() && !ending)
      finishExchange();
  }
  sayGoodbye();
}

/// Sleeps until there is something, and takes it.
void Hub::wait() {
  zmq_pollitem_t items[] = {{router.handle, 0, ZMQ_POLLIN, 0},
                            {monitor.handle, 0, ZMQ_POLLIN, 0},
                            {gate.socket.handle, 0, ZMQ_POLLIN, 0},
                            {nullptr, state.getWakeFile(), ZMQ_POLLIN, 0}};
  router.zmq.zmq_poll.function(items, 4, pulse.beforeSleep(Clock::now()));
  // What happens from here on counts in the next turn.
  Clock::time_point now = Clock::now();
  Clock::duration stopped = pulse.afterSleep(now);
  if (stopped > Clock::duration(0))
    for (Member *member : present)
      member->peer.excuse(stopped, now);
  state.clearWake();
  gate.answer();
  // What a process has said comes before the end of its connection.
  readEvents();
  readMessages();
  checkSilence(now);
  if (pulse.isDue(now))
    beat();
}

void Hub::readMessages() {
  Frames got;
  while (router.receive(got)) {
    if (got.frames.size() != 2)
      continue;
    if (std::optional<Message> message = Message::decode(got.frames[1]))
      handle(got.frames[0], got.connection, std::move(*message));
    else if (Member *member = findMember(got.frames[0]))
      decide(member->peer.describe() + " sends what is no message");
  }
}

void Hub::readEvents() {
  // Numbers of connections are used again, by strangers as well: what counts is
  // that one was closed after its process spoke.
  std::vector<Member *> lost;
  auto readAll = [&] {
    SocketEvent event;
    while (monitor.receive(event)) {
      if (event.kind == ZMQ_EVENT_ACCEPTED)
        openConnections.insert(event.value);
      else if (event.kind == ZMQ_EVENT_ACCEPT_FAILED)
        refuseMore(event.value);
      if (event.kind != ZMQ_EVENT_DISCONNECTED)
        continue;
      openConnections.erase(event.value);
      if (auto found = connections.find(event.value);
          found != connections.end())
        lost.push_back(found->second);
    }
  };
  readAll();
  readMessages();
  readAll();
  for (Member *member : newcomers) {
    // ZeroMQ does not always say which one it is.
    if (member->connection < 0)
      continue;
    connections[member->connection] = member;
    if (!openConnections.count(member->connection))
      lost.push_back(member);
  }
  newcomers.clear();
  std::vector<const Peer *> peers;
  for (Member *member : lost) {
    if (member->stage != Stage::Here)
      continue;
    drop(*member, Stage::Lost);
    peers.push_back(&member->peer);
  }
  llvm::sort(peers, [](const Peer *a, const Peer *b) {
    return a->process < b->process;
  });
  if (!peers.empty()) {
    Clock::time_point now = Clock::now();
    decide(describeMissing(pulse.describeStop(now) + "lost the connection to",
                           peers, now));
  }
}

/// One that cannot be accepted is tried again and again.
void Hub::refuseMore(int error) {
  if (!joined && (error == EMFILE || error == ENFILE))
    decide(describeFewFiles(members.size(), error), ExitCode::Usage);
}

void Hub::handle(const std::string &route, int connection, Message message) {
  if (message.kind == MessageKind::Hello)
    return welcome(route, connection, std::move(message));
  Member *member = findMember(route);
  if (!member)
    return;
  hear(*member);
  switch (message.kind) {
  case MessageKind::Heartbeat:
    member->peer.hearOf(std::move(message));
    break;
  case MessageKind::Exchange:
    come(*member, std::move(message));
    break;
  case MessageKind::Abort:
    decide(std::move(message.text), ExitCode::RunFailed, member->peer.process);
    break;
  case MessageKind::Goodbye:
    if (member->stage != Stage::Here)
      break;
    sendTo(*member, {MessageKind::Goodbye});
    drop(*member, Stage::Left);
    gone.push_back(member);
    checkGone();
    break;
  default:
    decide(member->peer.describe() + " sends what only process 0 does");
  }
}

void Hub::welcome(const std::string &route, int connection, Message hello) {
  const size_t numProcesses = members.size();
  ++numCallers;
  std::string refusal;
  if (hello.number == 0 || hello.number >= numProcesses ||
      hello.detail != numProcesses)
    refusal =
        llvm::formatv("a process on host {0} says that it is number {1} "
                      "of {2}, and process 0 is one of {3}",
                      hello.name, hello.number, hello.detail, numProcesses)
            .str();
  else if (members[hello.number].stage != Stage::Away)
    refusal =
        llvm::formatv("two processes, on hosts {0} and {1}, say that "
                      "they are number {2}",
                      members[hello.number].peer.host, hello.name, hello.number)
            .str();
  if (!refusal.empty()) {
    decide(std::move(refusal), ExitCode::Usage);
  } else {
    Member &member = members[hello.number];
    member.stage = Stage::Here;
    member.peer.host = std::move(hello.name);
    member.route = route;
    member.connection = connection;
    member.agreed = std::move(hello.list);
    member.turn = present.insert(present.end(), &member);
    hear(member);
    routes[route] = &member;
    newcomers.push_back(&member);
    --numAway;
  }
  // Who comes when it is over is told, too, member or not.
  if (ending)
    router.send({route, describeEnding().encode()});
}

void Hub::hear(Member &member) {
  member.peer.lastHeard = Clock::now();
  if (member.stage == Stage::Here)
    present.splice(present.end(), present, member.turn);
}

void Hub::drop(Member &member, Stage stage) {
  member.stage = stage;
  present.erase(member.turn);
}

void Hub::checkJoined(Clock::time_point now) {
  if (ending)
    return;
  if (numAway > 0) {
    if (now - start > options.joinTimeout)
      decide(describeAway());
    return;
  }
  refuseStrangers(listener.socket);
  std::string differences = describeDifferences();
  if (!differences.empty())
    return decide(std::move(differences), ExitCode::Usage);
  joined = true;
  sendToAll({MessageKind::Welcome, 0, 0, options.place.host});
  state.markJoined();
}

std::string Hub::describeAway() const {
  std::vector<std::string> missing;
  for (const Member &member : members)
    if (member.stage == Stage::Away)
      missing.push_back(std::to_string(member.peer.process));
  // Other keys are random, and of this job alone.
  bool tellsKeys = options.meeting && gate.hasRefused();
  return llvm::formatv(
             "{0} {1} of {2} did not join within {3:f0} s{4}{5}",
             missing.size() == 1 ? "process" : "processes",
             joinSome(missing, missing.size(), ", "), members.size(),
             std::chrono::duration<double>(options.joinTimeout).count(),
             tellsKeys ? "; who showed another key was turned away: " : "",
             tellsKeys ? adviceOnKeys : "")
      .str();
}

std::string Hub::describeDifferences() const {
  auto find = [](const std::vector<std::string> &list, llvm::StringRef name) {
    for (size_t i = 0; i + 1 < list.size(); i += 2)
      if (list[i] == name)
        return list[i + 1];
    return std::string("nothing");
  };
  std::vector<std::string> own;
  for (const auto &[name, value] : options.agreed) {
    own.push_back(name);
    own.push_back(value);
  }
  std::vector<std::string> texts;
  size_t count = 0;
  for (const Member &member : members) {
    if (member.peer.process == 0)
      continue;
    std::vector<std::string> names;
    for (llvm::ArrayRef<std::string> list :
         {llvm::ArrayRef<std::string>(own), llvm::ArrayRef(member.agreed)})
      for (size_t i = 0; i + 1 < list.size(); i += 2)
        if (!llvm::is_contained(names, list[i]))
          names.push_back(list[i]);
    for (const std::string &name : names) {
      std::string here = find(own, name), there = find(member.agreed, name);
      if (here != there && ++count <= mostNamed)
        texts.push_back(llvm::formatv("{0} has another {1} than process 0 on "
                                      "host {2}: {3} instead of {4}",
                                      member.peer.describe(), name,
                                      options.place.host, there, here)
                            .str());
    }
  }
  return joinSome(texts, count, "; ");
}

void Hub::takeRequests() {
  if (std::optional<std::string> reason = state.takeAbort())
    decide(std::move(*reason), ExitCode::RunFailed, options.place.process);
  if (std::optional<Message> asked = state.takeExchange())
    come(members.front(), std::move(*asked));
}

/// The member waits for the result.
void Hub::come(Member &member, Message exchange) {
  if (!member.exchange)
    ++numCome;
  member.exchange = std::move(exchange);
  if (numCome == 1)
    firstCome = &member;
  const Member *first = firstCome, *second = &member;
  if (second->peer.process < first->peer.process)
    std::swap(first, second);
  const Message &one = *first->exchange, &other = *second->exchange;
  if (one.number != other.number || one.detail != other.detail ||
      one.name != other.name)
    return decide(llvm::formatv("{0} is at exchange {1}, {2}, and {3} at "
                                "exchange {4}, {5}",
                                first->peer.describe(), one.number, one.name,
                                second->peer.describe(), other.number,
                                other.name)
                      .str());
  checkGone();
}

/// Who has left comes to no exchange any more.
void Hub::checkGone() {
  if (numCome == 0 || ending)
    return;
  for (const Member *member : gone)
    if (!member->exchange)
      return decide(
          llvm::formatv("{0} is at exchange {1}, {2}, and {3} is "
                        "done",
                        firstCome->peer.describe(), firstCome->exchange->number,
                        firstCome->exchange->name, member->peer.describe())
              .str());
}

void Hub::finishExchange() {
  const Message &own = *members.front().exchange;
  auto kind = static_cast<ExchangeKind>(own.detail);
  Message result{MessageKind::Result, own.number};
  std::vector<std::string> all;
  if (kind == ExchangeKind::AllGather || kind == ExchangeKind::Gather) {
    for (Member &member : members)
      all.push_back(std::move(member.exchange->text));
  } else if (kind == ExchangeKind::Broadcast) {
    all = {own.text};
  }
  if (kind == ExchangeKind::AllGather)
    result.list = packRuns(all);
  else if (kind == ExchangeKind::Broadcast)
    result.list = all;
  size_t size = 0;
  for (const std::string &item : result.list)
    size += item.size() + 16;
  if (size > largestMessage)
    return decide(llvm::formatv("{0}: {1} bytes of all processes are too many "
                                "for the control channel, which carries {2} at "
                                "most",
                                own.name, size, largestMessage)
                      .str());
  for (Member &member : members)
    member.exchange.reset();
  numCome = 0;
  sendToAll(result);
  state.giveResult(result.number, std::move(all));
}

void Hub::checkSilence(Clock::time_point now) {
  if (ending || present.empty() ||
      now - present.front()->peer.lastHeard <= options.timeout)
    return;
  std::vector<const Peer *> peers;
  for (const Member &member : members)
    if (member.stage == Stage::Here && member.peer.process != 0)
      peers.push_back(&member.peer);
  decide(describeMissing("nothing is heard any more from",
                         findSilent(peers, now, options.timeout), now));
}

void Hub::beat() { sendToAll(state.describeProgress()); }

void Hub::decide(std::string reason, ExitCode code, int32_t askedBy) {
  if (ending)
    return;
  ending = Ending{std::move(reason), code, askedBy};
  sendToAll(describeEnding());
  state.end(*ending);
}

Message Hub::describeEnding() const {
  Message message;
  message.kind = MessageKind::Abort;
  message.number = static_cast<uint64_t>(ending->askedBy);
  message.detail = static_cast<uint64_t>(ending->code);
  message.text = ending->reason;
  return message;
}

/// Who leaves waits for an answer: a connection that is closed with something
/// in it may lose the goodbye. Where the job has ended before all were there,
/// it also waits for the others: they would look for this one for long.
void Hub::sayGoodbye() {
  sendToAll({MessageKind::Goodbye});
  Clock::time_point start = Clock::now();
  auto isDone = [&] {
    Clock::duration waited = Clock::now() - start;
    bool isMissed = ending && !joined && numCallers + 1 < members.size();
    return (present.empty() || waited > goodbyeWait) &&
           (!isMissed || waited > callersWait);
  };
  while (!isDone())
    wait();
}

Hub::Member *Hub::findMember(const std::string &route) {
  auto found = routes.find(route);
  return found == routes.end() ? nullptr : found->second;
}

void Hub::sendTo(const Member &member, const Message &message) {
  router.send({member.route, message.encode()});
}

void Hub::sendToAll(const Message &message) {
  std::string bytes = message.encode();
  for (const Member *member : present)
    router.send({member->route, bytes});
}

} // namespace ax::rt::control
