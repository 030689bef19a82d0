//===- Weights.h - Where the tensors of a model lie -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// References to tensor data in the model's file and its external data files,
// and the checks that these files are allowed and long enough.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_IMPORT_WEIGHTS_H
#define AX_LIB_IMPORT_WEIGHTS_H

#include "ax/Support/HostTensor.h"
#include "ax/Support/MappedFile.h"

#include "llvm/ADT/StringMap.h"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace ax::import {

/// Numbers of four bits, which lie two in a byte, the first in the lower bits.
struct FourBits {
  /// ONNX's UINT4, INT4 and FLOAT4E2M1.
  enum class Kind { Unsigned, Signed, Float };
  Kind kind = Kind::Unsigned;
  /// The shape of the numbers.
  Shape shape;

  /// The shape of the bytes: half of the last dimension where it is even, else
  /// all in a row.
  Shape ofBytes() const;
};

/// Bytes of a tensor: row-major, little endian, `shape` whole.
struct Weight {
  DType type = DType::F32;
  Shape shape;
  /// What the bytes are, of type U8, when they are no numbers themselves.
  std::optional<FourBits> fourBits;
  /// The file, relative to the model's folder.
  std::string file;
  int64_t offset = 0;
  int64_t length = 0;
};

/// The model's folder: files in it by their relative path, opened once.
class ModelFolder {
public:
  /// `modelPath` names the model's file. `mayLackData`: external data that is
  /// not there is no error until somebody reads it.
  explicit ModelFolder(llvm::StringRef modelPath, bool mayLackData = false);

  /// Whether `location`, which the model may name, is not there, and need not
  /// be.
  bool lacks(llvm::StringRef location) const;

  const std::string &getPath() const { return path; }
  /// The model file's own name, relative to the folder.
  const std::string &getModelFile() const { return modelFile; }

  llvm::Expected<std::shared_ptr<MappedFile>> openModel();
  /// `location` is what a tensor of the model says: an error unless it is a
  /// relative path to a regular file that stays in the folder, without `..`,
  /// symbolic links, or further hard links.
  llvm::Expected<std::shared_ptr<MappedFile>> open(llvm::StringRef location);

  /// The model's own or one that a tensor names.
  llvm::Expected<std::shared_ptr<MappedFile>> openEither(llvm::StringRef file);

  llvm::Expected<HostTensor> read(const Weight &weight);
  /// Returns the bytes, mapped as long as this folder lives, at any alignment.
  llvm::Expected<llvm::ArrayRef<uint8_t>> bytesOf(const Weight &weight);

private:
  std::string path;
  std::string modelFile;
  bool mayLackData;
  llvm::StringMap<std::shared_ptr<MappedFile>> files;
};

/// The model's own file and those that its tensors name, relative to the
/// folder; whether they are there and allowed is not asked.
std::set<std::string> filesOf(ModelFolder &folder);

/// Returns the name of the state that an initializer becomes.
std::string stateName(const std::string &name);

using WeightMap = std::map<std::string, Weight>;

} // namespace ax::import

#endif // AX_LIB_IMPORT_WEIGHTS_H
