//===- Elementwise.cpp - Element-wise ops, reductions, norms --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../TrainTestSupport.h"

#include "ax/Dialect/FunctionFacts.h"

namespace ax::test {

static Case unaryCase(UnaryKind kind) {
  std::string name = stringifyUnaryKind(kind).str();
  return {"unary",
          name,
          {{"a", "3x5", factsOf(kind).low, factsOf(kind).high}},
          "%r = ax.unary " + name + " %a : $a -> $r",
          "3x5"};
}

static void addBinary(std::vector<Case> &cases, const std::string &name) {
  auto add = [&](const char *what, std::string a, std::string b,
                 std::string result, double low, double high) {
    cases.push_back({"binary",
                     name + " " + what,
                     {{"a", a, low, high}, {"b", b, 0.5, 2.9}},
                     "%r = ax.binary " + name + " %a, %b : $a, $b -> $r",
                     result});
  };
  // Remainders and divisors of both signs where the function has them.
  double low = name == "pow" ? 0.4 : -2.7;
  add("same shape", "3x5", "3x5", "3x5", low, 3);
  add("row", "2x3x5", "5", "2x3x5", low, 3);
  add("column", "3x1", "2x3x5", "2x3x5", low, 3);
  add("both", "3x1", "5", "3x5", low, 3);
  add("scalar", "", "2x3", "2x3", low, 3);
  add("ones", "1x3", "2x1x1", "2x1x3", low, 3);
}

void addElementwiseCases(std::vector<Case> &cases) {
  for (uint32_t i = 0; i <= getMaxEnumValForUnaryKind(); ++i) {
    UnaryKind kind = *symbolizeUnaryKind(i);
    if (!factsOf(kind).isOfFloats())
      continue;
    // Those whose gradient is 0 are beside something that has one.
    cases.push_back(unaryCase(kind));
    cases.back().body = "%u = ax.unary " + cases.back().name +
                        " %a : $a -> $r\n    %r = ax.binary add %u, %a : "
                        "$r, $a -> $r";
  }
  for (const char *name : {"add", "sub", "mul", "div", "pow", "max", "min",
                           "floor_mod", "trunc_mod"})
    addBinary(cases, name);
  cases.push_back({"binary",
                   "operand twice",
                   {{"a", "4"}},
                   "%r = ax.binary mul %a, %a : $a, $a -> $r",
                   "4"});
  for (const char *exponent : {"0.0", "1.0", "2.0", "3.0", "-1.5"})
    cases.push_back(
        {"binary",
         std::string("pow of known ") + exponent,
         {{"a", "2x3", 0.4, 2}, {"b", "2x3"}},
         std::string("%c = ax.constant dense<") + exponent +
             "> : tensor<f64> -> tensor<f64>\n    %p = ax.binary pow %a, %c : "
             "$a, tensor<f64> -> $r\n    %r = ax.binary add %p, %b : $r, $b -> "
             "$r",
         "2x3"});
  cases.push_back(
      {"binary",
       "remainder by negative",
       {{"a", "7", -3, 3}},
       "%c = ax.constant dense<-1.3> : tensor<f64> -> tensor<f64>\n"
       "    %r = ax.binary floor_mod %a, %c : $a, tensor<f64> -> $r",
       "7"});

  std::string condition = "%c = ax.constant dense<[[true], [false], [true]]> : "
                          "tensor<3x1xi1> -> tensor<3x1xi1>\n    ";
  cases.push_back({"select",
                   "broadcast",
                   {{"a", "2x1x5"}, {"b", "3x1"}},
                   condition + "%r = ax.select %c, %a, %b : tensor<3x1xi1>, "
                               "$a, $b -> $r",
                   "2x3x5"});
  cases.push_back(
      {"select",
       "by comparison",
       {{"a", "3x5"}, {"b", "3x5"}},
       "%c = ax.compare lt %a, %b : $a, $b -> tensor<3x5xi1>\n"
       "    %r = ax.select %c, %a, %b : tensor<3x5xi1>, $a, $b -> $r",
       "3x5"});
  cases.push_back(
      {"dropout",
       "",
       {{"a", "4x5"}},
       "%s = ax.constant dense<5> : tensor<i64> -> tensor<i64>\n"
       "    %r = ax.dropout %a seed %s step %s rate 4.0e-01 id 3 : $a, "
       "tensor<i64>, tensor<i64> -> $r",
       "4x5"});
  cases.push_back({"cast",
                   "through integers",
                   {{"a", "5", 0.2, 9.4}},
                   "%i = ax.cast %a : $a -> tensor<5xi32>\n"
                   "    %f = ax.cast %i : tensor<5xi32> -> $a\n"
                   "    %d = ax.cast %a : $a -> $a\n"
                   "    %r = ax.binary mul %f, %d : $a, $a -> $r",
                   "5"});
}

} // namespace ax::test
