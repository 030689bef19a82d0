//===- Decoder.cpp - A program that takes tokens and gives scores ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a step finds what it has seen before, its mask says. A cache of R
// places that is filled from the front (GroupQueryAttention's) has a mask of R
// numbers, of which the first are 1. One from which the oldest falls out when
// others come behind (that of exports which append with Concat) has a mask of R
// + L numbers, for L new tokens, of which the last are 1. E.g. R = 4, L = 1,
// for the token of place 2:
//
//   front: k0 k1 k2 .        mask 1 1 1 0
//   back:  . . k0 k1 | k2    mask 0 0 1 1 1
//
// Which it is, the length of the mask tells. From the front, padding behind the
// last tokens does no harm: no token sees what comes behind it, and the next
// ones take its places.
//
//===----------------------------------------------------------------------===//
#include "Decoder.h"

#include "ax/Support/Error.h"
#include "ax/Support/JoinFirst.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace ax;

namespace {
struct Role {
  const char *name, *usually;
};
constexpr Role tokensRole{"tokens", "input_ids"},
    maskRole{"mask", "attention_mask"},
    positionsRole{"positions", "position_ids"}, logitsRole{"logits", "logits"};
} // namespace

static llvm::Error usage(const llvm::Twine &message) {
  return makeError(ExitCode::Usage, "--generate: " + message);
}

static std::string describePort(const rt::Port &port) {
  std::string shape = shapeToString(port.shape);
  return "'" + port.name + "' (" + shape + (shape.empty() ? "" : "x") +
         toString(port.dtype) + ")";
}

/// The number of the port; nothing where a role that may lack has none.
static llvm::Expected<std::optional<size_t>>
find(const Role &role, const std::vector<rt::Port> &ports,
     const std::map<std::string, std::string> &names, bool mayLack) {
  auto given = names.find(role.name);
  std::string name = given == names.end() ? role.usually : given->second;
  std::vector<std::string> known;
  for (auto [i, port] : llvm::enumerate(ports)) {
    if (port.name == name)
      return i;
    known.push_back(port.name);
  }
  if (mayLack && given == names.end())
    return std::nullopt;
  return usage("the program has no '" + name + "' for its " + role.name +
               ", but: " + joinFirst(known) + " (--names=" + role.name +
               "=NAME says which it is)");
}

static bool isCarried(const rt::State &state) {
  return state.isMutable && !state.isWeight;
}

llvm::Expected<Decoder>
Decoder::create(const rt::Program &program,
                const std::map<std::string, std::string> &names) {
  Decoder decoder(program);
  auto tokens = find(tokensRole, program.inputs, names, /*mayLack=*/false);
  if (!tokens)
    return tokens.takeError();
  auto logits = find(logitsRole, program.outputs, names, /*mayLack=*/false);
  if (!logits)
    return logits.takeError();
  auto mask = find(maskRole, program.inputs, names, /*mayLack=*/true);
  if (!mask)
    return mask.takeError();
  auto positions = find(positionsRole, program.inputs, names, /*mayLack=*/true);
  if (!positions)
    return positions.takeError();
  decoder.tokens = **tokens;
  decoder.logits = **logits;
  decoder.mask = *mask;
  decoder.positions = *positions;
  if (const Shape &shape = program.inputs[decoder.tokens].shape;
      shape.size() == 2) {
    decoder.batch = shape[0];
    decoder.length = shape[1];
  }
  if (llvm::Error error = decoder.checkPorts())
    return error;
  if (llvm::Error error = decoder.findRoom())
    return error;
  return decoder;
}

llvm::Error Decoder::checkPorts() const {
  const rt::Port &ids = program->inputs[tokens],
                 &scores = program->outputs[logits];
  auto countsFar = [](const rt::Port &port) {
    return port.dtype == DType::I32 || port.dtype == DType::I64;
  };
  if (ids.shape.size() != 2 || !countsFar(ids) || batch < 1 || length < 1)
    return usage("tokens " + describePort(ids) +
                 " are no i64 or i32 of [batch, length]");
  auto isOf = [&](size_t input, int64_t width) {
    const Shape &shape = program->inputs[input].shape;
    return shape.size() == 2 && shape[0] == batch &&
           (width == 0 || shape[1] == width);
  };
  const Shape &shape = scores.shape;
  if (shape.size() != 3 || shape[0] != batch || !isFloat(scores.dtype) ||
      (shape[1] != length && shape[1] != 1) || shape[2] < 1)
    return usage("logits " + describePort(scores) +
                 " are no numbers of [batch, length, vocabulary] for tokens " +
                 describePort(ids));
  if (mask && !isOf(*mask, 0))
    return usage("mask " + describePort(program->inputs[*mask]) +
                 " is not of [batch, places]");
  if (positions &&
      (!isOf(*positions, length) || !countsFar(program->inputs[*positions])))
    return usage("positions " + describePort(program->inputs[*positions]) +
                 " are no i64 or i32 of the shape of tokens " +
                 describePort(ids));
  if (mask == tokens || positions == tokens || (mask && mask == positions))
    return usage(
        "input '" +
        program->inputs[positions == tokens || mask == tokens ? tokens : *mask]
            .name +
        "' has two roles");
  if (llvm::none_of(program->states, isCarried))
    return usage("the plan carries nothing from step to step: compile it with "
                 "axopt --carry, as --carry='present.*=past_key_values.*'");
  return llvm::Error::success();
}

/// How likely a state has so many places for each sequence: 2, 1 where that is
/// its last dimension, which mostly are features, or 0.
static int likelihood(const rt::State &state, int64_t places) {
  if (state.shape.size() < 2)
    return 0;
  llvm::ArrayRef<int64_t> within = llvm::ArrayRef(state.shape).drop_front();
  if (llvm::is_contained(within.drop_back(), places))
    return 2;
  return within.back() == places ? 1 : 0;
}

/// By the places that what is carried has for each sequence.
llvm::Error Decoder::findRoom() {
  if (positions)
    room = program->inputs[*positions].indexed;
  if (!mask)
    return llvm::Error::success();
  const rt::Port &port = program->inputs[*mask];
  int64_t places = port.shape[1];
  int front = 0, shifted = 0;
  isAllCache = true;
  for (const rt::State &state : program->states)
    if (isCarried(state)) {
      front = std::max(front, likelihood(state, places));
      shifted = std::max(shifted, likelihood(state, places - length));
      isAllCache &= likelihood(state, places) > 0;
    }
  auto fault = [&](const llvm::Twine &why) {
    return usage("mask " + describePort(port) + " has a number for each of " +
                 llvm::Twine(places) + " places, and " + why + " " +
                 llvm::Twine(places - length));
  };
  if (!front && !shifted)
    return fault("nothing that is carried has so many, or");
  if (front == shifted)
    return fault(
        "what is carried has so many in one dimension, and in another "
        "one, so that either may be those of a cache: compile the plan "
        "for another length of the past than");
  fromFront = front > shifted;
  // What the last step adds need not be kept.
  int64_t ofMask = fromFront ? places : places - length + 1;
  room = std::min(ofMask, room.value_or(ofMask));
  return llvm::Error::success();
}

int64_t Decoder::getClasses() const {
  int64_t classes = program->outputs[logits].shape[2];
  return std::min(classes, program->inputs[tokens].indexed.value_or(classes));
}

std::vector<std::string> Decoder::getInputs() const {
  std::vector<std::string> names{program->inputs[tokens].name};
  for (std::optional<size_t> input : {mask, positions})
    if (input)
      names.push_back(program->inputs[*input].name);
  return names;
}

bool Decoder::canTake(int64_t count, int64_t place) const {
  if (count == length)
    return true;
  return count < length && fromFront && isAllCache && place + length <= *room &&
         program->outputs[logits].shape[1] == length;
}

llvm::Error Decoder::setOthers(const rt::NamedTensors &others) {
  std::vector<std::string> own = getInputs();
  for (const rt::Port &port : program->inputs) {
    HostTensor &input = inputs.emplace_back(port.dtype, port.shape);
    if (llvm::is_contained(own, port.name))
      continue;
    auto given = llvm::find_if(
        others, [&](const auto &pair) { return pair.first == port.name; });
    if (given == others.end() || given->second.getShape() != port.shape ||
        given->second.getType() != port.dtype)
      return makeErrorf(ExitCode::BadInput,
                        "--generate: input {0} of program '{1}' is given as "
                        "{2}",
                        describePort(port), program->name,
                        given == others.end() ? "nothing"
                                              : given->second.typeToString());
    input = given->second;
  }
  return llvm::Error::success();
}

const std::vector<HostTensor> &
Decoder::feed(const std::vector<llvm::ArrayRef<int64_t>> &given,
              int64_t place) {
  for (int64_t row = 0; row < batch; ++row) {
    llvm::ArrayRef<int64_t> ofRow = given[static_cast<size_t>(row)];
    for (int64_t i = 0; i < length; ++i) {
      bool isThere = i < static_cast<int64_t>(ofRow.size());
      inputs[tokens].setInt(row * length + i,
                            isThere ? ofRow[static_cast<size_t>(i)] : 0);
      if (positions)
        inputs[*positions].setInt(row * length + i, place + i);
    }
    if (!mask)
      continue;
    int64_t places = program->inputs[*mask].shape[1];
    for (int64_t i = 0; i < places; ++i)
      inputs[*mask].setInt(row * places + (fromFront ? i : places - 1 - i),
                           i < place + length ? 1 : 0);
  }
  return inputs;
}

std::vector<double> Decoder::scoresOf(const std::vector<HostTensor> &outputs,
                                      int64_t sequence, int64_t count) const {
  const HostTensor &scores = outputs[logits];
  int64_t rows = scores.getShape()[1], classes = scores.getShape()[2],
          row = sequence * rows + (rows == 1 ? 0 : count - 1);
  std::vector<double> values;
  values.reserve(static_cast<size_t>(classes));
  for (int64_t i = 0; i < classes; ++i)
    values.push_back(scores.getDouble(row * classes + i));
  return values;
}
