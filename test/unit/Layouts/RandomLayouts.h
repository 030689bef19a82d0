//===- RandomLayouts.h - Random meshes, layouts, assignments ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_UNIT_LAYOUTS_RANDOMLAYOUTS_H
#define AX_TEST_UNIT_LAYOUTS_RANDOMLAYOUTS_H

#include "OpGenerators.h"

namespace ax::test {

sharding::Mesh randomMesh(Gen &gen);

/// A legal layout; partial only with `mayBePartial`.
sharding::Layout randomLayout(Gen &gen, const sharding::Mesh &mesh,
                              const Shape &shape, bool mayBePartial);

/// A legal assignment: even or not, parts of axes, compound factors, partial
/// sums that pass.
sharding::Assignment randomAssignment(Gen &gen, const sharding::Mesh &mesh,
                                      const sharding::Rule &rule,
                                      bool mayPassPartial);

/// Numbers that reduce to `global` over the parts of the partial axes.
std::vector<HostTensor> randomAddends(Gen &gen, const HostTensor &global,
                                      const sharding::Layout &layout);

} // namespace ax::test

#endif // AX_TEST_UNIT_LAYOUTS_RANDOMLAYOUTS_H
