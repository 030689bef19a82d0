//===- Distribute.h - Global tensors and the parts of ranks -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_INTERPRETER_DISTRIBUTE_H
#define AX_INTERPRETER_DISTRIBUTE_H

#include "ax/Sharding/Layout.h"
#include "ax/Support/HostTensor.h"

namespace ax::interpreter {

enum class Padding {
  Zero,
  /// NaN, -1, true: what must never reach a valid element.
  Poison,
};

/// The part that the rank at `coordinates` holds. Of a partial sum the rank
/// numbered 0 over the partial axes holds all and the others zeros; of a
/// partial max or min everybody holds the same.
HostTensor localPart(const HostTensor &global, const sharding::Layout &layout,
                     const sharding::Mesh &mesh,
                     const std::vector<int64_t> &coordinates, Padding padding);

/// One part and where it is.
struct Part {
  std::vector<int64_t> coordinates;
  HostTensor tensor;
};

/// The global tensor that `parts` (of all coordinates) make up: addends
/// reduced, padding dropped. Fails when two ranks that should hold the same
/// elements differ in a bit, naming them, or when an element is missing.
llvm::Expected<HostTensor> assemble(llvm::ArrayRef<Part> parts,
                                    const sharding::Layout &layout,
                                    const sharding::Mesh &mesh);

} // namespace ax::interpreter

#endif // AX_INTERPRETER_DISTRIBUTE_H
