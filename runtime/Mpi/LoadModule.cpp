//===- LoadModule.cpp - libax-mpi.so, found at run time -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoadModule.h"

#include "ax/Support/Error.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cstdlib>
#include <dlfcn.h>

namespace ax::rt::mpi {

namespace {

constexpr const char *moduleName = "libax-mpi.so";

/// Returns which file to open: a name without a folder is looked for by the
/// loader.
std::string findModule() {
  if (const char *given = std::getenv("AXRUN_MPI_MODULE"))
    return given;
  llvm::SmallString<256> file;
  if (!llvm::sys::fs::real_path("/proc/self/exe", file)) {
    llvm::sys::path::remove_filename(file);
    llvm::sys::path::append(file, moduleName);
    if (llvm::sys::fs::exists(file))
      return file.str().str();
  }
  return moduleName;
}

} // namespace

llvm::Expected<const AxMpiModuleTable *> loadModule() {
  std::string file = findModule();
  // MPI opens modules of its own, which look for its symbols among everybody's.
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library)
    return makeErrorf(ExitCode::Usage,
                      "started by MPI, but its module cannot be loaded ({0}): "
                      "install Open MPI, build with it, or name the module in "
                      "AXRUN_MPI_MODULE",
                      dlerror());
  auto *getTable = reinterpret_cast<decltype(&axMpiModuleTable)>(
      dlsym(library, "axMpiModuleTable"));
  if (!getTable)
    return makeErrorf(ExitCode::Usage,
                      "'{0}' is no MPI module of this program: it has no "
                      "'axMpiModuleTable'",
                      file);
  const AxMpiModuleTable *table = getTable();
  if (table->version != axMpiModuleVersion)
    return makeErrorf(
        ExitCode::Usage,
        "MPI module '{0}' has version {1}, and this program needs "
        "{2}: use the one that was built with it",
        file, table->version, axMpiModuleVersion);
  return table;
}

} // namespace ax::rt::mpi
