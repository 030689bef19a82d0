//===- MaskRegions.cpp - Masks that ranges make ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "MaskRegions.h"

#include "../KnownValue.h"
#include "../Match.h"

#include "ax/Dialect/Tensors.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace ax;

/// Elements of ranges, and of what is computed of them before it is large.
static constexpr int64_t mostElements = 1 << 18;
/// Of numbers in planes: products of a few do not overflow.
static constexpr int64_t largest = int64_t(1) << 31;

static MaskRegion everywhere(double number) {
  return {std::nullopt, number, number};
}

static bool isSmall(int64_t number) {
  return -largest < number && number < largest;
}

/// `function` of both numbers, where what they depend on is split alike.
static std::optional<MaskRegion>
apply(ArrayRef<MaskRegion> operands,
      llvm::function_ref<double(ArrayRef<double>)> function) {
  MaskRegion result;
  SmallVector<double> inside, outside;
  for (const MaskRegion &operand : operands) {
    if (operand.diagonal && result.diagonal &&
        *operand.diagonal != *result.diagonal)
      return std::nullopt;
    if (operand.diagonal)
      result.diagonal = operand.diagonal;
    inside.push_back(operand.inside);
    outside.push_back(operand.outside);
  }
  result.inside = function(inside);
  result.outside = function(outside);
  return result;
}

static bool compares(CompareKind kind, double lhs, double rhs) {
  switch (kind) {
  case CompareKind::eq:
    return lhs == rhs;
  case CompareKind::ne:
    return lhs != rhs;
  case CompareKind::lt:
    return lhs < rhs;
  case CompareKind::le:
    return lhs <= rhs;
  case CompareKind::gt:
    return lhs > rhs;
  case CompareKind::ge:
    return lhs >= rhs;
  }
  return false;
}

/// Where slope * (j - i) + offset <= 0.
static MaskRegion atMostZero(int64_t slope, int64_t offset) {
  if (slope > 0)
    return {llvm::divideFloorSigned(-offset, slope), 1, 0};
  // j - i >= offset / -slope: all but what is below that.
  return {llvm::divideCeilSigned(offset, -slope) - 1, 0, 1};
}

static std::optional<double> numberOf(BinaryKind kind, ArrayRef<double> xs) {
  switch (kind) {
  case BinaryKind::add:
    return xs[0] + xs[1];
  case BinaryKind::sub:
    return xs[0] - xs[1];
  case BinaryKind::mul:
    return xs[0] * xs[1];
  case BinaryKind::logical_and:
    return xs[0] != 0 && xs[1] != 0;
  case BinaryKind::logical_or:
    return xs[0] != 0 || xs[1] != 0;
  default:
    return std::nullopt;
  }
}

/// A range along rows or columns, or one number.
MaskRegions::Content MaskRegions::ofElements(Value value) {
  std::optional<HostTensor> tensor = knownValue(value, mostElements);
  if (!tensor || tensor->numElements() == 0)
    return {};
  bool isInteger =
      elementType(value).isIntOrIndex() && !elementType(value).isInteger(1);
  if (std::optional<double> number = splatOf(*tensor)) {
    if (isInteger && isSmall(tensor->getInt(0)))
      return Plane{0, 0, tensor->getInt(0)};
    return everywhere(*number);
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

MaskRegions::Content MaskRegions::compute(Value value) {
  Operation *op = value.getDefiningOp();
  if (tensorType(value).getNumElements() <= mostElements)
    return ofElements(value);
  if (!isa<BinaryOp, BroadcastOp, CastOp, CompareOp, ReshapeOp, SelectOp,
           UnaryOp>(op))
    return {};

  SmallVector<Plane> planes;
  SmallVector<MaskRegion> regions;
  for (Value operand : op->getOperands()) {
    Content content = contentOf(operand);
    if (std::holds_alternative<std::monostate>(content))
      return {};
    if (auto *plane = std::get_if<Plane>(&content)) {
      planes.push_back(*plane);
      if (plane->row == 0 && plane->column == 0)
        regions.push_back(everywhere(static_cast<double>(plane->offset)));
    } else {
      regions.push_back(std::get<MaskRegion>(content));
    }
  }
  size_t count = op->getNumOperands();
  bool arePlanes = planes.size() == count, areRegions = regions.size() == count;
  auto applied =
      [&](llvm::function_ref<double(ArrayRef<double>)> function) -> Content {
    std::optional<MaskRegion> result;
    if (areRegions)
      result = apply(regions, function);
    return result ? Content(*result) : Content();
  };

  return TypeSwitch<Operation *, Content>(op)
      .Case<BroadcastOp>([&](auto) -> Content {
        return arePlanes ? Content(planes[0]) : Content(regions[0]);
      })
      .Case<ReshapeOp>([&](ReshapeOp reshape) -> Content {
        auto trailing = [](ArrayRef<int64_t> shape) {
          while (shape.size() > 2 && shape.front() == 1)
            shape = shape.drop_front();
          return shape;
        };
        if (trailing(shapeOf(reshape.getOperand())) !=
            trailing(shapeOf(reshape)))
          return {};
        return arePlanes ? Content(planes[0]) : Content(regions[0]);
      })
      .Case<CastOp>([&](CastOp cast) -> Content {
        bool toBool = elementType(cast).isInteger(1);
        // Other integers may have no room for a number.
        if (!toBool && !isa<FloatType>(elementType(cast)) &&
            !elementType(cast.getOperand()).isInteger(1))
          return {};
        return applied([&](ArrayRef<double> xs) {
          return toBool ? static_cast<double>(xs[0] != 0) : xs[0];
        });
      })
      .Case<UnaryOp>([&](UnaryOp unary) -> Content {
        if (unary.getKind() == UnaryKind::logical_not)
          return applied([](ArrayRef<double> xs) {
            return static_cast<double>(xs[0] == 0);
          });
        if (unary.getKind() == UnaryKind::neg)
          return applied([](ArrayRef<double> xs) { return -xs[0]; });
        return {};
      })
      .Case<BinaryOp>([&](BinaryOp binary) -> Content {
        BinaryKind kind = binary.getKind();
        bool isSum = kind == BinaryKind::add,
             isDifference = kind == BinaryKind::sub;
        if (arePlanes && (isSum || isDifference))
          return combine(planes[0], planes[1], isSum ? 1 : -1);
        if (!numberOf(kind, {0, 0}))
          return {};
        return applied(
            [&](ArrayRef<double> xs) { return *numberOf(kind, xs); });
      })
      .Case<SelectOp>([&](auto) -> Content {
        return applied(
            [](ArrayRef<double> xs) { return xs[0] != 0 ? xs[1] : xs[2]; });
      })
      .Case<CompareOp>([&](CompareOp compare) -> Content {
        CompareKind kind = compare.getKind();
        if (areRegions)
          return applied([&](ArrayRef<double> xs) {
            return static_cast<double>(compares(kind, xs[0], xs[1]));
          });
        if (!arePlanes || kind == CompareKind::eq || kind == CompareKind::ne)
          return {};
        Content difference = combine(planes[0], planes[1], -1);
        auto *d = std::get_if<Plane>(&difference);
        if (!d || d->column == 0 || d->row != -d->column)
          return {};
        // lhs < rhs is lhs - rhs + 1 <= 0, and both have an opposite.
        bool isStrict = kind == CompareKind::lt || kind == CompareKind::ge;
        MaskRegion region = atMostZero(d->column, d->offset + isStrict);
        if (kind == CompareKind::gt || kind == CompareKind::ge)
          std::swap(region.inside, region.outside);
        return region;
      })
      .Default([](Operation *) -> Content {
        llvm_unreachable("only these come here");
      });
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
