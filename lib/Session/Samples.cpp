//===- Samples.cpp - What a program is trained or measured with -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Samples.h"

#include "ax/Runtime/Npy.h"
#include "ax/Support/Error.h"
#include "ax/Support/FloatConversion.h"
#include "ax/Support/MappedFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

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
    if (!port.isBatched)
      continue;
    if (port.shape.empty())
      return samples.fault("input '" + port.name +
                           "' has no dimension for samples (axopt "
                           "--unbatched=" +
                           port.name + " says that this is meant)");
    if (samples.batch == 0)
      samples.batch = port.shape[0];
    if (port.shape[0] != samples.batch)
      return samples.fault("input '" + port.name + "' takes batches of " +
                           llvm::Twine(port.shape[0]) + ", other inputs of " +
                           llvm::Twine(samples.batch) + " (axopt --unbatched=" +
                           port.name + " says that it takes no batches)");
  }
  if (samples.batch == 0)
    samples.batch = 1;
  if (llvm::Error error = tokens == Tokens::No
                              ? samples.readArrays(ports, path)
                              : samples.readTokens(ports, path, tokens))
    return error;
  if (samples.numSamples < 1 || samples.batch < 1)
    return samples.fault("there are no samples");
  return samples;
}

void Samples::readFor(const rt::Executor &executor) {
  if (executor.getWorld().isAlone())
    return;
  for (auto [number, source] : llvm::enumerate(sources)) {
    const Shape &shape = source.port.shape;
    source.rows.assign(shape.empty() ? 1 : static_cast<size_t>(shape[0]),
                       false);
    for (auto [first, end] :
         executor.getNeededRows(static_cast<int32_t>(number)))
      for (int64_t row = first; row < end; ++row)
        source.rows[static_cast<size_t>(row)] = true;
  }
}

std::vector<HostTensor> Samples::makeBatch() const {
  std::vector<HostTensor> inputs;
  for (const Source &source : sources)
    inputs.push_back(source.isRead()
                         ? HostTensor(source.port.dtype, source.port.shape)
                         : HostTensor());
  return inputs;
}

std::vector<std::string> ax::filesOfData(const std::string &data,
                                         const std::vector<rt::Port> &inputs) {
  if (!llvm::sys::fs::is_directory(data))
    return {data};
  std::vector<std::string> files;
  for (const rt::Port &port : inputs)
    files.push_back(rt::npyFileIn(data, port.name));
  return files;
}

/// The arrays of an archive, or those of a folder that have the inputs' names.
static llvm::Expected<rt::NamedTensors>
readNamed(const std::vector<rt::Port> &ports, const std::string &path,
          const std::string &name) {
  if (!llvm::sys::fs::is_directory(path)) {
    auto tensors = rt::readNpz(path);
    if (tensors || llvm::StringRef(path).ends_with(".npz"))
      return tensors;
    ErrorDescription fault = describeError(tensors.takeError());
    if (fault.code == ExitCode::BadInput)
      fault.message = name + ": expected an .npz or a folder of .npy files; "
                             "token ids need --tokens=uint16 or "
                             "--tokens=uint32";
    return makeError(fault.code, fault.message);
  }
  return rt::readNpyFolder(path, rt::namesOf(ports));
}

/// Returns what no input takes: of an archive its arrays, of a folder its .npy
/// files.
static std::vector<std::string> findUnused(const std::vector<rt::Port> &ports,
                                           const std::string &path,
                                           const rt::NamedTensors &tensors) {
  std::vector<std::string> names;
  if (llvm::sys::fs::is_directory(path)) {
    std::error_code ignored;
    llvm::StringSet<> taken;
    for (const rt::Port &port : ports)
      taken.insert(rt::npyFileName(port.name));
    for (llvm::sys::fs::directory_iterator it(path, ignored), end;
         it != end && !ignored; it.increment(ignored))
      if (llvm::StringRef file = llvm::sys::path::filename(it->path());
          file.ends_with(".npy") && !taken.contains(file))
        names.push_back(file.str());
    llvm::sort(names);
    return names;
  }
  for (const auto &[name, tensor] : tensors)
    if (llvm::none_of(ports, [name = name](const rt::Port &port) {
          return port.name == name;
        }))
      names.push_back(name);
  return names;
}

std::string Samples::describeUnused() const {
  return unused.empty()
             ? ""
             : name + ": no input takes '" + llvm::join(unused, "', '") + "'";
}

llvm::Error Samples::readArrays(const std::vector<rt::Port> &ports,
                                const std::string &path) {
  auto tensors = readNamed(ports, path, name);
  if (!tensors)
    return tensors.takeError();
  unused = findUnused(ports, path, *tensors);
  for (const rt::Port &port : ports) {
    auto found = llvm::find_if(
        *tensors, [&](const auto &entry) { return entry.first == port.name; });
    if (found == tensors->end())
      return fault("there is no array '" + port.name + "'");
    const HostTensor &array = found->second;
    if (!port.isBatched) {
      if (llvm::Error error = addWhole(port, array))
        return error;
      continue;
    }
    Shape wanted = port.shape;
    if (!array.getShape().empty())
      wanted[0] = array.getShape()[0];
    if (!canConvert(port.dtype, array.getType()) || array.getShape() != wanted)
      return fault("'" + port.name + "' is " + array.typeToString() +
                   "; a batch of it is to be " + typeText(port));
    if (llvm::Error error = checkRange(port, array))
      return error;
    if (numSamples < 0)
      numSamples = wanted[0];
    if (wanted[0] != numSamples)
      return fault("'" + port.name + "' has " + llvm::Twine(wanted[0]) +
                   " samples, other inputs " + llvm::Twine(numSamples));
    sources.push_back({port, array});
  }
  bool isOneByOne = numSamples < 0;
  for (const Source &source : sources) {
    if (!source.batches)
      continue;
    if (isOneByOne)
      numSamples = std::max(numSamples, source.batches);
    int64_t batches = (numSamples + batch - 1) / batch;
    if (source.batches != batches)
      return fault("'" + source.port.name + "' is given for " +
                   llvm::Twine(source.batches) + " batches; there are " +
                   llvm::Twine(batches));
  }
  if (numSamples < 0)
    numSamples = 1;
  return llvm::Error::success();
}

llvm::Error Samples::checkRange(const rt::Port &port,
                                const HostTensor &array) const {
  if (!isBeyond(port.dtype, array))
    return llvm::Error::success();
  return fault("some of the numbers of '" + port.name +
               "' are larger than f16 has them");
}

llvm::Error Samples::addWhole(const rt::Port &port, const HostTensor &array) {
  Shape shape = array.getShape();
  bool isEach = shape.size() == port.shape.size() + 1;
  int64_t batches = isEach ? shape[0] : 0;
  if (isEach)
    shape.erase(shape.begin());
  if (!canConvert(port.dtype, array.getType()) || shape != port.shape ||
      (isEach && batches < 1))
    return fault("'" + port.name + "' is " + array.typeToString() +
                 "; it takes no batches, but " + typeText(port) +
                 " for all of them, or for each");
  if (llvm::Error error = checkRange(port, array))
    return error;
  sources.push_back({port, array, /*isTokens=*/false, /*shift=*/0, batches});
  return llvm::Error::success();
}

llvm::Error Samples::readTokens(const std::vector<rt::Port> &ports,
                                const std::string &path, Tokens tokens) {
  for (const rt::Port &port : ports)
    if (!port.isBatched)
      return fault("input '" + port.name +
                   "' takes no batches, and so no tokens: give it to axopt "
                   "with --const");
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

void Samples::Source::copyElements(int64_t first, int64_t count,
                                   HostTensor &input, int64_t at) const {
  copyConverted(port.dtype, input.mutableData() + at * byteSize(port.dtype),
                array.getType(),
                array.data() + first * byteSize(array.getType()), count);
}

bool Samples::needsOrder() const {
  return llvm::any_of(sources,
                      [](const Source &source) { return source.batches > 0; });
}

llvm::Error Samples::beginBatch(int64_t number,
                                std::vector<HostTensor> &inputs) const {
  for (auto [input, source] : llvm::zip_equal(inputs, sources)) {
    if (source.port.isBatched || !source.isRead())
      continue;
    int64_t count = input.numElements(),
            first = source.batches ? number * count : 0;
    if (llvm::Error error =
            check(source, first, count, "batch " + llvm::Twine(number)))
      return error;
    source.copyElements(first, count, input, 0);
  }
  return llvm::Error::success();
}

void Samples::copy(int64_t sample, int64_t at,
                   std::vector<HostTensor> &inputs) const {
  for (auto [input, source] : llvm::zip_equal(inputs, sources)) {
    if (!source.port.isBatched || !source.reads(at))
      continue;
    int64_t elements = input.numElements() / batch;
    if (source.isTokens) {
      int64_t first = sample * elements + source.shift;
      for (int64_t i = 0; i < elements; ++i)
        input.setInt(at * elements + i, source.array.getInt(first + i));
      continue;
    }
    source.copyElements(sample * elements, elements, input, at * elements);
  }
}

bool Samples::hasLabels() const {
  return llvm::any_of(
      sources, [](const Source &s) { return s.port.labels.has_value(); });
}

void Samples::ignore(int64_t at, std::vector<HostTensor> &inputs) const {
  for (auto [input, source] : llvm::zip_equal(inputs, sources)) {
    if (!source.port.labels || !source.port.isBatched || !source.reads(at))
      continue;
    int64_t elements = input.numElements() / batch;
    for (int64_t i = 0; i < elements; ++i)
      input.setInt(at * elements + i, source.port.labels->ignored);
  }
}

std::string Samples::describeValue(const Source &source, int64_t value,
                                   llvm::StringRef kind, int64_t position,
                                   int64_t count, const llvm::Twine &where) {
  return (llvm::Twine(source.isTokens ? "token" : kind) + " " +
          llvm::Twine(value) + " of '" + source.port.name + "', " + where +
          (count > 1 ? ", position " + std::to_string(position) : ""))
      .str();
}

llvm::Error Samples::check(const Source &source, int64_t first, int64_t count,
                           const llvm::Twine &where) const {
  const rt::Port &port = source.port;
  if (!port.labels && !port.indexed)
    return llvm::Error::success();
  for (int64_t i = 0; i < count; ++i) {
    int64_t value = source.array.getInt(first + i);
    if (port.labels && !port.labels->allow(value))
      return fault(describeValue(source, value, "label", i, count, where) +
                   ", is none of " + port.labels->describe());
    if (port.indexed && (value < -*port.indexed || value >= *port.indexed))
      return fault(describeValue(source, value, "index", i, count, where) +
                   ", is out of range: the model looks it up among " +
                   llvm::Twine(*port.indexed));
  }
  return llvm::Error::success();
}

llvm::Error Samples::check(int64_t sample, int64_t at) const {
  for (const Source &source : sources) {
    if (!source.port.isBatched || !source.reads(at))
      continue;
    int64_t count = *checkedNumElements(source.port.shape) / batch;
    if (llvm::Error error = check(source, sample * count + source.shift, count,
                                  "sample " + llvm::Twine(sample)))
      return error;
  }
  return llvm::Error::success();
}

bool Samples::anyCounts(const std::vector<HostTensor> &inputs,
                        int64_t count) const {
  if (!hasLabels())
    return true;
  for (auto [input, source] : llvm::zip_equal(inputs, sources)) {
    if (!source.port.labels || !source.isRead())
      continue;
    int64_t length = input.getRank() > 1 ? input.getShape().back() : 1;
    int64_t each = input.numElements() / batch;
    int64_t e = source.port.isBatched ? each * count : input.numElements();
    for (int64_t i = 0; i < e; ++i)
      if ((!source.port.isBatched || source.reads(i / each)) &&
          i % length >= source.port.labels->shift &&
          input.getInt(i) != source.port.labels->ignored)
        return true;
  }
  return false;
}
