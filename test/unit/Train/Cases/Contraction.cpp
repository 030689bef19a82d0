//===- Contraction.cpp - Contractions, windows, attention -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../TrainTestSupport.h"

#include "llvm/ADT/StringExtras.h"

namespace ax::test {

static void addProducts(std::vector<Case> &cases) {
  auto dot = [&](const char *name, const char *a, const char *b,
                 const char *dims, const char *result) {
    cases.push_back(
        {"dot",
         name,
         {{"a", a}, {"b", b}},
         std::string("%r = ax.dot %a, %b ") + dims + " : $a, $b -> $r",
         result});
  };
  dot("matrices", "3x4", "4x5", "batch [] x [] contract [1] x [0]", "3x5");
  dot("both transposed", "4x3", "5x4", "batch [] x [] contract [0] x [1]",
      "3x5");
  dot("two batch dimensions in another order", "2x3x4x5", "3x5x6x2",
      "batch [0, 1] x [3, 0] contract [3] x [1]", "2x3x4x6");
  dot("two contracted, crossed", "3x2x4", "4x5x3",
      "batch [] x [] contract [0, 2] x [2, 0]", "2x5");
  dot("batch between", "3x2x4", "2x4x5", "batch [1] x [0] contract [2] x [1]",
      "2x3x5");
  dot("nothing contracted", "3", "4", "batch [] x [] contract [] x []", "3x4");
  dot("everything contracted", "3x4", "4x3",
      "batch [] x [] contract [1, 0] x [0, 1]", "");
  dot("vector", "3x4", "4", "batch [] x [] contract [1] x [0]", "3");
  cases.push_back({"dot",
                   "with itself",
                   {{"a", "3x3"}},
                   "%r = ax.dot %a, %a batch [] x [] contract [1] x [1] : $a, "
                   "$a -> $r",
                   "3x3"});

  for (const char *x : {"4", "3x4", "2x3x4"})
    for (bool transposed : {false, true}) {
      std::string result(x);
      result.back() = '5';
      cases.push_back({"linear",
                       std::string(x) + (transposed ? " transposed" : ""),
                       {{"x", x}, {"w", transposed ? "5x4" : "4x5"}},
                       std::string("%r = ax.linear %x, %w") +
                           (transposed ? " {transpose_w}" : "") +
                           " : $x, $w -> $r",
                       result});
    }
}

namespace {
struct ConvShape {
  const char *name, *x, *w, *result;
  const char *strides, *pads, *dilations;
  int groups;
};
} // namespace

static void addConvs(std::vector<Case> &cases) {
  const ConvShape shapes[] = {
      {"1d", "2x3x7", "4x3x3", "2x4x5", "[1]", "[0, 0]", "[1]", 1},
      {"1d strided, rest unread", "1x2x8", "3x2x3", "1x3x3", "[2]", "[0, 0]",
       "[1]", 1},
      {"2d padded", "2x2x5x4", "3x2x3x2", "2x3x5x5", "[1, 1]", "[1, 0, 1, 2]",
       "[1, 1]", 1},
      {"2d strided, dilated, groups", "1x4x7x6", "6x2x3x2", "1x6x3x4", "[2, 2]",
       "[1, 1, 2, 1]", "[2, 1]", 2},
      {"2d depthwise", "1x3x5x5", "3x1x3x3", "1x3x3x3", "[2, 2]",
       "[1, 1, 1, 1]", "[1, 1]", 3},
      {"2d cropped", "1x2x6x5", "2x2x2x2", "1x2x3x4", "[1, 1]",
       "[-1, 0, -1, 0]", "[1, 1]", 1},
      {"2d of one point", "2x3x1x1", "2x3x1x1", "2x2x1x1", "[1, 1]",
       "[0, 0, 0, 0]", "[1, 1]", 1},
      {"3d", "1x2x3x4x3", "2x1x2x2x2", "1x2x2x2x3", "[1, 2, 1]",
       "[0, 0, 1, 0, 0, 0]", "[1, 1, 1]", 2},
  };
  for (const ConvShape &s : shapes)
    cases.push_back({"conv",
                     s.name,
                     {{"x", s.x}, {"w", s.w}},
                     std::string("%r = ax.conv %x, %w strides ") + s.strides +
                         " pads " + s.pads + " dilations " + s.dilations +
                         " {groups = " + std::to_string(s.groups) +
                         " : i64} : $x, $w -> $r",
                     s.result});
}

static void addTransposedConvs(std::vector<Case> &cases) {
  struct Shape {
    ConvShape conv;
    const char *outputPads;
  };
  const Shape shapes[] = {
      {{"1d", "2x3x4", "3x2x3", "2x2x6", "[1]", "[0, 0]", "[1]", 1}, "[0]"},
      {{"2d strided, groups", "1x4x3x2", "4x2x2x3", "1x4x5x5", "[2, 2]",
        "[1, 0, 0, 1]", "[1, 1]", 2},
       "[0, 1]"},
      {{"2d dilated, padded out", "1x2x3x3", "2x2x2x2", "1x2x7x6", "[2, 1]",
        "[0, 0, 0, 0]", "[2, 2]", 1},
       "[0, 1]"},
      {{"3d", "1x2x2x2x2", "2x1x2x1x2", "1x2x3x3x2", "[1, 2, 1]",
        "[0, 0, 1, 0, 0, 0]", "[1, 1, 1]", 2},
       "[0, 0, 0]"},
  };
  for (const auto &[s, outputPads] : shapes)
    cases.push_back({"conv_transpose",
                     s.name,
                     {{"x", s.x}, {"w", s.w}},
                     std::string("%r = ax.conv_transpose %x, %w strides ") +
                         s.strides + " pads " + s.pads + " dilations " +
                         s.dilations + " output_pads " + outputPads +
                         " {groups = " + std::to_string(s.groups) +
                         " : i64} : $x, $w -> $r",
                     s.result});
}

static void addWindows(std::vector<Case> &cases) {
  addConvs(cases);
  addTransposedConvs(cases);
  struct Pool {
    const char *name, *x, *kernel, *strides, *pads, *dilations, *extra, *result;
  };
  const Pool pools[] = {
      {"1d", "2x3x7", "[3]", "[2]", "[0, 0]", "[1]", "[0]", "2x3x3"},
      {"2d overlapping, padded", "1x2x5x4", "[3, 2]", "[1, 2]", "[1, 1, 1, 1]",
       "[1, 1]", "[0, 0]", "1x2x5x3"},
      {"2d dilated", "1x2x6x5", "[2, 2]", "[2, 1]", "[0, 1, 0, 0]", "[2, 2]",
       "[0, 0]", "1x2x2x4"},
      {"2d ceil", "1x2x5x6", "[2, 3]", "[2, 2]", "[0, 1, 0, 1]", "[1, 1]",
       "[1, 1]", "1x2x3x4"},
      {"2d global", "2x2x3x4", "[3, 4]", "[1, 1]", "[0, 0, 0, 0]", "[1, 1]",
       "[0, 0]", "2x2x1x1"},
      {"3d", "1x2x3x4x3", "[2, 2, 2]", "[1, 2, 1]", "[0, 0, 0, 0, 0, 0]",
       "[1, 1, 1]", "[0, 0, 0]", "1x2x2x2x2"},
  };
  for (const Pool &p : pools)
    for (const char *kind : {"max", "avg", "sum"})
      for (bool include : {false, true})
        cases.push_back(
            {"pool",
             std::string(kind) + " " + p.name +
                 (include ? " including padding" : ""),
             {{"x", p.x}},
             std::string("%r = ax.pool ") + kind + " %x kernel " + p.kernel +
                 " strides " + p.strides + " pads " + p.pads + " dilations " +
                 p.dilations + " ceil_extra " + p.extra +
                 (include ? " {count_include_pad}" : "") + " : $x -> $r",
             p.result});
}

static void addAttention(std::vector<Case> &cases) {
  struct Heads {
    const char *name, *q, *k, *v, *result;
    int64_t heads, queries, keys;
  };
  const Heads heads[] = {
      {"one each", "2x2x3x4", "2x2x3x4", "2x2x3x5", "2x2x3x5", 2, 3, 3},
      {"groups", "1x4x3x2", "1x2x4x2", "1x2x4x3", "1x4x3x3", 4, 3, 4},
      {"one for all", "2x2x4x3", "2x1x2x3", "2x1x2x3", "2x2x4x3", 2, 4, 2},
  };
  for (const Heads &h : heads)
    for (const char *mask :
         {"", "bool", "bool by head", "float", "float shared"})
      for (int flags = 0; flags < 8; ++flags) {
        bool causal = flags & 1, cap = flags & 2, zero = flags & 4;
        llvm::StringRef kind(mask);
        // A row with nothing to attend to is NaN unless it is to be zero.
        if (!zero &&
            (kind.starts_with("bool") || (causal && h.keys < h.queries)))
          continue;
        Case c{"attention",
               std::string(h.name) + " " + mask,
               {{"q", h.q}, {"k", h.k}, {"v", h.v}},
               "",
               h.result};
        std::string given, s = std::to_string(h.queries),
                           t = std::to_string(h.keys);
        if (kind.starts_with("bool")) {
          std::string byHead = kind == "bool" ? "1" : std::to_string(h.heads);
          std::string type = "tensor<1x" + byHead + "x" + s + "x1xi1>";
          std::string full = "tensor<1x" + byHead + "x" + s + "x" + t + "xi1>";
          // Row 0 sees nothing, the others all but the last key.
          c.body = "%i = ax.iota dim 2 : tensor<1x" + byHead + "x" + s +
                   "x1xi64>\n    %j = ax.iota dim 3 : tensor<1x1x1x" + t +
                   "xi64>\n    %z = ax.constant dense<0> : tensor<i64> -> "
                   "tensor<i64>\n    %n = ax.constant dense<" +
                   std::to_string(h.keys - 1) +
                   "> : tensor<i64> -> tensor<i64>\n    %c = ax.compare gt %i, "
                   "%z : tensor<1x" +
                   byHead + "x" + s + "x1xi64>, tensor<i64> -> " + type +
                   "\n    %d = ax.compare lt %j, %n : tensor<1x1x1x" + t +
                   "xi64>, tensor<i64> -> tensor<1x1x1x" + t +
                   "xi1>\n    %m = ax.binary logical_and %c, %d : " + type +
                   ", tensor<1x1x1x" + t + "xi1> -> " + full + "\n    ";
          given = " mask %m : " + full;
        } else if (!kind.empty()) {
          c.operands.push_back(
              {"m", kind == "float"
                        ? "1x" + std::to_string(h.heads) + "x" + s + "x" + t
                        : "1x1x1x" + t});
          given = " mask %m : $m";
        }
        std::vector<std::string> attributes;
        if (causal)
          attributes.push_back("causal");
        if (cap)
          attributes.push_back("softcap = 1.5 : f64");
        if (zero)
          attributes.push_back("empty_rows_zero");
        for (const std::string &attribute : attributes)
          c.name += " " + attribute;
        c.body +=
            "%r = ax.attention %q, %k, %v" + given + " scale 7.0e-01" +
            (attributes.empty() ? ""
                                : " {" + llvm::join(attributes, ", ") + "}") +
            " : $q, $k, $v -> $r";
        cases.push_back(c);
      }
}

void addContractionCases(std::vector<Case> &cases) {
  addProducts(cases);
  addWindows(cases);
  addAttention(cases);
}

} // namespace ax::test
