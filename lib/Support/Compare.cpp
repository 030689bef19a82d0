//===- Compare.cpp - Tensors beside the expected ones ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Support/Compare.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <limits>

using namespace ax;

double Difference::relative() const {
  if (largest == 0)
    return 0;
  return magnitude > 0 ? largest / magnitude
                       : std::numeric_limits<double>::infinity();
}

static double distance(double got, double wanted) {
  if (got == wanted || (std::isnan(got) && std::isnan(wanted)))
    return 0;
  double difference = std::abs(got - wanted);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                : difference;
}

Difference ax::compare(const HostTensor &got, const HostTensor &wanted,
                       double rtol, double atol) {
  Difference result;
  bool isWhole = !isFloat(got.getType()) && !isFloat(wanted.getType());
  for (int64_t i = 0, e = wanted.numElements(); i < e; ++i) {
    double a = got.getDouble(i), b = wanted.getDouble(i);
    double apart = distance(a, b);
    result.numNaN += std::isnan(a) && std::isnan(b);
    // Integers beyond 2^53 look alike as doubles.
    if (isWhole && apart == 0 && got.getInt(i) != wanted.getInt(i))
      apart = 1;
    // Equal ones first: a tolerance of NaN or infinity compares with nothing.
    if (double allowed = atol + rtol * std::abs(b);
        apart != 0 &&
        (!(apart <= allowed) || (std::isinf(apart) && !std::isinf(a - b)))) {
      double excess = allowed > 0 ? apart / allowed
                                  : std::numeric_limits<double>::infinity();
      if (result.numDiffering++ == 0 || excess > result.excess) {
        result.excess = excess;
        result.worstDiffering = i;
      }
    }
    if (apart > result.largest) {
      result.largest = apart;
      result.worst = i;
    }
    if (std::isfinite(b))
      result.magnitude = std::max(result.magnitude, std::abs(b));
  }
  return result;
}

std::string ax::describe(llvm::StringRef name, const Difference &difference,
                         const HostTensor &got, const HostTensor &wanted) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << name << ": max |difference| "
     << llvm::format("%.3g", difference.largest);
  auto place = [&](int64_t at) {
    std::vector<std::string> index;
    int64_t rest = at;
    for (int64_t stride : rowMajorStrides(wanted.getShape())) {
      index.push_back(std::to_string(stride ? rest / stride : 0));
      rest = stride ? rest % stride : 0;
    }
    os << " at [" << llvm::join(index, ", ") << "], "
       << llvm::format("%.8g instead of %.8g", got.getDouble(at),
                       wanted.getDouble(at));
  };
  if (difference.largest > 0)
    place(difference.worst);
  os << " (" << llvm::format("%.3g", difference.relative())
     << " of the largest magnitude "
     << llvm::format("%.4g", difference.magnitude) << "), "
     << difference.numDiffering << " of " << wanted.numElements()
     << " elements differ";
  // The largest difference may be one that the tolerance allows.
  if (difference.numDiffering &&
      difference.worstDiffering != difference.worst) {
    os << ", the most by its tolerance";
    place(difference.worstDiffering);
  }
  if (difference.numNaN)
    os << ", " << difference.numNaN << " are NaN in both";
  return text;
}
