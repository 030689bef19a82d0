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

namespace ax::import {

struct OpEntry {
  llvm::StringLiteral name;
  OpImporter importer;
  /// The first operator set whose meaning this is; until the next line's.
  int since = 1;
};
using OpTable = ArrayRef<OpEntry>;

OpTable activationOps();
OpTable attentionOps();
OpTable constantOps();
OpTable contractionOps();
OpTable controlOps();
OpTable convolutionOps();
OpTable elementwiseOps();
OpTable gatherOps();
OpTable normOps();
OpTable poolOps();
OpTable quantizeOps();
OpTable randomOps();
OpTable recurrentOps();
OpTable reduceOps();
OpTable resizeOps();
OpTable roiAlignOps();
OpTable samplingOps();
OpTable selectionOps();
OpTable sequenceOps();
OpTable shapeOps();
OpTable signalOps();
OpTable sliceOps();

} // namespace ax::import

#endif // AX_LIB_IMPORT_OPTABLE_H
