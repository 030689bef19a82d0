//===- PiecedTensor.cpp - A tensor that lies in several places ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/PiecedTensor.h"

#include "ax/Support/MappedFile.h"

#include <cstring>

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

void TensorPiece::copyInto(uint8_t *whole) const {
  int64_t bytes = byteSize(tensor.getType());
  box.forEachRun([&](int64_t at, int64_t count, int64_t from) {
    std::memcpy(whole + at * bytes, tensor.data() + from * bytes,
                static_cast<size_t>(count * bytes));
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

llvm::Expected<HostTensor> PiecedTensor::assemble() const {
  if (pieces.size() == 1 && pieces[0].box.isAll(pieces[0].tensor.numElements()))
    return pieces[0].tensor.reshaped(shape);
  llvm::Expected<HostTensor> whole = HostTensor::allocate(type, shape);
  if (!whole)
    return whole;
  for (const TensorPiece &piece : pieces)
    piece.copyInto(whole->mutableData());
  return whole;
}

} // namespace ax
