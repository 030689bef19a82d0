//===- PinAttrs.cpp - Text of pins and of what comes of them --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "LayoutEncoding.h"

using namespace mlir;
using namespace ax;

/// What a list of words in front of `because` says.
static ParseResult parseWords(AsmParser &parser,
                              ArrayRef<std::pair<StringRef, bool *>> words) {
  for (bool any = true; any;) {
    any = false;
    for (auto [word, isSaid] : words)
      if (!*isSaid && succeeded(parser.parseOptionalKeyword(word)))
        any = *isSaid = true;
  }
  return success();
}

static ParseResult parseText(AsmParser &parser, StringAttr &text) {
  std::string value;
  if (parser.parseString(&value))
    return failure();
  text = StringAttr::get(parser.getContext(), value);
  return success();
}

static void printText(AsmPrinter &printer, StringRef keyword, StringAttr text) {
  printer << ' ' << keyword << ' ';
  printer.printString(text.getValue());
}

//===----------------------------------------------------------------------===//
// PinAttr
//===----------------------------------------------------------------------===//

void PinAttr::print(AsmPrinter &printer) const {
  raw_ostream &os = printer.getStream();
  os << '<';
  if (getResult())
    os << "result " << getResult() << ' ';
  LayoutDecoder decoder(getLayout().getAxisNames(), getLayout().getEncoding());
  os << '[';
  for (int64_t dim = 0, dims = decoder.number(); dim < dims; ++dim) {
    bool isPinned = llvm::is_contained(getDims(), dim);
    os << (dim ? ", " : "") << (isPinned ? "" : "?");
    printDim(isPinned ? os : llvm::nulls(), decoder);
  }
  os << ']' << (getUser() ? " user" : "") << (getWeak() ? " weak" : "")
     << (getOpen() ? " open" : "") << (getHereOnly() ? " here_only" : "");
  printText(printer, "because", getBecause());
  os << '>';
}

Attribute PinAttr::parse(AsmParser &parser, Type) {
  unsigned result = 0;
  bool user = false, weak = false, open = false, hereOnly = false;
  StringAttr because;
  SmallVector<int64_t> pinned;
  LayoutEncoder encoder(parser.getContext());
  encoder.number(0);
  auto parseOne = [&]() -> ParseResult {
    int64_t dim = encoder.encoding[0]++;
    if (failed(parser.parseOptionalQuestion())) {
      pinned.push_back(dim);
      return parseDim(parser, encoder);
    }
    // One factor, all of the dimension, over no axes.
    for (int64_t number : {1, 0, 0})
      encoder.number(number);
    return success();
  };
  if (parser.parseLess() ||
      (succeeded(parser.parseOptionalKeyword("result")) &&
       parser.parseInteger(result)) ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne) ||
      parseWords(parser, {{"user", &user},
                          {"weak", &weak},
                          {"open", &open},
                          {"here_only", &hereOnly}}) ||
      parser.parseKeyword("because") || parseText(parser, because) ||
      parser.parseGreater())
    return {};
  // Nothing is partial.
  encoder.number(0);
  encoder.number(0);
  auto layout =
      LayoutAttr::get(parser.getContext(), encoder.names, encoder.encoding);
  return get(parser.getContext(), result, layout, pinned, user, weak, open,
             hereOnly, because);
}

//===----------------------------------------------------------------------===//
// FactorPinAttr
//===----------------------------------------------------------------------===//

void FactorPinAttr::print(AsmPrinter &printer) const {
  raw_ostream &os = printer.getStream();
  os << '<' << (getOfResult() ? "result " : "operand ") << getTensor()
     << " dim " << getDim();
  if (getPart())
    os << " part " << getPart();
  os << " = ";
  LayoutDecoder decoder(getSplit().getAxisNames(), getSplit().getEncoding());
  // A layout of one dimension.
  decoder.number();
  printDim(os, decoder);
  os << (getUser() ? " user" : "") << (getOpen() ? " open" : "")
     << (getAnyPlace() ? " any_place" : "")
     << (getElseWhole() ? " else_whole" : "");
  printText(printer, "because", getBecause());
  if (!getAsks().empty())
    printText(printer, "asks", getAsks());
  os << '>';
}

Attribute FactorPinAttr::parse(AsmParser &parser, Type) {
  bool ofResult = false, user = false, open = false, anyPlace = false,
       elseWhole = false;
  unsigned tensor = 0, dim = 0, part = 0;
  StringAttr because, asks = StringAttr::get(parser.getContext(), "");
  LayoutEncoder encoder(parser.getContext());
  encoder.number(1);
  if (parser.parseLess())
    return {};
  ofResult = succeeded(parser.parseOptionalKeyword("result"));
  if ((!ofResult && parser.parseKeyword("operand")) ||
      parser.parseInteger(tensor) || parser.parseKeyword("dim") ||
      parser.parseInteger(dim) ||
      (succeeded(parser.parseOptionalKeyword("part")) &&
       parser.parseInteger(part)) ||
      parser.parseEqual() || parseDim(parser, encoder) ||
      parseWords(parser, {{"user", &user},
                          {"open", &open},
                          {"any_place", &anyPlace},
                          {"else_whole", &elseWhole}}) ||
      parser.parseKeyword("because") || parseText(parser, because) ||
      (succeeded(parser.parseOptionalKeyword("asks")) &&
       parseText(parser, asks)) ||
      parser.parseGreater())
    return {};
  encoder.number(0);
  encoder.number(0);
  auto split =
      LayoutAttr::get(parser.getContext(), encoder.names, encoder.encoding);
  return get(parser.getContext(), ofResult, tensor, dim, part, split, user,
             open, anyPlace, elseWhole, because, asks);
}

//===----------------------------------------------------------------------===//
// ShardingAttr
//===----------------------------------------------------------------------===//

static void printLayouts(raw_ostream &os, ArrayRef<LayoutAttr> layouts) {
  os << '(';
  llvm::interleaveComma(
      layouts, os, [&](LayoutAttr layout) { printLayout(os, layout, " "); });
  os << ')';
}

static ParseResult parseLayouts(AsmParser &parser,
                                SmallVector<LayoutAttr> &layouts) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&] {
    layouts.push_back(parseLayout(parser, /*withComma=*/false));
    return success(layouts.back() != nullptr);
  });
}

void ShardingAttr::print(AsmPrinter &printer) const {
  raw_ostream &os = printer.getStream();
  os << '<';
  printLayouts(os, getOperands());
  os << " -> ";
  printLayouts(os, getResults());
  StringRef before = " because ";
  for (auto [axes, reason] : llvm::zip_equal(getAxes(), getReasons())) {
    os << std::exchange(before, ", ");
    LayoutDecoder decoder(axes.getAxisNames(), axes.getEncoding());
    printAxes(os, decoder.axes(nullptr));
    os << ' ';
    printer.printString(reason.getValue());
  }
  os << '>';
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  SmallVector<LayoutAttr> operands, results;
  SmallVector<AxesAttr> axes;
  SmallVector<StringAttr> reasons;
  if (parser.parseLess() || parseLayouts(parser, operands) ||
      parser.parseArrow() || parseLayouts(parser, results))
    return {};
  if (succeeded(parser.parseOptionalKeyword("because")))
    do {
      LayoutEncoder encoder(parser.getContext());
      if (parseAxes(parser, encoder) ||
          parseText(parser, reasons.emplace_back()))
        return {};
      axes.push_back(
          AxesAttr::get(parser.getContext(), encoder.names, encoder.encoding));
    } while (succeeded(parser.parseOptionalComma()));
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), operands, results, axes, reasons);
}
