//===- LocalOps.h - Operations on the parts of one rank ---------*- C++ -*-===//
#ifndef AX_DIALECT_LOCALOPS_H
#define AX_DIALECT_LOCALOPS_H

#include "ax/Dialect/Ax.h"

#define GET_OP_CLASSES
#include "ax/Dialect/AxLocalOps.h.inc"

#endif // AX_DIALECT_LOCALOPS_H
