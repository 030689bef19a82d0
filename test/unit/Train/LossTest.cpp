//===- LossTest.cpp - Losses as PyTorch defines them ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Against a plain implementation of the definitions in PyTorch's
// documentation (sum over the samples, and what a mean divides by).
//
//===----------------------------------------------------------------------===//

#include "TrainTestSupport.h"
#include "ax/Passes/Training.h"
#include "ax/Support/Error.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace ax;
using namespace ax::test;

namespace {

std::string typeOf(const HostTensor &tensor) {
  std::string text = "tensor<" + shapeToString(tensor.getShape());
  return text + (tensor.getRank() ? "x" : "") + toString(tensor.getType()) +
         ">";
}

/// A model whose one output, `y`, is its input `x`.
OwningOpRef<ModuleOp> identity(const HostTensor &x) {
  std::string type = typeOf(x);
  return parse("ax.plan @p version 1 { ax.program @main(%x: " + type +
               " {ax.name = \"x\"}) -> (" + type +
               " {ax.name = \"y\"}) { ax.return %x : " + type + " } }");
}

std::string addLoss(ModuleOp module, const std::string &loss) {
  return runPasses(module, "ax-add-loss{loss=" + loss + "}");
}

HostTensor randomTensor(Shape shape, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> number(0, 2);
  HostTensor tensor(DType::F64, std::move(shape));
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.setDouble(i, number(random));
  return tensor;
}

struct Sums {
  double sum = 0, count = 0;
};

void expectLoss(const std::string &text, const HostTensor &x,
                const HostTensor &labels, Sums expected) {
  auto module = identity(x);
  ASSERT_EQ(addLoss(*module, text), "");
  States results = interpret(*module, {{"x", x}, {"labels", labels}}, {});
  EXPECT_NEAR(results["loss_sum"].getDouble(0), expected.sum,
              1e-6 * (1 + std::fabs(expected.sum)))
      << text;
  EXPECT_EQ(results["loss_count"].getDouble(0), expected.count) << text;
  EXPECT_EQ(results["loss_sum"].getType(), DType::F32);
  EXPECT_EQ(results["loss_count"].getType(), DType::F32);
  EXPECT_TRUE(results["y"].isIdentical(x));
}

/// Of logits [n, classes].
Sums crossEntropy(const std::vector<std::vector<double>> &logits,
                  const std::vector<int64_t> &labels, int64_t ignored,
                  double smoothing) {
  Sums loss;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (labels[i] == ignored)
      continue;
    double sum = 0;
    for (double x : logits[i])
      sum += std::exp(x);
    for (size_t c = 0; c < logits[i].size(); ++c) {
      double target = smoothing / static_cast<double>(logits[i].size());
      target += static_cast<int64_t>(c) == labels[i] ? 1 - smoothing : 0;
      loss.sum -= target * (logits[i][c] - std::log(sum));
    }
    loss.count += 1;
  }
  return loss;
}

std::vector<std::vector<double>> rows(const HostTensor &x) {
  int64_t classes = x.getShape().back();
  std::vector<std::vector<double>> result(x.numElements() / classes);
  for (int64_t i = 0; i < x.numElements(); ++i)
    result[i / classes].push_back(x.getDouble(i));
  return result;
}

TEST(CrossEntropy, OfRows) {
  HostTensor x = randomTensor({5, 7}, 1);
  std::vector<int64_t> labels = {3, -100, 0, 6, 3};
  auto tensor = HostTensor::fromValues<int64_t>({5}, labels);
  expectLoss("cross_entropy(y,labels)", x, tensor,
             crossEntropy(rows(x), labels, -100, 0));
  expectLoss("cross_entropy(logits,labels,label_smoothing=0.1)", x, tensor,
             crossEntropy(rows(x), labels, -100, 0.1));
  expectLoss("cross_entropy(y,labels,ignore_index=3,label_smoothing=1)", x,
             HostTensor::fromValues<int64_t>({5}, {3, 1, 0, 6, 3}),
             crossEntropy(rows(x), {3, 1, 0, 6, 3}, 3, 1));
}

TEST(CrossEntropy, LargeLogitsDoNotOverflow) {
  auto x = HostTensor::fromValues<double>({1, 3}, {1000, 999, -1000});
  expectLoss("cross_entropy(y,labels)", x,
             HostTensor::fromValues<int64_t>({1}, {1}),
             {std::log(1 + std::exp(-1.0)) + 1, 1});
}

TEST(CrossEntropy, NextToken) {
  HostTensor x = randomTensor({2, 4, 3}, 2);
  std::vector<int64_t> tokens = {0, 1, 2, 2, 1, 0, -100, 2};
  // The last position has no next token.
  std::vector<int64_t> next = {1, 2, 2, -100, 0, -100, 2, -100};
  auto tensor = HostTensor::fromValues<int64_t>({2, 4}, tokens);
  expectLoss("cross_entropy(y,labels,shift=1)", x, tensor,
             crossEntropy(rows(x), next, -100, 0));
  std::vector<int64_t> third = {2, -100, -100, -100, 2, -100, -100, -100};
  expectLoss("cross_entropy(y,labels,shift=3)", x, tensor,
             crossEntropy(rows(x), third, -100, 0));
}

TEST(CrossEntropy, ClassesInFront) {
  // [2, 3, 2]: classes are dimension 1.
  HostTensor x = randomTensor({2, 3, 2}, 3);
  std::vector<std::vector<double>> logits;
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t d = 0; d < 2; ++d)
      logits.push_back({x.getDouble(n * 6 + d), x.getDouble(n * 6 + 2 + d),
                        x.getDouble(n * 6 + 4 + d)});
  std::vector<int64_t> labels = {2, 0, 1, -100};
  expectLoss("cross_entropy(y,labels,class_dim=1)", x,
             HostTensor::fromValues<int64_t>({2, 2}, labels),
             crossEntropy(logits, labels, -100, 0));
}

TEST(Losses, OfTargets) {
  HostTensor x = randomTensor({3, 4}, 4), z = randomTensor({3, 4}, 5);
  Sums mse{0, 12}, l1{0, 12}, bce{0, 12};
  for (int64_t i = 0; i < 12; ++i) {
    double a = x.getDouble(i), b = z.getDouble(i), p = 1 / (1 + std::exp(-a));
    mse.sum += (a - b) * (a - b);
    l1.sum += std::fabs(a - b);
    bce.sum -= b * std::log(p) + (1 - b) * std::log(1 - p);
  }
  expectLoss("mse(y,labels)", x, z, mse);
  expectLoss("l1(y,labels)", x, z, l1);
  expectLoss("bce_with_logits(y,labels)", x, z, bce);
}

TEST(Losses, InTheGraph) {
  auto x = HostTensor::fromValues<double>({1}, {2.5});
  expectLoss("graph(y,mean)", x, {}, {2.5, 1});
  expectLoss("graph(y,sum)", x, {}, {2.5, 1});
}

TEST(Losses, AnInputThatFitsIsTheLabels) {
  auto module = parse(R"(ax.plan @p version 1 {
    ax.program @main(%x: tensor<2x3xf32> {ax.name = "x"},
                     %t: tensor<2xi64> {ax.name = "tokens"})
        -> (tensor<2x3xf32> {ax.name = "y"}) {
      ax.return %x : tensor<2x3xf32>
    }
  })");
  ASSERT_EQ(addLoss(*module, "cross_entropy(y,tokens)"), "");
  EXPECT_EQ(programOf(*module).getNumArguments(), 2u);
}

TEST(Losses, WhatDoesNotFit) {
  HostTensor x(DType::F32, {2, 3}), i(DType::I64, {2}), e(DType::F32, {2, 0});
  auto fault = [](const HostTensor &of, const std::string &loss) {
    return addLoss(*identity(of), loss);
  };
  EXPECT_EQ(fault(x, "cross_entropy(z,labels)"),
            "loss cross_entropy: the model has no output 'z'; it has 'y'");
  EXPECT_EQ(fault(i, "cross_entropy(y,labels)"),
            "loss cross_entropy: the output 'y' is tensor<2xi64>, not of "
            "floats");
  EXPECT_EQ(fault(x, "cross_entropy(y,x)"),
            "loss cross_entropy: the input 'x' must be tensor<2xi64>, the "
            "model's is tensor<2x3xf32>");
  EXPECT_EQ(fault(x, "cross_entropy(y,labels,class_dim=2)"),
            "loss cross_entropy: the output tensor<2x3xf32> has no dimension "
            "2 of classes");
  EXPECT_EQ(fault(e, "cross_entropy(y,labels)"),
            "loss cross_entropy: the output tensor<2x0xf32> has no classes");
  EXPECT_EQ(fault(x, "cross_entropy(y,labels,shift=2)"),
            "loss cross_entropy: shift=2 of labels tensor<2xi64>");
  EXPECT_EQ(fault(x, "graph(y,mean)"),
            "loss graph: the output 'y' is tensor<2x3xf32>, not one number");
}

TEST(Losses, WhatIsNone) {
  auto fault = [](const char *text) {
    return describeError(Loss::parse(text).takeError()).message;
  };
  EXPECT_EQ(fault("hinge(y,labels)"),
            "there is no loss 'hinge'; there are cross_entropy, mse, l1, "
            "bce_with_logits and graph");
  EXPECT_EQ(fault("cross_entropy(y,labels,label_smoothing=1.5)"),
            "cross_entropy: label_smoothing=1.5 is not between 0 and 1");
  EXPECT_EQ(fault("cross_entropy(y,labels,smoothing=0.1)"),
            "cross_entropy: there is no option 'smoothing', but ignore_index, "
            "shift, class_dim, label_smoothing; did you mean "
            "'label_smoothing'?");
  EXPECT_EQ(fault("cross_entropy(y,labels,shift=one)"),
            "cross_entropy: shift=one: give a whole number");
  EXPECT_EQ(fault("cross_entropy(y,labels,shift=-1)"),
            "cross_entropy: shift=-1 is negative");
  EXPECT_EQ(fault("cross_entropy(y)"),
            "cross_entropy(OUTPUT,LABELS) has 2 arguments, not 1");
  EXPECT_EQ(fault("mse(y,t,shift=1)"), "mse: there is no option 'shift'");
  EXPECT_EQ(fault("cross_entropy(shift=1,y)"),
            "'y' is neither KEY=VALUE nor a name in front of those");
  EXPECT_EQ(fault("graph(y,max)"), "graph: 'max' is neither mean nor sum");
}

TEST(Losses, AreWrittenAsTheyWereRead) {
  for (const char *text :
       {"cross_entropy( logits, labels,shift=1, ignore_index=-1)",
        "graph(y,sum)"})
    EXPECT_EQ(llvm::cantFail(Loss::parse(text)).toText(), text);
  Loss standard, read = llvm::cantFail(Loss::parse(standard.toText()));
  EXPECT_EQ(read.name(), "cross_entropy");
  EXPECT_EQ(read.output, standard.output);
  EXPECT_EQ(read.target, standard.target);
}

} // namespace
