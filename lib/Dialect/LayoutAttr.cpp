//===- LayoutAttr.cpp - Text and values of layouts ------------------------===//
//
// Both attributes store axes as indices into a list of names and a flat list
// of numbers:
//
//   axes   = count, (name, pre, size)*           size 0: the whole axis
//   factor = size, axes                          size 0: the only factor
//   layout = dims, (factors, factor*)*, reduce kind, axes
//
//===----------------------------------------------------------------------===//
#include "ax/Dialect/AxesSyntax.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ax;

namespace {

/// Writes the flat form.
class Encoder {
public:
  explicit Encoder(MLIRContext *context) : context(context) {}

  void number(int64_t n) { encoding.push_back(n); }
  void axis(StringRef name, int64_t pre, int64_t size) {
    StringAttr attr = StringAttr::get(context, name);
    auto *it = llvm::find(names, attr);
    number(it - names.begin());
    if (it == names.end())
      names.push_back(attr);
    number(pre);
    number(size);
  }
  void axes(const sharding::SubAxes &axes, const sharding::Mesh &mesh) {
    number(axes.size());
    for (const sharding::SubAxis &sub : axes) {
      bool whole = sub.pre == 1 && sub.size == mesh.axisSize(sub.axis);
      axis(sub.axis, sub.pre, whole ? 0 : sub.size);
    }
  }

  SmallVector<StringAttr> names;
  SmallVector<int64_t> encoding;

private:
  MLIRContext *context;
};

/// Reads the flat form.
class Decoder {
public:
  Decoder(ArrayRef<StringAttr> names, ArrayRef<int64_t> encoding)
      : names(names), encoding(encoding) {}

  int64_t number() { return encoding[position++]; }
  /// Sizes of whole axes stay 0 without a mesh.
  sharding::SubAxes axes(const sharding::Mesh *mesh) {
    sharding::SubAxes result(number());
    for (sharding::SubAxis &sub : result) {
      sub.axis = names[number()].str();
      sub.pre = number();
      sub.size = number();
      if (sub.size == 0 && mesh)
        sub.size = mesh->axisSize(sub.axis);
    }
    return result;
  }

private:
  ArrayRef<StringAttr> names;
  ArrayRef<int64_t> encoding;
  size_t position = 0;
};

void writeAxes(raw_ostream &os, const sharding::SubAxes &axes) {
  os << '{';
  llvm::interleaveComma(axes, os, [&](const sharding::SubAxis &sub) {
    os << sub.axis;
    if (sub.size != 0)
      os << ":(" << sub.pre << ')' << sub.size;
  });
  os << '}';
}

/// One or more axes, without the braces.
ParseResult parseAxisList(AsmParser &parser, Encoder &encoder, size_t countAt) {
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

/// `{}`, `{a, b}`. With `optional`, nothing at all is an empty list too.
ParseResult readAxes(AsmParser &parser, Encoder &encoder,
                     bool optional = false) {
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

/// `{a, b}`, or `3 * 8{a} * 64`.
ParseResult parseDim(AsmParser &parser, Encoder &encoder) {
  size_t countAt = encoder.encoding.size();
  encoder.number(1);
  int64_t size = 0;
  OptionalParseResult first = parser.parseOptionalInteger(size);
  if (!first.has_value()) {
    encoder.number(0);
    return readAxes(parser, encoder);
  }
  if (failed(*first))
    return failure();
  for (int64_t count = 1;; ++count) {
    if (size < 1)
      return parser.emitError(parser.getCurrentLocation(),
                              "factor sizes are at least 1");
    encoder.number(size);
    // An unsplit factor has no braces.
    if (readAxes(parser, encoder, /*optional=*/true))
      return failure();
    encoder.encoding[countAt] = count;
    if (failed(parser.parseOptionalStar()))
      return success();
    if (parser.parseInteger(size))
      return failure();
  }
}

} // namespace

//===----------------------------------------------------------------------===//
// LayoutAttr
//===----------------------------------------------------------------------===//

LayoutAttr LayoutAttr::get(MLIRContext *context, const sharding::Layout &layout,
                           const sharding::Mesh &mesh) {
  sharding::Layout canonical = sharding::canonicalize(layout);
  Encoder encoder(context);
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
  Decoder decoder(getAxisNames(), getEncoding());
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
  raw_ostream &os = printer.getStream();
  Decoder decoder(getAxisNames(), getEncoding());
  os << "<[";
  for (int64_t i = 0, dims = decoder.number(); i < dims; ++i) {
    if (i)
      os << ", ";
    int64_t factors = decoder.number();
    for (int64_t f = 0; f < factors; ++f) {
      if (f)
        os << " * ";
      int64_t size = decoder.number();
      sharding::SubAxes axes = decoder.axes(nullptr);
      if (size)
        os << size;
      if (!size || !axes.empty())
        writeAxes(os, axes);
    }
  }
  os << ']';
  auto kind = static_cast<sharding::ReduceKind>(decoder.number());
  sharding::SubAxes partial = decoder.axes(nullptr);
  if (!partial.empty()) {
    os << ", partial " << sharding::toString(kind) << ' ';
    writeAxes(os, partial);
  }
  os << '>';
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  Encoder encoder(parser.getContext());
  encoder.number(0);
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        ++encoder.encoding[0];
        return parseDim(parser, encoder);
      }))
    return {};
  if (failed(parser.parseOptionalComma())) {
    encoder.number(0);
    encoder.number(0);
  } else {
    StringRef kind;
    SMLoc loc;
    if (parser.parseKeyword("partial") || parser.getCurrentLocation(&loc) ||
        parser.parseKeyword(&kind))
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
    if (readAxes(parser, encoder))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), encoder.names, encoder.encoding);
}

//===----------------------------------------------------------------------===//
// AxesAttr
//===----------------------------------------------------------------------===//

AxesAttr AxesAttr::get(MLIRContext *context, const sharding::SubAxes &axes,
                       const sharding::Mesh &mesh) {
  Encoder encoder(context);
  encoder.axes(axes, mesh);
  return get(context, encoder.names, encoder.encoding);
}

sharding::SubAxes AxesAttr::resolve(const sharding::Mesh &mesh) const {
  return Decoder(getAxisNames(), getEncoding()).axes(&mesh);
}

void AxesAttr::print(AsmPrinter &printer) const {
  printer << '<';
  writeAxes(printer.getStream(),
            Decoder(getAxisNames(), getEncoding()).axes(nullptr));
  printer << '>';
}

Attribute AxesAttr::parse(AsmParser &parser, Type) {
  Encoder encoder(parser.getContext());
  if (parser.parseLess() || readAxes(parser, encoder) || parser.parseGreater())
    return {};
  return get(parser.getContext(), encoder.names, encoder.encoding);
}

ParseResult ax::parseAxes(OpAsmParser &parser, AxesAttr &axes) {
  Encoder encoder(parser.getContext());
  if (readAxes(static_cast<AsmParser &>(parser), encoder))
    return failure();
  axes = AxesAttr::get(parser.getContext(), encoder.names, encoder.encoding);
  return success();
}

void ax::printAxes(OpAsmPrinter &printer, Operation *, AxesAttr axes) {
  writeAxes(printer.getStream(),
            Decoder(axes.getAxisNames(), axes.getEncoding()).axes(nullptr));
}
