//===- CpuTarget.h - Processors that code is made for -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_CPUTARGET_H
#define AX_SUPPORT_CPUTARGET_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace ax {

struct CpuTarget {
  /// `x86_64-pc-linux-gnu`.
  std::string triple;
  /// `native` is named by what it is: `sapphirerapids`, `x86-64-v3`.
  std::string cpu;
  /// Names of features as LLVM has them: those that code needs, and of this
  /// machine those that it lacks.
  std::vector<std::string> features, missing;
  /// How wide a vector register is.
  unsigned vectorBits = 128;

  /// The machine that this runs on.
  static const CpuTarget &native();
  /// `native`, or a level of x86-64 (`x86-64-v3`: AVX2, `x86-64-v4`: AVX-512);
  /// nothing for others.
  static std::optional<CpuTarget> find(llvm::StringRef name);
  /// All that `find` knows.
  static llvm::ArrayRef<llvm::StringRef> names();

  /// Whether it adds up products of integers of eight bits in i32, by
  /// instructions that do not saturate, in vectors for which libraries have
  /// kernels: AVX-512 VNNI.
  bool hasProductsOfIntegers() const;

  /// `+avx2,...,-avx512f`.
  std::string featureText() const;
  /// Returns all of it as text: equal texts are equal code.
  std::string describe() const {
    return triple + " " + cpu + " " + featureText();
  }
};

} // namespace ax

#endif // AX_SUPPORT_CPUTARGET_H
