//===- KernelRandomTest.cpp - Random fusions against the interpreter ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelTestSupport.h"

#include <gtest/gtest.h>

namespace ax::codegen {
namespace {

using Dims = std::vector<int64_t>;

/// Grows a fusion of one element type, operation by operation. Values stay
/// small, so that errors do.
class Generator {
public:
  Generator(unsigned seed, std::string type)
      : random(seed), type(std::move(type)) {
    isFloating = this->type[0] == 'f';
  }

  FusionText make() {
    for (int i = 0, n = 1 + pick(3); i != n; ++i) {
      Dims shape;
      for (int d = 0, rank = pick(4); d != rank; ++d)
        shape.push_back(sizes[pick(6)]);
      text.operands.push_back(spell(shape) + type);
      values.push_back({std::string("%") + char('a' + i), shape});
    }
    for (int i = 0, n = 2 + pick(9); i != n; ++i)
      addOp();
    for (int i = 0, n = 1 + pick(2); i != n; ++i) {
      const Value &v =
          values[values.size() - 1 - pick(std::min<int>(4, values.size()))];
      if (v.name.size() > 2) // not an operand
        text.results.push_back({v.name, spell(v.shape) + type});
    }
    if (text.results.empty())
      text.results.push_back(
          {values.back().name, spell(values.back().shape) + type});
    return text;
  }

private:
  struct Value {
    std::string name;
    Dims shape;
  };
  static constexpr int64_t sizes[] = {1, 2, 3, 4, 6, 12};

  int pick(int n) { return int(random() % n); }
  std::string spell(const Dims &shape) {
    std::string s;
    for (int64_t size : shape)
      s += std::to_string(size) + "x";
    return s;
  }
  std::string tensor(const Dims &shape) {
    return "tensor<" + spell(shape) + type + ">";
  }
  static std::string list(const Dims &numbers) {
    std::string s = "[";
    for (size_t i = 0; i != numbers.size(); ++i)
      s += (i ? ", " : "") + std::to_string(numbers[i]);
    return s + "]";
  }
  static int64_t count(const Dims &shape) {
    int64_t product = 1;
    for (int64_t size : shape)
      product *= size;
    return product;
  }
  void add(const std::string &op, Dims shape) {
    std::string name = "%v" + std::to_string(values.size());
    text.body += name + " = " + op + " -> " + tensor(shape) + "\n";
    values.push_back({name, std::move(shape)});
  }
  bool broadcast(const Dims &a, const Dims &b, Dims &result) {
    result.assign(std::max(a.size(), b.size()), 1);
    for (size_t i = 0; i != result.size(); ++i) {
      int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
      int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
      if (x != y && x != 1 && y != 1)
        return false;
      result[result.size() - 1 - i] = std::max(x, y);
    }
    return count(result) <= 4096;
  }

  void addOp() {
    Value x = values[pick(values.size())];
    int rank = int(x.shape.size()), dim = rank ? pick(rank) : 0;
    Dims shape = x.shape;
    auto unary = [&](const std::string &kind) {
      add("ax.unary " + kind + " " + x.name + " : " + tensor(x.shape), x.shape);
    };
    switch (pick(15)) {
    case 0: {
      const char *floating[] = {"tanh", "sigmoid", "neg", "abs", "erf"};
      const char *integral[] = {"neg", "abs", "sign", "relu", "neg"};
      return unary(isFloating ? floating[pick(5)] : integral[pick(5)]);
    }
    case 1:
    case 2:
    case 3: {
      Value y = values[pick(values.size())];
      if (!broadcast(x.shape, y.shape, shape))
        return;
      const char *kinds[] = {"add", "sub", "max", "min"};
      return add(std::string("ax.binary ") + kinds[pick(4)] + " " + x.name +
                     ", " + y.name + " : " + tensor(x.shape) + ", " +
                     tensor(y.shape),
                 shape);
    }
    case 4:
    case 5: {
      shape.clear();
      for (int64_t left = count(x.shape); left > 1 || pick(3) == 0;) {
        int64_t size = sizes[pick(6)];
        if (left % size != 0)
          size = left;
        shape.push_back(size);
        left /= size;
        if (shape.size() > 5)
          return;
      }
      return add("ax.reshape " + x.name + " : " + tensor(x.shape), shape);
    }
    case 6: {
      Dims order(rank);
      for (int i = 0; i != rank; ++i)
        order[i] = i;
      std::shuffle(order.begin(), order.end(), random);
      for (int i = 0; i != rank; ++i)
        shape[i] = x.shape[order[i]];
      return add("ax.transpose " + x.name + " " + list(order) + " : " +
                     tensor(x.shape),
                 shape);
    }
    case 7: {
      Dims starts, steps;
      for (int64_t &size : shape) {
        int64_t step = 1 + pick(2), start = pick(size);
        bool back = pick(4) == 0;
        size = back ? start / step + 1 : (size - 1 - start) / step + 1;
        starts.push_back(start);
        steps.push_back(back ? -step : step);
      }
      return add("ax.slice " + x.name + " starts " + list(starts) + " steps " +
                     list(steps) + " : " + tensor(x.shape),
                 shape);
    }
    case 8: {
      if (rank == 0)
        return;
      Value y = values[pick(values.size())];
      if (int(y.shape.size()) != rank)
        y = x;
      for (int d = 0; d != rank; ++d)
        if (d != dim && y.shape[d] != x.shape[d])
          y = x;
      shape[dim] = x.shape[dim] + y.shape[dim];
      return add("ax.concat " + x.name + ", " + y.name + " dim " +
                     std::to_string(dim) + " : " + tensor(x.shape) + ", " +
                     tensor(y.shape),
                 shape);
    }
    case 9: {
      Dims low, high;
      const char *modes[] = {"edge", "reflect", "wrap"};
      int mode = pick(4);
      for (int64_t &size : shape) {
        // Nothing to reflect in a dimension of one element.
        bool padded = mode != 1 || size > 1;
        low.push_back(padded ? pick(3) : 0);
        high.push_back(padded ? pick(3) : 0);
        size += low.back() + high.back();
      }
      std::string value, attribute;
      if (mode == 3) {
        std::string name = "%c" + std::to_string(values.size());
        text.body += name + " = ax.constant dense<1" +
                     (isFloating ? std::string(".5") : std::string()) +
                     "> : tensor<" + type + "> -> tensor<" + type + ">\n";
        value = " value " + name + " : tensor<" + type + ">";
      } else {
        attribute = std::string(" {mode = #ax<pad_mode ") + modes[mode] + ">}";
      }
      if (count(shape) > 4096)
        return;
      return add("ax.pad " + x.name + value + " low " + list(low) + " high " +
                     list(high) + attribute + " : " + tensor(x.shape),
                 shape);
    }
    case 10:
    case 11: {
      Dims dims;
      bool keep = pick(2);
      shape.clear();
      for (int d = 0; d != rank; ++d) {
        bool reduced = pick(2);
        if (reduced)
          dims.push_back(d);
        if (!reduced || keep)
          shape.push_back(reduced ? 1 : x.shape[d]);
      }
      const char *kinds[] = {"max", "min", "sum"};
      int kind = pick(3);
      if (kind == 2 && count(x.shape) > 64)
        kind = 0;
      return add(std::string("ax.reduce ") + kinds[kind] + " " + x.name +
                     " dims " + list(dims) + (keep ? " keep_dims" : "") +
                     " : " + tensor(x.shape),
                 shape);
    }
    case 12:
      if (rank == 0)
        return;
      if (isFloating)
        return add("ax.softmax " + x.name + " dim " + std::to_string(dim) +
                       " : " + tensor(x.shape),
                   shape);
      return add("ax.cumulative max " + x.name + " dim " + std::to_string(dim) +
                     (pick(2) ? " {reverse}" : "") + " : " + tensor(x.shape),
                 shape);
    case 13:
      if (isFloating && rank > 0)
        return add("ax.layer_norm " + x.name + " axis " + std::to_string(dim) +
                       " epsilon 1.0e-1 : " + tensor(x.shape),
                   shape);
      return unary("neg");
    default: {
      if (rank == 0)
        return;
      // Constant indices, some from the end.
      Dims indices;
      std::string numbers;
      for (int i = 0, n = 1 + pick(4); i != n; ++i)
        indices.push_back(pick(int(2 * x.shape[dim])) - x.shape[dim]);
      std::string name = "%i" + std::to_string(values.size());
      std::string indexType =
          "tensor<" + std::to_string(indices.size()) + "xi64>";
      text.body += name + " = ax.constant dense<" + list(indices) +
                   "> : " + indexType + " -> " + indexType + "\n";
      shape[dim] = indices.size();
      return add("ax.gather " + x.name + "[" + name + "] axis " +
                     std::to_string(dim) + " : " + tensor(x.shape) + ", " +
                     indexType,
                 shape);
    }
    }
  }

  std::mt19937 random;
  std::string type;
  bool isFloating;
  FusionText text;
  std::vector<Value> values;
};

constexpr int64_t Generator::sizes[];

class KernelRandom : public testing::TestWithParam<int> {};

TEST_P(KernelRandom, AgreesWithInterpreter) {
  for (const char *type : {"f64", "i32", "f32"})
    for (int i = 0; i != 12; ++i) {
      Generator generator(GetParam() * 1000 + i * 10 + type[1], type);
      FusionText text = generator.make();
      SCOPED_TRACE(text.body);
      check(text, {}, type[1] == '6' ? 1e-10 : 2e-4);
      if (HasFatalFailure())
        return;
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, KernelRandom, testing::Range(0, 6));

} // namespace
} // namespace ax::codegen
