//===- OpTable.h - Operators and their importers ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each file of Ops/ ends with its table: one line an operator. Where its
// meaning changed, the older one is a line of its own; what is only written
// otherwise (an attribute that became an input) importers read in both ways.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_IMPORT_OPTABLE_H
#define AX_LIB_IMPORT_OPTABLE_H

#include "Node.h"

#include "llvm/ADT/StringMap.h"

namespace ax::import {

struct OpEntry {
  llvm::StringLiteral name;
  OpImporter importer;
  /// The first operator set whose meaning this is; until the next line's.
  int since = 1;
};

/// All operators, by name.
class OpTable {
public:
  static const OpTable &get();
  void add(ArrayRef<OpEntry> group);
  /// Returns the importer of an operator of ONNX's own domain in that operator
  /// set; null when there is none.
  OpImporter find(llvm::StringRef opType, int opset) const;

private:
  /// Oldest first.
  using Meanings = llvm::SmallVector<OpEntry, 1>;
  llvm::StringMap<Meanings> byName;
};

// Each file in Ops/, which the build finds there, adds its group.
#define AX_FILE(Name) void add##Name(OpTable &table);
#include "Importers.inc"
#undef AX_FILE

} // namespace ax::import

#endif // AX_LIB_IMPORT_OPTABLE_H
