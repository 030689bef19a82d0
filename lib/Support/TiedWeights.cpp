//===- TiedWeights.cpp - Weights that a model has twice -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/GivenWeights.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace ax {

/// Whether one value, again and again, is all that there is.
static bool isUniform(const ModelWeight &weight) {
  size_t size = weight.bytes.size(),
         element = static_cast<size_t>(byteSize(weight.type));
  return size <= element ||
         std::memcmp(weight.bytes.data(), weight.bytes.data() + element,
                     size - element) == 0;
}

/// Copies rows x columns of elements to columns x rows, or with `compares` says
/// whether they are there. In blocks, so that both sides stay in the cache.
template <bool compares, typename Pointer>
static bool transpose(const uint8_t *from, Pointer to, int64_t rows,
                      int64_t columns, int64_t element) {
  constexpr int64_t block = 32;
  for (int64_t row = 0; row < rows; row += block)
    for (int64_t column = 0; column < columns; column += block)
      for (int64_t i = row; i < std::min(rows, row + block); ++i)
        for (int64_t j = column; j < std::min(columns, column + block); ++j) {
          const uint8_t *source = from + (i * columns + j) * element;
          Pointer target = to + (j * rows + i) * element;
          if constexpr (!compares)
            std::memcpy(target, source, element);
          else if (std::memcmp(target, source, element) != 0)
            return false;
        }
  return true;
}

bool isTransposeOf(const ModelWeight &one, const ModelWeight &other) {
  return one.type == other.type && one.shape.size() == 2 &&
         other.shape == Shape{one.shape[1], one.shape[0]} &&
         !one.bytes.empty() && one.bytes.size() == other.bytes.size() &&
         transpose</*compares=*/true>(one.bytes.data(), other.bytes.data(),
                                      one.shape[0], one.shape[1],
                                      byteSize(one.type));
}

llvm::Expected<HostTensor> transposed(const HostTensor &matrix) {
  assert(matrix.getRank() == 2 && "of a matrix");
  int64_t rows = matrix.getShape()[0], columns = matrix.getShape()[1];
  auto result = HostTensor::allocate(matrix.getType(), {columns, rows});
  if (result)
    transpose</*compares=*/false>(matrix.data(), result->mutableData(), rows,
                                  columns, byteSize(matrix.getType()));
  return result;
}

namespace {

/// Those that a weight could be a twin of.
class Candidates {
public:
  void add(const ModelWeight &weight) {
    byKind[{weight.type, weight.shape}].push_back(&weight);
  }

  std::optional<Twin> find(const ModelWeight &weight) {
    // Both comparisons end at the first difference.
    for (const ModelWeight *other : ofKind(weight.type, weight.shape))
      if (other->bytes == weight.bytes)
        return Twin{other->name, false};
    if (weight.shape.size() != 2)
      return std::nullopt;
    Shape turned{weight.shape[1], weight.shape[0]};
    for (const ModelWeight *other : ofKind(weight.type, turned))
      if (isTransposeOf(weight, *other))
        return Twin{other->name, true};
    return std::nullopt;
  }

private:
  using Kind = std::pair<DType, Shape>;

  llvm::ArrayRef<const ModelWeight *> ofKind(DType type, const Shape &shape) {
    auto found = byKind.find({type, shape});
    if (found == byKind.end())
      return {};
    return found->second;
  }

  std::map<Kind, std::vector<const ModelWeight *>> byKind;
};

} // namespace

std::map<std::string, Twin> findTied(llvm::ArrayRef<ModelWeight> missing,
                                     llvm::ArrayRef<ModelWeight> given) {
  std::set<std::string> siblings;
  Candidates candidates;
  for (const ModelWeight &weight : given) {
    siblings.insert(withoutNumbers(weight.name));
    candidates.add(weight);
  }
  std::map<std::string, Twin> tied;
  for (const ModelWeight &weight : missing)
    if (isFloat(weight.type) && !isUniform(weight) &&
        !siblings.count(withoutNumbers(weight.name)))
      if (auto twin = candidates.find(weight))
        tied[weight.name] = *twin;
  return tied;
}

std::vector<std::pair<std::string, Twin>>
findTwins(llvm::ArrayRef<ModelWeight> weights) {
  std::vector<std::pair<std::string, Twin>> twins;
  Candidates before;
  for (const ModelWeight &weight : weights) {
    if (!isFloat(weight.type) || isUniform(weight))
      continue;
    auto twin = before.find(weight);
    if (twin && withoutNumbers(twin->name) != withoutNumbers(weight.name))
      twins.emplace_back(weight.name, *twin);
    before.add(weight);
  }
  return twins;
}

llvm::Expected<Ties> parseTies(llvm::ArrayRef<std::string> pairs) {
  Ties ties;
  for (const std::string &pair : pairs) {
    auto [name, other] = llvm::StringRef(pair).split('=');
    if (name.empty() || other.empty())
      return makeError(ExitCode::Usage,
                       "--tied=" + pair + ": expected WEIGHT=WEIGHT");
    ties[name.str()] = other.str();
  }
  return ties;
}

} // namespace ax
