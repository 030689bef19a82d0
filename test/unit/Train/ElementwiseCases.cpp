//===- ElementwiseCases.cpp - Element-wise ops, reductions, norms ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TrainTestSupport.h"

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

std::vector<Case> elementwiseCases() {
  std::vector<Case> cases;
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
  return cases;
}

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

std::vector<Case> reductionCases() {
  std::vector<Case> cases;
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
  return cases;
}

} // namespace ax::test
