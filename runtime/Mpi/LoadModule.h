//===- LoadModule.h - libax-mpi.so, found at run time -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_MPI_LOADMODULE_H
#define AX_RUNTIME_MPI_LOADMODULE_H

#include "ModuleTable.h"

#include "llvm/Support/Error.h"

namespace ax::rt::mpi {

/// Opens the file that AXRUN_MPI_MODULE names, or else libax-mpi.so beside the
/// program, or where the loader looks. The module stays in the process. A Usage
/// error where there is none, or it is of another version, or has no MPI here.
llvm::Expected<const AxMpiModuleTable *> loadModule();

} // namespace ax::rt::mpi

#endif // AX_RUNTIME_MPI_LOADMODULE_H
