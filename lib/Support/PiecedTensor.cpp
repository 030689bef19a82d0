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

void TensorPiece::copyInto(DType type, uint8_t *whole) const {
  box.forEachRun([&](int64_t at, int64_t count, int64_t from) {
    copyElements(type, from, count, whole + at * byteSize(type));
    return true;
  });
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

const TensorPiece *PiecedTensor::getWhole() const {
  if (pieces.size() != 1)
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
  for (const TensorPiece &piece : pieces)
    piece.copyInto(type, whole->mutableData());
  return whole;
}

} // namespace ax
