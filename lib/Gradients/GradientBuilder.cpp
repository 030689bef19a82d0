//===- GradientBuilder.cpp - What gradients are built with ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GradientRules.h"

#include "ax/Dialect/StageAndAction.h"

using namespace mlir;
using namespace ax;

/// That of `value`; f32 where it is of eight bits (Rules/Elementwise.cpp).
[[maybe_unused]] static RankedTensorType gradientType(Value value) {
  RankedTensorType type = tensorType(value);
  return isFloat8(type.getElementType())
             ? type.clone(Float32Type::get(type.getContext()))
             : type;
}

void GradientBuilder::give(OpOperand &operand, Make make) {
  if (!isWanted(operand))
    return;
  Value gradient = make();
  assert((!gradient ||
          sameWithoutLayout(gradient.getType(), gradientType(operand.get()))) &&
         "a gradient has its operand's type");
  operandGradients[operand.getOperandNumber()] = gradient;
}

void GradientBuilder::giveSummed(OpOperand &operand, Make make) {
  give(operand, [&]() -> Value {
    Value gradient = make();
    return gradient ? sumTo(gradient, shapeOf(operand.get())) : Value();
  });
}

Value GradientBuilder::inForward(Make make) {
  OpBuilder::InsertionGuard guard(b);
  OpBuilder::Listener *backward = b.getListener();
  MarkStageAndAction forward(markedAction(op), op->getAttr(kStage));
  b.setInsertionPointAfter(op);
  b.setListener(&forward);
  Value made = make();
  b.setListener(backward);
  return made;
}

void ax::registerGradients(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, AxDialect *) {
#define AX_FILE(Name) attach##Name##Gradients(*context);
#include "Gradients.inc"
#undef AX_FILE
  });
}
