//===- Samples.cpp - What a program is trained or measured with -----------===//
#include "Samples.h"

#include "ax/Runtime/Npy.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cstring>

using namespace ax;

static std::string typeText(const rt::Port &port) {
  return HostTensor::borrow(port.dtype, port.shape, nullptr, nullptr)
      .typeToString();
}

llvm::Error Samples::makeFault(const std::string &name,
                               const llvm::Twine &message) {
  return makeError(ExitCode::BadInput, name + ": " + message);
}

llvm::Expected<Samples> Samples::open(const std::vector<rt::Port> &ports,
                                      const std::string &path, Tokens tokens,
                                      llvm::StringRef flag) {
  Samples samples;
  samples.name = ("--" + flag + "=" + path).str();
  for (const rt::Port &port : ports) {
    if (port.shape.empty())
      return samples.fault("input '" + port.name +
                           "' has no dimension for samples");
    if (samples.batch == 0)
      samples.batch = port.shape[0];
    if (port.shape[0] != samples.batch)
      return samples.fault("input '" + port.name + "' takes batches of " +
                           llvm::Twine(port.shape[0]) + ", other inputs of " +
                           llvm::Twine(samples.batch));
  }
  if (llvm::Error error = tokens == Tokens::No
                              ? samples.readArrays(ports, path)
                              : samples.readTokens(ports, path, tokens))
    return error;
  if (samples.numSamples < 1 || samples.batch < 1)
    return samples.fault("there are no samples");
  return samples;
}

static std::string fileOf(const rt::Port &port, const std::string &folder) {
  llvm::SmallString<256> file(folder);
  llvm::sys::path::append(file, port.name + ".npy");
  return file.str().str();
}

std::vector<std::string> ax::filesOfData(const std::string &data,
                                         const std::vector<rt::Port> &inputs) {
  if (!llvm::sys::fs::is_directory(data))
    return {data};
  std::vector<std::string> files;
  for (const rt::Port &port : inputs)
    files.push_back(fileOf(port, data));
  return files;
}

/// The arrays of an archive, or those of a folder that have the inputs' names.
static llvm::Expected<rt::NamedTensors>
readNamed(const std::vector<rt::Port> &ports, const std::string &path) {
  if (!llvm::sys::fs::is_directory(path))
    return rt::readNpz(path);
  rt::NamedTensors tensors;
  for (const rt::Port &port : ports) {
    std::string file = fileOf(port, path);
    if (!llvm::sys::fs::exists(file))
      continue;
    auto tensor = rt::readNpy(file);
    if (!tensor)
      return tensor.takeError();
    tensors.emplace_back(port.name, std::move(*tensor));
  }
  return tensors;
}

llvm::Error Samples::readArrays(const std::vector<rt::Port> &ports,
                                const std::string &path) {
  auto tensors = readNamed(ports, path);
  if (!tensors)
    return tensors.takeError();
  for (const rt::Port &port : ports) {
    auto found = llvm::find_if(
        *tensors, [&](const auto &entry) { return entry.first == port.name; });
    if (found == tensors->end())
      return fault("there is no array '" + port.name + "'");
    const HostTensor &array = found->second;
    Shape wanted = port.shape;
    if (!array.getShape().empty())
      wanted[0] = array.getShape()[0];
    if (array.getType() != port.dtype || array.getShape() != wanted)
      return fault("'" + port.name + "' is " + array.typeToString() +
                   "; a batch of it is to be " + typeText(port));
    if (sources.empty())
      numSamples = wanted[0];
    if (wanted[0] != numSamples)
      return fault("'" + port.name + "' has " + llvm::Twine(wanted[0]) +
                   " samples, other inputs " + llvm::Twine(numSamples));
    sources.push_back({port, array});
  }
  return llvm::Error::success();
}

llvm::Error Samples::readTokens(const std::vector<rt::Port> &ports,
                                const std::string &path, Tokens tokens) {
  DType type = tokens == Tokens::U16 ? DType::U16 : DType::U32;
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  int64_t count = (*file)->getSize() / byteSize(type);
  if ((*file)->getSize() % byteSize(type))
    return fault("its " + llvm::Twine((*file)->getSize()) +
                 " bytes are no whole number of " + toString(type) + " tokens");
  HostTensor all =
      HostTensor::borrow(type, {count}, (*file)->bytes().data(), *file);
  int64_t length = 0, furthest = 0;
  for (const rt::Port &port : ports) {
    bool isInt = port.dtype == DType::I64 || port.dtype == DType::I32;
    if (port.shape.size() != 2 || !isInt)
      return fault("input '" + port.name + "' is " + typeText(port) +
                   ", not of tokens: give it to axopt with --const");
    if (length && port.shape[1] != length)
      return fault("inputs take sequences of " + llvm::Twine(length) + " and " +
                   llvm::Twine(port.shape[1]) + " tokens");
    length = port.shape[1];
    // Each label is the token after; the program may look that up itself.
    int64_t shift =
        port.labels && ports.size() > 1 && port.labels->shift == 0 ? 1 : 0;
    furthest = std::max(furthest, shift);
    sources.push_back({port, all, /*isTokens=*/true, shift});
  }
  if (llvm::count_if(ports, [](const rt::Port &port) { return !port.labels; }) >
      1)
    return fault("more than one input takes tokens: give the others to axopt "
                 "with --const");
  numSamples = count > furthest && length > 0 ? (count - furthest) / length : 0;
  return llvm::Error::success();
}

void Samples::copy(int64_t sample, int64_t at,
                   std::vector<HostTensor> &inputs) const {
  for (auto [input, source] : llvm::zip_equal(inputs, sources)) {
    int64_t elements = input.numElements() / batch;
    if (source.isTokens) {
      int64_t first = sample * elements + source.shift;
      for (int64_t i = 0; i < elements; ++i)
        input.setInt(at * elements + i, source.array.getInt(first + i));
      continue;
    }
    int64_t bytes = input.numBytes() / batch;
    std::memcpy(input.mutableData() + at * bytes,
                source.array.data() + sample * bytes,
                static_cast<size_t>(bytes));
  }
}

bool Samples::hasLabels() const {
  return llvm::any_of(
      sources, [](const Source &s) { return s.port.labels.has_value(); });
}

void Samples::ignore(int64_t at, std::vector<HostTensor> &inputs) const {
  for (auto [input, source] : llvm::zip_equal(inputs, sources)) {
    if (!source.port.labels)
      continue;
    int64_t elements = input.numElements() / batch;
    for (int64_t i = 0; i < elements; ++i)
      input.setInt(at * elements + i, source.port.labels->ignored);
  }
}

llvm::Error Samples::checkLabels(int64_t sample) const {
  for (const Source &source : sources) {
    if (!source.port.labels)
      continue;
    const rt::Labels &labels = *source.port.labels;
    int64_t elements = *checkedNumElements(source.port.shape) / batch;
    int64_t first = sample * elements + source.shift;
    for (int64_t i = 0; i < elements; ++i) {
      int64_t label = source.array.getInt(first + i);
      if ((label >= 0 && label < labels.classes) || label == labels.ignored)
        continue;
      return fault(llvm::Twine(source.isTokens ? "token " : "label ") +
                   llvm::Twine(label) + " of '" + source.port.name +
                   "', sample " + llvm::Twine(sample) +
                   (elements > 1 ? ", position " + std::to_string(i) : "") +
                   ", is none of the " + llvm::Twine(labels.classes) +
                   " classes 0 to " + llvm::Twine(labels.classes - 1) +
                   ", nor " + llvm::Twine(labels.ignored) +
                   ", which is ignored");
    }
  }
  return llvm::Error::success();
}

bool Samples::anyCounts(const std::vector<HostTensor> &inputs,
                        int64_t count) const {
  if (!hasLabels())
    return true;
  for (auto [input, source] : llvm::zip_equal(inputs, sources)) {
    if (!source.port.labels)
      continue;
    int64_t length = input.getRank() > 1 ? input.getShape().back() : 1;
    for (int64_t i = 0, e = input.numElements() / batch * count; i < e; ++i)
      if (i % length >= source.port.labels->shift &&
          input.getInt(i) != source.port.labels->ignored)
        return true;
  }
  return false;
}
