//===- MaskRegions.cpp - Masks that ranges make ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "MaskRegions.h"

#include "../KnownValue.h"
#include "../Match.h"

#include "ax/Dialect/Tensors.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Interpreter/Interpreter.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace ax;

/// Elements of ranges, and of what is computed of them before it is large.
static constexpr int64_t mostElements = 1 << 18;
/// Of what a model has as it is, and of parts of that.
static constexpr int64_t mostStored = 1 << 24;
/// Of numbers in planes: products of a few do not overflow.
static constexpr int64_t largest = int64_t(1) << 31;

static bool isSmall(int64_t number) {
  return -largest < number && number < largest;
}

std::optional<double> ax::evaluateOnNumbers(Operation *op,
                                            ArrayRef<double> numbers) {
  auto scalarOf = [](Value value) {
    return RankedTensorType::get({}, elementType(value));
  };
  Block block;
  IRMapping mapping;
  std::vector<HostTensor> operands;
  for (auto [operand, number] : llvm::zip_equal(op->getOperands(), numbers)) {
    mapping.map(operand, block.addArgument(scalarOf(operand), op->getLoc()));
    operands.emplace_back(*interpreter::toDType(elementType(operand)), Shape{});
    operands.back().setDouble(0, number);
  }
  Operation *scalar = op->clone(mapping);
  scalar->getResult(0).setType(scalarOf(op->getResult(0)));
  auto results = interpreter::interpret(scalar, operands);
  scalar->destroy();
  if (results)
    return (*results)[0].getDouble(0);
  llvm::consumeError(results.takeError());
  return std::nullopt;
}

/// What it makes of the numbers of each band.
static std::optional<MaskRegion> apply(Operation *op,
                                       ArrayRef<MaskRegion> operands) {
  return mapBands<double>(operands, [&](ArrayRef<double> numbers) {
    return evaluateOnNumbers(op, numbers);
  });
}

/// Where slope * (j - i) + offset <= 0.
static MaskRegion atMostZero(int64_t slope, int64_t offset) {
  if (slope > 0)
    return {{llvm::divideFloorSigned(-offset, slope)}, {1, 0}};
  // j - i >= offset / -slope: all but what is below that.
  return {{llvm::divideCeilSigned(offset, -slope) - 1}, {0, 1}};
}

/// Of elements [.., rows, columns] that are the same along each diagonal.
static std::optional<MaskRegion> regionOf(const HostTensor &tensor) {
  int64_t rank = tensor.getRank();
  if (rank < 2)
    return std::nullopt;
  int64_t rows = tensor.getShape()[rank - 2],
          columns = tensor.getShape()[rank - 1];
  if (rows < 2 || columns < 2)
    return std::nullopt;
  // Down the left, and along the top.
  auto ofDiagonal = [&](int64_t difference) {
    return tensor.getDouble(difference < 0 ? -difference * columns
                                           : difference);
  };
  MaskRegion region = MaskRegion::everywhere(ofDiagonal(1 - rows));
  for (int64_t difference = 2 - rows; difference < columns; ++difference) {
    double number = ofDiagonal(difference);
    if (number != region.last())
      region.append(difference - 1, number);
    if (region.ends.size() > MaskRegion::mostEnds)
      return std::nullopt;
  }
  for (int64_t i = 0, count = tensor.numElements(); i < count; ++i) {
    int64_t row = i / columns % rows, column = i % columns;
    if (tensor.getDouble(i) != region.at(column - row))
      return std::nullopt;
  }
  return region;
}

/// A range along rows or columns, one number, or a region.
MaskRegions::Content MaskRegions::ofElements(Value value,
                                             int64_t mostElements) {
  std::optional<HostTensor> tensor = knownValue(value, mostElements);
  if (!tensor || tensor->numElements() == 0)
    return {};
  bool isInteger =
      elementType(value).isIntOrIndex() && !elementType(value).isInteger(1);
  if (std::optional<double> number = splatOf(*tensor)) {
    if (!isInteger)
      return MaskRegion::everywhere(*number);
    return isSmall(tensor->getInt(0)) ? Content(Plane{0, 0, tensor->getInt(0)})
                                      : Content();
  }
  if (std::optional<MaskRegion> region = regionOf(*tensor)) {
    // Of larger integers a number of f64 may stand for several.
    bool isExact = !isInteger || llvm::all_of(region->parts, [](double number) {
      return std::abs(number) < largest;
    });
    return isExact ? Content(*region) : Content();
  }
  ArrayRef<int64_t> shape = shapeOf(value);
  int64_t size = tensor->numElements();
  bool alongRows = shape.size() > 1 && shape[shape.size() - 2] == size;
  if (!isInteger || (!alongRows && shape.back() != size))
    return {};
  int64_t first = tensor->getInt(0), second = tensor->getInt(1);
  if (!isSmall(first) || !isSmall(second))
    return {};
  int64_t step = second - first;
  for (int64_t i = 2; i < size; ++i)
    if (tensor->getInt(i) != first + i * step)
      return {};
  return alongRows ? Plane{step, 0, first} : Plane{0, step, first};
}

/// lhs + sign * rhs.
MaskRegions::Content MaskRegions::combine(const Plane &lhs, const Plane &rhs,
                                          int64_t sign) {
  Plane sum{lhs.row + sign * rhs.row, lhs.column + sign * rhs.column,
            lhs.offset + sign * rhs.offset};
  if (isSmall(sum.row) && isSmall(sum.column) && isSmall(sum.offset))
    return sum;
  return {};
}

MaskRegions::Content MaskRegions::halvesOf(CompareOp compare,
                                           const Content &difference) {
  CompareKind kind = compare.getKind();
  auto *d = std::get_if<Plane>(&difference);
  if (!d || d->column == 0 || d->row != -d->column || kind == CompareKind::eq ||
      kind == CompareKind::ne)
    return {};
  // lhs < rhs is lhs - rhs + 1 <= 0, and both have an opposite.
  bool isStrict = kind == CompareKind::lt || kind == CompareKind::ge;
  MaskRegion region = atMostZero(d->column, d->offset + isStrict);
  if (kind == CompareKind::gt || kind == CompareKind::ge)
    std::swap(region.parts[0], region.parts[1]);
  region.crop(shapeOf(compare));
  return region;
}

static ArrayRef<int64_t> withoutLeadingOnes(ArrayRef<int64_t> shape) {
  while (shape.size() > 2 && shape.front() == 1)
    shape = shape.drop_front();
  return shape;
}

MaskRegions::Content MaskRegions::compute(Value value) {
  Operation *op = value.getDefiningOp();
  if (tensorType(value).getNumElements() <= mostElements)
    return ofElements(value, mostElements);
  bool byElement = isElementwise(op);
  if (!byElement && !isa<BroadcastOp, ReshapeOp>(op))
    return ofElements(value, mostStored);

  SmallVector<Plane> planes;
  SmallVector<MaskRegion> regions;
  for (Value operand : op->getOperands()) {
    Content content = contentOf(operand);
    if (std::holds_alternative<std::monostate>(content))
      return {};
    if (auto *plane = std::get_if<Plane>(&content)) {
      planes.push_back(*plane);
      if (plane->row == 0 && plane->column == 0)
        regions.push_back(
            MaskRegion::everywhere(static_cast<double>(plane->offset)));
    } else {
      regions.push_back(std::get<MaskRegion>(content));
    }
  }
  size_t count = op->getNumOperands();
  if (!byElement) {
    if (auto reshape = dyn_cast<ReshapeOp>(op);
        reshape && withoutLeadingOnes(shapeOf(reshape.getOperand())) !=
                       withoutLeadingOnes(shapeOf(reshape)))
      return {};
    return contentOf(op->getOperand(0));
  }
  if (regions.size() == count) {
    std::optional<MaskRegion> region = apply(op, regions);
    return region ? Content(*region) : Content();
  }
  if (planes.size() != count)
    return {};
  if (auto compare = dyn_cast<CompareOp>(op))
    return halvesOf(compare, combine(planes[0], planes[1], -1));
  // Narrower integers may wrap.
  auto binary = dyn_cast<BinaryOp>(op);
  if (!binary || !elementType(binary).isInteger(64))
    return {};
  if (binary.getKind() == BinaryKind::add)
    return combine(planes[0], planes[1], 1);
  if (binary.getKind() == BinaryKind::sub)
    return combine(planes[0], planes[1], -1);
  return {};
}

MaskRegions::Content MaskRegions::contentOf(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  Content content = compute(value);
  known[value] = content;
  return content;
}

std::optional<MaskRegion> MaskRegions::find(Value value) {
  if (!isWeight(value))
    return std::nullopt;
  Content content = contentOf(value);
  if (auto *region = std::get_if<MaskRegion>(&content))
    return *region;
  return std::nullopt;
}
