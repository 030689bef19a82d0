//===- Downstream.h - Who comes after whom ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_DOWNSTREAM_H
#define AX_LIB_CODEGEN_DOWNSTREAM_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/BitVector.h"

#include <vector>

namespace ax::codegen {

/// Nodes that read each other's results, and which of them come after which:
/// the transitive closure of a graph that grows. A question takes one look; a
/// node takes a set of all others.
class Downstream {
public:
  /// Returns the number of a new node, which these read.
  unsigned add(llvm::ArrayRef<unsigned> readers);
  /// Lets these read the node, too.
  void addReaders(unsigned node, llvm::ArrayRef<unsigned> readers);
  /// Whether `to` reads what `from` makes, directly or not.
  bool reaches(unsigned from, unsigned to) const {
    return to < behind[from].size() && behind[from].test(to);
  }

private:
  llvm::BitVector closureOf(llvm::ArrayRef<unsigned> readers) const;

  std::vector<llvm::BitVector> behind;
};

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_DOWNSTREAM_H
