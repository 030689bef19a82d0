//===- StoredAttr.cpp - Text of elements that lie in a file ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/Ax.h"

#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace ax;

void StoredAttr::print(AsmPrinter &printer) const {
  printer << "<offset " << getOffset() << " length " << getLength()
          << " checksum \"" << getChecksum() << "\">";
}

Attribute StoredAttr::parse(AsmParser &parser, Type type) {
  int64_t offset = 0, length = 0;
  std::string checksum;
  SMLoc start = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword("offset") ||
      parser.parseInteger(offset) || parser.parseKeyword("length") ||
      parser.parseInteger(length) || parser.parseKeyword("checksum") ||
      parser.parseString(&checksum) || parser.parseGreater())
    return {};
  auto tensor = dyn_cast_or_null<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape()) {
    parser.emitError(start, "stored elements need the type of a tensor");
    return {};
  }
  return get(parser.getContext(), tensor, offset, length, checksum);
}
