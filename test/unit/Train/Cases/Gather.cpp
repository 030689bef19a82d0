//===- Gather.cpp - Gather and scatter ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../TrainTestSupport.h"

namespace ax::test {

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

void addGatherCases(std::vector<Case> &cases) {
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
}

} // namespace ax::test
