//===- TensorHeader.h - An initializer without its data ---------*- C++ -*-===//
#ifndef AX_LIB_IMPORT_TENSORHEADER_H
#define AX_LIB_IMPORT_TENSORHEADER_H

#include "WeightKinds.h"
#include "Weights.h"

namespace ax::import {

/// What the wire says of one initializer.
struct TensorHeader {
  std::string name;
  Shape dims;
  int32_t type = 0;
  bool external = false;
  /// Data in the model's file that can be used in place.
  llvm::ArrayRef<uint8_t> data;
  /// Element type of typed data; raw data has any.
  std::optional<int32_t> dataType;
  /// Data fields seen, of any kind.
  int numDataFields = 0;
  std::string location;
  std::optional<std::string> offset, length;
  /// What the exporter says it is.
  std::optional<WeightKind> kind;
};

/// False when the bytes are damaged.
bool readTensorHeader(llvm::ArrayRef<uint8_t> tensor, TensorHeader &header);

/// Where the data of `header` lies; checks it against the file's size. `model`
/// is the content of the folder's model file.
llvm::Expected<Weight> locateTensor(ModelFolder &folder,
                                    llvm::ArrayRef<uint8_t> model,
                                    const TensorHeader &header, DType type);

} // namespace ax::import

#endif // AX_LIB_IMPORT_TENSORHEADER_H
