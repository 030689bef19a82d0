//===- Collective.cpp - What a group of ranks does together ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Collective.h"

#include "ax/Support/HostTensor.h"

namespace ax::rt {

bool CollectiveSpec::operator==(const CollectiveSpec &o) const {
  return kind == o.kind && reduce == o.reduce && dtype == o.dtype &&
         shape == o.shape && gatherDim == o.gatherDim &&
         gatherSize == o.gatherSize && scatterDim == o.scatterDim &&
         scatterPart == o.scatterPart && permutation == o.permutation;
}

namespace {

const char *toString(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllReduce:
    return "all_reduce";
  case CollectiveKind::ReduceScatter:
    return "reduce_scatter";
  case CollectiveKind::AllGather:
    return "all_gather";
  case CollectiveKind::AllToAll:
    return "all_to_all";
  case CollectiveKind::Permute:
    return "permute";
  }
  __builtin_unreachable();
}

bool isDim(int32_t dim, const CollectiveSpec &spec) {
  return dim >= 0 && static_cast<size_t>(dim) < spec.shape.size();
}

int64_t bytesOf(DType dtype, const std::vector<int64_t> &shape) {
  int64_t bytes = byteSize(dtype);
  for (int64_t dim : shape)
    bytes *= dim;
  return bytes;
}

} // namespace

std::vector<int64_t> destinationShape(const CollectiveSpec &spec) {
  std::vector<int64_t> shape = spec.shape;
  if (spec.gatherDim >= 0)
    shape[static_cast<size_t>(spec.gatherDim)] = spec.gatherSize;
  if (spec.scatterDim >= 0)
    shape[static_cast<size_t>(spec.scatterDim)] = spec.scatterPart;
  return shape;
}

int64_t sourceBytes(const CollectiveSpec &spec) {
  return bytesOf(spec.dtype, spec.shape);
}

int64_t destinationBytes(const CollectiveSpec &spec) {
  return bytesOf(spec.dtype, destinationShape(spec));
}

static std::string findFault(const CollectiveSpec &spec, int64_t members) {
  bool gathers = spec.kind == CollectiveKind::AllGather ||
                 spec.kind == CollectiveKind::AllToAll;
  bool scatters = spec.kind == CollectiveKind::ReduceScatter ||
                  spec.kind == CollectiveKind::AllToAll;
  bool reduces = spec.kind == CollectiveKind::AllReduce ||
                 spec.kind == CollectiveKind::ReduceScatter;
  auto dimFits = [&](bool wanted, int32_t dim) {
    return wanted ? isDim(dim, spec) : dim == -1;
  };
  if (!dimFits(gathers, spec.gatherDim) ||
      !dimFits(scatters, spec.scatterDim) ||
      (gathers && spec.gatherDim == spec.scatterDim))
    return "its dimensions do not fit its kind";
  if (!checkedNumElements(spec.shape, byteSize(spec.dtype)) ||
      spec.gatherSize < 0 || spec.scatterPart < 0 ||
      !checkedNumElements(destinationShape(spec), byteSize(spec.dtype)))
    return "impossible sizes";
  auto covers = [&](int64_t part, int64_t size) {
    return size == 0 || (part > 0 && (size - 1) / part < members);
  };
  if (gathers &&
      !covers(spec.shape[static_cast<size_t>(spec.gatherDim)], spec.gatherSize))
    return "parts do not cover the gathered dimension";
  if (scatters && !covers(spec.scatterPart,
                          spec.shape[static_cast<size_t>(spec.scatterDim)]))
    return "parts do not cover the scattered dimension";
  if (spec.kind == CollectiveKind::Permute) {
    if (static_cast<int64_t>(spec.permutation.size()) != members)
      return "the permutation does not fit the group";
    for (int32_t from : spec.permutation)
      if (from < -1 || from >= members)
        return "the permutation names no member";
  }
  if (reduces && spec.dtype == DType::Bool &&
      spec.reduce == sharding::ReduceKind::Sum)
    return "booleans have no sum";
  return "";
}

std::string findFault(const CollectiveSpecs &specs, int64_t members) {
  if (specs.empty())
    return "it exchanges nothing";
  for (const CollectiveSpec &spec : specs) {
    const CollectiveSpec &first = specs.front();
    if (spec.kind != first.kind || spec.reduce != first.reduce ||
        spec.dtype != first.dtype)
      return "its tensors are not of one kind";
    if (std::string fault = findFault(spec, members); !fault.empty())
      return fault;
  }
  return "";
}

std::string toString(const CollectiveSpecs &specs) {
  std::string text;
  for (const CollectiveSpec &spec : specs)
    text += (text.empty() ? std::string(toString(spec.kind)) + " " : ", ") +
            shapeToString(spec.shape);
  return text + " " + ax::toString(specs.front().dtype);
}

} // namespace ax::rt
