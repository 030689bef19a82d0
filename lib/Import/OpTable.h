//===- OpTable.h - Operators and their importers ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each file of Ops/ ends with its table: one line an operator. Where its
// meaning changed, the older one is a line of its own; what is only written
// otherwise (an attribute that became an input) importers read in both ways.
// An operator for which the onnx library has no schema has its signature there.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_IMPORT_OPTABLE_H
#define AX_LIB_IMPORT_OPTABLE_H

#include "Node.h"

#include <onnx/defs/schema.h>

#include "llvm/ADT/StringMap.h"

#include <map>

namespace ax::import {

/// What a schema says, in words divided by blanks. Inputs and outputs are
/// `name:type`, `name?:type` where they may be absent, `name*:type` for any
/// number of them, at the end. A type is one of onnx's element types, or a
/// variable, which is of one type in a node and whose first use says of which:
/// `x:T=float|float16`, `x:T=floats`, `x:T=bytes` (i8 and u8). Attributes are
/// `name:type`, `name!:type` where they must be there, of the types int, ints,
/// float, floats and string.
struct Signature {
  llvm::StringLiteral inputs = "", outputs = "", attributes = "";
};

struct OpEntry {
  llvm::StringLiteral name;
  OpImporter importer;
  /// The first operator set whose meaning this is; until the next line's.
  int since = 1;
  /// For operators, or sets of them, of which the onnx library knows nothing.
  Signature signature = {};
};

/// All operators, by domain and name.
class OpTable {
public:
  static const OpTable &get();
  /// `domain`: empty for ONNX's own.
  void add(ArrayRef<OpEntry> group, llvm::StringRef domain = "");
  /// Returns the importer of an operator in that set of ONNX's operators, which
  /// other domains do not count by; null when there is none.
  OpImporter find(llvm::StringRef domain, llvm::StringRef opType,
                  int opset) const;
  /// The schema that an entry's signature makes; null when it has none.
  const onnx::OpSchema *findSchema(llvm::StringRef domain,
                                   llvm::StringRef opType) const;

private:
  /// Oldest first.
  using Meanings = llvm::SmallVector<OpEntry, 1>;
  llvm::StringMap<Meanings> byName;
  std::map<std::string, onnx::OpSchema> schemas;
};

/// The domain of onnxruntime's own operators.
inline constexpr llvm::StringLiteral contribDomain = "com.microsoft";

// Each file in Ops/, which the build finds there, adds its group.
#define AX_FILE(Name) void add##Name(OpTable &table);
#include "Importers.inc"
#undef AX_FILE

} // namespace ax::import

#endif // AX_LIB_IMPORT_OPTABLE_H
