//===- Precheck.cpp - What is refused before anybody reads a plan ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Precheck.h"

#include "ax/Cost/OpCost.h"
#include "ax/Dialect/Ax.h"
#include "ax/Dialect/Limits.h"
#include "ax/Support/Error.h"

#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;

namespace ax::plan {

static constexpr int64_t maxDepth = 128;
static constexpr int64_t maxAxisSize = int64_t(1) << 24;

static llvm::Error fault(llvm::StringRef name, llvm::StringRef text, size_t at,
                         const llvm::Twine &message) {
  size_t line = text.take_front(at).count('\n') + 1;
  return makeError(ExitCode::BadPlan,
                   name + ":" + llvm::Twine(line) + ": " + message);
}

/// First character after the string or comment that starts at `at`; `at` when
/// none does.
static size_t skipOpaque(llvm::StringRef text, size_t at) {
  if (text[at] == '"') {
    for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
      at += text[at] == '\\';
    return std::min(at + 1, text.size());
  }
  if (text.substr(at).starts_with("//"))
    return std::min(text.find('\n', at), text.size());
  return at;
}

llvm::Error precheckText(llvm::StringRef text, llvm::StringRef name) {
  int64_t depth = 0, signs = 0;
  for (size_t i = 0; i < text.size();) {
    if (size_t end = skipOpaque(text, i); end != i) {
      i = end;
      continue;
    }
    char c = text[i];
    if (llvm::StringRef("([{<").contains(c))
      ++depth;
    else if (llvm::StringRef(")]}>").contains(c) &&
             !(c == '>' && i > 0 && text[i - 1] == '-'))
      depth = std::max<int64_t>(0, depth - 1);
    // Expressions of affine maps recurse without brackets.
    if (c == '-' || c == '+')
      ++signs;
    else if (!isspace(static_cast<unsigned char>(c)))
      signs = 0;
    if (depth > maxDepth || signs > maxDepth)
      return fault(name, text, i, "nested too deeply");
    if (c == 'a' && (text.substr(i).starts_with("affine_map") ||
                     text.substr(i).starts_with("affine_set")))
      return fault(name, text, i, "affine expressions do not belong in a plan");
    ++i;
  }
  return llvm::Error::success();
}

/// Whether ranks compute with such elements.
static bool isElementType(Type type) {
  if (isNarrowFloat(type) || type.isF32() || type.isF64())
    return true;
  auto integer = dyn_cast<IntegerType>(type);
  return integer && !integer.isSigned() &&
         (llvm::is_contained({8u, 16u, 32u, 64u}, integer.getWidth()) ||
          integer.isSignlessInteger(1));
}

/// Why types like `type` cannot be.
static std::optional<std::string> findTypeFault(ShapedType type) {
  if (type.getElementType().isIntOrFloat() == false || !type.hasStaticShape())
    return "is no tensor of numbers with a static shape";
  if (!isElementType(type.getElementType())) {
    std::string text;
    llvm::raw_string_ostream(text)
        << "has elements of type " << type.getElementType()
        << ", with which no rank computes";
    return text;
  }
  std::string fault =
      findSizeFault(type.getShape(), cost::elementBytes(type.getElementType()));
  return fault.empty() ? std::nullopt : std::optional(fault);
}

/// The flat numbers of layouts and axes: sizes, digits and counts alike.
static std::optional<std::string> findNumberFault(ArrayRef<int64_t> encoding) {
  int64_t limit = maxTensorBytes;
  for (int64_t number : encoding)
    if (number < 0 || number > limit)
      return "has a size out of range";
  return std::nullopt;
}

/// Digits multiply with each other.
static std::optional<std::string>
findDigitFault(const sharding::SubAxes &axes) {
  for (const sharding::SubAxis &sub : axes)
    if (sub.pre < 1 || sub.size < 0 || sub.pre > maxAxisSize ||
        sub.size > maxAxisSize)
      return "names a digit of axis '" + sub.axis + "' that is out of range";
  return std::nullopt;
}

static std::optional<std::string> findLayoutFault(LayoutAttr attr,
                                                  ArrayRef<int64_t> shape) {
  if (auto fault = findNumberFault(attr.getEncoding()))
    return fault;
  sharding::Layout layout = attr.resolve(shape, sharding::Mesh());
  return findDigitFault(layout.usedAxes());
}

LogicalResult precheckModule(ModuleOp module) {
  auto ops = module.getBody()->getOperations().begin();
  if (module.getBody()->getOperations().size() != 1 || !isa<PlanOp>(*ops))
    return module.emitError("expected one ax.plan and nothing else");

  std::string fault;
  AttrTypeWalker walker;
  auto refuse = [&](auto what, const std::string &why) {
    llvm::raw_string_ostream(fault) << "'" << what << "' " << why;
    return WalkResult::interrupt();
  };
  walker.addWalk([&](ShapedType type) {
    auto why = findTypeFault(type);
    return why ? refuse(type, *why) : WalkResult::advance();
  });
  walker.addWalk([&](RankedTensorType type) {
    auto layout = dyn_cast_or_null<LayoutAttr>(type.getEncoding());
    auto why = layout ? findLayoutFault(layout, type.getShape()) : std::nullopt;
    return why ? refuse(type, *why) : WalkResult::advance();
  });
  walker.addWalk([&](LayoutAttr layout) {
    auto why = findLayoutFault(layout, {});
    return why ? refuse(layout, *why) : WalkResult::advance();
  });
  walker.addWalk([&](AxesAttr axes) {
    auto why = findNumberFault(axes.getEncoding());
    if (!why)
      why = findDigitFault(axes.resolve(sharding::Mesh()));
    return why ? refuse(axes, *why) : WalkResult::advance();
  });
  WalkResult result = module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<MeshOp>(op) && failed(op->getName().verifyInvariants(op)))
      return WalkResult::interrupt();
    bool wrong = walker.walk(op->getAttrDictionary()).wasInterrupted();
    for (Type type : op->getResultTypes())
      wrong = wrong || walker.walk(type).wasInterrupted();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Type type : block.getArgumentTypes())
          wrong = wrong || walker.walk(type).wasInterrupted();
    if (!wrong)
      return WalkResult::advance();
    op->emitOpError() << fault;
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

} // namespace ax::plan
