//===- KnownLayouts.h - What types say, remembered --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plan of a thousand values has a few dozen types. What a type's layout means
// on a mesh, and that it and the steps between two of them are sound, is found
// out once, and looked up by the type afterwards. Types live as long as their
// context, and so does this; each thread has its own, so that none waits.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_DIALECT_KNOWNLAYOUTS_H
#define AX_LIB_DIALECT_KNOWNLAYOUTS_H

#include "ax/Dialect/Ax.h"

#include "mlir/Support/ThreadLocalCache.h"
#include "llvm/ADT/DenseSet.h"

#include <deque>

namespace ax {

/// What is known on one mesh.
class LayoutsOnMesh {
public:
  explicit LayoutsOnMesh(const sharding::Mesh &mesh) : mesh(mesh) {}

  /// What ax::getLayout and ax::localPartType return. The layout stays where it
  /// is.
  const sharding::Layout &layoutOf(mlir::RankedTensorType type);
  mlir::RankedTensorType localPartOf(mlir::RankedTensorType type);

  /// A collective of this kind over these axes from one type to another.
  using Step = std::tuple<unsigned, mlir::Attribute, mlir::Type, mlir::Type>;

  const sharding::Mesh mesh;
  /// What has been checked, and found to be as it should be.
  llvm::DenseSet<mlir::Type> soundTypes;
  llvm::DenseSet<Step> soundSteps;

private:
  llvm::DenseMap<mlir::Type, std::unique_ptr<sharding::Layout>> layouts;
  llvm::DenseMap<mlir::Type, mlir::RankedTensorType> localParts;
};

class KnownLayouts {
public:
  /// What the calling thread knows, which it alone may use.
  static KnownLayouts &get(mlir::MLIRContext *context);

  LayoutsOnMesh &on(const sharding::Mesh &mesh);
  /// The mesh that the operation says.
  const sharding::Mesh &meshOf(MeshOp op);

private:
  /// Nearly always there is one, and the last one asked for is asked for again.
  std::deque<LayoutsOnMesh> meshes;
  LayoutsOnMesh *last = nullptr;

  using Axes = std::tuple<mlir::Attribute, mlir::Attribute, mlir::Attribute>;
  llvm::DenseMap<Axes, std::unique_ptr<sharding::Mesh>> byAttributes;
};

/// What the dialect has of it.
struct KnownLayoutsOfThreads {
  mlir::ThreadLocalCache<KnownLayouts> known;
};

} // namespace ax

#endif // AX_LIB_DIALECT_KNOWNLAYOUTS_H
