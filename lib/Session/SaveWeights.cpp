//===- SaveWeights.cpp - Weights into one .safetensors file ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Session/Train.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Runtime/Checkpoint.h"
#include "ax/Runtime/CheckpointFolder.h"
#include "ax/Runtime/Safetensors.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"

using namespace ax;

using ReadWeight = llvm::function_ref<llvm::Expected<HostTensor>(int32_t)>;

static llvm::Error writeWeights(const rt::Program &program,
                                const std::string &path, ReadWeight read) {
  const std::vector<rt::State> &states = program.states;
  std::vector<rt::SafetensorsWriter::Entry> entries;
  for (const rt::State &state : states)
    if (state.isWeight)
      entries.push_back({state.name, state.dtype, state.shape});
  // What the plan has as constants is not here: who reads the file is to know
  // that these are the model's.
  auto file = rt::SafetensorsWriter::create(path, entries,
                                            rt::describeFrozen(program.folded));
  if (!file)
    return file.takeError();
  for (size_t i = 0; i < states.size(); ++i) {
    if (!states[i].isWeight)
      continue;
    auto tensor = read(static_cast<int32_t>(i));
    if (!tensor)
      return tensor.takeError();
    if (llvm::Error error = file->write(*tensor))
      return error;
  }
  return file->commit();
}

/// What no step changes the executor has itself.
static llvm::Error writeFrom(const std::string &checkpoint,
                             const rt::Executor &executor,
                             const std::string &path) {
  auto saved = rt::readCheckpoint(checkpoint, {});
  if (!saved)
    return saved.takeError();
  llvm::StringMap<const PiecedTensor *> tensors;
  for (const auto &[name, tensor] : saved->tensors)
    tensors[name] = &tensor;
  const rt::Program &program = executor.getProgram();
  return writeWeights(
      program, path, [&](int32_t number) -> llvm::Expected<HostTensor> {
        const rt::State &state = program.states[static_cast<size_t>(number)];
        const PiecedTensor *there = tensors.lookup(state.name);
        if (state.isMutable && there)
          return there->assemble();
        return executor.readState(number);
      });
}

/// Returns a checkpoint in a folder of its own, which is put into `folder`.
static llvm::Expected<std::string> makeCheckpoint(const rt::Executor &executor,
                                                  const std::string &path,
                                                  std::string &folder) {
  rt::World &world = executor.getWorld();
  auto made = rt::share(
      world, "a folder for states", [&]() -> llvm::Expected<std::string> {
        llvm::SmallString<256> unique;
        llvm::sys::fs::createUniquePath(path + "-%%%%%%%%", unique,
                                        /*MakeAbsolute=*/false);
        return unique.str().str();
      });
  if (!made)
    return made.takeError();
  folder = std::move(*made);
  // The world is the caller's, which lives on.
  std::shared_ptr<rt::World> shared(&world, [](rt::World *) {});
  auto opened = rt::CheckpointFolder::open(folder, nullptr, shared);
  if (!opened)
    return opened.takeError();
  return opened->write(executor, {});
}

llvm::Error ax::saveWeights(const rt::Executor &executor,
                            const std::string &path,
                            const std::string &checkpoint) {
  rt::World &world = executor.getWorld();
  if (world.isAlone())
    return writeWeights(executor.getProgram(), path, [&](int32_t number) {
      return executor.readState(number);
    });
  std::string from = checkpoint, folder;
  auto written = [&]() -> llvm::Error {
    if (from.empty()) {
      auto made = makeCheckpoint(executor, path, folder);
      if (!made)
        return made.takeError();
      from = std::move(*made);
    }
    return rt::share(world, "weights",
                     [&]() -> llvm::Expected<std::string> {
                       if (llvm::Error error = writeFrom(from, executor, path))
                         return error;
                       return "";
                     })
        .takeError();
  };
  llvm::Error error = written();
  if (!folder.empty() && world.isFirst())
    llvm::sys::fs::remove_directories(folder);
  return error;
}
