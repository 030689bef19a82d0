//===- Weights.cpp - Other weights for a plan's states --------------------===//
#include "Weights.h"

#include "ax/Runtime/Checkpoint.h"
#include "ax/Support/Error.h"
#include "ax/Support/Escape.h"
#include "ax/Support/GivenWeights.h"
#include "ax/Support/MappedFile.h"
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

void give(rt::State &state, const HostTensor &value) {
  state.file.clear();
  state.offset = 0;
  state.value = value;
}

void addMisfit(const rt::State &state, const HostTensor &tensor,
               Faults &faults) {
  HostTensor wanted =
      HostTensor::borrow(state.dtype, state.shape, nullptr, nullptr);
  faults.add(state.name + " is " + tensor.typeToString() + ", the plan has " +
             wanted.typeToString());
}

/// A fault when the state cannot have the tensor, which becomes what it has.
llvm::Error assign(rt::State &state, HostTensor &tensor, Widening &widening,
                   Faults &faults) {
  if (tensor.getShape() != state.shape ||
      !Widening::fits(state.dtype, tensor.getType())) {
    addMisfit(state, tensor, faults);
    return llvm::Error::success();
  }
  auto value = widening.to(state.dtype, tensor);
  if (!value)
    return addContext(value.takeError(), "state '" + state.name + "'");
  give(state, tensor = std::move(*value));
  return llvm::Error::success();
}

/// States as the model has them, where its files are there.
class ModelWeights {
public:
  explicit ModelWeights(const std::string &folder) : folder(folder) {}

  void add(const rt::State &state, std::vector<ModelWeight> &to) {
    auto [file, isNew] = files.try_emplace(state.file);
    if (isNew && findEscape(folder, state.file).empty()) {
      auto opened = MappedFile::open(folder + "/" + state.file);
      if (!opened)
        llvm::consumeError(opened.takeError());
      else if (state.fingerprint.empty() ||
               (*opened)->fingerprint() == state.fingerprint)
        file->second = std::move(*opened);
    }
    auto count = checkedNumElements(state.shape, byteSize(state.dtype));
    if (!file->second || !count)
      return;
    auto bytes =
        file->second->range(state.offset, *count * byteSize(state.dtype));
    if (bytes)
      to.push_back({state.name, state.dtype, state.shape, *bytes});
    else
      llvm::consumeError(bytes.takeError());
  }

private:
  const std::string &folder;
  std::map<std::string, std::shared_ptr<MappedFile>> files;
};

using Given = std::map<std::string, HostTensor>;

/// What a file from elsewhere leaves out, though the plan has it: by the names
/// of such states, those whose values they get.
llvm::Expected<std::map<std::string, std::string>>
complete(llvm::ArrayRef<rt::Program *> programs, const std::string &folder,
         const std::string &path, const llvm::StringSet<> &frozen,
         bool isCheckpoint, const Ties &ties, const Warn &warn,
         const Given &given, Faults &faults) {
  ModelWeights model(folder);
  std::vector<ModelWeight> missing, there;
  llvm::StringSet<> seen;
  std::vector<std::string> lacking, computed;
  for (rt::Program *program : programs)
    for (const rt::State &state : program->states) {
      if (!state.isWeight || frozen.contains(state.name) ||
          !seen.insert(state.name).second)
        continue;
      bool isGiven = given.count(state.name);
      model.add(state, isGiven ? there : missing);
      if (!isGiven)
        (isComputedBuffer(state.name) ? computed : lacking)
            .push_back(state.name);
    }
  std::vector<std::string> absent(lacking);
  llvm::append_range(absent, computed);
  auto isGiven = [&](const std::string &name) { return given.count(name) > 0; };
  if (llvm::Error error = checkTies(ties, absent, isGiven, path))
    return error;
  auto isTied = [&](const std::string &name) { return ties.count(name) > 0; };
  llvm::erase_if(lacking, isTied);
  llvm::erase_if(computed, isTied);
  // A checkpoint has each state that the run had.
  std::map<std::string, std::string> tied;
  if (!isCheckpoint)
    tied = findTied(missing, there);
  for (const std::string &name : lacking)
    if (auto twin = tied.find(name); twin != tied.end()) {
      warn("weights '" + path + "': '" + name + "' gets the values of '" +
           twin->second + "', which it equals in the model");
    } else {
      faults.add(name + " is missing");
    }
  if (!computed.empty())
    warn("weights '" + path + "': " + listSome(computed) +
         " stay as the model computes them");
  for (const auto &[name, other] : ties)
    tied[name] = other;
  return tied;
}

} // namespace

llvm::Error ax::useWeights(llvm::ArrayRef<rt::Program *> programs,
                           const std::string &path, const Ties &ties,
                           const std::string &folder, const Warn &warnWhere) {
  Warn warn = warnWhere ? warnWhere : [](const std::string &) {};
  auto source = rt::readWeights(path, warn);
  if (!source)
    return source.takeError();
  llvm::StringSet<> frozen;
  frozen.insert_range(source->frozen);
  Given given(source->tensors.begin(), source->tensors.end());
  Faults faults;
  auto tied = complete(programs, folder, path, frozen,
                       /*isCheckpoint=*/!source->weights.empty(), ties, warn,
                       given, faults);
  if (!tied)
    return tied.takeError();
  llvm::StringSet<> used;
  Widening widening;
  for (rt::Program *program : programs)
    for (rt::State &state : program->states) {
      used.insert(state.name);
      // Moments and the like go on when they are there.
      auto twin = tied->find(state.name);
      auto tensor = given.find(twin == tied->end() ? state.name : twin->second);
      if (tensor == given.end() || !(state.isWeight || state.isZeroAtFirst))
        continue;
      // Twins and programs share what was widened for the first.
      if (llvm::Error error = assign(state, tensor->second, widening, faults))
        return error;
    }
  widening.tell(path, warn);
  if (!source->weights.empty() &&
      llvm::none_of(source->weights, [&](const std::string &weight) {
        return used.contains(weight);
      }))
    return makeError(ExitCode::BadInput, "weights '" + path +
                                             "' are of another model: the plan "
                                             "has none of their names, as '" +
                                             source->weights.front() + "'");
  for (const std::string &weight : source->weights)
    if (!used.contains(weight))
      faults.add(weight + " was trained, but the plan has it as constants: "
                          "write the weights into the model (axopt "
                          "--export-onnx) and compile that");
  return faults.take("weights '" + path + "':");
}

llvm::Expected<Resumed> ax::resumeFrom(rt::Program &program,
                                       const std::string &path,
                                       const Warn &warn) {
  auto checkpoint = rt::readCheckpoint(path, warn);
  if (!checkpoint)
    return checkpoint.takeError();
  llvm::StringMap<HostTensor *> byName;
  for (auto &[name, tensor] : checkpoint->tensors)
    byName[name] = &tensor;
  Faults faults;
  for (rt::State &state : program.states) {
    if (!state.isMutable)
      continue;
    // What a run goes on with is what it was, in its own type.
    if (HostTensor *tensor = byName.lookup(state.name); !tensor)
      faults.add(state.name + " is not in the checkpoint");
    else if (tensor->getShape() != state.shape ||
             tensor->getType() != state.dtype)
      addMisfit(state, *tensor, faults);
    else
      give(state, *tensor);
    byName.erase(state.name);
  }
  for (auto &[name, tensor] : checkpoint->tensors)
    if (byName.contains(name))
      faults.add(name + " is in the checkpoint, but the plan does not train "
                        "it");
  if (llvm::Error error = faults.take("checkpoint '" + checkpoint->path +
                                      "' is of another model or optimizer:"))
    return error;
  Resumed resumed;
  resumed.path = checkpoint->path;
  resumed.step = checkpoint->step;
  resumed.progress = std::move(checkpoint->progress);
  return resumed;
}
