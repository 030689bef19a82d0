//===- OpTable.cpp - Operators and their importers ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OpTable.h"

#include "Schemas.h"

#include "llvm/ADT/StringMap.h"

using namespace ax::import;

/// Meanings of one operator, oldest first.
using Meanings = llvm::SmallVector<OpEntry, 1>;

static llvm::StringMap<Meanings> makeTable() {
  llvm::StringMap<Meanings> table;
  for (OpTable group :
       {activationOps(), attentionOps(),   constantOps(),    contractionOps(),
        controlOps(),    convolutionOps(), elementwiseOps(), gatherOps(),
        normOps(),       poolOps(),        quantizeOps(),    randomOps(),
        recurrentOps(),  reduceOps(),      resizeOps(),      roiAlignOps(),
        samplingOps(),   selectionOps(),   sequenceOps(),    shapeOps(),
        signalOps(),     sliceOps()})
    for (const OpEntry &entry : group) {
      Meanings &meanings = table[entry.name];
      assert((meanings.empty() || meanings.back().since < entry.since) &&
             "one meaning twice, or the newer one first");
      meanings.push_back(entry);
    }
  return table;
}

OpImporter ax::import::findImporter(llvm::StringRef domain,
                                    llvm::StringRef opType, int opset) {
  static const llvm::StringMap<Meanings> table = makeTable();
  OpImporter importer = nullptr;
  auto found = table.find(opType);
  if (!isDefaultDomain(domain) || found == table.end())
    return nullptr;
  for (const OpEntry &entry : found->second)
    if (entry.since <= opset)
      importer = entry.importer;
  return importer;
}
