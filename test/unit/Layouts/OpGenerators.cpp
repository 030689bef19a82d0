//===- OpGenerators.cpp - Random instances of every operation -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OpGenerators.h"

#include "ax/Interpreter/Elements.h"

using namespace mlir;

namespace ax::test {

Shape Gen::shape(int64_t minRank, int64_t maxRank) {
  Shape shape(pick(minRank, maxRank));
  int64_t elements = 1;
  for (int64_t &size : shape) {
    size = elements > 200 ? pick(1, 2) : extent();
    elements *= size;
  }
  return shape;
}

Shape Gen::broadcastable(const Shape &full) {
  Shape shape = full;
  for (int64_t &size : shape)
    if (chance(25))
      size = 1;
  if (chance(30) && !shape.empty())
    shape.erase(shape.begin(), shape.begin() + pick(0, shape.size()));
  return shape;
}

HostTensor Gen::values(DType type, const Shape &shape, int64_t low,
                       int64_t high) {
  HostTensor tensor(type, shape);
  for (int64_t i = 0, e = tensor.numElements(); i < e; ++i)
    tensor.setInt(i, type == DType::Bool ? pick(0, 1) : pick(low, high));
  return tensor;
}

Value Gen::operand(DType dtype, const Shape &shape, int64_t low, int64_t high) {
  tensors.push_back(values(dtype, shape, low, high));
  return block.addArgument(type(dtype, shape), builder.getUnknownLoc());
}

RankedTensorType Gen::type(DType type, const Shape &shape) {
  return RankedTensorType::get(
      shape, interpreter::toElementType(type, builder.getContext()));
}

const llvm::StringMap<Generator> &opGenerators() {
  static const auto *generators = [] {
    auto *made = new llvm::StringMap<Generator>();
#define AX_FILE(Name) add##Name##Generators(*made);
#include "Generators.inc"
#undef AX_FILE
    return made;
  }();
  return *generators;
}

} // namespace ax::test
