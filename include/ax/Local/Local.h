//===- Local.h - The axl dialect --------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs of ranks: collectives on parts, a rank's place, and what is one
// command.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LOCAL_LOCAL_H
#define AX_LOCAL_LOCAL_H

#include "ax/Dialect/Ax.h"

#include "ax/Local/LocalDialect.h.inc"
#include "ax/Local/LocalInterfaces.h.inc"

#define GET_OP_CLASSES
#include "ax/Local/LocalOps.h.inc"

#endif // AX_LOCAL_LOCAL_H
