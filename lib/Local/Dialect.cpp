//===- Dialect.cpp - Registration of axl ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/AxesSyntax.h"
#include "ax/Local/Local.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ax;

#include "ax/Local/LocalDialect.cpp.inc"
#include "ax/Local/LocalEnums.cpp.inc"
#include "ax/Local/LocalInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ax/Local/LocalAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "ax/Local/LocalOps.cpp.inc"

void AxlDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ax/Local/LocalOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ax/Local/LocalAttrs.cpp.inc"
      >();
}

LogicalResult AxlDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  if (attribute.getName() != kPlaces)
    return success();
  auto places = dyn_cast<ArrayAttr>(attribute.getValue());
  if (!places || places.size() != op->getNumResults() ||
      !llvm::all_of(places, llvm::IsaPred<PlaceAttr>))
    return op->emitOpError("'") << kPlaces << "' has a place for each result";
  auto stage = op->getParentOfType<LocalStageOp>();
  for (auto place : places.getAsRange<PlaceAttr>()) {
    int64_t limit = std::numeric_limits<int64_t>::max();
    if (place.getKind() == PlaceKind::Operand)
      limit = op->getNumOperands();
    else if (place.getKind() == PlaceKind::Result && stage)
      limit = stage.getYield()->getNumOperands();
    if (place.getNumber() < 0 || place.getNumber() >= limit)
      return op->emitOpError("there is no place ") << place;
  }
  return success();
}
