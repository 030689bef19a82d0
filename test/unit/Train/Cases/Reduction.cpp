//===- Reduction.cpp - Reductions, norms, scans ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../TrainTestSupport.h"

namespace ax::test {

static void addReductions(std::vector<Case> &cases) {
  struct Over {
    const char *dims, *result, *kept;
  };
  const Over overs[] = {{"[0]", "3x4", "1x3x4"},
                        {"[1]", "2x4", "2x1x4"},
                        {"[0, 2]", "3", "1x3x1"},
                        {"[0, 1, 2]", "", "1x1x1"},
                        {"[]", "2x3x4", "2x3x4"}};
  for (const char *kind : {"sum", "prod", "max", "min"})
    for (const Over &over : overs)
      for (bool keep : {false, true})
        cases.push_back(
            {"reduce",
             std::string(kind) + " " + over.dims + (keep ? " kept" : ""),
             {{"a", "2x3x4", -1.4, 1.9}},
             std::string("%r = ax.reduce ") + kind + " %a dims " + over.dims +
                 (keep ? " keep_dims" : "") + " : $a -> $r",
             keep ? over.kept : over.result});
  // A product with zeros: one in a row, two in a row.
  for (const char *mask : {"[1.0, 0.0, 1.0, 1.0]", "[0.0, 1.0, 0.0, 1.0]"})
    cases.push_back({"reduce",
                     std::string("prod with zeros ") + mask,
                     {{"a", "3x4"}},
                     std::string("%m = ax.constant dense<") + mask +
                         "> : tensor<4xf64> -> tensor<4xf64>\n    %z = "
                         "ax.binary mul %a, %m : $a, tensor<4xf64> -> $a\n"
                         "    %r = ax.reduce prod %z dims [1] : $a -> $r",
                     "3"});

  for (const char *kind : {"sum", "prod", "max", "min"})
    for (bool exclusive : {false, true})
      for (bool reverse : {false, true})
        for (int dim : {0, 1}) {
          std::string attributes;
          if (exclusive || reverse)
            attributes = std::string(" {") + (exclusive ? "exclusive" : "") +
                         (exclusive && reverse ? ", " : "") +
                         (reverse ? "reverse" : "") + "}";
          // Exclusive extremes start from infinity, which is cut off.
          bool infinite = exclusive && kind[0] == 'm';
          std::string body = std::string("ax.cumulative ") + kind + " %a dim " +
                             std::to_string(dim) + attributes + " : $a -> $a";
          if (infinite)
            body =
                "%s = " + body +
                "\n    %lo = ax.constant dense<-9.0> : tensor<f64> -> "
                "tensor<f64>\n    %hi = ax.constant dense<9.0> : tensor<f64> "
                "-> tensor<f64>\n    %t = ax.binary max %s, %lo : $a, "
                "tensor<f64> -> $a\n    %r = ax.binary min %t, %hi : $a, "
                "tensor<f64> -> $r";
          else
            body = "%r = " + body;
          cases.push_back(
              {"cumulative",
               std::string(kind) + attributes + " " + std::to_string(dim),
               {{"a", "4x5", -1.6, 1.9}},
               body,
               "4x5"});
        }
  cases.push_back({"cumulative",
                   "prod with zeros",
                   {{"a", "3x4"}},
                   "%m = ax.constant dense<[1.0, 0.0, 1.0, 0.0]> : "
                   "tensor<4xf64> -> tensor<4xf64>\n    %z = ax.binary mul %a, "
                   "%m : $a, tensor<4xf64> -> $a\n    %r = ax.cumulative prod "
                   "%z dim 1 : $a -> $r",
                   "3x4"});

  for (const char *attributes : {"", " {smallest}"})
    for (int dim : {0, 1})
      cases.push_back({"top_k",
                       std::string("along ") + std::to_string(dim) + attributes,
                       {{"a", "4x5"}},
                       "%r, %i = ax.top_k %a k 3 dim " + std::to_string(dim) +
                           attributes + " : $a -> $r, tensor<" +
                           (dim ? "4x3" : "3x5") + "xi64>",
                       dim ? "4x3" : "3x5"});
}

void addReductionCases(std::vector<Case> &cases) {
  addReductions(cases);
  for (const char *attributes : {"", " {log}"})
    for (int dim : {0, 1, 2})
      cases.push_back({"softmax",
                       std::string("along ") + std::to_string(dim) + attributes,
                       {{"a", "2x3x5"}},
                       "%r = ax.softmax %a dim " + std::to_string(dim) +
                           attributes + " : $a -> $r",
                       "2x3x5"});
  for (const char *op : {"layer_norm", "rms_norm"})
    for (int axis : {0, 1, 2})
      for (bool scale : {false, true})
        for (bool bias : {false, true}) {
          std::string row = axis == 0 ? "2x3x5" : axis == 1 ? "3x5" : "5";
          Case c{op,
                 "from " + std::to_string(axis) + (scale ? " scale" : "") +
                     (bias ? " bias" : ""),
                 {{"x", "2x3x5"}},
                 std::string("%r = ax.") + op + " %x",
                 "2x3x5"};
          if (scale) {
            c.operands.push_back({"s", row, 0.4, 1.7});
            c.body += " scale %s : $s";
          }
          if (bias) {
            c.operands.push_back({"b", row});
            c.body += " bias %b : $b";
          }
          c.body +=
              " axis " + std::to_string(axis) + " epsilon 1.0e-02 : $x -> $r";
          cases.push_back(c);
        }
}

} // namespace ax::test
