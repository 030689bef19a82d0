//===- Weights.cpp - Other weights for a plan's states --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Weights.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Runtime/Checkpoint.h"
#include "ax/Runtime/Executor.h"
#include "ax/Runtime/StateFiles.h"
#include "ax/Support/Error.h"
#include "ax/Support/Escape.h"
#include "ax/Support/FloatConversion.h"
#include "ax/Support/GivenWeights.h"
#include "ax/Support/MappedFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace ax;

namespace {

/// A line for each fault; long lists are cut.
class Faults {
public:
  void add(const llvm::Twine &text) {
    constexpr int most = 20;
    if (++count <= most)
      lines += "\n  " + text.str();
  }
  llvm::Error take(const llvm::Twine &what) {
    if (count == 0)
      return llvm::Error::success();
    std::string rest = lines;
    if (int64_t more = count - llvm::count(lines, '\n'); more > 0)
      rest += "\n  and " + std::to_string(more) + " more";
    return makeError(ExitCode::BadInput, what + rest);
  }

private:
  int64_t count = 0;
  std::string lines;
};

void addMisfit(const rt::State &state, const std::string &type,
               Faults &faults) {
  HostTensor wanted =
      HostTensor::borrow(state.dtype, state.shape, nullptr, nullptr);
  faults.add(state.name + " is " + type + ", the plan has " +
             wanted.typeToString());
}

/// A state as the model has it; nothing where its file is not there.
llvm::ArrayRef<uint8_t> bytesIn(rt::StateFiles &files, const rt::State &state) {
  if (state.file.empty())
    return {};
  auto found = files.find(state);
  if (found)
    return found->bytes;
  llvm::consumeError(found.takeError());
  return {};
}

/// Whether what the checkpoint's run found in its model is what this plan has.
/// A fault when it is another one.
bool isFrozen(const std::string &name, llvm::StringRef own,
              const rt::CheckpointFacts &checkpoint, Faults &faults) {
  auto there = checkpoint.frozen.find(name);
  if (there == checkpoint.frozen.end())
    return false;
  if (!own.empty() && own != there->second)
    faults.add(name + " has other values in this plan's model than in "
                      "that of the run, which did not train it");
  return true;
}

bool isFrozen(const rt::State &state, const rt::CheckpointFacts &checkpoint,
              rt::StateFiles &files, Faults &faults) {
  // Of a state that is made, and of no elements, there is nothing to compare.
  llvm::ArrayRef<uint8_t> own = bytesIn(files, state);
  std::string fingerprint;
  if (!own.empty() && checkpoint.frozen.count(state.name))
    fingerprint = fingerprintOf(HostTensor::borrow(
        state.getTypeInFile(), state.shape, own.data(), nullptr));
  return isFrozen(state.name, fingerprint, checkpoint, faults);
}

/// Bytes only of those that a file has to have: all that the programs use; a
/// checkpoint has all of the plan's.
std::vector<ModelWeight> weightsOf(llvm::ArrayRef<rt::Program *> programs,
                                   const rt::CheckpointFacts &source,
                                   const std::set<std::string> &names,
                                   rt::StateFiles &files) {
  const std::map<std::string, std::string> &frozen = source.frozen;
  bool isCheckpoint = !source.weights.empty();
  std::vector<ModelWeight> model;
  llvm::StringSet<> seen, used;
  for (rt::Program *program : programs)
    for (const rt::State &state : program->states)
      if (!state.isUnused)
        used.insert(state.name);
  for (rt::Program *program : programs)
    for (const rt::State &state : program->states) {
      if (!seen.insert(state.name).second)
        continue;
      ModelWeight weight{state.name, state.getTypeInFile(), state.shape, {}};
      weight.isRequired = state.isWeight && !frozen.count(state.name) &&
                          (isCheckpoint || used.contains(state.name));
      if (weight.isRequired)
        weight.bytes = bytesIn(files, state);
      model.push_back(std::move(weight));
    }
  // All programs of a plan have the same constants.
  const rt::Program &program = *programs.front();
  for (const std::string &name : program.foldedParameters) {
    auto folded = program.folded.find(name);
    if (folded == program.folded.end() || names.count(name) ||
        frozen.count(name))
      continue;
    ModelWeight weight;
    weight.name = name;
    weight.type = typeOfFingerprint(folded->second).value_or(weight.type);
    weight.isFolded = true;
    model.push_back(std::move(weight));
  }
  return model;
}

/// Tensors as states have them, in their types.
class StateValues {
public:
  /// `isShared`: other processes have ranks of the programs, too.
  StateValues(llvm::ArrayRef<rt::Program *> programs, bool isShared)
      : isShared(isShared) {
    for (const rt::Program *program : programs)
      for (const rt::State &state : program->states)
        if (state.isMutable)
          changed.insert(state.name);
  }

  /// A fault when the state cannot have the tensor, which becomes what it has.
  llvm::Error assign(rt::State &state, const PiecedTensor &tensor,
                     Faults &faults) {
    if (tensor.shape != state.shape || !canConvert(state.dtype, tensor.type)) {
      addMisfit(state, tensor.typeToString(), faults);
      return llvm::Error::success();
    }
    const uint8_t *data =
        tensor.pieces.empty() ? nullptr : tensor.pieces.front().tensor.data();
    bool isNew = tensor.type != state.dtype && seen.insert(data).second;
    auto converted = (isNew ? conversion : counted).to(state.dtype, tensor);
    if (!converted)
      return addContext(converted.takeError(), "state '" + state.name + "'");
    PiecedTensor &typed = *converted;
    // What no rank changes all of them can use as it is, in all programs. Where
    // it would have to be made first, each makes its parts, unless all of them
    // are here.
    if (typed.getWhole() || isShared || changed.count(state.name)) {
      state.give(std::move(typed));
      return llvm::Error::success();
    }
    HostTensor &whole = made[data];
    if (whole.getType() != state.dtype || whole.getShape() != state.shape) {
      auto assembled = typed.assemble();
      if (!assembled)
        return addContext(assembled.takeError(), "state '" + state.name + "'");
      whole = std::move(*assembled);
    }
    state.give(whole);
    return llvm::Error::success();
  }
  void tell(const std::string &path, const Warn &warn) const {
    conversion.tell(path, warn);
  }

private:
  bool isShared;
  std::set<std::string> changed;
  /// The second is of what has been counted.
  FloatConversion conversion, counted;
  /// By their bytes, what was converted, and what was made of tensors.
  std::set<const uint8_t *> seen;
  std::map<const uint8_t *, HostTensor> made;
};

} // namespace

void ax::readTogether(rt::CheckpointReading &reading, rt::World &world) {
  reading.agree = [&world](llvm::Error error) {
    return rt::agree(world, "a checkpoint", std::move(error));
  };
  // No name of a file has a zero byte.
  const llvm::StringRef between("\0", 1);
  reading.choose = [&world, between](std::vector<std::string> own)
      -> llvm::Expected<std::vector<std::string>> {
    auto all = rt::share(world, "checkpoints that there are",
                         [&]() -> llvm::Expected<std::string> {
                           return llvm::join(own, between);
                         });
    if (!all)
      return all.takeError();
    std::vector<std::string> chosen;
    for (llvm::StringRef path : llvm::split(llvm::StringRef(*all), between))
      if (!path.empty())
        chosen.push_back(path.str());
    return chosen;
  };
}

namespace {

/// Reads what this process needs.
llvm::Expected<rt::Checkpoint> readGiven(llvm::ArrayRef<rt::Program *> programs,
                                         const WeightsRequest &request,
                                         const Warn &warn, rt::World &world) {
  rt::CheckpointReading reading{warn};
  if (world.isAlone())
    return rt::readWeights(request.path, reading);
  // Only for checkpoints the processes agree in between.
  auto kinds =
      rt::agreeOnFlags(world, "kind of the weights",
                       rt::isCheckpoint(request.path), llvm::Error::success());
  if (!kinds)
    return kinds.takeError();
  if (!llvm::all_equal(*kinds)) {
    llvm::Error error =
        rt::isCheckpoint(request.path)
            ? llvm::Error::success()
            : rt::readWeights(request.path, reading).takeError();
    if (llvm::Error failed = rt::agree(
            world, "weights that are no checkpoint for all", std::move(error)))
      return failed;
  }
  std::vector<std::function<bool(llvm::StringRef, const ElementBox &)>> needs;
  for (const rt::Program *program : programs)
    needs.push_back(rt::findNeededElements(*program, request.ranks));
  std::set<std::string> wholly;
  for (const auto &[name, fingerprint] : programs.front()->folded)
    wholly.insert(name);
  for (const auto &[name, other] : request.ties)
    wholly.insert({other, llvm::StringRef(other).rsplit('.').first.str()});
  reading.needsGiven = true;
  reading.needs = [needs = std::move(needs), wholly = std::move(wholly)](
                      llvm::StringRef name, const ElementBox &elements) {
    return wholly.count(name.str()) || llvm::any_of(needs, [&](const auto &by) {
             return by(name, elements);
           });
  };
  readTogether(reading, world);
  return rt::readWeights(request.path, reading);
}

/// `useWeights`, of which the processes have not agreed yet.
llvm::Error useOwnWeights(llvm::ArrayRef<rt::Program *> programs,
                          const WeightsRequest &request, rt::World &world) {
  const std::string &path = request.path;
  Warn warn = request.warn ? request.warn : [](const std::string &) {};
  auto source = readGiven(programs, request, warn, world);
  if (!source)
    return source.takeError();
  GivenWeights given;
  given.path = path;
  given.tensors.insert(source->tensors.begin(), source->tensors.end());
  given.ties = request.ties;
  given.leaveOut = request.leaveOut;
  const std::map<std::string, std::string> &folded = programs.front()->folded;
  given.folded = folded;
  given.isCheckpoint = !source->weights.empty();
  given.warn = warn;
  given.used = request.names;
  rt::StateFiles files(request.folder);
  std::vector<ModelWeight> model =
      weightsOf(programs, *source, request.names, files);
  auto lacking = matchWeights(model, given);
  if (!lacking)
    return lacking.takeError();
  auto hints = describeMissing(model, given, *lacking);
  if (!hints)
    return hints.takeError();
  Faults faults;
  for (auto [name, hint] : llvm::zip_equal(*lacking, *hints))
    faults.add(name + " is missing" + hint);
  if (std::string advice = adviceForMissing(*lacking); !advice.empty())
    faults.add(advice);
  llvm::StringSet<> used;
  StateValues values(programs, !world.isAlone());
  for (rt::Program *program : programs)
    for (rt::State &state : program->states) {
      bool isFirst = used.insert(state.name).second;
      auto tensor = given.tensors.find(state.name);
      if (isFirst && state.isWeight && tensor == given.tensors.end())
        isFrozen(state, *source, files, faults);
      if (tensor == given.tensors.end() || !state.isWeight)
        continue;
      if (llvm::Error error = values.assign(state, tensor->second, faults))
        return error;
    }
  for (const auto &[name, fingerprint] : folded)
    if (!request.names.count(name))
      isFrozen(name, fingerprint, *source, faults);
  values.tell(path, warn);
  if (!source->weights.empty() &&
      llvm::none_of(source->weights, [&](const std::string &weight) {
        return used.contains(weight);
      }))
    return makeError(ExitCode::BadInput, "weights '" + path +
                                             "' are of another model: the plan "
                                             "has none of their names, as '" +
                                             source->weights.front() + "'");
  auto isConstant = [&](const std::string &weight, llvm::StringRef what) {
    if (!used.contains(weight) && !folded.count(weight))
      faults.add(weight + what +
                 ", but the plan has it as constants: write the weights into "
                 "the model (axopt --export-onnx) and compile that");
  };
  for (const std::string &weight : source->weights)
    isConstant(weight, " was trained");
  for (const std::string &weight : source->given)
    isConstant(weight, " was given to the run (--weights)");
  if (llvm::Error error = faults.take("weights '" + path + "':"))
    return error;
  return checkLeftOver(model, given);
}

} // namespace

llvm::Error ax::useWeights(llvm::ArrayRef<rt::Program *> programs,
                           const WeightsRequest &request, rt::World &world) {
  return rt::agree(world, "weights", useOwnWeights(programs, request, world));
}

namespace {

/// States that a run changes: weights, and what the optimizer keeps of each, by
/// what follows its name.
struct Trained {
  std::set<std::string> weights, kept;

  void addKept(llvm::StringRef name) {
    auto [weight, kind] = name.rsplit('.');
    if (weights.count(weight.str()))
      kept.insert(kind.str());
  }
  std::string describe() const {
    return kept.empty() ? "nothing" : llvm::join(kept, " and ");
  }
};

Trained trainedBy(const rt::Program &program) {
  Trained result;
  for (const rt::State &state : program.states)
    if (state.isMutable && state.isWeight)
      result.weights.insert(state.name);
  for (const rt::State &state : program.states)
    if (state.isMutable && !state.isWeight)
      result.addKept(state.name);
  return result;
}

Trained trainedBy(const rt::Checkpoint &checkpoint) {
  Trained result;
  result.weights.insert(checkpoint.weights.begin(), checkpoint.weights.end());
  for (const auto &[name, tensor] : checkpoint.tensors)
    if (!result.weights.count(name))
      result.addKept(name);
  return result;
}

/// An optimizer's name and options, as a program or a checkpoint says them.
struct OptimizerText {
  llvm::StringRef text;

  llvm::StringRef name() const { return text.split('(').first; }
  /// What is not said is no other.
  bool differsFrom(const OptimizerText &other) const {
    return !text.empty() && !other.text.empty() && text != other.text;
  }
};

} // namespace

llvm::Expected<Resumed> ax::resumeFrom(llvm::ArrayRef<rt::Program *> programs,
                                       const std::string &path,
                                       const std::string &folder,
                                       const rt::CheckpointReading &reading) {
  rt::Program &program = *programs.front();
  auto checkpoint = rt::readCheckpoint(path, reading);
  if (!checkpoint)
    return checkpoint.takeError();
  Trained there = trainedBy(*checkpoint), here = trainedBy(program);
  if (there.weights == here.weights && there.kept != here.kept)
    return makeErrorf(ExitCode::BadInput,
                      "checkpoint '{0}' is of another optimizer: it has {1} of "
                      "each weight, where the plan keeps {2}; --weights={3} "
                      "takes its weights alone",
                      checkpoint->path, there.describe(), here.describe(),
                      path);
  OptimizerText ours{program.optimizer};
  OptimizerText theirs{
      checkpoint->progress.getString("optimizer").value_or("")};
  // What two keep of a weight may have one name and not one meaning.
  if (ours.differsFrom(theirs) && ours.name() != theirs.name())
    return makeErrorf(ExitCode::BadInput,
                      "checkpoint '{0}' is of another optimizer: it is of {1}, "
                      "and the plan trains with {2}; --weights={3} takes its "
                      "weights alone",
                      checkpoint->path, theirs.text, ours.text, path);
  // In one order each time.
  llvm::sort(checkpoint->tensors, [](const auto &one, const auto &other) {
    return one.first < other.first;
  });
  llvm::StringMap<PiecedTensor *> byName;
  llvm::StringMap<HostTensor> given;
  for (auto &[name, tensor] : checkpoint->tensors) {
    byName[name] = &tensor;
    if (!checkpoint->given.count(name))
      continue;
    auto whole = tensor.assemble();
    if (!whole)
      return addContext(whole.takeError(), "state '" + name + "'");
    given[name] = std::move(*whole);
  }
  Faults faults;
  rt::StateFiles files(folder);
  llvm::StringSet<> used;
  for (rt::State &state : program.states) {
    PiecedTensor *tensor = byName.lookup(state.name);
    used.insert(state.name);
    bool isGiven = checkpoint->given.count(state.name);
    bool isKept = !state.isMutable && state.isWeight && !isGiven;
    if (isKept && !tensor && isFrozen(state, *checkpoint, files, faults))
      continue;
    if (!state.isMutable && !isGiven && (tensor || !state.isWeight))
      continue;
    // What a run goes on with is what it was, in its own type.
    if (!tensor)
      faults.add(state.name + " is not in the checkpoint");
    else if (tensor->shape != state.shape || tensor->type != state.dtype)
      addMisfit(state, tensor->typeToString(), faults);
    else if (isGiven)
      state.give(given[state.name]);
    else
      state.give(*tensor);
    byName.erase(state.name);
  }
  for (const auto &[name, fingerprint] : program.folded) {
    auto found = given.find(name);
    const HostTensor *tensor = found == given.end() ? nullptr : &found->second;
    // What was trained is not trained here: that is told below.
    if (!used.insert(name).second || (byName.contains(name) && !tensor))
      continue;
    if (tensor ? fingerprintOf(*tensor) != fingerprint
               : !isFrozen(name, fingerprint, *checkpoint, faults))
      faults.add(name + (tensor ? " is a constant of the plan, with another "
                                  "value than in the checkpoint"
                                : " is not in the checkpoint"));
  }
  for (const auto &[name, fingerprint] : checkpoint->frozen)
    if (!used.contains(name))
      faults.add(name + " is in the model of the run, but not in the plan's");
  for (auto &[name, tensor] : checkpoint->tensors)
    if (byName.contains(name) && !checkpoint->given.count(name))
      faults.add(name + " is in the checkpoint, but the plan does not train "
                        "it");
  if (llvm::Error error = faults.take("checkpoint '" + checkpoint->path +
                                      "' is of another model or optimizer:"))
    return error;
  for (rt::Program *other : programs.drop_front())
    for (rt::State &state : other->states)
      if (auto tensor = given.find(state.name); tensor != given.end())
        state.give(tensor->second);
  if (ours.differsFrom(theirs) && reading.warn)
    reading.warn(("training goes on with " + ours.text +
                  ", where checkpoint '" + checkpoint->path +
                  "' was made with " + theirs.text)
                     .str());
  Resumed resumed;
  resumed.path = checkpoint->path;
  resumed.step = checkpoint->step;
  resumed.progress = std::move(checkpoint->progress);
  resumed.damaged = std::move(checkpoint->damaged);
  return resumed;
}
