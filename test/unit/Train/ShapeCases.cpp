//===- ShapeCases.cpp - What moves elements, gather and scatter -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TrainTestSupport.h"

namespace ax::test {

std::vector<Case> shapeCases() {
  std::vector<Case> cases;
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
  return cases;
}

static std::string indices(const char *values, const char *type) {
  return std::string("%i = ax.constant dense<") + values + "> : tensor<" +
         type + "> -> tensor<" + type + ">\n    ";
}

static void addScatters(std::vector<Case> &cases) {
  for (const char *kind : {"set", "add", "mul", "max", "min"}) {
    bool repeats = kind != std::string("set");
    cases.push_back({"scatter_elements",
                     kind,
                     {{"a", "4x3"}, {"u", "2x3"}},
                     indices(repeats ? "[[0, 1, -1], [0, 2, 1]]"
                                     : "[[0, 1, -1], [3, 2, 1]]",
                             "2x3xi64") +
                         "%r = ax.scatter_elements " + kind +
                         " %a[%i], %u axis 0 : $a, tensor<2x3xi64>, $u -> $r",
                     "4x3"});
    cases.push_back(
        {"scatter_elements",
         std::string(kind) + " along 1",
         {{"a", "3x4"}, {"u", "2x2"}},
         indices(repeats ? "[[1, 1], [0, 3]]" : "[[1, 2], [0, 3]]", "2x2xi64") +
             "%r = ax.scatter_elements " + kind +
             " %a[%i], %u axis 1 : $a, tensor<2x2xi64>, $u -> $r",
         "3x4"});
    cases.push_back(
        {"scatter_nd",
         kind,
         {{"a", "4x3"}, {"u", "3x3"}},
         indices(repeats ? "[[0], [-1], [0]]" : "[[0], [-1], [1]]", "3x1xi64") +
             "%r = ax.scatter_nd " + kind +
             " %a[%i], %u : $a, tensor<3x1xi64>, $u -> $r",
         "4x3"});
    cases.push_back({"scatter_nd",
                     std::string(kind) + " points",
                     {{"a", "3x4"}, {"u", "2x2"}},
                     indices(repeats ? "[[[0, 1], [0, 1]], [[2, 3], [-1, 0]]]"
                                     : "[[[0, 1], [1, 1]], [[2, 3], [-1, 0]]]",
                             "2x2x2xi64") +
                         "%r = ax.scatter_nd " + kind +
                         " %a[%i], %u : $a, tensor<2x2x2xi64>, $u -> $r",
                     "3x4"});
  }
  // Zeros among the factors of one place: one, and two.
  cases.push_back(
      {"scatter_elements",
       "mul with zeros",
       {{"a", "4"}, {"u", "5"}},
       "%m = ax.constant dense<[0.0, 1.0, 0.0, 0.0, 1.0]> : tensor<5xf64> -> "
       "tensor<5xf64>\n    %z = ax.binary mul %u, %m : $u, tensor<5xf64> -> "
       "$u\n"
       "    " +
           indices("[0, 0, 1, 1, 2]", "5xi64") +
           "%r = ax.scatter_elements mul %a[%i], %z axis 0 : $a, "
           "tensor<5xi64>, $u -> $r",
       "4"});
}

std::vector<Case> gatherCases() {
  std::vector<Case> cases;
  const char *rows = "[[0, 2, -1], [2, 2, 1]]";
  cases.push_back(
      {"gather",
       "rows",
       {{"a", "4x3"}},
       indices(rows, "2x3xi64") +
           "%r = ax.gather %a[%i] axis 0 : $a, tensor<2x3xi64> -> $r",
       "2x3x3"});
  cases.push_back(
      {"gather",
       "between",
       {{"a", "2x4x3"}},
       indices(rows, "2x3xi64") +
           "%r = ax.gather %a[%i] axis 1 : $a, tensor<2x3xi64> -> $r",
       "2x2x3x3"});
  cases.push_back({"gather",
                   "one, of i32",
                   {{"a", "2x4"}},
                   indices("2", "i32") +
                       "%r = ax.gather %a[%i] axis 1 : $a, tensor<i32> -> $r",
                   "2"});
  cases.push_back(
      {"gather_gradient",
       "between",
       {{"u", "2x2x3x3"}},
       indices(rows, "2x3xi64") +
           "%r = ax.gather_gradient %u[%i] axis 1 size 4 : $u, tensor<2x3xi64> "
           "-> $r",
       "2x4x3"});
  cases.push_back({"gather_elements",
                   "along 1",
                   {{"a", "2x4"}},
                   indices(rows, "2x3xi64") +
                       "%r = ax.gather_elements %a[%i] axis 1 : $a, "
                       "tensor<2x3xi64> -> $r",
                   "2x3"});
  cases.push_back({"gather_elements",
                   "along 0 of fewer columns",
                   {{"a", "4x5"}},
                   indices(rows, "2x3xi64") +
                       "%r = ax.gather_elements %a[%i] axis 0 : $a, "
                       "tensor<2x3xi64> -> $r",
                   "2x3"});
  cases.push_back({"gather_nd",
                   "rows",
                   {{"a", "4x3"}},
                   indices("[[0], [-1], [0]]", "3x1xi64") +
                       "%r = ax.gather_nd %a[%i] batch_dims 0 : $a, "
                       "tensor<3x1xi64> -> $r",
                   "3x3"});
  cases.push_back({"gather_nd",
                   "points",
                   {{"a", "3x4"}},
                   indices("[[0, 1], [2, -1], [0, 1]]", "3x2xi64") +
                       "%r = ax.gather_nd %a[%i] batch_dims 0 : $a, "
                       "tensor<3x2xi64> -> $r",
                   "3"});
  cases.push_back({"gather_nd",
                   "of a batch",
                   {{"a", "2x3x4x2"}},
                   indices("[[[0, 1], [2, 3], [0, 1]], "
                           "[[-1, 0], [1, 1], [1, 2]]]",
                           "2x3x2xi64") +
                       "%r = ax.gather_nd %a[%i] batch_dims 1 : $a, "
                       "tensor<2x3x2xi64> -> $r",
                   "2x3x2"});
  addScatters(cases);
  return cases;
}

} // namespace ax::test
