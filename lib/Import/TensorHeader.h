//===- TensorHeader.h - An initializer without its data ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
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

/// Whether the data lie in the model's file as they are in memory.
inline bool isInPlace(const TensorHeader &header) {
  return header.numDataFields == 1 && header.data.data() &&
         header.dataType.value_or(header.type) == header.type;
}

/// Initializers above this become references before protobuf sees them.
constexpr int64_t maxInlineBytes = 1024;

/// A node that gives one tensor as it is: `Constant` with `value`.
struct ConstantNode {
  /// The name of its output stands for that of the tensor.
  TensorHeader header;
  /// Its message, and in it those of its attribute and of the tensor.
  llvm::ArrayRef<uint8_t> node, attribute, tensor;
  bool isLarge = false;
};

/// Weights that a graph has as nodes: a weight is one wherever it is written.
/// Constants that are large, in another file, or, where the graph has no
/// initializers of floats, those of a layer.
class WeightNodes {
public:
  explicit WeightNodes(llvm::ArrayRef<uint8_t> graph);
  /// Reads a constant; gives nothing when the node is another one, or damaged.
  std::optional<ConstantNode> read(llvm::ArrayRef<uint8_t> node) const;

private:
  bool hasInitializers = false;
};

/// Where the data of `header` lies; checks it against the file's size. `model`
/// is the content of the folder's model file.
llvm::Expected<Weight> locateTensor(ModelFolder &folder,
                                    llvm::ArrayRef<uint8_t> model,
                                    const TensorHeader &header, DType type);

} // namespace ax::import

#endif // AX_LIB_IMPORT_TENSORHEADER_H
