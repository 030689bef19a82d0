//===- Safetensors.h - Tensors in one file ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Eight bytes with the length of a JSON header, which gives each tensor's type,
// shape and place; then the tensors, little endian and row-major.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_SAFETENSORS_H
#define AX_RUNTIME_SAFETENSORS_H

#include "ax/Support/AtomicFile.h"
#include "ax/Support/PiecedTensor.h"

#include <map>
#include <optional>

namespace ax::rt {

/// Dimensions that a tensor may have here, as in plans.
inline constexpr size_t mostDims = 64;

/// What a file says of itself (`__metadata__`): texts by name.
using SafetensorsMetadata = std::map<std::string, std::string>;

/// Each tensor is one piece, which stays in the file, but for some that are not
/// aligned. BadInput errors name it. `metadata`, if not null, becomes what the
/// file says of itself.
llvm::Expected<NamedPieces>
readSafetensors(const std::string &path,
                SafetensorsMetadata *metadata = nullptr);

/// `F32`, as the header writes it.
std::string safetensorsName(DType type);
std::optional<DType> safetensorsType(llvm::StringRef name);

/// A file whose tensors come one after another.
class SafetensorsWriter {
public:
  struct Entry {
    std::string name;
    DType type = DType::F32;
    Shape shape;
  };
  /// Writes the header; the tensors follow in the order of `entries`.
  static llvm::Expected<SafetensorsWriter>
  create(const std::string &path, const std::vector<Entry> &entries,
         const SafetensorsMetadata &metadata = {});
  llvm::Error write(const HostTensor &tensor);
  /// Makes the file appear: until then there is none, or the one before.
  llvm::Error commit() { return file.commit(); }
  int64_t getPosition() const { return file.getPosition(); }

private:
  explicit SafetensorsWriter(AtomicFile file) : file(std::move(file)) {}
  AtomicFile file;
};

} // namespace ax::rt

#endif // AX_RUNTIME_SAFETENSORS_H
