//===- OpTable.cpp - Operators and their importers ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OpTable.h"

#include "Schemas.h"

using namespace ax::import;

const OpTable &OpTable::get() {
  static const OpTable all = [] {
    OpTable table;
#define AX_FILE(Name) add##Name(table);
#include "Importers.inc"
#undef AX_FILE
    return table;
  }();
  return all;
}

void OpTable::add(ArrayRef<OpEntry> group) {
  for (const OpEntry &entry : group) {
    Meanings &meanings = byName[entry.name];
    assert((meanings.empty() || meanings.back().since < entry.since) &&
           "one meaning twice, or the newer one first");
    meanings.push_back(entry);
  }
}

OpImporter OpTable::find(llvm::StringRef opType, int opset) const {
  OpImporter importer = nullptr;
  auto found = byName.find(opType);
  if (found == byName.end())
    return nullptr;
  for (const OpEntry &entry : found->second)
    if (entry.since <= opset)
      importer = entry.importer;
  return importer;
}

OpImporter ax::import::findImporter(llvm::StringRef domain,
                                    llvm::StringRef opType, int opset) {
  return isDefaultDomain(domain) ? OpTable::get().find(opType, opset) : nullptr;
}
