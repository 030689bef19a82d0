//===- Npy.h - NumPy's .npy and .npz files ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading accepts what numpy.save, savez and savez_compressed write for our
// element types, either byte order, C or Fortran order (transposed to C).
// bf16, which NumPy lacks, is a two-byte void (`V2`), as ml_dtypes writes it.
// Elements of an .npy file stay there, mapped, where they are as we need them.
// Malformed files are BadInput errors that name the file (and member).
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_NPY_H
#define AX_RUNTIME_NPY_H

#include "ax/Support/AtomicFile.h"
#include "ax/Support/HostTensor.h"

#include <string>
#include <utility>
#include <vector>

namespace ax::rt {

using NamedTensors = std::vector<std::pair<std::string, HostTensor>>;

llvm::Expected<HostTensor> readNpy(const std::string &path);
llvm::Error writeNpy(const std::string &path, const HostTensor &tensor);
/// Writes the tensor, and returns the file that has only to get its name.
llvm::Expected<AtomicFile> prepareNpy(const std::string &path,
                                      const HostTensor &tensor);

/// The content of an .npy file. With an owner, who keeps `bytes` alive, they
/// are used where they are if they can be.
llvm::Expected<HostTensor>
parseNpy(llvm::ArrayRef<uint8_t> bytes,
         std::shared_ptr<const void> owner = nullptr);
/// What comes before the tensor's bytes in an .npy file.
std::string npyHeader(const HostTensor &tensor);

/// Every member `NAME.npy` as (NAME, tensor), in the archive's order. Stored
/// and deflated members; other members are ignored.
llvm::Expected<NamedTensors> readNpz(const std::string &path);
/// Stored members, so that they can be mapped.
llvm::Error writeNpz(const std::string &path, const NamedTensors &tensors);

/// The array `name` as a file of a folder: separators, and a dot in front,
/// become underscores, so that the file is in the folder and seen.
std::string npyFileName(llvm::StringRef name);
std::string npyFileIn(llvm::StringRef folder, llvm::StringRef name);
/// Returns the tensors of those of `names` that have a file in the folder, in
/// the order of `names`.
llvm::Expected<NamedTensors> readNpyFolder(llvm::StringRef folder,
                                           llvm::ArrayRef<std::string> names);

} // namespace ax::rt

#endif // AX_RUNTIME_NPY_H
