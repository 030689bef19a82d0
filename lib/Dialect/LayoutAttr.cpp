//===- LayoutAttr.cpp - Text and values of layouts ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "LayoutEncoding.h"

#include "ax/Dialect/AxesSyntax.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ax;

void ax::printAxes(raw_ostream &os, const sharding::SubAxes &axes) {
  os << '{';
  llvm::interleaveComma(axes, os, [&](const sharding::SubAxis &sub) {
    os << sub.axis;
    if (sub.size != 0)
      os << ":(" << sub.pre << ')' << sub.size;
  });
  os << '}';
}

/// One or more axes, without the braces.
static ParseResult parseAxisList(AsmParser &parser, LayoutEncoder &encoder,
                                 size_t countAt) {
  do {
    StringRef name;
    int64_t pre = 1, size = 0;
    if (parser.parseKeyword(&name))
      return failure();
    if (succeeded(parser.parseOptionalColon())) {
      SMLoc loc = parser.getCurrentLocation();
      if (parser.parseLParen() || parser.parseInteger(pre) ||
          parser.parseRParen() || parser.parseInteger(size))
        return failure();
      if (pre < 1 || size < 1)
        return parser.emitError(loc, "sub-axis sizes are at least 1");
    }
    ++encoder.encoding[countAt];
    encoder.axis(name, pre, size);
  } while (succeeded(parser.parseOptionalComma()));
  return success();
}

ParseResult ax::parseAxes(AsmParser &parser, LayoutEncoder &encoder,
                          bool optional) {
  size_t countAt = encoder.encoding.size();
  encoder.number(0);
  if (optional ? failed(parser.parseOptionalLBrace())
               : failed(parser.parseLBrace()))
    return success(optional);
  if (succeeded(parser.parseOptionalRBrace()))
    return success();
  return failure(failed(parseAxisList(parser, encoder, countAt)) ||
                 failed(parser.parseRBrace()));
}

ParseResult ax::parseDim(AsmParser &parser, LayoutEncoder &encoder) {
  size_t countAt = encoder.encoding.size();
  encoder.number(1);
  int64_t size = 0;
  OptionalParseResult first = parser.parseOptionalInteger(size);
  if (!first.has_value()) {
    encoder.number(0);
    return parseAxes(parser, encoder);
  }
  if (failed(*first))
    return failure();
  for (int64_t count = 1;; ++count) {
    if (size < 1)
      return parser.emitError(parser.getCurrentLocation(),
                              "factor sizes are at least 1");
    encoder.number(size);
    // An unsplit factor has no braces.
    if (parseAxes(parser, encoder, /*optional=*/true))
      return failure();
    encoder.encoding[countAt] = count;
    if (failed(parser.parseOptionalStar()))
      return success();
    if (parser.parseInteger(size))
      return failure();
  }
}

void ax::printDim(raw_ostream &os, LayoutDecoder &decoder) {
  int64_t factors = decoder.number();
  for (int64_t f = 0; f < factors; ++f) {
    if (f)
      os << " * ";
    int64_t size = decoder.number();
    sharding::SubAxes axes = decoder.axes(nullptr);
    if (size)
      os << size;
    if (!size || !axes.empty())
      printAxes(os, axes);
  }
}

void ax::printLayout(raw_ostream &os, LayoutAttr layout, StringRef separator) {
  LayoutDecoder decoder(layout.getAxisNames(), layout.getEncoding());
  os << '[';
  for (int64_t i = 0, dims = decoder.number(); i < dims; ++i) {
    if (i)
      os << ", ";
    printDim(os, decoder);
  }
  os << ']';
  auto kind = static_cast<sharding::ReduceKind>(decoder.number());
  sharding::SubAxes partial = decoder.axes(nullptr);
  if (!partial.empty()) {
    os << separator << "partial " << sharding::toString(kind) << ' ';
    printAxes(os, partial);
  }
}

LayoutAttr ax::parseLayout(AsmParser &parser, bool withComma) {
  LayoutEncoder encoder(parser.getContext());
  encoder.number(0);
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        ++encoder.encoding[0];
        return parseDim(parser, encoder);
      }))
    return {};
  bool isPartial = withComma
                       ? succeeded(parser.parseOptionalComma())
                       : succeeded(parser.parseOptionalKeyword("partial"));
  if (!isPartial) {
    encoder.number(0);
    encoder.number(0);
  } else {
    StringRef kind;
    SMLoc loc;
    if ((withComma && parser.parseKeyword("partial")) ||
        parser.getCurrentLocation(&loc) || parser.parseKeyword(&kind))
      return {};
    auto value = llvm::StringSwitch<int64_t>(kind)
                     .Case("sum", 0)
                     .Case("max", 1)
                     .Case("min", 2)
                     .Default(-1);
    if (value < 0) {
      parser.emitError(loc, "expected sum, max or min, got '") << kind << "'";
      return {};
    }
    encoder.number(value);
    if (parseAxes(parser, encoder))
      return {};
  }
  return LayoutAttr::get(parser.getContext(), encoder.names, encoder.encoding);
}

//===----------------------------------------------------------------------===//
// LayoutAttr
//===----------------------------------------------------------------------===//

LayoutAttr LayoutAttr::get(MLIRContext *context, const sharding::Layout &layout,
                           const sharding::Mesh &mesh) {
  sharding::Layout canonical = sharding::canonicalize(layout);
  LayoutEncoder encoder(context);
  encoder.number(canonical.dims.size());
  for (const sharding::DimLayout &dim : canonical.dims) {
    encoder.number(dim.factors.size());
    for (const sharding::Factor &factor : dim.factors) {
      encoder.number(dim.factors.size() == 1 ? 0 : factor.size);
      encoder.axes(factor.axes, mesh);
    }
  }
  encoder.number(canonical.partial.empty()
                     ? 0
                     : static_cast<int64_t>(canonical.partialKind));
  encoder.axes(canonical.partial, mesh);
  return get(context, encoder.names, encoder.encoding);
}

sharding::Layout LayoutAttr::resolve(ArrayRef<int64_t> shape,
                                     const sharding::Mesh &mesh) const {
  LayoutDecoder decoder(getAxisNames(), getEncoding());
  sharding::Layout layout;
  layout.dims.resize(decoder.number());
  for (auto [i, dim] : llvm::enumerate(layout.dims)) {
    dim.factors.resize(decoder.number());
    for (sharding::Factor &factor : dim.factors) {
      factor.size = decoder.number();
      if (factor.size == 0)
        factor.size = i < shape.size() ? shape[i] : 1;
      factor.axes = decoder.axes(&mesh);
    }
  }
  layout.partialKind = static_cast<sharding::ReduceKind>(decoder.number());
  layout.partial = decoder.axes(&mesh);
  return layout;
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printLayout(printer.getStream(), *this, ", ");
  printer << '>';
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  LayoutAttr layout = parseLayout(parser, /*withComma=*/true);
  if (!layout || parser.parseGreater())
    return {};
  return layout;
}

//===----------------------------------------------------------------------===//
// AxesAttr
//===----------------------------------------------------------------------===//

AxesAttr AxesAttr::get(MLIRContext *context, const sharding::SubAxes &axes,
                       const sharding::Mesh &mesh) {
  LayoutEncoder encoder(context);
  encoder.axes(axes, mesh);
  return get(context, encoder.names, encoder.encoding);
}

sharding::SubAxes AxesAttr::resolve(const sharding::Mesh &mesh) const {
  return LayoutDecoder(getAxisNames(), getEncoding()).axes(&mesh);
}

void AxesAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printAxes(printer.getStream(),
            LayoutDecoder(getAxisNames(), getEncoding()).axes(nullptr));
  printer << '>';
}

Attribute AxesAttr::parse(AsmParser &parser, Type) {
  LayoutEncoder encoder(parser.getContext());
  if (parser.parseLess() || parseAxes(parser, encoder) || parser.parseGreater())
    return {};
  return get(parser.getContext(), encoder.names, encoder.encoding);
}

ParseResult ax::parseAxes(OpAsmParser &parser, AxesAttr &axes) {
  LayoutEncoder encoder(parser.getContext());
  if (parseAxes(static_cast<AsmParser &>(parser), encoder))
    return failure();
  axes = AxesAttr::get(parser.getContext(), encoder.names, encoder.encoding);
  return success();
}

void ax::printAxes(OpAsmPrinter &printer, Operation *, AxesAttr axes) {
  printAxes(
      printer.getStream(),
      LayoutDecoder(axes.getAxisNames(), axes.getEncoding()).axes(nullptr));
}
