//===- ProductSuite.h - What products on cuda must give ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A test program links ProductSuite.cpp, and instantiates ProductSuite with
// drivers, simulated or real, and seeds.
//
//===----------------------------------------------------------------------===//
#ifndef AX_TEST_PRODUCTSUITE_H
#define AX_TEST_PRODUCTSUITE_H

#include "DeviceSuite.h"
#include "ProductRunner.h"

namespace ax::rt {

/// Does the product on the GPU and on the CPU, and expects equal results within
/// rounding; what lies between a result's elements is compared, too. `poisoned`
/// is an argument that has a NaN.
void checkProduct(ProductRunner &runner, const MatmulDesc &desc,
                  int64_t shift = 0, uint32_t seed = 7, int poisoned = -1);

/// A product of factors of eight bits, both with what is summed over innermost.
MatmulDesc makeFloat8Product(DType a, DType b, int64_t m, int64_t k, int64_t n);

struct ProductParam {
  DeviceBackend *backend;
  uint32_t seed;

  /// Whether the card is older than those that multiply eight bits.
  bool lacksFloat8(ProductRunner &runner) const;
};

class ProductSuite : public ::testing::TestWithParam<ProductParam> {
protected:
  ProductSuite() { GetParam().backend->begin(); }
};

} // namespace ax::rt

#endif // AX_TEST_PRODUCTSUITE_H
