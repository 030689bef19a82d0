//===- HostFunctions.cpp - What kernels may call --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/CpuKernel.h"

#include "llvm/ADT/StringMap.h"

#include <cmath>
#include <cstring>

// f16, of the compiler's own library; how they are called does not matter here.
extern "C" {
void __extendhfsf2();
void __truncdfhf2();
void __truncsfhf2();
}

namespace ax::rt {

namespace {

template <typename Fn>
const void *addressOf(Fn *function) {
  return reinterpret_cast<const void *>(function);
}

/// The functions: one for f64 by its name, and one for f32 with an f behind it.
using Table = llvm::StringMap<const void *>;
void add(Table &table, llvm::StringRef name, double (*f64)(double),
         float (*f32)(float)) {
  table[name] = addressOf(f64);
  table[(name + "f").str()] = addressOf(f32);
}
void add(Table &table, llvm::StringRef name, double (*f64)(double, double),
         float (*f32)(float, float)) {
  table[name] = addressOf(f64);
  table[(name + "f").str()] = addressOf(f32);
}

Table makeTable() {
  Table table;
  table["memcpy"] = addressOf(&::memcpy);
  table["memmove"] = addressOf(&::memmove);
  table["memset"] = addressOf(&::memset);
  // What code generators make of operations for which a processor has no
  // instruction.
#define AX_MATH(name) add(table, #name, &::name, &::name##f)
  AX_MATH(acos);
  AX_MATH(acosh);
  AX_MATH(asin);
  AX_MATH(asinh);
  AX_MATH(atan);
  AX_MATH(atanh);
  AX_MATH(cbrt);
  AX_MATH(ceil);
  AX_MATH(cos);
  AX_MATH(cosh);
  AX_MATH(erf);
  AX_MATH(erfc);
  AX_MATH(exp);
  AX_MATH(exp10);
  AX_MATH(exp2);
  AX_MATH(expm1);
  AX_MATH(floor);
  AX_MATH(log);
  AX_MATH(log10);
  AX_MATH(log1p);
  AX_MATH(log2);
  AX_MATH(nearbyint);
  AX_MATH(rint);
  AX_MATH(round);
  AX_MATH(roundeven);
  AX_MATH(sin);
  AX_MATH(sinh);
  AX_MATH(sqrt);
  AX_MATH(tan);
  AX_MATH(tanh);
  AX_MATH(trunc);
  AX_MATH(atan2);
  AX_MATH(copysign);
  AX_MATH(fmax);
  AX_MATH(fmin);
  AX_MATH(fmod);
  AX_MATH(pow);
#undef AX_MATH
  table["fma"] = addressOf(&::fma);
  table["fmaf"] = addressOf(&::fmaf);
  table["ldexp"] = addressOf(&::ldexp);
  table["ldexpf"] = addressOf(&::ldexpf);
  table["sincos"] = addressOf(&::sincos);
  table["sincosf"] = addressOf(&::sincosf);
  table["__extendhfsf2"] = addressOf(&__extendhfsf2);
  table["__truncdfhf2"] = addressOf(&__truncdfhf2);
  table["__truncsfhf2"] = addressOf(&__truncsfhf2);
  return table;
}

} // namespace

const void *hostFunction(llvm::StringRef name) {
  static const Table table = makeTable();
  return table.lookup(name);
}

} // namespace ax::rt
