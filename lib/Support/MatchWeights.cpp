//===- MatchWeights.cpp - A file's tensors for a model's weights ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/GivenWeights.h"

#include "ax/Support/Error.h"
#include "ax/Support/FloatConversion.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

#include <tuple>

namespace ax {

namespace {

/// What makes the file's names the model's.
struct Renaming {
  std::string prefix;
  /// Whether it is added; else it is removed.
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
    if (llvm::Error error = leaveOut())
      return error;
    if (!given.isCheckpoint)
      if (llvm::Error error = rename())
        return error;
    for (const ModelWeight &weight : model)
      if (weight.isRequired && !given.tensors.count(weight.name))
        absent.push_back(weight.name);
    for (const auto &[name, other] : given.ties)
      if (llvm::Error error = tie(name, other))
        return error;
    if (llvm::Error error = checkFolded())
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
  llvm::Error leaveOut();
  llvm::Error rename();
  llvm::Error checkFolded();
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

llvm::Error Matcher::leaveOut() {
  for (const std::string &pattern : given.leaveOut) {
    auto glob = llvm::GlobPattern::create(pattern);
    if (!glob)
      return makeError(ExitCode::Usage, "--leave-out=" + pattern + ": " +
                                            llvm::toString(glob.takeError()));
    bool isUsed = false;
    for (auto it = given.tensors.begin(); it != given.tensors.end();) {
      bool isLeftOut = glob->match(it->first);
      isUsed |= isLeftOut;
      it = isLeftOut ? given.tensors.erase(it) : std::next(it);
    }
    if (!isUsed)
      return fault("--leave-out=" + pattern + ": weights '" + given.path +
                   "' have no such name");
  }
  return llvm::Error::success();
}

/// Those that became constants when the plan was made cannot become others.
llvm::Error Matcher::checkFolded() {
  FloatConversion conversion;
  for (const auto &[name, fingerprint] : given.folded) {
    auto found = given.tensors.find(name);
    std::optional<DType> type = typeOfFingerprint(fingerprint);
    if (found == given.tensors.end() || !type)
      continue;
    bool isSame = false;
    if (canConvert(*type, found->second.type)) {
      auto typed = conversion.to(*type, found->second);
      if (!typed)
        return addContext(typed.takeError(), "weight '" + name + "'");
      auto value = typed->assemble();
      if (!value)
        return addContext(value.takeError(), "weight '" + name + "'");
      isSame = fingerprintOf(*value) == fingerprint;
    }
    if (!isSame)
      return fault("weights '" + given.path + "': '" + name +
                   "' is a constant of the plan, with another value: write the "
                   "weights into the model (axopt --export-onnx) and compile "
                   "that");
  }
  return llvm::Error::success();
}

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
  std::map<std::string, PiecedTensor> renamed;
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
  const PiecedTensor &tensor = given.tensors.at(twin.name);
  if (!twin.isTransposed || tensor.getRank() != 2) {
    // A shape that does not fit is found like that of any other.
    given.tensors.emplace(name, tensor);
    return llvm::Error::success();
  }
  auto turned = tensor.assemble();
  if (turned)
    turned = transposed(*turned);
  if (!turned)
    return addContext(turned.takeError(), "weight '" + name + "'");
  given.tensors.emplace(name, PiecedTensor::of(std::move(*turned)));
  return llvm::Error::success();
}

llvm::Error Matcher::tie(const std::string &name, llvm::StringRef other) {
  std::string flag = "--tied " + name + "=" + other.str() + ": ";
  // A tensor is found by the model's name or by the file's.
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
  const PiecedTensor &tensor = found->second;
  if (isTransposed && tensor.getRank() != 2)
    return fault(flag + "'" + other + "' is " + tensor.typeToString() +
                 ": only matrices are transposed");
  if (!isTransposed && weight.shape.size() == 2 && tensor.getRank() == 2) {
    Shape turned{tensor.shape[1], tensor.shape[0]};
    auto twin = byName.find(found->first);
    bool isKnown = twin != byName.end() && !weight.bytes.empty() &&
                   weight.type == twin->second->type;
    bool isSame = isKnown && weight.bytes == twin->second->bytes;
    if (weight.shape != turned)
      isTransposed = false;
    else if (weight.shape != tensor.shape)
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

} // namespace ax
