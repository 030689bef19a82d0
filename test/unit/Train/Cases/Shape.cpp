//===- Shape.cpp - What moves elements, gather and scatter ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../TrainTestSupport.h"

namespace ax::test {

void addShapeCases(std::vector<Case> &cases) {
  auto add = [&](const char *op, const char *name, const char *a,
                 const char *rest, const char *result) {
    cases.push_back(
        {op,
         name,
         {{"a", a}},
         std::string("%r = ax.") + op + " %a" + rest + " : $a -> $r",
         result});
  };
  add("reshape", "", "2x6", "", "3x4");
  add("reshape", "scalar", "1x1", "", "");
  add("transpose", "", "2x3x4", " [2, 0, 1]", "4x2x3");
  add("broadcast", "", "3x1", "", "2x3x4");
  add("broadcast", "scalar", "", "", "2x3");
  add("slice", "window", "5x6", " starts [1, 2] steps [1, 1]", "3x2");
  add("slice", "steps", "5x7", " starts [0, 1] steps [2, 3]", "3x2");
  add("slice", "steps to the end", "5x7", " starts [0, 0] steps [2, 6]", "3x2");
  add("slice", "backwards", "5x6", " starts [4, 4] steps [-1, -2]", "5x3");
  add("slice", "one element", "5x6", " starts [3, 5] steps [-7, 4]", "1x1");
  cases.push_back({"slice",
                   "nothing",
                   {{"a", "3x4"}, {"b", "2"}},
                   "%s = ax.slice %a starts [0, 0] steps [1, 1] : $a -> "
                   "tensor<0x4xf64>\n    %t = ax.reduce sum %s dims [0, 1] : "
                   "tensor<0x4xf64> -> tensor<f64>\n    %r = ax.binary add %b, "
                   "%t : $b, tensor<f64> -> $r",
                   "2"});
  for (const char *starts : {"1, 2", "-1, 4", "3, -2"}) {
    std::string text = starts;
    size_t comma = text.find(',');
    cases.push_back(
        {"dynamic_slice",
         text,
         {{"a", "4x5"}},
         "%i = ax.constant dense<" + text.substr(0, comma) +
             "> : tensor<i64> -> tensor<i64>\n    %j = ax.constant dense<" +
             text.substr(comma + 2) +
             "> : tensor<i64> -> tensor<i64>\n    %r = ax.dynamic_slice %a[%i, "
             "%j] : $a, tensor<i64>, tensor<i64> -> $r",
         "3x3"});
  }
  for (int dim : {0, 1})
    cases.push_back({"concat",
                     "along " + std::to_string(dim),
                     {{"a", "2x3"}, {"b", dim ? "2x1" : "4x3"}},
                     "%r = ax.concat %a, %b, %a dim " + std::to_string(dim) +
                         " : $a, $b, $a -> $r",
                     dim ? "2x7" : "8x3"});
  cases.push_back({"pad",
                   "constant",
                   {{"a", "3x4"}, {"v", ""}},
                   "%r = ax.pad %a value %v : $v low [1, 0] high [0, 2] : $a "
                   "-> $r",
                   "4x6"});
  for (const char *mode : {"reflect", "edge", "wrap"}) {
    std::string attribute = std::string(" {mode = #ax<pad_mode ") + mode + ">}";
    cases.push_back(
        {"pad",
         mode,
         {{"a", "3x4"}},
         "%r = ax.pad %a low [1, 2] high [2, 0]" + attribute + " : $a -> $r",
         "6x6"});
    cases.push_back(
        {"pad",
         std::string(mode) + " wider than the operand",
         {{"a", "2x3"}},
         "%r = ax.pad %a low [3, 0] high [5, 7]" + attribute + " : $a -> $r",
         "10x10"});
  }
}

} // namespace ax::test
