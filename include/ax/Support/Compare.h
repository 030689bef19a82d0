//===- Compare.h - Tensors beside the expected ones -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_COMPARE_H
#define AX_SUPPORT_COMPARE_H

#include "ax/Support/HostTensor.h"

namespace ax {

struct Difference {
  /// Elements for which not |got - wanted| <= atol + rtol |wanted|. Equal
  /// infinities and two NaNs agree.
  int64_t numDiffering = 0;
  /// How many elements are NaN in both.
  int64_t numNaN = 0;
  /// The largest difference of all elements; infinite where one is NaN and the
  /// other is not.
  double largest = 0;
  /// Where that is, row-major.
  int64_t worst = 0;
  /// By how many times at most an element that differs goes beyond what the
  /// tolerances allow, and which element that is.
  double excess = 0;
  int64_t worstDiffering = 0;
  /// Largest magnitude of a finite expected element.
  double magnitude = 0;

  double relative() const;
};

/// Compares two tensors of one shape.
Difference compare(const HostTensor &got, const HostTensor &wanted, double rtol,
                   double atol);

/// `logits: max |difference| 3.1e-06 at [0, 5, 17] (2.1e-07 of the largest
/// magnitude 14.6), 0 of 4096 elements differ`.
std::string describe(llvm::StringRef name, const Difference &difference,
                     const HostTensor &got, const HostTensor &wanted);

} // namespace ax

#endif // AX_SUPPORT_COMPARE_H
