//===- Layout.cpp - How a tensor is spread over a mesh --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Sharding/Layout.h"

#include "ax/Sharding/Digits.h"

#include <algorithm>

namespace ax::sharding {

const char *toString(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Sum:
    return "sum";
  case ReduceKind::Max:
    return "max";
  case ReduceKind::Min:
    return "min";
  }
  return "";
}

int64_t Factor::localSize() const {
  int64_t parts = numParts(axes);
  return (size + parts - 1) / parts;
}

int64_t Factor::validSize(int64_t part) const {
  int64_t extent = localSize();
  return std::clamp<int64_t>(size - part * extent, 0, extent);
}

int64_t DimLayout::size() const {
  int64_t product = 1;
  for (const Factor &factor : factors)
    product *= factor.size;
  return product;
}

int64_t DimLayout::localSize() const {
  int64_t product = 1;
  for (const Factor &factor : factors)
    product *= factor.localSize();
  return product;
}

bool DimLayout::isSplit() const {
  for (const Factor &factor : factors)
    if (!factor.axes.empty())
      return true;
  return false;
}

SubAxes DimLayout::axes() const {
  SubAxes all;
  for (const Factor &factor : factors)
    all.insert(all.end(), factor.axes.begin(), factor.axes.end());
  return all;
}

/// Even splits have the string of digits as their canonical form, as two
/// layouts that give ranks the same elements have the same digits: 4{a} * 2{b}
/// over a = 4 and b = 2 is 8{a, b}. In an uneven one factors stay what they
/// are, since only one can be split, and all of it.
DimLayout canonicalize(DimLayout dim) {
  if (std::optional<Digits> digits = digitsOf(dim))
    return dimOf(*digits);
  DimLayout result;
  for (Factor &factor : dim.factors) {
    if (factor.size == 1 && factor.axes.empty())
      continue;
    result.factors.push_back({factor.size, joinAxes(factor.axes)});
  }
  return result;
}

Layout Layout::replicated(const std::vector<int64_t> &shape) {
  Layout layout;
  for (int64_t size : shape)
    layout.dims.push_back(DimLayout::whole(size));
  return layout;
}

bool Layout::isReplicated() const { return usedAxes().empty(); }

std::vector<int64_t> Layout::globalShape() const {
  std::vector<int64_t> shape;
  for (const DimLayout &dim : dims)
    shape.push_back(dim.size());
  return shape;
}

std::vector<int64_t> Layout::localShape() const {
  std::vector<int64_t> shape;
  for (const DimLayout &dim : dims)
    shape.push_back(dim.localSize());
  return shape;
}

SubAxes Layout::usedAxes() const {
  SubAxes used = partial;
  for (const DimLayout &dim : dims)
    for (const Factor &factor : dim.factors)
      used.insert(used.end(), factor.axes.begin(), factor.axes.end());
  return used;
}

Layout canonicalize(Layout layout) {
  for (DimLayout &dim : layout.dims)
    dim = canonicalize(std::move(dim));
  layout.partial = sortAxes(std::move(layout.partial));
  if (layout.partial.empty())
    layout.partialKind = ReduceKind::Sum;
  return layout;
}

namespace {

/// What is wrong with one sub-axis on this mesh.
std::optional<std::string> findFault(const SubAxis &sub, const Mesh &mesh) {
  const Axis *axis = mesh.find(sub.axis);
  if (!axis)
    return "the mesh has no axis '" + sub.axis + "'";
  if (sub.pre < 1 || sub.size < 1 || axis->size % sub.pre != 0 ||
      axis->size / sub.pre % sub.size != 0)
    return "'" + toString(sub, mesh) + "' is no digit of axis '" + sub.axis +
           "' of size " + std::to_string(axis->size);
  return std::nullopt;
}

} // namespace

std::optional<std::string> findFault(const SubAxes &axes, const Mesh &mesh) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (auto fault = findFault(axes[i], mesh))
      return fault;
    for (size_t j = 0; j < i; ++j)
      if (overlap(axes[i], axes[j]))
        return "axis '" + toString(axes[i], mesh) + "' is used twice";
  }
  return std::nullopt;
}

std::optional<std::string> findFault(const Layout &layout,
                                     const std::vector<int64_t> &shape,
                                     const Mesh &mesh) {
  if (layout.dims.size() != shape.size())
    return "the layout has " + std::to_string(layout.dims.size()) +
           " dimensions, the tensor " + std::to_string(shape.size());
  if (auto fault = findFault(layout.usedAxes(), mesh))
    return fault;
  for (size_t d = 0; d < shape.size(); ++d) {
    const DimLayout &dim = layout.dims[d];
    std::string where = "dimension " + std::to_string(d);
    if (shape[d] == 0) {
      if (dim.factors.size() != 1 || dim.factors[0].size != 0 || dim.isSplit())
        return where + ": an empty dimension cannot be split";
      continue;
    }
    int64_t product = 1;
    for (const Factor &factor : dim.factors) {
      // Compared before multiplying: a hostile plan must not overflow.
      if (factor.size < 1 || product > shape[d] / factor.size)
        return where + ": factors do not multiply to " +
               std::to_string(shape[d]);
      product *= factor.size;
      int64_t parts = numParts(factor.axes);
      if (dim.factors.size() > 1 && factor.size % parts != 0)
        return where + ": factor " + std::to_string(factor.size) +
               " of a compound dimension does not divide over " +
               std::to_string(parts) + " parts";
    }
    if (dim.factors.empty() || product != shape[d])
      return where + ": factors multiply to " + std::to_string(product) +
             ", the tensor has " + std::to_string(shape[d]);
  }
  return std::nullopt;
}

std::optional<std::vector<int64_t>>
globalIndex(const Layout &layout, const Mesh &mesh,
            const std::vector<int64_t> &coordinates,
            const std::vector<int64_t> &local) {
  std::vector<int64_t> global;
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    int64_t rest = local[d], index = 0, weight = 1;
    const std::vector<Factor> &factors = layout.dims[d].factors;
    for (size_t f = factors.size(); f-- > 0;) {
      int64_t extent = factors[f].localSize();
      int64_t value =
          mesh.index(factors[f].axes, coordinates) * extent + rest % extent;
      rest /= extent;
      if (value >= factors[f].size)
        return std::nullopt;
      index += value * weight;
      weight *= factors[f].size;
    }
    global.push_back(index);
  }
  return global;
}

} // namespace ax::sharding
