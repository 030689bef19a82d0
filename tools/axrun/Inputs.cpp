//===- Inputs.cpp - Tensors given to a run, and those it makes ------------===//
#include "Inputs.h"

#include "ax/Import/Import.h"
#include "ax/Support/Error.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <random>

using namespace ax;

static llvm::Error badInput(const llvm::Twine &message) {
  return makeError(ExitCode::BadInput, message);
}

static std::string typeOf(const rt::Port &port) {
  std::string shape = shapeToString(port.shape);
  return (shape.empty() ? "" : shape + "x") + toString(port.dtype);
}

/// `prefix`_0.pb, _1.pb, ... of the folder, or of the test_data_set_0 in it.
/// A tensor without a name, or with one that no port has, is meant by position.
static llvm::Expected<rt::NamedTensors>
readTestData(llvm::StringRef folder, llvm::StringRef prefix,
             const std::vector<rt::Port> &ports) {
  llvm::SmallString<128> at(folder);
  llvm::sys::path::append(at, "test_data_set_0");
  if (!llvm::sys::fs::is_directory(at))
    at = folder;
  if (!llvm::sys::fs::is_directory(at))
    return makeError(ExitCode::InputOutput, folder + ": no such folder");
  rt::NamedTensors tensors;
  for (size_t number = 0;; ++number) {
    llvm::SmallString<128> file(at);
    llvm::sys::path::append(file, prefix + "_" + llvm::Twine(number) + ".pb");
    if (!llvm::sys::fs::exists(file))
      return tensors;
    auto read = import::readTensorProto(file);
    if (!read)
      return read.takeError();
    bool isKnown = llvm::any_of(
        ports, [&](const rt::Port &port) { return port.name == read->name; });
    if (!isKnown && number < ports.size())
      read->name = ports[number].name;
    tensors.emplace_back(read->name, std::move(read->tensor));
  }
}

/// Integers are small and not negative: indices into anything.
static HostTensor randomTensor(const rt::Port &port, uint64_t seed) {
  HostTensor tensor(port.dtype, port.shape);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  for (int64_t i = 0, e = tensor.numElements(); i < e; ++i)
    if (isFloat(port.dtype))
      tensor.setDouble(i, normal(random));
    else
      tensor.setInt(i, port.dtype == DType::Bool ? 1 : random() % 100);
  return tensor;
}

llvm::Expected<std::vector<HostTensor>>
ax::readInputs(const RunOptions &options, const std::vector<rt::Port> &inputs) {
  rt::NamedTensors given;
  if (!options.testData.empty()) {
    auto read = readTestData(options.testData, "input", inputs);
    if (!read)
      return read.takeError();
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
      if (options.randomSeed)
        tensors.push_back(
            randomTensor(port, *options.randomSeed + tensors.size()));
      else
        missing += "\n  " + port.name + ": " + typeOf(port);
      continue;
    }
    if (tensor->getType() != port.dtype || tensor->getShape() != port.shape)
      return badInput("input '" + port.name + "' must be " + typeOf(port) +
                      ", not " + tensor->typeToString());
    tensors.push_back(*tensor);
  }
  if (!missing.empty())
    return badInput("no value for these inputs (--input, --inputs, "
                    "--test-data or --random-inputs):" +
                    missing);
  if (!byName.empty()) {
    std::string known;
    for (const rt::Port &port : inputs)
      known += "\n  " + port.name + ": " + typeOf(port);
    return badInput("the plan has no input '" + byName.begin()->first() +
                    "'; its inputs are:" + known);
  }
  return tensors;
}

llvm::Expected<rt::NamedTensors>
ax::readExpected(const RunOptions &options,
                 const std::vector<rt::Port> &outputs) {
  rt::NamedTensors expected;
  if (!options.testData.empty() && options.expect.empty()) {
    auto read = readTestData(options.testData, "output", outputs);
    if (!read)
      return read.takeError();
    expected = std::move(*read);
  }
  if (!options.expect.empty()) {
    auto read = rt::readNpz(options.expect);
    if (!read)
      return read.takeError();
    expected.insert(expected.end(), read->begin(), read->end());
  }
  for (const auto &[name, tensor] : expected)
    if (llvm::none_of(outputs, [name = name](const rt::Port &port) {
          return port.name == name;
        }))
      return badInput("the plan has no output '" + name + "' to compare");
  return expected;
}

/// A name as a file: separators become underscores.
static std::string fileNameOf(const std::string &name) {
  std::string file = name;
  for (char &c : file)
    if (c == '/' || c == '\\' || c == '\0')
      c = '_';
  return (file.empty() || file[0] == '.' ? "_" + file : file) + ".npy";
}

llvm::Error ax::writeOutputs(const std::string &path,
                             const std::vector<rt::Port> &ports,
                             const std::vector<HostTensor> &tensors) {
  if (llvm::sys::path::extension(path) == ".npz") {
    rt::NamedTensors named;
    for (size_t i = 0; i < ports.size(); ++i)
      named.emplace_back(ports[i].name, tensors[i]);
    return rt::writeNpz(path, named);
  }
  if (std::error_code code = llvm::sys::fs::create_directories(path))
    return makeError(ExitCode::InputOutput,
                     "cannot make folder '" + path + "': " + code.message());
  for (size_t i = 0; i < ports.size(); ++i) {
    llvm::SmallString<128> file(path);
    llvm::sys::path::append(file, fileNameOf(ports[i].name));
    if (llvm::Error error = rt::writeNpy(file.str().str(), tensors[i]))
      return error;
  }
  return llvm::Error::success();
}
