//===- PiecedTensor.h - A tensor that lies in several places ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As a checkpoint has it: in files that are mapped, each with the elements that
// some rank had. Who needs some of them reads no others.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SUPPORT_PIECEDTENSOR_H
#define AX_SUPPORT_PIECEDTENSOR_H

#include "ax/Support/Dealt.h"
#include "ax/Support/HostTensor.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <string>
#include <utility>

namespace ax {

class MappedFile;

/// Where some elements lie in a tensor, which is dense and row-major: from
/// `offset` on, sizes[d] of them strides[d] apart, in elements. `count` is the
/// product of the sizes.
struct ElementBox {
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
  int64_t count = 0;

  bool isAll(int64_t total) const {
    return sizes.size() == 1 && sizes[0] == total;
  }
  /// Calls fn(where in the tensor, how many, where in the box) for runs of
  /// elements, in the order of the box, until it returns false; returns whether
  /// it never did.
  using VisitRun = llvm::function_ref<bool(int64_t, int64_t, int64_t)>;
  bool forEachRun(VisitRun fn) const;

private:
  bool visit(size_t dim, int64_t at, int64_t &from, VisitRun fn) const;
};

/// Elements of a tensor, one behind the other in the order of the box.
struct TensorPiece {
  ElementBox box;
  /// Its type may be another one than the whole tensor's: what canConvert
  /// allows. Not aligned where a file has it.
  HostTensor tensor;
  /// The file that has them; null where memory does.
  std::shared_ptr<MappedFile> file = nullptr;

  /// Puts elements from number `first` on, in the whole tensor's type.
  void copyElements(DType type, int64_t first, int64_t count,
                    uint8_t *to) const;
  /// This process's memory need not hold them any more; who reads them again
  /// reads the file again.
  void release() const;
};

/// A global tensor, each of whose elements is in one of the pieces. Boxes are
/// of the tensor as the model has it, unless `given`.
struct PiecedTensor {
  /// `file`: which has the tensor, if one does.
  static PiecedTensor of(HostTensor tensor,
                         std::shared_ptr<MappedFile> file = nullptr);

  DType type = DType::F32;
  Shape shape;
  std::vector<TensorPiece> pieces;
  /// The order that boxes are of, and the one that is wanted, where they are
  /// not the model's.
  std::optional<Dealt> given = std::nullopt, wanted = std::nullopt;

  /// Calls fn(where in the tensor that is wanted, how many, where in the box)
  /// as ElementBox::forEachRun does.
  bool forEachRun(const ElementBox &box, ElementBox::VisitRun fn) const;
  /// The piece that is all of the tensor as it is; null where none is.
  const TensorPiece *getWhole() const;
  int64_t getRank() const { return static_cast<int64_t>(shape.size()); }
  /// `8x128xf32`.
  std::string typeToString() const;
  /// Returns the tensor that is wanted; one that is one piece stays where it
  /// is.
  llvm::Expected<HostTensor> assemble() const;
};

/// Returns a tensor that is dealt so, as the model has it.
llvm::Expected<HostTensor> inModelOrder(HostTensor tensor,
                                        const std::optional<Dealt> &dealt);

/// Tensors of files by name.
using NamedPieces = std::vector<std::pair<std::string, PiecedTensor>>;

} // namespace ax

#endif // AX_SUPPORT_PIECEDTENSOR_H
