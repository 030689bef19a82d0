//===- Generate.cpp - Tokens, one after another ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a step finds what it has seen before, its mask says. A cache of R
// places that is filled from the front (GroupQueryAttention's) has a mask of R
// numbers, of which the first are 1. One from which the oldest falls out when
// another comes behind (that of exports which append with Concat) has a mask of
// R + L numbers, for L new tokens, of which the last are 1. E.g. R = 4, L = 1,
// behind the token of place 2:
//
//   front: k0 k1 k2 .        mask 1 1 1 0
//   back:  . . k0 k1 | k2    mask 0 0 1 1 1
//
//===----------------------------------------------------------------------===//
#include "ax/Session/Generate.h"

#include "Sampler.h"
#include "ax/Runtime/Agreement.h"
#include "ax/Support/Error.h"
#include "ax/Support/JoinFirst.h"

#include "llvm/ADT/StringExtras.h"

#include <chrono>

using namespace ax;
using Clock = std::chrono::steady_clock;

namespace {

/// What a program has for generating.
struct Roles {
  size_t tokens = 0, logits = 0;
  std::optional<size_t> mask, positions;
  int64_t batch = 0, length = 0;
};

class Generator {
public:
  Generator(Session &session, const GenerateOptions &options, Roles roles)
      : session(session), program(session.getProgram()), options(options),
        roles(roles), sampler(options.sampling) {}

  llvm::Expected<Generated> run();

private:
  llvm::Error readPrompt();
  llvm::Error prepareInputs();
  llvm::Error findRoom();
  llvm::Expected<std::vector<HostTensor>> step();
  llvm::Expected<std::vector<int64_t>>
  chooseAll(const std::vector<HostTensor> &outputs);
  llvm::Expected<bool> append(const std::vector<HostTensor> &outputs);

  Session &session;
  const rt::Program &program;
  const GenerateOptions &options;
  Roles roles;
  Sampler sampler;
  std::vector<HostTensor> inputs;
  /// Of each sequence, those that are known.
  std::vector<std::vector<int64_t>> sequences;
  /// Which of them have ended.
  std::vector<char> ended;
  std::vector<std::chrono::nanoseconds> times;
  /// How many tokens were fed.
  int64_t place = 0;
  /// Whether the cache is filled from the front, and its places.
  bool fromFront = false;
  int64_t room = 0;
};

} // namespace

static llvm::Error usage(const llvm::Twine &message) {
  return makeError(ExitCode::Usage, "--generate: " + message);
}

static const char *usualName(llvm::StringRef role) {
  return role == "tokens"      ? "input_ids"
         : role == "mask"      ? "attention_mask"
         : role == "positions" ? "position_ids"
                               : "logits";
}

static std::string nameOf(llvm::StringRef role,
                          const std::map<std::string, std::string> &names) {
  auto given = names.find(role.str());
  return given == names.end() ? usualName(role) : given->second;
}

static std::string describePort(const rt::Port &port) {
  std::string shape = shapeToString(port.shape);
  return "'" + port.name + "' (" + shape + (shape.empty() ? "" : "x") +
         toString(port.dtype) + ")";
}

static llvm::Expected<Roles>
findRoles(const rt::Program &program,
          const std::map<std::string, std::string> &names) {
  Roles roles;
  auto find = [&](llvm::StringRef role, const std::vector<rt::Port> &ports,
                  bool mayLack) -> llvm::Expected<std::optional<size_t>> {
    std::string name = nameOf(role, names);
    std::vector<std::string> known;
    for (auto [i, port] : llvm::enumerate(ports)) {
      if (port.name == name)
        return i;
      known.push_back(port.name);
    }
    if (mayLack && !names.count(role.str()))
      return std::nullopt;
    return usage("the program has no '" + name + "' for its " + role +
                 ", but: " + joinFirst(known) + " (--names=" + role +
                 "=NAME says which it is)");
  };
  auto tokens = find("tokens", program.inputs, false),
       mask = find("mask", program.inputs, true),
       positions = find("positions", program.inputs, true),
       logits = find("logits", program.outputs, false);
  for (auto *found : {&tokens, &mask, &positions, &logits})
    if (!*found) {
      llvm::Error error = found->takeError();
      for (auto *other : {&tokens, &mask, &positions, &logits})
        if (!*other)
          llvm::consumeError(other->takeError());
      return error;
    }
  roles.tokens = **tokens;
  roles.logits = **logits;
  roles.mask = *mask;
  roles.positions = *positions;

  const rt::Port &ids = program.inputs[roles.tokens],
                 &scores = program.outputs[roles.logits];
  if (ids.shape.size() != 2 || isFloat(ids.dtype))
    return usage("tokens " + describePort(ids) +
                 " are no integers of [batch, length]");
  roles.batch = ids.shape[0];
  roles.length = ids.shape[1];
  if (roles.length != 1)
    return usage("tokens " + describePort(ids) +
                 " are several of a sequence: compile the plan for one");
  auto isOf = [&](size_t input, int64_t width) {
    const Shape &shape = program.inputs[input].shape;
    return shape.size() == 2 && shape[0] == roles.batch &&
           (width == 0 || shape[1] == width);
  };
  if (scores.shape.size() != 3 || scores.shape[0] != roles.batch ||
      !isFloat(scores.dtype))
    return usage("logits " + describePort(scores) +
                 " are no numbers of [batch, length, vocabulary]");
  if (roles.mask && !isOf(*roles.mask, 0))
    return usage("mask " + describePort(program.inputs[*roles.mask]) +
                 " is not of [batch, places]");
  if (roles.positions && !isOf(*roles.positions, roles.length))
    return usage("positions " + describePort(program.inputs[*roles.positions]) +
                 " are not of the tokens' shape");
  bool carries = llvm::any_of(program.states, [](const rt::State &state) {
    return state.isMutable && !state.isWeight;
  });
  if (!carries)
    return usage("the plan carries nothing from step to step: compile it with "
                 "--carry, as --carry='present.*=past_key_values.*'");
  return roles;
}

llvm::Expected<std::vector<std::string>>
ax::findGenerated(const rt::Program &program,
                  const std::map<std::string, std::string> &names) {
  auto roles = findRoles(program, names);
  if (!roles)
    return roles.takeError();
  std::vector<std::string> found{program.inputs[roles->tokens].name};
  for (std::optional<size_t> input : {roles->mask, roles->positions})
    if (input)
      found.push_back(program.inputs[*input].name);
  return found;
}

llvm::Error Generator::readPrompt() {
  const HostTensor &prompt = options.prompt;
  Shape shape = prompt.getShape();
  if (shape.size() == 1)
    shape.insert(shape.begin(), 1);
  if (shape.size() != 2 || shape[0] != roles.batch || shape[1] < 1 ||
      isFloat(prompt.getType()))
    return makeErrorf(ExitCode::BadInput,
                      "the prompt is {0}; it has to be integers of [{1}, "
                      "length], one token at least",
                      prompt.typeToString(), roles.batch);
  const rt::Port &ids = program.inputs[roles.tokens];
  for (int64_t row = 0; row < shape[0]; ++row) {
    std::vector<int64_t> &sequence = sequences.emplace_back();
    ended.push_back(false);
    for (int64_t i = 0; i < shape[1]; ++i) {
      int64_t token = prompt.getInt(row * shape[1] + i);
      if (ids.indexed && (token < 0 || token >= *ids.indexed))
        return makeErrorf(ExitCode::BadInput,
                          "token {0} of the prompt is {1}; there are {2}", i,
                          token, *ids.indexed);
      sequence.push_back(token);
    }
  }
  return llvm::Error::success();
}

llvm::Error Generator::prepareInputs() {
  for (const rt::Port &port : program.inputs) {
    auto given = llvm::find_if(options.others, [&](const auto &pair) {
      return pair.first == port.name;
    });
    inputs.push_back(given == options.others.end()
                         ? HostTensor(port.dtype, port.shape)
                         : given->second);
  }
  return llvm::Error::success();
}

/// By the places that what is carried has for each sequence.
llvm::Error Generator::findRoom() {
  if (!roles.mask)
    return llvm::Error::success();
  const rt::Port &mask = program.inputs[*roles.mask];
  int64_t places = mask.shape[1];
  bool isShifted = false;
  for (const rt::State &state : program.states)
    if (state.isMutable && !state.isWeight) {
      fromFront |= llvm::is_contained(state.shape, places);
      isShifted |= llvm::is_contained(state.shape, places - roles.length);
    }
  if (!fromFront && !isShifted)
    return usage("mask " + describePort(mask) + " has a number for each of " +
                 llvm::Twine(places) +
                 " places, and nothing that is carried has so many, or " +
                 llvm::Twine(places - roles.length));
  room = places;
  int64_t needs =
      static_cast<int64_t>(sequences.front().size()) + options.count - 1;
  if (needs > room)
    return usage(llvm::Twine(sequences.front().size()) + " tokens and " +
                 llvm::Twine(options.count) + " behind them need " +
                 llvm::Twine(needs) + " places, and the plan has room for " +
                 llvm::Twine(room));
  return llvm::Error::success();
}

llvm::Expected<std::vector<int64_t>>
Generator::chooseAll(const std::vector<HostTensor> &outputs) {
  const HostTensor &scores = outputs[roles.logits];
  int64_t classes = scores.getShape()[2], rows = scores.getShape()[1] * classes;
  std::vector<int64_t> chosen;
  for (int64_t row = 0; row < roles.batch; ++row) {
    std::vector<double> ofRow;
    for (int64_t i = 0; i < classes; ++i)
      ofRow.push_back(scores.getDouble((row + 1) * rows - classes + i));
    auto token = sampler.choose(std::move(ofRow));
    if (!token)
      return makeErrorf(ExitCode::NotFinite,
                        "all scores of sequence {0} behind token {1} are NaN",
                        row, place - 1);
    chosen.push_back(*token);
  }
  return chosen;
}

/// Tokens as they go from process to process.
static std::string encodeTokens(llvm::ArrayRef<int64_t> tokens) {
  return llvm::join(
      llvm::map_range(tokens,
                      [](int64_t token) { return std::to_string(token); }),
      " ");
}

static std::vector<int64_t> decodeTokens(llvm::StringRef text) {
  std::vector<int64_t> tokens;
  for (llvm::StringRef word : llvm::split(text, ' ')) {
    int64_t token = 0;
    word.getAsInteger(10, token);
    tokens.push_back(token);
  }
  return tokens;
}

/// Feeds each sequence's token of `place`.
llvm::Expected<std::vector<HostTensor>> Generator::step() {
  for (int64_t row = 0; row < roles.batch; ++row) {
    int64_t token =
        sequences[static_cast<size_t>(row)].at(static_cast<size_t>(place));
    inputs[roles.tokens].setInt(row, token);
    if (roles.positions)
      inputs[*roles.positions].setInt(row, place);
    // Those of earlier tokens are set.
    if (roles.mask)
      inputs[*roles.mask].setInt(
          row * room + (fromFront ? place : room - 1 - place), 1);
  }
  Clock::time_point begin = Clock::now();
  auto outputs = session.run(inputs);
  times.push_back(Clock::now() - begin);
  ++place;
  return outputs;
}

/// Puts the next token behind each sequence; returns false where all have ended
/// before it.
llvm::Expected<bool> Generator::append(const std::vector<HostTensor> &outputs) {
  auto text = rt::share(*session.getWorld(), "the next token",
                        [&]() -> llvm::Expected<std::string> {
                          auto chosen = chooseAll(outputs);
                          if (!chosen)
                            return chosen.takeError();
                          return encodeTokens(*chosen);
                        });
  if (!text)
    return text.takeError();
  std::vector<int64_t> tokens = decodeTokens(*text);
  bool goesOn = false;
  for (auto [sequence, token, hasEnded] :
       llvm::zip_equal(sequences, tokens, ended)) {
    if (hasEnded)
      token = sequence.back();
    sequence.push_back(token);
    hasEnded |= llvm::is_contained(options.stops, token);
    goesOn |= !hasEnded;
  }
  if (options.onTokens && session.getWorld()->isFirst())
    options.onTokens(tokens);
  return goesOn;
}

llvm::Expected<Generated> Generator::run() {
  for (auto prepare : {&Generator::readPrompt, &Generator::prepareInputs,
                       &Generator::findRoom})
    if (llvm::Error error = (this->*prepare)())
      return error;
  auto length = static_cast<int64_t>(sequences.front().size());
  Generated result;
  Clock::time_point begin = Clock::now();
  auto sinceBegin = [&] {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  for (int64_t chosen = 0; chosen < options.count;) {
    auto outputs = step();
    if (!outputs)
      return outputs.takeError();
    if (place < length)
      continue;
    auto goesOn = append(*outputs);
    if (!goesOn)
      return goesOn.takeError();
    if (chosen++ == 0)
      result.promptSeconds = sinceBegin();
    if (!*goesOn)
      break;
  }
  result.restSeconds = sinceBegin() - result.promptSeconds;
  Shape shape{roles.batch, static_cast<int64_t>(sequences.front().size())};
  std::vector<int64_t> tokens;
  for (const std::vector<int64_t> &sequence : sequences)
    llvm::append_range(tokens, sequence);
  result.tokens = HostTensor::fromValues<int64_t>(shape, tokens);
  result.times = std::move(times);
  return result;
}

llvm::Expected<Generated> ax::generate(Session &session,
                                       const GenerateOptions &options) {
  auto roles = findRoles(session.getProgram(), options.names);
  if (!roles)
    return roles.takeError();
  return Generator(session, options, *roles).run();
}
