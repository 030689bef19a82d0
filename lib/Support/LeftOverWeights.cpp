//===- LeftOverWeights.cpp - Tensors of a file that no model takes --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a file has and the model does not take is an error, as it is to PyTorch:
// exporters merge equal weights, fold some into others, and drop what is zero,
// so that other values would be silently without effect. Only what can be shown
// to make no difference is passed over.
//
//===----------------------------------------------------------------------===//

#include "ax/Support/GivenWeights.h"

#include "ax/Support/Error.h"
#include "ax/Support/FloatConversion.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

namespace ax {

/// Names in a message.
static constexpr size_t mostListed = 3;

/// What an optimizer keeps of a weight that the file has.
static bool isOfOptimizer(llvm::StringRef name, const Shape &shape,
                          const GivenWeights &given) {
  auto [of, kind] = name.rsplit('.');
  bool isKept = kind == "exp_avg" || kind == "exp_avg_sq" || kind == "momentum";
  auto weight = given.tensors.find(of.str());
  return isKept && weight != given.tensors.end() &&
         weight->second.shape == shape;
}

static bool isUniform(const HostTensor &tensor) {
  auto bytes = tensor.rawBytes();
  size_t element = byteSize(tensor.getType());
  return bytes.empty() || bytes.drop_back(element) == bytes.drop_front(element);
}

/// Ones and zeros that hide what is behind each position, which code computes.
static bool isCausalMask(const HostTensor &tensor) {
  int64_t rank = tensor.getRank();
  const Shape &shape = tensor.getShape();
  if (rank < 2 || shape[rank - 1] < 2 || shape[rank - 1] != shape[rank - 2])
    return false;
  int64_t size = shape[rank - 1];
  for (int64_t i = 0, n = tensor.numElements(); i < n; ++i)
    if (tensor.getDouble(i) != (i % size <= i / size % size))
      return false;
  return true;
}

static bool isOfBatchNorm(llvm::StringRef name) {
  return name.ends_with("running_mean") || name.ends_with("running_var");
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

/// Whether both have the same values, whatever type each of them has.
static bool isSame(const HostTensor &one, const HostTensor &other) {
  if (one.getType() == other.getType())
    return one.isIdentical(other);
  return one.getShape() == other.getShape() &&
         one.cast(DType::F64).isIdentical(other.cast(DType::F64));
}

namespace {

class LeftOver {
public:
  LeftOver(llvm::ArrayRef<ModelWeight> model, const GivenWeights &given)
      : model(model), given(given) {}

  llvm::Error collect();
  llvm::Error check();
  /// The one tensor left over that could be the weight: what follows `--tied=`.
  std::string findTie(const ModelWeight &weight, std::string &name) const;

private:
  enum class Verdict { Harmless, Differs, Untaken };

  llvm::Expected<Verdict> judge(const std::string &name,
                                const HostTensor &tensor,
                                std::string &other) const;
  llvm::Expected<bool> isOwn(const HostTensor &tensor,
                             const ModelWeight &weight) const;
  std::string nameInFile(const std::string &name) const {
    auto found = given.fileNames.find(name);
    return found == given.fileNames.end() ? name : found->second;
  }
  /// A pattern that names such tensors.
  std::string patternOf(const std::string &name, bool isOnly) const;

  llvm::ArrayRef<ModelWeight> model;
  const GivenWeights &given;
  /// The file's tensors. They are there in one piece but for those of
  /// checkpoints, of which nothing is left over.
  std::map<std::string, HostTensor> tensors;
  std::set<std::string> known;
  /// Layers of the model have integers.
  bool isQuantised = false;
  std::map<Shape, std::vector<const ModelWeight *>> byShape;
  /// The file's that no weight takes and that may matter.
  std::vector<std::string> untaken, differing;
  /// What the first of `differing` differs from.
  std::string sibling;
};

} // namespace

/// Whether the model has these values for the weight, before this.
llvm::Expected<bool> LeftOver::isOwn(const HostTensor &tensor,
                                     const ModelWeight &weight) const {
  if (weight.bytes.empty() || tensor.getType() == weight.type)
    return tensor.rawBytes() == weight.bytes;
  auto own = HostTensor::fromBytes(weight.type, weight.shape, weight.bytes);
  if (!own)
    return addContext(own.takeError(), "weight '" + weight.name + "'");
  return isSame(tensor, *own);
}

llvm::Expected<LeftOver::Verdict> LeftOver::judge(const std::string &name,
                                                  const HostTensor &tensor,
                                                  std::string &other) const {
  if (known.count(name) || given.used.count(name) || given.folded.count(name) ||
      isOfOptimizer(name, tensor.getShape(), given) || isComputedBuffer(name) ||
      !isOfLayers(tensor.getType(), tensor.rawBytes(), isQuantised) ||
      isCausalMask(tensor))
    return Verdict::Harmless;
  auto found = byShape.find(tensor.getShape());
  if (found == byShape.end())
    return Verdict::Untaken;
  std::string kind = withoutNumbers(name);
  bool isAlike = isUniform(tensor), isTaken = false, hasTwin = false,
       stays = true;
  for (const ModelWeight *weight : found->second) {
    auto now = tensors.find(weight->name);
    bool isGiven = now != tensors.end();
    bool isEqual = isGiven && isSame(tensor, now->second);
    bool isSibling = withoutNumbers(weight->name) == kind;
    if (isAlike || (isSibling && !isGiven)) {
      auto wasEqual = isOwn(tensor, *weight);
      if (!wasEqual)
        return wasEqual.takeError();
      isEqual |= !isGiven && *wasEqual;
      stays &= isEqual || !*wasEqual;
      hasTwin |= *wasEqual;
    }
    isTaken |= isEqual;
    hasTwin |= isSibling && isEqual;
    if (isSibling && !isEqual && other.empty())
      other = weight->name;
  }
  // What the file has twice, the model may have once. But zeros equal many:
  // these have to be a sibling's or those that the model was exported with, and
  // all weights that had them, of which it has one in their place, have to
  // stay.
  if (isAlike ? hasTwin && stays : isTaken)
    return Verdict::Harmless;
  return other.empty() ? Verdict::Untaken : Verdict::Differs;
}

llvm::Error LeftOver::collect() {
  for (const ModelWeight &weight : model) {
    known.insert(weight.name);
    isQuantised |= weight.isRequired && !isFloat(weight.type) &&
                   isOfLayers(weight.type, {}, /*isQuantised=*/true);
    if (!weight.isFolded)
      byShape[weight.shape].push_back(&weight);
  }
  for (const auto &[name, pieces] : given.tensors) {
    auto tensor = pieces.assemble();
    if (!tensor)
      return addContext(tensor.takeError(), "weight '" + name + "'");
    tensors.emplace(name, std::move(*tensor));
  }
  for (const auto &[name, tensor] : tensors) {
    std::string other;
    auto verdict = judge(name, tensor, other);
    if (!verdict)
      return verdict.takeError();
    if (*verdict == Verdict::Untaken)
      untaken.push_back(name);
    if (*verdict != Verdict::Differs)
      continue;
    if (differing.empty())
      sibling = other;
    differing.push_back(name);
  }
  return llvm::Error::success();
}

std::string LeftOver::patternOf(const std::string &name, bool isOnly) const {
  std::string inFile = nameInFile(name), layer = layerOf(name).str();
  auto inLayer = known.lower_bound(layer);
  bool hasLayer =
      inLayer != known.end() && llvm::StringRef(*inLayer).starts_with(layer);
  if (!layer.empty() && !hasLayer)
    return layerOf(inFile).str() + "*";
  if (isOnly)
    return inFile;
  std::string pattern = withoutNumbers(inFile);
  std::replace(pattern.begin(), pattern.end(), '#', '*');
  return pattern;
}

llvm::Error LeftOver::check() {
  auto inFile = [&](const std::vector<std::string> &names) {
    std::vector<std::string> result;
    for (const std::string &name : names)
      result.push_back(nameInFile(name));
    return listSome(result, mostListed);
  };
  if (differing.empty() && untaken.empty())
    return llvm::Error::success();
  if (differing.empty() && llvm::any_of(untaken, isOfBatchNorm))
    return makeErrorf(
        ExitCode::BadInput,
        "weights '{0}': the model has no place for {1}: the exporter fused "
        "BatchNorm into other weights, so export it again from these weights, "
        "or with optimize=False, or do_constant_folding=False and "
        "training=TrainingMode.PRESERVE",
        given.path, inFile(untaken));
  std::string what;
  if (!differing.empty())
    what = inFile(differing) + (differing.size() > 1 ? " differ" : " differs") +
           " from '" + nameInFile(sibling) +
           "', and the model has no such weight: exporters write equal weights "
           "once, so export it again from these weights";
  else
    what = "the model has no place for " + inFile(untaken) +
           ": export it again from these weights";
  const std::vector<std::string> &first =
      differing.empty() ? untaken : differing;
  return makeErrorf(ExitCode::BadInput,
                    "weights '{0}': {1}; where that is not part of the model, "
                    "give --leave-out '{2}'",
                    given.path, what,
                    patternOf(first.front(), first.size() == 1));
}

std::string LeftOver::findTie(const ModelWeight &weight,
                              std::string &name) const {
  if (weight.isFolded)
    return "";
  Shape turned(weight.shape.rbegin(), weight.shape.rend());
  std::vector<std::string> same, transposed;
  for (const auto *names : {&untaken, &differing})
    for (const std::string &other : *names) {
      const HostTensor &tensor = tensors.at(other);
      if (!canConvert(weight.type, tensor.getType()))
        continue;
      if (tensor.getShape() == weight.shape)
        same.push_back(nameInFile(other));
      else if (tensor.getRank() == 2 && tensor.getShape() == turned)
        transposed.push_back(nameInFile(other));
    }
  const std::vector<std::string> &fitting = same.empty() ? transposed : same;
  if (fitting.size() != 1)
    return "";
  name = fitting.front();
  return weight.name + "=" + name + (same.empty() ? ".T" : "");
}

llvm::Error checkLeftOver(llvm::ArrayRef<ModelWeight> model,
                          const GivenWeights &given) {
  if (given.isCheckpoint)
    return llvm::Error::success();
  LeftOver leftOver(model, given);
  if (llvm::Error error = leftOver.collect())
    return error;
  return leftOver.check();
}

/// `onnx::MatMul_442`, `val_253`.
static bool isMadeUp(llvm::StringRef name) {
  return name.contains("::") || name.starts_with("val_") ||
         name.starts_with("_val_");
}

llvm::Expected<std::vector<std::string>>
describeMissing(llvm::ArrayRef<ModelWeight> model, const GivenWeights &given,
                llvm::ArrayRef<std::string> missing) {
  // A run's own checkpoints have the names of its plan.
  if (missing.empty() || given.isCheckpoint)
    return std::vector<std::string>(missing.size());
  LeftOver leftOver(model, given);
  if (llvm::Error error = leftOver.collect())
    return error;
  std::vector<std::string> ties, names;
  std::map<std::string, int64_t> counts;
  for (const ModelWeight &weight : model)
    if (llvm::is_contained(missing, weight.name))
      ties.push_back(leftOver.findTie(weight, names.emplace_back()));
  for (const std::string &name : names)
    ++counts[name];
  // Of two that could be the same tensor neither is told.
  std::vector<std::string> hints;
  for (auto [tie, name] : llvm::zip_equal(ties, names))
    hints.push_back(tie.empty() || counts[name] > 1
                        ? ""
                        : " (to take '" + name + "' in its place: --tied " +
                              tie + ")");
  return hints;
}

std::string adviceForMissing(llvm::ArrayRef<std::string> missing) {
  const auto *madeUp = llvm::find_if(missing, isMadeUp);
  if (madeUp == missing.end())
    return "";
  return "'" + *madeUp +
         "' is a name that the exporter made up: torch.onnx.export(..., "
         "dynamo=True, optimize=False) keeps those of the parameters";
}

} // namespace ax
