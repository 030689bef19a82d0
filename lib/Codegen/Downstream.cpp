//===- Downstream.cpp - Who comes after whom ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Downstream.h"

namespace ax::codegen {

llvm::BitVector Downstream::closureOf(llvm::ArrayRef<unsigned> readers) const {
  llvm::BitVector nodes(behind.size());
  for (unsigned reader : readers) {
    nodes.set(reader);
    nodes |= behind[reader];
  }
  return nodes;
}

unsigned Downstream::add(llvm::ArrayRef<unsigned> readers) {
  // Nobody comes before it yet.
  behind.push_back(closureOf(readers));
  return behind.size() - 1;
}

void Downstream::addReaders(unsigned node, llvm::ArrayRef<unsigned> readers) {
  llvm::BitVector more = closureOf(readers);
  // `test` asks whether there is one that the other lacks.
  if (!more.test(behind[node]))
    return;
  for (unsigned other = 0; other < behind.size(); ++other)
    if (other == node || reaches(other, node))
      behind[other] |= more;
}

} // namespace ax::codegen
