//===- PiecedTensor.cpp - A tensor that lies in several places ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/PiecedTensor.h"

#include "ax/Support/FloatConversion.h"
#include "ax/Support/MappedFile.h"

#include "llvm/ADT/STLExtras.h"

namespace ax {

bool ElementBox::forEachRun(VisitRun fn) const {
  int64_t from = 0;
  return count == 0 || visit(0, offset, from, fn);
}

bool ElementBox::visit(size_t dim, int64_t at, int64_t &from,
                       VisitRun fn) const {
  bool isRun = dim + 1 == sizes.size() && strides[dim] == 1;
  if (dim == sizes.size() || isRun) {
    int64_t length = isRun ? sizes[dim] : 1;
    from += length;
    return fn(at, length, from - length);
  }
  for (int64_t i = 0; i < sizes[dim]; ++i)
    if (!visit(dim + 1, at + i * strides[dim], from, fn))
      return false;
  return true;
}

void TensorPiece::copyElements(DType type, int64_t first, int64_t count,
                               uint8_t *to) const {
  const uint8_t *from = tensor.data() + first * byteSize(tensor.getType());
  copyConverted(type, to, tensor.getType(), from, count);
}

void TensorPiece::release() const {
  if (file)
    file->release(tensor.data() - file->bytes().data(), tensor.numBytes());
}

std::string PiecedTensor::typeToString() const {
  return HostTensor::borrow(type, shape, nullptr, nullptr).typeToString();
}

PiecedTensor PiecedTensor::of(HostTensor tensor,
                              std::shared_ptr<MappedFile> file) {
  int64_t count = tensor.numElements();
  PiecedTensor result{tensor.getType(), tensor.getShape(), {}};
  result.pieces.push_back(
      {{0, {count}, {1}, count}, std::move(tensor), std::move(file)});
  return result;
}

bool PiecedTensor::forEachRun(const ElementBox &box,
                              ElementBox::VisitRun fn) const {
  if (given == wanted)
    return box.forEachRun(fn);
  std::optional<DealtOrder> from, to;
  if (given)
    from.emplace(*given, shape);
  if (wanted)
    to.emplace(*wanted, shape);
  auto deal = [&](int64_t at, int64_t count, int64_t first) {
    if (!to)
      return fn(at, count, first);
    return to->deal(at, count, [&](int64_t place, int64_t some, int64_t skip) {
      return fn(place, some, first + skip);
    });
  };
  return box.forEachRun([&](int64_t at, int64_t count, int64_t first) {
    if (!from)
      return deal(at, count, first);
    return from->collect(at, count,
                         [&](int64_t place, int64_t some, int64_t skip) {
                           return deal(place, some, first + skip);
                         });
  });
}

const TensorPiece *PiecedTensor::getWhole() const {
  if (pieces.size() != 1 || given != wanted)
    return nullptr;
  const TensorPiece &piece = pieces.front();
  bool isAll = piece.box.isAll(piece.tensor.numElements());
  return isAll && piece.tensor.getType() == type ? &piece : nullptr;
}

llvm::Expected<HostTensor> PiecedTensor::assemble() const {
  if (const TensorPiece *piece = getWhole())
    return piece->tensor.reshaped(shape);
  llvm::Expected<HostTensor> whole = HostTensor::allocate(type, shape);
  if (!whole)
    return whole;
  uint8_t *to = whole->mutableData();
  for (const TensorPiece &piece : pieces)
    forEachRun(piece.box, [&](int64_t at, int64_t count, int64_t from) {
      piece.copyElements(type, from, count, to + at * byteSize(type));
      return true;
    });
  return whole;
}

llvm::Expected<HostTensor> inModelOrder(HostTensor tensor,
                                        const std::optional<Dealt> &dealt) {
  PiecedTensor pieces = PiecedTensor::of(std::move(tensor));
  pieces.given = dealt;
  return pieces.assemble();
}

} // namespace ax
