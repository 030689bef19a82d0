//===- CarriedValues.h - What one step leaves for the next ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_CARRIEDVALUES_H
#define AX_LIB_IMPORT_CARRIEDVALUES_H

#include "ax/Dialect/Ax.h"

#include "llvm/Support/Error.h"

namespace ax::import {

/// Attribute of a select until what is carried is marked: where it takes its
/// second value nobody sees it, now or later, but in outputs.
inline constexpr llvm::StringLiteral kUnseenElse = "ax.unseen_else";

/// Marks the outputs that are inputs of the next step (`kCarried`), by
/// ImportOptions::carried. Of an output that is its input with more behind it,
/// in one dimension, the last part becomes it: a cache that grows by each step
/// loses what is oldest. What nobody sees of one stays as it was
/// (`kUnseenElse`), and need not be written. Usage errors name what does not
/// fit.
llvm::Error
markCarried(ProgramOp program,
            llvm::ArrayRef<std::pair<std::string, std::string>> patterns);

} // namespace ax::import

#endif // AX_LIB_IMPORT_CARRIEDVALUES_H
