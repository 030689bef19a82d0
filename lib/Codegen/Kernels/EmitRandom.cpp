//===- EmitRandom.cpp - axl.random in kernels -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "EmitRandom.h"

#include "ax/Support/Philox.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace ax::codegen {

/// The words stay in 64 bits, of which the products need all: that vectorises.
Value emitRandom(OpBuilder &b, Value index, Value seed, Value step,
                 int64_t id) {
  Location loc = b.getUnknownLoc();
  auto integer = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
  };
  auto low = [&](Value x) -> Value {
    return arith::AndIOp::create(b, loc, x, integer(0xffffffff));
  };
  auto high = [&](Value x) -> Value {
    return arith::ShRUIOp::create(b, loc, x, integer(32));
  };
  auto mix = [&](Value x, Value y, Value z) -> Value {
    return arith::XOrIOp::create(b, loc, arith::XOrIOp::create(b, loc, x, y),
                                 z);
  };
  Value counter[4] = {low(index), high(index), integer(uint32_t(id)),
                      low(step)};
  Value key[2] = {low(seed), high(seed)};
  for (int round = 0; round < philox::rounds; ++round) {
    Value product[2];
    for (int i = 0; i < 2; ++i) {
      product[i] = arith::MulIOp::create(b, loc, counter[2 * i],
                                         integer(philox::multipliers[i]));
      if (round > 0)
        key[i] = low(arith::AddIOp::create(b, loc, key[i],
                                           integer(philox::increments[i])));
    }
    Value first = mix(high(product[1]), counter[1], key[0]);
    Value third = mix(high(product[0]), counter[3], key[1]);
    counter[0] = first;
    counter[1] = low(product[1]);
    counter[2] = third;
    counter[3] = low(product[0]);
  }
  Value bits = arith::ShRUIOp::create(b, loc, counter[0], integer(8));
  Value narrow = arith::TruncIOp::create(b, loc, b.getI32Type(), bits);
  Value number = arith::SIToFPOp::create(b, loc, b.getF32Type(), narrow);
  return arith::MulFOp::create(
      b, loc, number,
      arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0x1p-24)));
}

} // namespace ax::codegen
