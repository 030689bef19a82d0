//===- GivenWeights.cpp - Weights of a file for those of a model ----------===//

#include "ax/Support/GivenWeights.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

#include <cstring>
#include <set>

namespace ax {

/// Whether one value, again and again, is all that there is.
static bool isUniform(const ModelWeight &weight) {
  size_t size = weight.bytes.size(),
         element = static_cast<size_t>(byteSize(weight.type));
  return size <= element ||
         std::memcmp(weight.bytes.data(), weight.bytes.data() + element,
                     size - element) == 0;
}

/// A name without its numbers: one for all layers of a model.
static std::string withoutNumbers(llvm::StringRef name) {
  std::string result;
  for (char c : name)
    if (!llvm::isDigit(c))
      result += c;
    else if (result.empty() || result.back() != '#')
      result += '#';
  return result;
}

std::map<std::string, std::string> findTied(llvm::ArrayRef<ModelWeight> missing,
                                            llvm::ArrayRef<ModelWeight> given) {
  using Kind = std::pair<DType, Shape>;
  // Only what could be a twin is read.
  std::map<Kind, std::vector<const ModelWeight *>> byKind;
  for (const ModelWeight &weight : missing)
    if (isFloat(weight.type))
      byKind[{weight.type, weight.shape}];
  for (const ModelWeight &weight : given)
    if (auto kind = byKind.find({weight.type, weight.shape});
        kind != byKind.end())
      kind->second.push_back(&weight);
  std::set<std::string> siblings;
  for (const ModelWeight &weight : given)
    siblings.insert(withoutNumbers(weight.name));
  std::map<std::string, std::string> tied;
  std::map<const ModelWeight *, uint64_t> hashes;
  for (const ModelWeight &weight : missing) {
    auto kind = byKind.find({weight.type, weight.shape});
    if (kind == byKind.end() || kind->second.empty() || isUniform(weight) ||
        siblings.count(withoutNumbers(weight.name)))
      continue;
    uint64_t hash = llvm::xxh3_64bits(weight.bytes);
    for (const ModelWeight *other : kind->second) {
      auto [known, isNew] = hashes.try_emplace(other);
      if (isNew)
        known->second = llvm::xxh3_64bits(other->bytes);
      if (known->second == hash && other->bytes == weight.bytes) {
        tied[weight.name] = other->name;
        break;
      }
    }
  }
  return tied;
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

llvm::Error checkTies(const Ties &ties, llvm::ArrayRef<std::string> lacking,
                      llvm::function_ref<bool(const std::string &)> isGiven,
                      llvm::StringRef path) {
  for (const auto &[name, other] : ties) {
    std::string flag = "--tied " + name + "=" + other + ": ";
    if (!isGiven(other))
      return makeError(ExitCode::BadInput,
                       flag + "weights '" + path + "' have no '" + other + "'");
    if (!llvm::is_contained(lacking, name))
      return makeError(ExitCode::BadInput,
                       flag + "'" + name +
                           "' is no weight of the model that '" + path +
                           "' lacks");
  }
  return llvm::Error::success();
}

bool isComputedBuffer(llvm::StringRef name) {
  static constexpr llvm::StringLiteral names[] = {"inv_freq",
                                                  "original_inv_freq",
                                                  "position_ids",
                                                  "cos_cached",
                                                  "sin_cached",
                                                  "masked_bias",
                                                  "relative_position_index",
                                                  "num_batches_tracked"};
  return llvm::is_contained(names, name.substr(name.rfind('.') + 1));
}

bool Widening::fits(DType wanted, DType given) {
  bool isNarrow = given == DType::BF16 || given == DType::F16;
  return given == wanted || (wanted == DType::F32 && isNarrow);
}

llvm::Expected<HostTensor> Widening::to(DType wanted,
                                        const HostTensor &tensor) {
  if (tensor.getType() == wanted)
    return tensor;
  assert(fits(wanted, tensor.getType()) && "asked for before");
  auto result = HostTensor::allocate(wanted, tensor.getShape());
  if (!result)
    return result.takeError();
  ++counts[tensor.getType()];
  visitDType(tensor.getType(), [&](auto tag) {
    using From = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<From, bool>)
      llvm::transform(tensor.values<From>(),
                      result->mutableValues<float>().begin(),
                      [](From value) { return static_cast<float>(value); });
  });
  return result;
}

void Widening::tell(
    llvm::StringRef path,
    const std::function<void(const std::string &)> &warn) const {
  for (auto [type, count] : counts)
    if (warn)
      warn("weights '" + path.str() + "': " + std::to_string(count) +
           (count == 1 ? " tensor is " : " tensors are ") + toString(type) +
           ", and taken as f32");
}

std::string listSome(llvm::ArrayRef<std::string> names, size_t most) {
  std::string text;
  for (const std::string &name : names.take_front(most))
    text += (text.empty() ? "'" : ", '") + name + "'";
  if (names.size() > most)
    text += " and " + std::to_string(names.size() - most) + " more";
  return text;
}

} // namespace ax
