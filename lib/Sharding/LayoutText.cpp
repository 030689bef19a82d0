//===- LayoutText.cpp - Layouts and sub-axes as text ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Sharding/LayoutText.h"

#include <cctype>

namespace ax::sharding {

namespace {

std::string bracedText(const SubAxes &axes, const Mesh &mesh) {
  std::string text = "{";
  for (size_t i = 0; i < axes.size(); ++i)
    text += (i ? ", " : "") + toString(axes[i], mesh);
  return text + "}";
}

/// Recursive descent over the text; the first fault stays.
class Parser {
public:
  Parser(std::string_view text, const Mesh &mesh) : text(text), mesh(mesh) {}

  std::optional<Layout> layout(const std::vector<int64_t> &shape) {
    Layout result;
    if (!expect('['))
      return std::nullopt;
    while (!peek(']')) {
      if (!result.dims.empty() && !expect(','))
        return std::nullopt;
      size_t d = result.dims.size();
      if (d == shape.size()) {
        fail("more dimensions than the tensor's " +
             std::to_string(shape.size()));
        return std::nullopt;
      }
      result.dims.push_back(dimension(shape[d]));
      if (!fault.empty())
        return std::nullopt;
    }
    expect(']');
    if (peek(',')) {
      expect(',');
      if (word() != "partial")
        fail("expected 'partial'");
      std::string kind = word();
      if (kind == "sum")
        result.partialKind = ReduceKind::Sum;
      else if (kind == "max")
        result.partialKind = ReduceKind::Max;
      else if (kind == "min")
        result.partialKind = ReduceKind::Min;
      else
        fail("expected 'sum', 'max' or 'min'");
      result.partial = axes();
    }
    skipSpace();
    if (at < text.size())
      fail("unexpected text after the layout");
    return fault.empty() ? std::optional(result) : std::nullopt;
  }

  std::string fault;

private:
  void fail(const std::string &message) {
    if (fault.empty())
      fault = message + " at offset " + std::to_string(at);
  }
  void skipSpace() {
    while (at < text.size() &&
           std::isspace(static_cast<unsigned char>(text[at])))
      ++at;
  }
  bool peek(char c) {
    skipSpace();
    return at < text.size() && text[at] == c;
  }
  bool expect(char c) {
    if (!peek(c)) {
      fail(std::string("expected '") + c + "'");
      return false;
    }
    ++at;
    return true;
  }
  std::string word() {
    skipSpace();
    size_t begin = at;
    while (
        at < text.size() &&
        (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_'))
      ++at;
    return std::string(text.substr(begin, at - begin));
  }
  int64_t number() {
    skipSpace();
    int64_t value = 0;
    size_t begin = at;
    for (;
         at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]));
         ++at) {
      if (value > (INT64_MAX - 9) / 10) {
        fail("number too large");
        return 1;
      }
      value = value * 10 + (text[at] - '0');
    }
    if (at == begin)
      fail("expected a number");
    return value;
  }

  SubAxes axes() {
    SubAxes result;
    if (!expect('{'))
      return result;
    while (!peek('}')) {
      if (!result.empty() && !expect(','))
        return result;
      SubAxis sub = mesh.whole(word());
      if (sub.axis.empty()) {
        fail("expected an axis");
        return result;
      }
      if (peek(':')) {
        expect(':');
        expect('(');
        sub.pre = number();
        expect(')');
        sub.size = number();
      }
      if (!fault.empty())
        return result;
      result.push_back(sub);
    }
    expect('}');
    return result;
  }

  DimLayout dimension(int64_t size) {
    if (peek('{'))
      return DimLayout::split(size, axes());
    DimLayout dim;
    do {
      if (!dim.factors.empty())
        expect('*');
      Factor factor;
      factor.size = number();
      if (peek('{'))
        factor.axes = axes();
      dim.factors.push_back(factor);
    } while (fault.empty() && peek('*'));
    return dim;
  }

  std::string_view text;
  const Mesh &mesh;
  size_t at = 0;
};

} // namespace

std::string toString(const Layout &layout, const Mesh &mesh) {
  std::string text = "[";
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    const std::vector<Factor> &factors = layout.dims[d].factors;
    text += d ? ", " : "";
    if (factors.size() == 1) {
      text += bracedText(factors[0].axes, mesh);
      continue;
    }
    for (size_t f = 0; f < factors.size(); ++f) {
      text += (f ? " * " : "") + std::to_string(factors[f].size);
      if (!factors[f].axes.empty())
        text += bracedText(factors[f].axes, mesh);
    }
  }
  text += "]";
  if (!layout.partial.empty())
    text += std::string(", partial ") + toString(layout.partialKind) + " " +
            bracedText(layout.partial, mesh);
  return text;
}

ParsedLayout parseLayout(std::string_view text,
                         const std::vector<int64_t> &shape, const Mesh &mesh) {
  Parser parser(text, mesh);
  std::optional<Layout> layout = parser.layout(shape);
  if (!layout)
    return {std::nullopt, parser.fault};
  if (auto fault = findFault(*layout, shape, mesh))
    return {std::nullopt, *fault};
  return {canonicalize(*layout), ""};
}

} // namespace ax::sharding
