//===- Weights.cpp - Other weights for a plan's states --------------------===//
#include "Weights.h"

#include "ax/Runtime/Checkpoint.h"
#include "ax/Support/Error.h"
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

/// True when `state` got the tensor; a fault otherwise.
bool assign(rt::State &state, const HostTensor &tensor, llvm::StringRef who,
            Faults &faults) {
  HostTensor wanted =
      HostTensor::borrow(state.dtype, state.shape, nullptr, nullptr);
  if (tensor.typeToString() != wanted.typeToString()) {
    faults.add(state.name + " is " + tensor.typeToString() + ", " + who +
               " has " + wanted.typeToString());
    return false;
  }
  state.file.clear();
  state.offset = 0;
  state.value = tensor;
  return true;
}

} // namespace

llvm::Error ax::useWeights(llvm::ArrayRef<rt::Program *> programs,
                           const std::string &path, const Warn &warn) {
  auto source = rt::readWeights(path, warn);
  if (!source)
    return source.takeError();
  llvm::StringSet<> frozen;
  frozen.insert_range(source->frozen);
  llvm::StringMap<HostTensor *> byName;
  for (auto &[name, tensor] : source->tensors)
    byName[name] = &tensor;
  Faults faults;
  llvm::StringSet<> used;
  for (rt::Program *program : programs)
    for (rt::State &state : program->states) {
      used.insert(state.name);
      HostTensor *tensor = byName.lookup(state.name);
      if (!tensor) {
        if (state.isWeight && !frozen.contains(state.name))
          faults.add(state.name + " is missing");
        continue;
      }
      // Moments and the like go on when they are there.
      if (state.isWeight || state.isZeroAtFirst)
        assign(state, *tensor, "the plan", faults);
    }
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
    if (HostTensor *tensor = byName.lookup(state.name))
      assign(state, *tensor, "the plan", faults);
    else
      faults.add(state.name + " is not in the checkpoint");
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
