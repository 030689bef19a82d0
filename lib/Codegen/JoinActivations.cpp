//===- JoinActivations.cpp - Activations of products that are trained -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Example: of h = gelu(s), s = x w + b, a step reads s twice, and so one
// product gives both. Backwards the gradient of h comes from a product, too,
//
//   dh = dy v^T : bf16     ds = cast (cast dh to f32) * gelu'(cast s) to bf16
//
// where gelu' is some ten operations, as they are made for it (lib/Gradients).
// They are made once more, of operands of their own, and compared: what stands
// in their place in the stage is s. Then one product gives ds.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "Library.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/FunctionFacts.h"
#include "ax/Dialect/Tensors.h"
#include "ax/Gradients/GradientBuilder.h"

namespace ax::codegen {
#define GEN_PASS_DEF_JOINACTIVATIONS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// The one that cuBLASLt keeps the operand of, and has the gradient of.
static constexpr UnaryKind trainedKind = UnaryKind::gelu_tanh;

/// Whether cuBLASLt has a second matrix of this type beside the result: of 16
/// bits, with rows that begin at multiples of 16 bytes.
static bool canLieBeside(RankedTensorType type) {
  constexpr int64_t multiple = 8;
  Type element = type.getElementType();
  return (element.isBF16() || element.isF16()) && type.getRank() >= 2 &&
         type.getShape().back() % multiple == 0 && type.getNumElements() > 0;
}

namespace {

/// A gradient of `trainedKind` as it is written out, of operands that stand for
/// any.
class WrittenGradient {
public:
  explicit WrittenGradient(RankedTensorType type) {
    Location loc = UnknownLoc::get(type.getContext());
    x = block.addArgument(type, loc);
    dy = block.addArgument(type, loc);
    OpBuilder builder(type.getContext());
    builder.setInsertionPointToEnd(&block);
    TensorBuilder tensors(loc, builder);
    Value y = tensors.unary(trainedKind, x);
    result = unaryGradient(tensors, trainedKind, x, y, dy);
  }

  /// Returns at what `value` is the gradient, of a function's result whose
  /// gradient is `of`: what is cast, if it is a cast. Null where it is none.
  Value match(Value value, Value of) {
    gradient = source(of);
    found = Value();
    return isSame(value, result) ? found : Value();
  }

private:
  static Value source(Value value) {
    auto cast = value.getDefiningOp<CastOp>();
    return cast ? cast.getOperand() : value;
  }

  bool isSame(Value value, Value written) {
    if (written == dy)
      return source(value) == gradient;
    if (written == x) {
      if (!found)
        found = source(value);
      return source(value) == found && value.getType() == x.getType();
    }
    Operation *op = value.getDefiningOp(), *as = written.getDefiningOp();
    if (!op || op->getName() != as->getName() ||
        op->getResultTypes() != as->getResultTypes() ||
        !op->getName().compareOpProperties(op->getPropertiesStorage(),
                                           as->getPropertiesStorage()))
      return false;
    if (areSame(op->getOperands(), as->getOperands()))
      return true;
    auto binary = dyn_cast<BinaryOp>(as);
    return binary && factsOf(binary.getKind()).isCommutative &&
           areSame(op->getOperands(), {binary.getRhs(), binary.getLhs()});
  }

  bool areSame(ValueRange values, ValueRange written) {
    Value before = found;
    if (llvm::all_of_zip(values, written, [&](Value value, Value as) {
          return isSame(value, as);
        }))
      return true;
    found = before;
    return false;
  }

  Block block;
  Value x, dy, result;
  /// While one is compared.
  Value gradient, found;
};

struct JoinActivationsPass
    : codegen::impl::JoinActivationsBase<JoinActivationsPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      SmallVector<Operation *> products;
      for (Operation &op : stage.getBlock())
        if (isa_and_present<LinearOp>(getLibraryCore(&op)) &&
            op.getNumResults() == 1 &&
            canLieBeside(tensorType(op.getResult(0))))
          products.push_back(&op);
      for (Operation *product : products)
        if (UnaryOp activation = findActivation(product))
          giveBoth(product, activation);
        else
          joinGradient(product);
      removeUnused(stage.getBlock());
    });
  }

  //===--- Forwards -------------------------------------------------------===//

  /// The activation of what a Linear gives, if it gives that to others, too.
  static UnaryOp findActivation(Operation *product) {
    auto library = dyn_cast<LibraryOp>(product);
    bool isDone = library && (library.getActivation() || library.getResidual());
    if (isDone || product->getResult(0).hasOneUse())
      return {};
    // Of several the first: another one is computed again.
    UnaryOp first;
    for (Operation *user : product->getUsers())
      if (auto activation = dyn_cast<UnaryOp>(user);
          activation && activation.getKind() == trainedKind &&
          (!first || activation->isBeforeInBlock(first)))
        first = activation;
    return first;
  }

  static void giveBoth(Operation *product, UnaryOp activation) {
    LibraryOp library = wrapInLibrary(product);
    OpBuilder builder(library);
    Value input = library.getResult();
    Location loc = mergeLocations(library, activation);
    auto both =
        LibraryOp::create(builder, loc, {activation.getType(), input.getType()},
                          library.getOperands());
    both->setDiscardableAttrs(library->getDiscardableAttrDictionary());
    both.getBody().takeBody(library.getBody());
    Operation *yield = both.getYield();
    builder.setInsertionPoint(yield);
    Value inside = yield->getOperand(0);
    auto activated =
        UnaryOp::create(builder, activation.getLoc(), activation.getType(),
                        activation.getKind(), inside);
    yield->setOperands({activated, inside});
    activation.getResult().replaceAllUsesWith(both->getResult(0));
    activation.erase();
    input.replaceAllUsesWith(both->getResult(1));
    library.erase();
  }

  //===--- Backwards ------------------------------------------------------===//

  /// The one reader of the product, behind a cast if there is one: a product
  /// with a derivative.
  static BinaryOp findMultiplied(Value product) {
    Value value = product;
    if (value.hasOneUse())
      if (auto wide = dyn_cast<CastOp>(*value.user_begin()))
        value = wide.getResult();
    auto multiplied = value.hasOneUse()
                          ? dyn_cast<BinaryOp>(*value.user_begin())
                          : BinaryOp();
    return multiplied && multiplied.getKind() == BinaryKind::mul ? multiplied
                                                                 : BinaryOp();
  }

  static void joinGradient(Operation *product) {
    Value given = product->getResult(0);
    BinaryOp multiplied = findMultiplied(given);
    if (!multiplied || isa<LibraryOp>(product) ||
        shapeOf(multiplied.getResult()) != shapeOf(given))
      return;
    // What is read unrounded is not what the product gives.
    SmallVector<Value> rounded;
    if (multiplied.getType() == given.getType())
      rounded.push_back(multiplied.getResult());
    else
      for (Operation *user : multiplied->getUsers()) {
        if (!isa<CastOp>(user) ||
            user->getResult(0).getType() != given.getType())
          return;
        rounded.push_back(user->getResult(0));
      }
    WrittenGradient written(tensorType(multiplied));
    Value input = written.match(multiplied, given);
    if (!input || input.getType() != given.getType() ||
        !isInMemory(input, product))
      return;
    LibraryOp library = wrapInLibrary(product);
    library->setLoc(mergeLocations(library, multiplied));
    library->insertOperands(library->getNumOperands(), input);
    Value argument =
        library.getBody().addArgument(input.getType(), input.getLoc());
    OpBuilder builder(library.getYield());
    library.setYielded(
        UnaryGradientOp::create(builder, multiplied.getLoc(), trainedKind,
                                library.getYield()->getOperand(0), argument));
    for (Value value : rounded)
      value.replaceAllUsesWith(library.getResult());
  }

  /// Whether it is there before the product, and no kernel has to write it for
  /// that.
  static bool isInMemory(Value value, Operation *product) {
    Operation *maker = value.getDefiningOp();
    return !maker || (isLibraryOp(maker) && maker->isBeforeInBlock(product));
  }
};

} // namespace
