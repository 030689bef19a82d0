//===- Constants.cpp - Tensors from attributes and shapes -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpTable.h"
#include "../Types.h"

#include <cmath>

using namespace ax;
using namespace ax::import;
using onnx::AttributeProto;

static Value tensorConstant(Node &n, const onnx::TensorProto &proto) {
  llvm::Expected<HostTensor> tensor = toHostTensor(proto);
  if (tensor) {
    Value constant = n.b.constant(std::move(*tensor));
    if (fourBitKind(proto.data_type()))
      n.b.noteFourBits(constant);
    return constant;
  }
  ErrorDescription why = describeError(tensor.takeError());
  return n.b.fail(why.code, why.message);
}

/// A sparse tensor's dense form.
static Value sparseConstant(Node &n, const onnx::SparseTensorProto &proto) {
  llvm::Expected<HostTensor> values = toHostTensor(proto.values());
  llvm::Expected<HostTensor> indices = toHostTensor(proto.indices());
  if (!values || !indices) {
    std::string message;
    if (!values)
      message += describeError(values.takeError()).message;
    if (!indices)
      message += describeError(indices.takeError()).message;
    return n.fail(message);
  }
  Shape shape(proto.dims().begin(), proto.dims().end());
  if (std::optional<int64_t> size = checkedNumElements(shape);
      !size || *size > (1 << 26))
    return n.unsupported("a sparse constant of shape [" + shapeToString(shape) +
                         "]");
  llvm::Expected<HostTensor> dense =
      HostTensor::allocate(values->getType(), shape);
  if (!dense)
    return n.fail(describeError(dense.takeError()).message);
  int64_t rank = shape.size(), count = values->numElements();
  bool linear = indices->getRank() == 1;
  if (indices->numElements() != count * (linear ? 1 : rank))
    return n.fail("a sparse constant has not one index for each value");
  std::vector<int64_t> strides = rowMajorStrides(shape);
  for (int64_t i = 0; i < count; ++i) {
    int64_t position = linear ? indices->getInt(i) : 0;
    for (int64_t d = 0; !linear && d < rank; ++d) {
      int64_t index = indices->getInt(i * rank + d);
      if (index < 0 || index >= shape[d])
        return n.fail("a sparse constant's index is out of range");
      position += index * strides[d];
    }
    if (position < 0 || position >= dense->numElements())
      return n.fail("a sparse constant's index is out of range");
    int64_t size = byteSize(values->getType());
    std::copy_n(values->data() + i * size, size,
                dense->mutableData() + position * size);
  }
  return n.b.constant(std::move(*dense));
}

static void importConstant(Node &n) {
  if (n.proto.attribute_size() != 1) {
    n.fail("needs exactly one attribute");
    return;
  }
  const AttributeProto &value = n.proto.attribute(0);
  int64_t numFloats = value.floats_size(), numInts = value.ints_size();
  if (value.name() == "value")
    return n.out(tensorConstant(n, value.t()));
  if (value.name() == "sparse_value")
    return n.out(sparseConstant(n, value.sparse_tensor()));
  if (value.name() == "value_float")
    return n.out(n.b.constant(HostTensor::scalar<float>(value.f())));
  if (value.name() == "value_int")
    return n.out(n.b.constant(HostTensor::scalar<int64_t>(value.i())));
  if (value.name() == "value_floats")
    return n.out(n.b.constant(HostTensor::fromValues<float>(
        {numFloats},
        ArrayRef<float>(value.floats().data(), value.floats_size()))));
  if (value.name() == "value_ints")
    return n.out(n.b.ints(
        ArrayRef<int64_t>(value.ints().data(), static_cast<size_t>(numInts))));
  n.unsupported("constants of strings are not supported");
}

static void importConstantOfShape(Node &n) {
  std::optional<Sizes> shape = n.sizes(0, "input");
  if (!shape)
    return;
  Value element;
  if (const AttributeProto *value = n.attribute("value"))
    element = n.b.reshape(tensorConstant(n, value->t()), {});
  else
    element = n.b.scalar(DType::F32, 0);
  Value y = n.b.broadcast(element, shape->most);
  n.out(shape->open
            ? n.b.bounded(y, static_cast<int64_t>(*shape->open), shape->count)
            : y);
}

static void importRange(Node &n) {
  Value first = n.in(0);
  std::optional<HostTensor> start = n.known(0, "start"), delta;
  // onnxruntime's own does without.
  if (first && !n.has(2))
    delta = n.b.knownValue(n.b.like(first, 1));
  else
    delta = n.known(2, "delta");
  if (!start || !delta)
    return;
  // As many as there are results: 0, 1, ...
  bool counts = start->numElements() == 1 && delta->numElements() == 1 &&
                start->getDouble(0) == 0 && delta->getDouble(0) == 1;
  Value last = n.in(1);
  if (counts && n.b.countBehind(last)) {
    if (isFloat(Emitter::typeOf(last)))
      last = n.b.unary(UnaryKind::ceil, last);
    last = n.b.cast(last, DType::I64);
    if (!n.b.isCount(last))
      last = n.b.max(last, n.b.like(last, 0));
    if (std::optional<Sizes> sizes = n.openSizes(last, "limit"))
      n.out(n.b.bounded(n.b.iota(Emitter::typeOf(first), {sizes->most[0]}, 0),
                        0, sizes->count));
    return;
  }
  std::optional<HostTensor> limit = n.known(1, "limit");
  if (!start || !limit || !delta)
    return;
  if (start->numElements() != 1 || limit->numElements() != 1 ||
      delta->numElements() != 1) {
    n.fail("start, limit and delta are single numbers");
    return;
  }
  DType type = Emitter::typeOf(first);
  bool isInt = !isFloat(type);
  double count;
  if (isInt) {
    int64_t step = delta->getInt(0);
    // In floating point, for the difference may wrap.
    count = std::ceil((static_cast<double>(limit->getInt(0)) -
                       static_cast<double>(start->getInt(0))) /
                      static_cast<double>(step));
  } else {
    count = std::ceil((limit->getDouble(0) - start->getDouble(0)) /
                      delta->getDouble(0));
  }
  if (!(count <= 1 << 24)) {
    n.fail("the range has no end, or too many elements");
    return;
  }
  int64_t size = count > 0 ? static_cast<int64_t>(count) : 0;
  llvm::Expected<HostTensor> tensor = HostTensor::allocate(type, {size});
  if (!tensor) {
    n.fail(describeError(tensor.takeError()).message);
    return;
  }
  for (int64_t i = 0; i < size; ++i) {
    if (isInt)
      tensor->setInt(
          i, static_cast<int64_t>(static_cast<uint64_t>(start->getInt(0)) +
                                  static_cast<uint64_t>(i) *
                                      static_cast<uint64_t>(delta->getInt(0))));
    else
      tensor->setDouble(i, start->getDouble(0) +
                               static_cast<double>(i) * delta->getDouble(0));
  }
  n.out(n.b.constant(std::move(*tensor)));
}

static void importEyeLike(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  if (shape.size() != 2) {
    n.fail("needs two dimensions");
    return;
  }
  DType type = n.typeAttr("dtype", Emitter::typeOf(x));
  Value row = n.b.iota(DType::I64, {shape[0], 1}, 0);
  Value column = n.b.iota(DType::I64, {1, shape[1]}, 1);
  Value diagonal =
      n.b.add(row, n.b.constant(HostTensor::scalar(n.intAttr("k", 0))));
  n.out(n.b.cast(n.b.compare(CompareKind::eq, column, diagonal), type));
}

static void importOneHot(Node &n) {
  Value indices = n.in(0), values = n.in(2);
  std::optional<int64_t> depth = n.knownInt(1, "depth");
  if (!indices || !values || !depth)
    return;
  int64_t rank = Emitter::rankOf(indices) + 1;
  int64_t axis = n.dim(n.intAttr("axis", -1), rank);
  if (n.failed())
    return;
  if (*depth < 0 || Emitter::shapeOf(values) != ArrayRef<int64_t>(2)) {
    n.fail("needs a depth of at least 0 and two values");
    return;
  }
  Shape open(Emitter::shapeOf(indices)), line(rank, 1);
  open.insert(open.begin() + axis, 1);
  line[axis] = *depth;
  Value index = n.b.reshape(n.b.cast(indices, DType::I64), open);
  Value fromEnd = n.b.add(index, n.b.constant(HostTensor::scalar(*depth)));
  index = n.b.select(n.b.compare(CompareKind::lt, index, n.b.like(index, 0)),
                     fromEnd, index);
  Value isHot =
      n.b.compare(CompareKind::eq, n.b.iota(DType::I64, line, axis), index);
  Value off = n.b.reshape(n.b.sliceDim(values, 0, 0, 1), {});
  Value on = n.b.reshape(n.b.sliceDim(values, 0, 1, 1), {});
  n.out(n.b.select(isHot, on, off));
}

static const OpEntry entries[] = {
    {"Constant", importConstant}, {"ConstantOfShape", importConstantOfShape},
    {"EyeLike", importEyeLike},   {"OneHot", importOneHot},
    {"Range", importRange},
};

static const OpEntry contribEntries[] = {
    {"Range",
     importRange,
     1,
     {"start:T=double|float|int16|int32|int64 limit:T delta?:T", "Y:T"}},
};

void ax::import::addConstants(OpTable &table) {
  table.add(entries);
  table.add(contribEntries, contribDomain);
}
