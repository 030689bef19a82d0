//===- Types.cpp - ONNX tensors as ours -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Types.h"

#include "ax/Dialect/Limits.h"
#include "ax/Import/Import.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"

#include <array>
#include <limits>

using namespace ax;
using namespace ax::import;
using onnx::TensorProto;

namespace {
struct TypePair {
  int32_t onnxType;
  DType type;
};
} // namespace

static constexpr TypePair typePairs[] = {
    {TensorProto::FLOAT, DType::F32},
    {TensorProto::DOUBLE, DType::F64},
    {TensorProto::FLOAT16, DType::F16},
    {TensorProto::BFLOAT16, DType::BF16},
    {TensorProto::INT8, DType::I8},
    {TensorProto::INT16, DType::I16},
    {TensorProto::INT32, DType::I32},
    {TensorProto::INT64, DType::I64},
    {TensorProto::UINT8, DType::U8},
    {TensorProto::UINT16, DType::U16},
    {TensorProto::UINT32, DType::U32},
    {TensorProto::UINT64, DType::U64},
    {TensorProto::BOOL, DType::Bool},
    {TensorProto::FLOAT8E4M3FN, DType::F8E4M3FN},
    {TensorProto::FLOAT8E5M2, DType::F8E5M2},
};

std::optional<DType> ax::import::fromOnnxType(int32_t onnxType) {
  for (const TypePair &pair : typePairs)
    if (pair.onnxType == onnxType)
      return pair.type;
  return std::nullopt;
}

int32_t ax::import::toOnnxType(DType type) {
  for (const TypePair &pair : typePairs)
    if (pair.type == type)
      return pair.onnxType;
  return TensorProto::UNDEFINED;
}

std::optional<FourBits::Kind> ax::import::fourBitKind(int32_t onnxType) {
  switch (onnxType) {
  case TensorProto::UINT4:
    return FourBits::Kind::Unsigned;
  case TensorProto::INT4:
    return FourBits::Kind::Signed;
  case TensorProto::FLOAT4E2M1:
    return FourBits::Kind::Float;
  default:
    return std::nullopt;
  }
}

std::string ax::import::onnxTypeName(int32_t onnxType) {
  if (!TensorProto::DataType_IsValid(onnxType))
    return std::to_string(onnxType);
  return TensorProto::DataType_Name(
      static_cast<TensorProto::DataType>(onnxType));
}

/// Data of the repeated field that `proto`'s type uses, one entry an element.
template <typename Field>
static llvm::Error copyField(const Field &field, HostTensor &tensor,
                             const std::string &name) {
  if (field.size() != tensor.numElements())
    return makeErrorf(ExitCode::BadModel,
                      "tensor '{0}' of {1} has {2} elements", name,
                      tensor.typeToString(), field.size());
  for (int i = 0; i < field.size(); ++i) {
    switch (tensor.getType()) {
    case DType::F16:
      tensor.mutableValues<Float16>()[i] =
          Float16::fromBits(static_cast<uint16_t>(field[i]));
      break;
    case DType::BF16:
      tensor.mutableValues<BFloat16>()[i] =
          BFloat16::fromBits(static_cast<uint16_t>(field[i]));
      break;
    case DType::F8E4M3FN:
      tensor.mutableValues<Float8E4M3FN>()[i] =
          Float8E4M3FN::fromBits(static_cast<uint8_t>(field[i]));
      break;
    case DType::F8E5M2:
      tensor.mutableValues<Float8E5M2>()[i] =
          Float8E5M2::fromBits(static_cast<uint8_t>(field[i]));
      break;
    case DType::F32:
    case DType::F64:
      tensor.setDouble(i, static_cast<double>(field[i]));
      break;
    default:
      tensor.setInt(i, static_cast<int64_t>(field[i]));
    }
  }
  return llvm::Error::success();
}

llvm::Expected<int64_t> ax::import::countElements(const std::string &name,
                                                  llvm::ArrayRef<int64_t> shape,
                                                  DType type) {
  std::optional<int64_t> count = checkedNumElements(shape, byteSize(type));
  if (!count)
    return makeErrorf(ExitCode::BadModel,
                      "tensor '{0}' has impossible shape {1}", name,
                      shorten(shapeToString(shape)));
  if (std::string fault = findSizeFault(shape, byteSize(type)); !fault.empty())
    return makeErrorf(ExitCode::Unsupported, "tensor '{0}' {1}", name, fault);
  return *count;
}

DType ax::import::typeOf(FourBits::Kind kind) {
  switch (kind) {
  case FourBits::Kind::Unsigned:
    return DType::U8;
  case FourBits::Kind::Signed:
    return DType::I8;
  case FourBits::Kind::Float:
    return DType::F8E4M3FN;
  }
  llvm_unreachable("no such numbers");
}

/// A number of E2M1, which has no infinity and no NaN.
static double floatOfFourBits(int64_t bits) {
  constexpr std::array<double, 8> sizes = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  double size = sizes[bits & 7];
  return bits & 8 ? -size : size;
}

llvm::Expected<HostTensor> ax::import::unpack(llvm::ArrayRef<uint8_t> bytes,
                                              const FourBits &fourBits) {
  bool isSigned = fourBits.kind == FourBits::Kind::Signed,
       isFloat = fourBits.kind == FourBits::Kind::Float;
  llvm::Expected<HostTensor> tensor =
      HostTensor::allocate(typeOf(fourBits.kind), fourBits.shape);
  if (!tensor)
    return tensor.takeError();
  for (int64_t i = 0, e = tensor->numElements(); i < e; ++i) {
    int64_t number = bytes[i / 2] >> (i % 2 * 4) & 15;
    if (isFloat)
      tensor->setDouble(i, floatOfFourBits(number));
    else
      tensor->setInt(i, isSigned && number > 7 ? number - 16 : number);
  }
  return tensor;
}

/// The same of a tensor that holds its data, as bytes or each in a number.
static llvm::Expected<HostTensor> unpackTensor(const TensorProto &proto) {
  FourBits fourBits{*fourBitKind(proto.data_type()),
                    Shape(proto.dims().begin(), proto.dims().end())};
  auto count = countElements(proto.name(), fourBits.shape, DType::U8);
  if (!count)
    return count.takeError();
  std::vector<uint8_t> bytes(proto.raw_data().begin(), proto.raw_data().end());
  if (!proto.has_raw_data())
    bytes.assign(proto.int32_data().begin(), proto.int32_data().end());
  if (static_cast<int64_t>(bytes.size()) != (*count + 1) / 2)
    return makeErrorf(ExitCode::BadModel,
                      "tensor '{0}' of {1}x{2} has {3} bytes", proto.name(),
                      shapeToString(fourBits.shape),
                      onnxTypeName(proto.data_type()), bytes.size());
  return unpack(bytes, fourBits);
}

llvm::Expected<HostTensor> ax::import::toHostTensor(const TensorProto &proto) {
  const std::string &name = proto.name();
  std::optional<DType> type = fromOnnxType(proto.data_type());
  if (!type && !fourBitKind(proto.data_type()))
    return makeErrorf(
        ExitCode::Unsupported,
        "tensor '{0}' has element type {1}, which is not supported", name,
        onnxTypeName(proto.data_type()));
  if (proto.has_segment() || proto.data_location() == TensorProto::EXTERNAL)
    return makeErrorf(ExitCode::Unsupported,
                      "tensor '{0}' lies outside the place where it is used "
                      "(external data of an attribute or subgraph)",
                      name);
  if (!type)
    return unpackTensor(proto);
  Shape shape(proto.dims().begin(), proto.dims().end());
  llvm::Expected<int64_t> count = countElements(name, shape, *type);
  if (!count)
    return count.takeError();
  if (proto.has_raw_data()) {
    const std::string &raw = proto.raw_data();
    auto tensor = HostTensor::fromBytes(
        *type, std::move(shape),
        {reinterpret_cast<const uint8_t *>(raw.data()), raw.size()});
    if (!tensor) {
      ErrorDescription why = describeError(tensor.takeError());
      return makeErrorf(ExitCode::BadModel, "tensor '{0}': {1}", name,
                        why.message);
    }
    return tensor;
  }

  int64_t available =
      std::max({proto.float_data_size(), proto.double_data_size(),
                proto.int32_data_size(), proto.int64_data_size(),
                proto.uint64_data_size()});
  // Checked before allocating, for the shape may claim anything.
  if (*count != available)
    return makeErrorf(ExitCode::BadModel,
                      "tensor '{0}' of {1}x{2} has {3} elements", name,
                      shapeToString(shape), toString(*type), available);
  llvm::Expected<HostTensor> tensor =
      HostTensor::allocate(*type, std::move(shape));
  if (!tensor)
    return tensor.takeError();
  llvm::Error error = llvm::Error::success();
  switch (*type) {
  case DType::F32:
    error = copyField(proto.float_data(), *tensor, name);
    break;
  case DType::F64:
    error = copyField(proto.double_data(), *tensor, name);
    break;
  case DType::I64:
    error = copyField(proto.int64_data(), *tensor, name);
    break;
  case DType::U32:
  case DType::U64:
    error = copyField(proto.uint64_data(), *tensor, name);
    break;
  default:
    error = copyField(proto.int32_data(), *tensor, name);
  }
  if (error)
    return error;
  return tensor;
}

TensorProto ax::import::toTensorProto(const HostTensor &tensor,
                                      const std::string &name) {
  TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(toOnnxType(tensor.getType()));
  for (int64_t size : tensor.getShape())
    proto.add_dims(size);
  proto.set_raw_data(tensor.data(), static_cast<size_t>(tensor.numBytes()));
  return proto;
}

llvm::Expected<NamedTensor> ax::import::readTensorProto(llvm::StringRef path) {
  auto file = MappedFile::open(path.str());
  if (!file)
    return file.takeError();
  TensorProto proto;
  if ((*file)->getSize() > std::numeric_limits<int>::max() ||
      !proto.ParseFromArray((*file)->bytes().data(),
                            static_cast<int>((*file)->getSize())))
    return makeErrorf(ExitCode::BadInput, "'{0}' is not a serialised tensor",
                      path);
  llvm::Expected<HostTensor> tensor = toHostTensor(proto);
  if (!tensor)
    return makeErrorf(ExitCode::BadInput, "'{0}': {1}", path,
                      describeError(tensor.takeError()).message);
  return NamedTensor{proto.name(), std::move(*tensor)};
}
