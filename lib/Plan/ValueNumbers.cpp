//===- ValueNumbers.cpp - Which values of a program are the same ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ValueNumbers.h"

using namespace mlir;
using namespace ax;
using namespace ax::plan;

ValueNumbers::ValueNumbers(ProgramOp program) {
  for (Value argument : program.getArguments())
    numbers[argument] = next++;
  for (Operation &op : program.getBody().front()) {
    if (auto transfer = dyn_cast<TransferOp>(op))
      numbers[transfer.getResult()] = of(transfer.getOperand());
    else if (auto stage = dyn_cast<StageOp>(op))
      add(stage);
  }
}

void ValueNumbers::add(StageOp stage) {
  Block &body = stage.getBody().front();
  for (auto [inside, outside] :
       llvm::zip_equal(body.getArguments(), stage.getOperands()))
    numbers[inside] = of(outside);
  for (Operation &op : body.without_terminator())
    add(&op);
  for (auto [outside, inside] :
       llvm::zip_equal(stage.getResults(), body.getTerminator()->getOperands()))
    numbers[outside] = of(inside);
}

void ValueNumbers::add(Operation *op) {
  if (auto wait = dyn_cast<WaitOp>(op)) {
    numbers[wait.getResult()] = of(wait.getStarted());
    return;
  }
  // Each tensor of a collective becomes what it becomes, whoever shares it.
  if (isa<CollectiveOpInterface>(op)) {
    for (auto [operand, result] :
         llvm::zip_equal(op->getOperands(), op->getResults()))
      add(op, operand, result);
    return;
  }
  add(op, op->getOperands(), op->getResults());
}

void ValueNumbers::add(Operation *op, ValueRange operands, ValueRange results) {
  std::vector<uintptr_t> key{results.size(), operands.size()};
  auto append = [&](const void *part) {
    key.push_back(reinterpret_cast<uintptr_t>(part));
  };
  append(op->getName().getAsOpaquePointer());
  for (NamedAttribute attribute : op->getAttrs()) {
    // When it is done, and what is for the reader alone.
    StringRef name = attribute.getName();
    if (name == "start" || name == kNode || name == "because")
      continue;
    append(attribute.getName().getAsOpaquePointer());
    append(attribute.getValue().getAsOpaquePointer());
  }
  for (Type type : results.getTypes())
    append(type.getAsOpaquePointer());
  for (Value operand : operands)
    key.push_back(of(operand));
  auto [first, isNew] = known.try_emplace(std::move(key), next);
  if (isNew)
    next += results.size();
  for (auto [i, result] : llvm::enumerate(results))
    numbers[result] = first->second + i;
}
