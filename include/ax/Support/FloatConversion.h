//===- FloatConversion.h - Floats in the type that is wanted ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model has its weights and inputs in bf16, a file has f32, or the other way
// round: NumPy has no bf16, and a run keeps in f32 what it trains.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SUPPORT_FLOATCONVERSION_H
#define AX_SUPPORT_FLOATCONVERSION_H

#include "ax/Support/PiecedTensor.h"

#include <functional>
#include <map>
#include <utility>

namespace ax {

/// Whether elements of type `given` can be taken as `wanted`: what is of that
/// type, and f32, bf16 and f16 as each other, rounded where that has fewer
/// digits.
bool canConvert(DType wanted, DType given);

/// Whether finite numbers of a tensor would be infinite as `wanted`, which only
/// f16 makes them.
bool isBeyond(DType wanted, const HostTensor &tensor);

/// Puts `count` elements at `from` into `to`, converted if they have to be:
/// bf16 has its largest number for what f32 has above that. Neither need be
/// aligned.
void copyConverted(DType wanted, uint8_t *to, DType given, const uint8_t *from,
                   int64_t count);

/// Tensors of a file in the types that a model has.
class FloatConversion {
public:
  /// The tensor's elements are converted when they are copied or assembled. A
  /// BadInput error when finite ones are beyond what f16 has.
  llvm::Expected<PiecedTensor> to(DType wanted, PiecedTensor tensor);
  /// The same of a tensor in memory.
  llvm::Expected<HostTensor> to(DType wanted, const HostTensor &tensor);
  /// Warns of all weights of the file, a line for each pair of types.
  void tell(llvm::StringRef path,
            const std::function<void(const std::string &)> &warn) const;

private:
  /// How many, by the given and the wanted type.
  std::map<std::pair<DType, DType>, int64_t> counts;
};

} // namespace ax

#endif // AX_SUPPORT_FLOATCONVERSION_H
