//===- Inputs.cpp - Tensors given to a run, and those it makes ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Inputs.h"

#include "ax/Runtime/Checkpoint.h"
#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"
#include "ax/Support/FloatConversion.h"
#include "ax/Support/OutputCheck.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <random>

using namespace ax;

static llvm::Error badInput(const llvm::Twine &message) {
  return makeError(ExitCode::BadInput, message);
}

static std::string typeOf(const rt::Port &port) {
  std::string shape = shapeToString(port.shape);
  return (shape.empty() ? "" : shape + "x") + toString(port.dtype);
}

/// Integers are small and not negative: indices into anything, and where it is
/// known into what.
static llvm::Expected<HostTensor> randomTensor(const rt::Port &port,
                                               uint64_t seed) {
  auto made = HostTensor::allocate(port.dtype, port.shape);
  if (!made)
    return addContext(made.takeError(), "input '" + port.name + "'");
  HostTensor tensor = std::move(*made);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  int64_t known = port.labels ? port.labels->classes : 100;
  int64_t below = std::clamp<int64_t>(port.indexed.value_or(known), 1, 100);
  for (int64_t i = 0, e = tensor.numElements(); i < e; ++i)
    if (isFloat(port.dtype))
      tensor.setDouble(i, normal(random));
    else
      tensor.setInt(i, port.dtype == DType::Bool ? 1 : random() % below);
  return tensor;
}

llvm::Expected<std::vector<HostTensor>>
ax::readInputs(const RunOptions &options, const std::vector<rt::Port> &inputs) {
  rt::NamedTensors given;
  bool hasTestData = true;
  if (!options.testData.empty()) {
    auto read =
        options.testCases->read(options.testData, "input", rt::namesOf(inputs));
    if (!read)
      return read.takeError();
    hasTestData = !read->empty();
    // What was bound when the plan was made is no input any more.
    for (auto &[name, tensor] : *read)
      if (llvm::any_of(inputs, [name = name](const rt::Port &port) {
            return port.name == name;
          }))
        given.emplace_back(name, std::move(tensor));
  }
  if (!options.inputArchive.empty()) {
    auto read = rt::readNpz(options.inputArchive);
    if (!read)
      return read.takeError();
    given.insert(given.end(), read->begin(), read->end());
  }
  for (const auto &[name, file] : options.inputs) {
    auto read = rt::readNpy(file);
    if (!read)
      return read.takeError();
    given.emplace_back(name, std::move(*read));
  }

  llvm::StringMap<const HostTensor *> byName;
  for (const auto &[name, tensor] : given)
    byName[name] = &tensor;
  std::vector<HostTensor> tensors;
  std::string missing;
  for (const rt::Port &port : inputs) {
    const HostTensor *tensor = byName.lookup(port.name);
    byName.erase(port.name);
    if (!tensor) {
      if (!options.randomSeed) {
        missing += "\n  " + port.name + ": " + typeOf(port);
        continue;
      }
      auto made = randomTensor(port, *options.randomSeed + tensors.size());
      if (!made)
        return made.takeError();
      tensors.push_back(std::move(*made));
      continue;
    }
    if (!canConvert(port.dtype, tensor->getType()) ||
        tensor->getShape() != port.shape)
      return badInput("input '" + port.name + "' must be " + typeOf(port) +
                      ", not " + tensor->typeToString());
    auto typed = FloatConversion().to(port.dtype, *tensor);
    if (!typed)
      return addContext(typed.takeError(), "input '" + port.name + "'");
    tensors.push_back(std::move(*typed));
  }
  if (!byName.empty()) {
    std::string known;
    for (const rt::Port &port : inputs)
      known += "\n  " + port.name + ": " + typeOf(port);
    return badInput("the plan has no input '" + byName.begin()->first() +
                    "'; its inputs are:" + known);
  }
  if (!missing.empty() && !hasTestData)
    return badInput("--test-data=" + options.testData +
                    ": there is no input_0.pb");
  if (!missing.empty())
    return badInput("no value for these inputs (--input, --inputs, "
                    "--test-data or --random-inputs; to train, --data):" +
                    missing);
  return tensors;
}

/// Whether the path is to hold the plan's only output.
static bool isArray(const std::string &path) {
  return llvm::sys::path::extension(path) == ".npy";
}

/// Reads what outputs are to be from an archive or a folder, or from the array
/// of the only one.
static llvm::Expected<rt::NamedTensors>
readExpectedFile(const std::string &path,
                 const std::vector<rt::Port> &outputs) {
  if (llvm::sys::fs::is_directory(path))
    return rt::readNpyFolder(path, rt::namesOf(outputs));
  if (!isArray(path))
    return rt::readNpz(path);
  if (outputs.size() != 1)
    return badInput("--expect=" + path + ": the plan has " +
                    llvm::Twine(outputs.size()) +
                    " outputs, and only an .npz or a folder can name them");
  auto tensor = rt::readNpy(path);
  if (!tensor)
    return tensor.takeError();
  return rt::NamedTensors{{outputs[0].name, std::move(*tensor)}};
}

llvm::Expected<rt::NamedTensors>
ax::readExpected(const RunOptions &options,
                 const std::vector<rt::Port> &outputs) {
  rt::NamedTensors expected;
  if (!options.testData.empty() && options.expect.empty()) {
    auto read = options.testCases->read(options.testData, "output",
                                        rt::namesOf(outputs));
    if (!read)
      return read.takeError();
    // Outputs that are kept are reason enough for a run.
    if (read->empty() && options.output.empty())
      return badInput("--test-data=" + options.testData +
                      ": there is no output_0.pb to compare with");
    expected = std::move(*read);
  }
  if (!options.expect.empty()) {
    auto read = readExpectedFile(options.expect, outputs);
    if (!read)
      return read.takeError();
    if (read->empty())
      return badInput("--expect=" + options.expect +
                      ": there is nothing in it to compare with: .npy files "
                      "of the outputs' names, or arrays of an .npz");
    expected.insert(expected.end(), read->begin(), read->end());
  }
  for (const auto &[name, tensor] : expected)
    if (llvm::none_of(outputs, [name = name](const rt::Port &port) {
          return port.name == name;
        }))
      return badInput("the plan has no output '" + name + "' to compare");
  return expected;
}

static bool isArchive(const std::string &path) {
  return llvm::sys::path::extension(path) == ".npz";
}

/// A folder's name ends in '/', or looks like no file's, or there is one: what
/// was meant as a file of another format must not become a folder.
static llvm::Error checkFormat(llvm::StringRef flag, const std::string &path) {
  llvm::StringRef ending = llvm::sys::path::extension(path);
  if (path.empty() || isArray(path) || isArchive(path) || ending.size() < 2 ||
      llvm::StringRef(path).ends_with("/") || llvm::sys::fs::is_directory(path))
    return llvm::Error::success();
  return makeErrorf(ExitCode::Usage,
                    "{0}={1}: outputs go to FILE.npz, FILE.npy (if there is "
                    "one), or a folder: '{1}/' makes one of that name",
                    flag, path);
}

static llvm::Error checkRoom(const std::string &array, size_t numOutputs) {
  if (numOutputs == 1)
    return llvm::Error::success();
  return makeErrorf(ExitCode::Usage,
                    "'{0}' has room for one output, there are {1}: give "
                    "FILE.npz or a folder",
                    array, numOutputs);
}

/// The nearest folder above that is there must take new files.
static llvm::Error checkDestination(const std::string &path, bool isFolder) {
  llvm::StringRef folder =
      isFolder ? llvm::StringRef(path) : llvm::sys::path::parent_path(path);
  while (isFolder && !folder.empty() && !llvm::sys::fs::exists(folder))
    folder = llvm::sys::path::parent_path(folder);
  llvm::SmallString<128> at(folder.empty() ? "." : folder);
  std::error_code code =
      llvm::sys::fs::exists(at) && !llvm::sys::fs::is_directory(at)
          ? std::make_error_code(std::errc::not_a_directory)
          : llvm::sys::fs::access(at, llvm::sys::fs::AccessMode::Write);
  // What is there may be a device, in a folder that takes no files.
  if (!code || (!isFolder && llvm::sys::fs::can_write(path)))
    return llvm::Error::success();
  return makeError(ExitCode::InputOutput,
                   "cannot write '" + path + "': " + code.message());
}

static llvm::StringRef outputFlag(const RunOptions &options) {
  return options.predict.empty() ? "--output" : "--predict";
}

/// Those that are written and compared.
static std::vector<rt::Port> outputsOf(const RunOptions &options,
                                       const Session &session) {
  if (options.generate) {
    rt::Port tokens;
    tokens.name = "tokens";
    return {tokens};
  }
  return options.isPadded ? session.getOutputs()
                          : portsOfResults(session.getOutputs());
}

static llvm::Error checkFiles(const RunOptions &options,
                              const Session &session) {
  OutputCheck files;
  auto read = [&](llvm::ArrayRef<std::string> paths,
                  llvm::StringRef replacedBy = "") {
    for (const std::string &path : paths)
      files.reads(path, replacedBy);
  };
  read(session.getFiles());
  // Checkpoints take the places of older ones.
  read(rt::filesOfWeights(options.session.weights), "--save");
  read(rt::filesOfWeights(options.session.resume), "--save");
  for (const auto &[name, file] : options.inputs)
    files.reads(file);
  files.reads(options.inputArchive);
  files.reads(options.prompt);
  if (!llvm::sys::fs::is_directory(options.expect))
    files.reads(options.expect);
  else
    for (const rt::Port &port : outputsOf(options, session))
      files.reads(rt::npyFileIn(options.expect, port.name));
  for (const char *prefix : {"input", "output"})
    if (!options.testData.empty())
      read(options.testCases->files(options.testData, prefix));

  files.writes("--json", options.json);
  files.writes("--trace", options.trace);
  if (const std::string &records = options.session.flightRecorder;
      !records.empty())
    files.reserves("--flight-recorder", records, "rank-");
  llvm::StringRef output = outputFlag(options);
  if (isArchive(options.output) || isArray(options.output))
    files.writes(output, options.output);
  else if (!options.output.empty())
    for (const rt::Port &port : outputsOf(options, session))
      files.writes(output, rt::npyFileIn(options.output, port.name));
  if (!options.predict.empty())
    read(filesOfData(options.predict, session.getInputs()));
  if (options.eval)
    read(filesOfData(options.eval->data, session.getInputs()));
  if (const std::optional<TrainOptions> &training = options.training) {
    read(filesOfData(training->data, session.getInputs()));
    if (training->eval)
      read(filesOfData(training->eval->data, session.getInputs()));
    files.writes("--log", training->log);
    // A file of a new name.
    if (!training->tensorboard.empty())
      files.writes("--tensorboard", training->tensorboard + "/events.out");
    files.writes("--save-weights", training->saveWeights);
    if (!training->save.empty()) {
      files.writes("--save", training->save);
      llvm::SmallString<128> latest(training->save);
      llvm::sys::path::append(latest, rt::checkpoint::latestName);
      files.writes("--save", latest.str().str());
      for (auto &[step, folder] : rt::checkpoint::list(training->save))
        files.replaces("--save", folder);
      for (llvm::StringRef prefix :
           {rt::checkpoint::stepPrefix, rt::checkpoint::unfinishedPrefix,
            rt::checkpoint::lockName})
        files.reserves("--save", training->save, prefix);
    }
  }
  return files.check();
}

llvm::Error ax::checkDestinations(const RunOptions &options,
                                  const Session &session) {
  if (llvm::Error error = checkFormat(outputFlag(options), options.output))
    return error;
  for (const std::string *path :
       {&options.output, &options.json, &options.trace})
    if (!path->empty())
      if (llvm::Error error =
              checkDestination(*path, path == &options.output &&
                                          !isArchive(*path) && !isArray(*path)))
        return error;
  if (isArray(options.output))
    if (llvm::Error error =
            checkRoom(options.output, outputsOf(options, session).size()))
      return error;
  llvm::StringMap<std::string> names;
  for (const rt::Port &port : outputsOf(options, session)) {
    if (options.output.empty() || isArchive(options.output) ||
        isArray(options.output))
      break;
    auto [known, isNew] =
        names.try_emplace(rt::npyFileName(port.name), port.name);
    if (!isNew)
      return makeError(ExitCode::Usage,
                       "outputs '" + known->second + "' and '" + port.name +
                           "' would both be " + known->first() +
                           ": give --output FILE.npz");
  }
  return checkFiles(options, session);
}

llvm::Error ax::writeOutputs(const std::string &path,
                             const rt::NamedTensors &tensors) {
  if (isArray(path)) {
    llvm::Error error = checkRoom(path, tensors.size());
    return error ? std::move(error)
                 : rt::writeNpy(path, tensors.front().second);
  }
  if (isArchive(path))
    return rt::writeNpz(path, tensors);
  if (std::error_code code = makeFolder(path))
    return makeError(ExitCode::InputOutput,
                     "cannot make folder '" + path + "': " + code.message());
  // All of them are there before the first takes its place.
  std::vector<AtomicFile> files;
  for (const auto &[name, tensor] : tensors) {
    auto file = rt::prepareNpy(rt::npyFileIn(path, name), tensor);
    if (!file)
      return file.takeError();
    files.push_back(std::move(*file));
  }
  for (AtomicFile &file : files)
    if (llvm::Error error = file.commit())
      return error;
  return llvm::Error::success();
}
