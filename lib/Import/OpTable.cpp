//===- OpTable.cpp - Operators and their importers ------------------------===//

#include "OpTable.h"

#include "llvm/ADT/StringMap.h"

using namespace ax::import;

static llvm::StringMap<OpImporter> makeTable() {
  llvm::StringMap<OpImporter> table;
  for (OpTable group :
       {activationOps(), attentionOps(), constantOps(), contractionOps(),
        controlOps(), convolutionOps(), elementwiseOps(), gatherOps(),
        normOps(), poolOps(), quantizeOps(), randomOps(), recurrentOps(),
        reduceOps(), resizeOps(), sequenceOps(), shapeOps(), signalOps(),
        sliceOps()})
    for (const OpEntry &entry : group) {
      bool isNew = table.try_emplace(entry.name, entry.importer).second;
      assert(isNew && "operator in two tables");
      (void)isNew;
    }
  return table;
}

OpImporter ax::import::findImporter(llvm::StringRef domain,
                                    llvm::StringRef opType) {
  static const llvm::StringMap<OpImporter> table = makeTable();
  if (!domain.empty() && domain != "ai.onnx")
    return nullptr;
  return table.lookup(opType);
}
