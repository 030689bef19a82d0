//===- Npy.cpp - NumPy's .npy and .npz files ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Npy.h"

#include "ZipFile.h"

#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>

namespace ax::rt {

namespace {

constexpr llvm::StringLiteral magic("\x93NUMPY");
constexpr size_t alignment = 64;
/// numpy refuses longer headers too.
constexpr size_t longestHeader = 10000;

llvm::Error malformed(const llvm::Twine &what) {
  return makeError(ExitCode::BadInput, "not a readable .npy file: " + what);
}

struct Header {
  std::string descr;
  bool fortranOrder = false;
  Shape shape;
};

/// Reads the header, a Python dictionary of three known keys.
class HeaderParser {
public:
  explicit HeaderParser(llvm::StringRef text) : text(text) {}

  llvm::Expected<Header> parse() {
    Header header;
    bool seenDescr = false, seenOrder = false, seenShape = false;
    if (!take("{"))
      return fail();
    while (!take("}")) {
      llvm::StringRef key;
      if (!takeString(key) || !take(":"))
        return fail();
      if (key == "descr") {
        llvm::StringRef value;
        skipSpace();
        if (text.starts_with("["))
          return malformed("records are not supported");
        if (!(seenDescr = takeString(value)))
          return fail();
        header.descr = value.str();
      } else if (key == "fortran_order") {
        header.fortranOrder = take("True");
        if (!header.fortranOrder && !take("False"))
          return fail();
        seenOrder = true;
      } else if (key == "shape") {
        if (!(seenShape = takeShape(header.shape)))
          return fail();
      } else {
        return fail();
      }
      if (!take(",")) {
        if (!take("}"))
          return fail();
        break;
      }
    }
    skipSpace();
    if (!text.empty() || !seenDescr || !seenOrder || !seenShape)
      return fail();
    return header;
  }

private:
  llvm::Error fail() { return malformed("its header is corrupt"); }
  void skipSpace() { text = text.ltrim(" \t\r\n"); }
  bool take(llvm::StringRef token) {
    skipSpace();
    return text.consume_front(token);
  }
  bool takeString(llvm::StringRef &value) {
    skipSpace();
    if (text.empty() || (text[0] != '\'' && text[0] != '"'))
      return false;
    size_t end = text.find(text[0], 1);
    if (end == llvm::StringRef::npos)
      return false;
    value = text.slice(1, end);
    text = text.drop_front(end + 1);
    return true;
  }
  bool takeShape(Shape &shape) {
    if (!take("("))
      return false;
    while (!take(")")) {
      int64_t dim;
      skipSpace();
      if (text.consumeInteger(10, dim) || dim < 0)
        return false;
      text.consume_front("L");
      shape.push_back(dim);
      if (!take(",")) {
        if (!take(")"))
          return false;
        break;
      }
    }
    return true;
  }

  llvm::StringRef text;
};

struct DescrName {
  DType type;
  const char *name;
};
constexpr DescrName descrNames[] = {
    {DType::F32, "f4"},  {DType::F64, "f8"}, {DType::F16, "f2"},
    {DType::BF16, "V2"}, {DType::I8, "i1"},  {DType::I16, "i2"},
    {DType::I32, "i4"},  {DType::I64, "i8"}, {DType::U8, "u1"},
    {DType::U16, "u2"},  {DType::U32, "u4"}, {DType::U64, "u8"},
    {DType::Bool, "b1"}};
/// As ml_dtypes writes either of eight bits: which of them, nobody reads.
constexpr const char *float8Name = "V1";

void swapBytes(uint8_t *bytes, int64_t count, int64_t size) {
  for (int64_t i = 0; i < count; ++i)
    std::reverse(bytes + i * size, bytes + (i + 1) * size);
}

/// The tensor whose Fortran-order bytes `tensor` holds.
llvm::Expected<HostTensor> fromFortranOrder(const HostTensor &tensor) {
  const Shape &shape = tensor.getShape();
  auto result = HostTensor::allocate(tensor.getType(), shape);
  if (!result)
    return result.takeError();
  int64_t size = byteSize(tensor.getType());
  uint8_t *to = result->mutableData();
  std::vector<int64_t> index(shape.size(), 0), strides(shape.size());
  int64_t stride = size;
  for (size_t d = 0; d < shape.size(); ++d) {
    strides[d] = stride;
    stride *= shape[d];
  }
  const uint8_t *from = tensor.data();
  for (int64_t i = 0, e = tensor.numElements(); i < e; ++i) {
    std::copy_n(from, size, to + i * size);
    for (size_t d = shape.size(); d-- > 0;) {
      from += strides[d];
      if (++index[d] < shape[d])
        break;
      from -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
  return result;
}

llvm::ArrayRef<uint8_t> asBytes(llvm::StringRef text) {
  return {text.bytes_begin(), text.size()};
}

} // namespace

llvm::Expected<HostTensor> parseNpy(llvm::ArrayRef<uint8_t> bytes,
                                    std::shared_ptr<const void> owner) {
  if (bytes.size() < 10 || !bytes.take_front(6).equals(asBytes(magic)))
    return malformed("it does not start with \\x93NUMPY");
  int version = bytes[6];
  if (version < 1 || version > 3)
    return malformed("its version is " + llvm::Twine(version));
  size_t start = version == 1 ? 10 : 12;
  if (bytes.size() < start)
    return malformed("it is truncated");
  size_t length = version == 1 ? llvm::support::endian::read16le(&bytes[8])
                               : llvm::support::endian::read32le(&bytes[8]);
  if (length > longestHeader || length > bytes.size() - start)
    return malformed("its header is truncated or too long");
  llvm::Expected<Header> header =
      HeaderParser(llvm::toStringRef(bytes.slice(start, length))).parse();
  if (!header)
    return header.takeError();

  llvm::StringRef descr = header->descr;
  bool bigEndian = descr.consume_front(">");
  if (!bigEndian && !descr.consume_front("<") && !descr.consume_front("|"))
    descr.consume_front("=");
  const auto *known =
      std::find_if(std::begin(descrNames), std::end(descrNames),
                   [&](const DescrName &d) { return descr == d.name; });
  if (known == std::end(descrNames))
    return malformed("element type '" + header->descr + "' is not supported");
  llvm::ArrayRef<uint8_t> data = bytes.drop_front(start + length);
  std::optional<int64_t> count =
      checkedNumElements(header->shape, byteSize(known->type));
  if (!count)
    return malformed("impossible shape [" + shapeToString(header->shape) + "]");
  auto needed = static_cast<size_t>(*count * byteSize(known->type));
  if (data.size() < needed)
    return malformed("it is truncated: shape [" + shapeToString(header->shape) +
                     "] of " + toString(known->type) + " needs " +
                     llvm::Twine(needed) + " bytes, there are " +
                     llvm::Twine(data.size()));
  bool isAligned =
      reinterpret_cast<uintptr_t>(data.data()) % byteSize(known->type) == 0;
  if (owner && isAligned && !bigEndian && !header->fortranOrder &&
      known->type != DType::Bool)
    return HostTensor::borrow(known->type, header->shape, data.data(),
                              std::move(owner));
  llvm::Expected<HostTensor> tensor = HostTensor::fromBytes(
      known->type, header->shape, data.take_front(needed));
  if (!tensor)
    return tensor.takeError();
  if (bigEndian)
    swapBytes(tensor->mutableData(), *count, byteSize(known->type));
  if (header->fortranOrder)
    return fromFortranOrder(*tensor);
  return tensor;
}

static const char *descrName(DType type) {
  for (const DescrName &known : descrNames)
    if (known.type == type)
      return known.name;
  return float8Name;
}

std::string npyHeader(const HostTensor &tensor) {
  bool single = byteSize(tensor.getType()) == 1;
  std::string dict = std::string("{'descr': '") + (single ? "|" : "<") +
                     descrName(tensor.getType()) +
                     "', 'fortran_order': False, 'shape': (";
  for (int64_t dim : tensor.getShape())
    dict += std::to_string(dim) + ", ";
  // (2, 3) but (2,)
  if (tensor.getRank() == 1)
    dict.pop_back();
  else if (tensor.getRank() > 1)
    dict.resize(dict.size() - 2);
  dict += "), }";
  size_t unpadded = 10 + dict.size() + 1;
  dict.append((alignment - unpadded % alignment) % alignment, ' ');
  dict += '\n';
  std::string header = magic.str();
  header += {1, 0, static_cast<char>(dict.size() & 0xff),
             static_cast<char>(dict.size() >> 8)};
  return header + dict;
}

llvm::Expected<HostTensor> readNpy(const std::string &path) {
  llvm::Expected<std::shared_ptr<MappedFile>> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  llvm::Expected<HostTensor> tensor = parseNpy((*file)->bytes(), *file);
  if (!tensor)
    return addContext(tensor.takeError(), path);
  return tensor;
}

llvm::Expected<AtomicFile> prepareNpy(const std::string &path,
                                      const HostTensor &tensor) {
  llvm::Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.takeError();
  if (llvm::Error error = file->write(npyHeader(tensor)))
    return error;
  if (llvm::Error error = file->write(tensor.rawBytes()))
    return error;
  if (llvm::Error error = file->finish())
    return error;
  return file;
}

llvm::Error writeNpy(const std::string &path, const HostTensor &tensor) {
  llvm::Expected<AtomicFile> file = prepareNpy(path, tensor);
  return file ? file->commit() : file.takeError();
}

llvm::Expected<NamedTensors> readNpz(const std::string &path) {
  llvm::Expected<std::shared_ptr<MappedFile>> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  constexpr llvm::StringLiteral suffix = ".npy";
  llvm::Expected<std::vector<ZipMember>> members =
      readZip((*file)->bytes(), suffix);
  if (!members)
    return addContext(members.takeError(), path);
  NamedTensors tensors;
  for (const ZipMember &member : *members) {
    llvm::StringRef name = member.name;
    name.consume_back(suffix);
    llvm::Expected<HostTensor> tensor =
        parseNpy(member.content.rawBytes(), member.content.getOwner());
    if (!tensor)
      return addContext(tensor.takeError(), path + ": " + name);
    tensors.emplace_back(name.str(), std::move(*tensor));
  }
  return tensors;
}

llvm::Error writeNpz(const std::string &path, const NamedTensors &tensors) {
  llvm::Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.takeError();
  ZipWriter writer(std::move(*file));
  for (const auto &[name, tensor] : tensors) {
    std::string header = npyHeader(tensor);
    if (llvm::Error error =
            writer.add(name + ".npy", {asBytes(header), tensor.rawBytes()}))
      return error;
  }
  return writer.finish();
}

std::string npyFileName(llvm::StringRef name) {
  std::string file = name.str();
  for (char &c : file)
    if (c == '/' || c == '\\' || c == '\0')
      c = '_';
  return (file.empty() || file[0] == '.' ? "_" + file : file) + ".npy";
}

std::string npyFileIn(llvm::StringRef folder, llvm::StringRef name) {
  llvm::SmallString<128> file(folder);
  llvm::sys::path::append(file, npyFileName(name));
  return file.str().str();
}

llvm::Expected<NamedTensors> readNpyFolder(llvm::StringRef folder,
                                           llvm::ArrayRef<std::string> names) {
  NamedTensors tensors;
  for (const std::string &name : names) {
    std::string file = npyFileIn(folder, name);
    if (!llvm::sys::fs::exists(file))
      continue;
    auto tensor = readNpy(file);
    if (!tensor)
      return tensor.takeError();
    tensors.emplace_back(name, std::move(*tensor));
  }
  return tensors;
}

} // namespace ax::rt
