//===- OpGenerators.h - Random instances of every operation -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_UNIT_LAYOUTS_OPGENERATORS_H
#define AX_TEST_UNIT_LAYOUTS_OPGENERATORS_H

#include "ax/Dialect/Ax.h"
#include "ax/Support/HostTensor.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

#include <functional>
#include <random>

namespace ax::test {

/// Random choices, and a block in which one operation is built. Operands are
/// the block's arguments; their values are small integers, so that sums come
/// out the same in every order.
class Gen {
public:
  Gen(mlir::MLIRContext *context, uint64_t seed)
      : builder(context), random(seed),
        real(oneOf({DType::F32, DType::F32, DType::F16, DType::BF16})) {
    builder.setInsertionPointToEnd(&block);
  }

  /// In [low, high].
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  template <typename T>
  T oneOf(std::initializer_list<T> choices) {
    return *(choices.begin() + pick(0, choices.size() - 1));
  }
  template <typename T>
  void shuffle(T &range) {
    std::shuffle(range.begin(), range.end(), random);
  }

  int64_t extent() { return oneOf<int64_t>({1, 2, 2, 3, 4, 4, 5, 6, 8}); }
  Shape shape(int64_t minRank, int64_t maxRank);
  /// As `shape`, but some dimensions 1 or, in front, missing.
  Shape broadcastable(const Shape &shape);

  HostTensor values(DType type, const Shape &shape, int64_t low = -4,
                    int64_t high = 4);
  mlir::Value operand(DType type, const Shape &shape, int64_t low = -4,
                      int64_t high = 4);
  mlir::RankedTensorType type(DType type, const Shape &shape);
  DType number() { return oneOf({real, DType::I32, DType::I64}); }

  mlir::OpBuilder builder;
  mlir::Block block;
  std::vector<HostTensor> tensors;
  std::mt19937_64 random;
  /// Of floats, where an op takes any.
  DType real;
};

/// Builds an op at the generator's place.
template <typename OpT, typename... Args>
mlir::Operation *make(Gen &g, Args &&...args) {
  return OpT::create(g.builder, g.builder.getUnknownLoc(),
                     std::forward<Args>(args)...);
}

using Generator = std::function<mlir::Operation *(Gen &)>;

// Of each file in Generators/, which the build finds there.
#define AX_FILE(Name)                                                          \
  void add##Name##Generators(llvm::StringMap<Generator> &to);
#include "Generators.inc"
#undef AX_FILE

/// By operation name without `ax.`.
const llvm::StringMap<Generator> &opGenerators();

} // namespace ax::test

#endif // AX_TEST_UNIT_LAYOUTS_OPGENERATORS_H
