//===- MatchWeights.cpp - A file's tensors for a model's weights ----------===//

#include "ax/Support/GivenWeights.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <tuple>

namespace ax {

namespace {

/// What makes the file's names the model's.
struct Renaming {
  std::string prefix;
  /// Or removed.
  bool isAdded = false;

  bool operator<(const Renaming &other) const {
    return std::tie(isAdded, prefix) < std::tie(other.isAdded, other.prefix);
  }
  std::string apply(llvm::StringRef name) const {
    if (isAdded)
      return prefix + name.str();
    name.consume_front(prefix);
    return name.str();
  }
  std::string describe() const {
    return (isAdded ? "with '" : "without '") + prefix + "'";
  }
};

class Matcher {
public:
  Matcher(llvm::ArrayRef<ModelWeight> model, GivenWeights &given)
      : model(model), given(given) {
    for (const ModelWeight &weight : model)
      byName.try_emplace(weight.name, &weight);
  }

  llvm::Expected<std::vector<std::string>> run() {
    if (!given.isCheckpoint)
      if (llvm::Error error = rename())
        return error;
    for (const ModelWeight &weight : model)
      if (weight.isRequired && !given.tensors.count(weight.name))
        absent.push_back(weight.name);
    for (const auto &[name, other] : given.ties)
      if (llvm::Error error = tie(name, other))
        return error;
    llvm::erase_if(absent, [&](const std::string &name) {
      return given.ties.count(name) > 0;
    });
    return complete();
  }

private:
  llvm::Error fault(const llvm::Twine &what) {
    return makeError(ExitCode::BadInput, what);
  }
  void warn(const llvm::Twine &what) {
    given.warn("weights '" + given.path + "': " + what.str());
  }
  /// Ends of names behind their dots, each with what is before it.
  static void forEachEnd(
      llvm::StringRef name,
      llvm::function_ref<void(const std::string &, const std::string &)> take) {
    for (size_t dot = name.find('.'); dot != llvm::StringRef::npos;
         dot = name.find('.', dot + 1))
      take(name.take_front(dot + 1).str(), name.drop_front(dot + 1).str());
  }
  llvm::Error rename();
  llvm::Error tie(const std::string &name, llvm::StringRef other);
  llvm::Expected<std::vector<std::string>> complete();
  llvm::Error giveTwin(const std::string &name, const Twin &twin);

  llvm::ArrayRef<ModelWeight> model;
  GivenWeights &given;
  std::map<std::string, const ModelWeight *> byName;
  /// Names of required weights that the file lacks.
  std::vector<std::string> absent;
};

} // namespace

llvm::Error Matcher::rename() {
  auto isModels = [&](const auto &entry) { return byName.count(entry.first); };
  if (llvm::any_of(given.tensors, isModels))
    return llvm::Error::success();
  std::map<Renaming, int64_t> counts;
  for (const ModelWeight &weight : model)
    forEachEnd(weight.name, [&](const auto &prefix, const auto &end) {
      if (weight.isRequired && given.tensors.count(end))
        ++counts[{prefix, /*isAdded=*/true}];
    });
  for (const auto &[name, tensor] : given.tensors)
    forEachEnd(name, [&](const auto &prefix, const auto &end) {
      auto found = byName.find(end);
      if (found != byName.end() && found->second->isRequired)
        ++counts[{prefix, /*isAdded=*/false}];
    });
  if (counts.empty())
    return llvm::Error::success();
  auto isLess = [](const auto &a, const auto &b) {
    return a.second < b.second;
  };
  auto best = llvm::max_element(counts, isLess);
  for (const auto &[renaming, count] : counts)
    if (count == best->second && best->first < renaming)
      return fault("weights '" + given.path + "': names are the model's " +
                   best->first.describe() + " as well as " +
                   renaming.describe() +
                   " before them: name them as the model does");
  const Renaming &renaming = best->first;
  std::map<std::string, HostTensor> renamed;
  for (auto &[name, tensor] : given.tensors) {
    std::string to = renaming.apply(name);
    given.fileNames[to] = name;
    renamed.emplace(to, std::move(tensor));
  }
  given.tensors = std::move(renamed);
  warn("names are taken " + renaming.describe() +
       " before them, as the model has them");
  return llvm::Error::success();
}

/// The tensor of that name gets the twin's values.
llvm::Error Matcher::giveTwin(const std::string &name, const Twin &twin) {
  const HostTensor &tensor = given.tensors.at(twin.name);
  if (!twin.isTransposed || tensor.getRank() != 2) {
    // A shape that does not fit is found like that of any other.
    given.tensors.emplace(name, tensor);
    return llvm::Error::success();
  }
  auto turned = transposed(tensor);
  if (!turned)
    return addContext(turned.takeError(), "weight '" + name + "'");
  given.tensors.emplace(name, std::move(*turned));
  return llvm::Error::success();
}

llvm::Error Matcher::tie(const std::string &name, llvm::StringRef other) {
  std::string flag = "--tied " + name + "=" + other.str() + ": ";
  // By the model's name or by the file's.
  auto find = [&](llvm::StringRef wanted) {
    auto found = given.tensors.find(wanted.str());
    for (const auto &[to, from] : given.fileNames)
      if (found == given.tensors.end() && from == wanted)
        found = given.tensors.find(to);
    return found;
  };
  auto found = find(other);
  bool isTransposed = found == given.tensors.end() && other.consume_back(".T");
  if (isTransposed)
    found = find(other);
  if (found == given.tensors.end())
    return fault(flag + "weights '" + given.path + "' have no '" + other + "'");
  if (!llvm::is_contained(absent, name))
    return fault(flag + "'" + name + "' is no weight of the model that '" +
                 given.path + "' lacks");
  const ModelWeight &weight = *byName.at(name);
  const HostTensor &tensor = found->second;
  if (isTransposed && tensor.getRank() != 2)
    return fault(flag + "'" + other + "' is " + tensor.typeToString() +
                 ": only matrices are transposed");
  if (!isTransposed && weight.shape.size() == 2 && tensor.getRank() == 2) {
    Shape turned{tensor.getShape()[1], tensor.getShape()[0]};
    auto twin = byName.find(found->first);
    bool isKnown = twin != byName.end() && !weight.bytes.empty() &&
                   weight.type == twin->second->type;
    bool isSame = isKnown && weight.bytes == twin->second->bytes;
    if (weight.shape != turned)
      isTransposed = false;
    else if (weight.shape != tensor.getShape())
      isTransposed = true;
    else if (isKnown && !isSame && isTransposeOf(weight, *twin->second))
      isTransposed = true;
    else if (!isSame)
      warn("'" + name + "' gets the values of '" + other.str() +
           "' as they are: for the transpose, which is as large, give --tied " +
           name + "=" + other.str() + ".T");
  }
  given.used.insert(found->first);
  return giveTwin(name, {found->first, isTransposed});
}

/// What the file leaves out, though the model has it.
llvm::Expected<std::vector<std::string>> Matcher::complete() {
  std::vector<ModelWeight> missing, there;
  std::vector<std::string> lacking, computed;
  llvm::erase_if(absent, [&](const std::string &name) {
    if (isComputedBuffer(name))
      computed.push_back(name);
    else
      missing.push_back(*byName.at(name));
    return isComputedBuffer(name);
  });
  for (const ModelWeight &weight : model)
    if (weight.isRequired && given.tensors.count(weight.name) &&
        !given.ties.count(weight.name))
      there.push_back(weight);
  std::map<std::string, Twin> tied;
  if (!given.isCheckpoint)
    tied = findTied(missing, there);
  for (const std::string &name : absent) {
    auto twin = tied.find(name);
    if (twin == tied.end()) {
      lacking.push_back(name);
      continue;
    }
    if (llvm::Error error = giveTwin(name, twin->second))
      return error;
    warn("'" + name + "' gets the values of '" + twin->second.name +
         (twin->second.isTransposed ? "', transposed, which it equals so"
                                    : "', which it equals") +
         " in the model");
  }
  if (!computed.empty())
    warn(listSome(computed) + " stay as the model computes them");
  return lacking;
}

llvm::Expected<std::vector<std::string>>
matchWeights(llvm::ArrayRef<ModelWeight> model, GivenWeights &given) {
  return Matcher(model, given).run();
}

/// What an optimizer keeps of a weight that the file has: `WEIGHT.exp_avg`.
static bool isOfOptimizer(const std::string &name, const HostTensor &tensor,
                          const GivenWeights &given) {
  auto weight = given.tensors.find(name.substr(0, name.rfind('.')));
  return weight != given.tensors.end() && weight->first != name &&
         weight->second.getShape() == tensor.getShape();
}

static bool isAllZero(const HostTensor &tensor) {
  return llvm::all_of(tensor.rawBytes(), [](uint8_t byte) { return !byte; });
}

/// What names in a numbered layer begin with: `h.1.` of `h.1.ln_1.weight`; the
/// innermost that may hold other modules, too; empty where there is none.
static llvm::StringRef layerOf(llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef> parts;
  name.split(parts, '.');
  for (size_t i = parts.size(); i > 2; --i)
    if (llvm::StringRef number = parts[i - 3];
        !number.empty() && llvm::all_of(number, llvm::isDigit))
      return name.take_front(number.end() - name.begin() + 1);
  return "";
}

/// Whether the tensor has the values that the model has for the weight after
/// this, whatever type each of them has.
static llvm::Expected<bool> hasValuesOf(const HostTensor &tensor,
                                        const ModelWeight &weight,
                                        const GivenWeights &given) {
  HostTensor other;
  if (auto found = given.tensors.find(weight.name);
      found != given.tensors.end()) {
    other = found->second;
  } else {
    auto own = HostTensor::fromBytes(weight.type, weight.shape, weight.bytes);
    if (!own)
      return own.takeError();
    other = std::move(*own);
  }
  if (tensor.getType() == other.getType())
    return tensor.isIdentical(other);
  return tensor.getShape() == other.getShape() &&
         tensor.cast(DType::F64).isIdentical(other.cast(DType::F64));
}

llvm::Error checkLeftOver(llvm::ArrayRef<ModelWeight> model,
                          const GivenWeights &given) {
  if (given.isCheckpoint)
    return llvm::Error::success();
  using Kind = std::pair<std::string, Shape>;
  std::set<std::string> known;
  std::map<Kind, std::vector<const ModelWeight *>> siblings;
  std::map<Shape, std::vector<const HostTensor *>> taken;
  for (const ModelWeight &weight : model) {
    known.insert(weight.name);
    auto tensor = given.tensors.find(weight.name);
    bool isGiven = tensor != given.tensors.end();
    if (isGiven)
      taken[weight.shape].push_back(&tensor->second);
    if (isGiven || !weight.bytes.empty())
      siblings[{withoutNumbers(weight.name), weight.shape}].push_back(&weight);
  }
  auto nameInFile = [&](const std::string &name) {
    auto found = given.fileNames.find(name);
    return found == given.fileNames.end() ? name : found->second;
  };
  std::vector<std::string> lacking, differing;
  std::string sibling;
  for (const auto &[name, tensor] : given.tensors) {
    if (known.count(name) || given.used.count(name) ||
        isOfOptimizer(name, tensor, given))
      continue;
    auto others = siblings.find({withoutNumbers(name), tensor.getShape()});
    // A model may also be a part of what was saved: its first layers.
    std::string layer = layerOf(name).str();
    auto inLayer = known.lower_bound(layer);
    bool hasLayer =
        inLayer != known.end() && llvm::StringRef(*inLayer).starts_with(layer);
    if (others != siblings.end() && hasLayer && !isComputedBuffer(name)) {
      bool isThere = false;
      for (const ModelWeight *other : others->second) {
        auto isEqual = hasValuesOf(tensor, *other, given);
        if (!isEqual)
          return addContext(isEqual.takeError(), "weight '" + name + "'");
        isThere |= *isEqual;
      }
      if (!isThere && differing.empty())
        sibling = others->second.front()->name;
      if (!isThere)
        differing.push_back(nameInFile(name));
      continue;
    }
    auto same = taken.find(tensor.getShape());
    auto isSame = [&](const HostTensor *other) {
      return tensor.isIdentical(*other);
    };
    // What the file has twice, the model may have once.
    if (isFloat(tensor.getType()) && !isAllZero(tensor) &&
        (same == taken.end() || llvm::none_of(same->second, isSame)))
      lacking.push_back(nameInFile(name));
  }
  constexpr size_t mostListed = 3;
  if (!differing.empty())
    return makeErrorf(
        ExitCode::BadInput,
        "weights '{0}': '{1}'{2} differs from '{3}', which the model has in "
        "its place: its layers share weights that were equal when it was "
        "exported, so export it again from these weights",
        given.path, differing.front(),
        differing.size() == 1
            ? std::string()
            : " (and " + std::to_string(differing.size() - 1) + " more)",
        nameInFile(sibling));
  if (!lacking.empty())
    given.warn("weights '" + given.path + "' have " +
               std::to_string(lacking.size()) +
               (lacking.size() == 1
                    ? " tensor that the model lacks, and which is left out: "
                    : " tensors that the model lacks, and which are left "
                      "out: ") +
               listSome(lacking, mostListed));
  return llvm::Error::success();
}

} // namespace ax
