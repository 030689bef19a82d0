//===- LayoutEncoding.h - Layouts as flat lists of numbers ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes store axes as indices into a list of names and a flat list of
// numbers:
//
//   axes   = count, (name, pre, size)*           size 0: the whole axis
//   factor = size, axes                          size 0: the only factor
//   dim    = factors, factor*
//   layout = dims, dim*, reduce kind, axes
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_DIALECT_LAYOUTENCODING_H
#define AX_LIB_DIALECT_LAYOUTENCODING_H

#include "ax/Dialect/Ax.h"

#include "mlir/IR/OpImplementation.h"

namespace ax {

/// Writes the flat form.
class LayoutEncoder {
public:
  explicit LayoutEncoder(mlir::MLIRContext *context) : context(context) {}

  void number(int64_t n) { encoding.push_back(n); }
  void axis(llvm::StringRef name, int64_t pre, int64_t size) {
    mlir::StringAttr attr = mlir::StringAttr::get(context, name);
    auto *it = llvm::find(names, attr);
    number(it - names.begin());
    if (it == names.end())
      names.push_back(attr);
    number(pre);
    number(size);
  }
  void axes(const sharding::SubAxes &axes, const sharding::Mesh &mesh) {
    number(axes.size());
    for (const sharding::SubAxis &sub : axes) {
      bool whole = sub.pre == 1 && sub.size == mesh.axisSize(sub.axis);
      axis(sub.axis, sub.pre, whole ? 0 : sub.size);
    }
  }

  llvm::SmallVector<mlir::StringAttr> names;
  llvm::SmallVector<int64_t> encoding;

private:
  mlir::MLIRContext *context;
};

/// Reads the flat form.
class LayoutDecoder {
public:
  LayoutDecoder(llvm::ArrayRef<mlir::StringAttr> names,
                llvm::ArrayRef<int64_t> encoding)
      : names(names), encoding(encoding) {}

  int64_t number() { return encoding[position++]; }
  /// Sizes of whole axes stay 0 without a mesh.
  sharding::SubAxes axes(const sharding::Mesh *mesh) {
    sharding::SubAxes result(number());
    for (sharding::SubAxis &sub : result) {
      sub.axis = names[number()].str();
      sub.pre = number();
      sub.size = number();
      if (sub.size == 0 && mesh)
        sub.size = mesh->axisSize(sub.axis);
    }
    return result;
  }

private:
  llvm::ArrayRef<mlir::StringAttr> names;
  llvm::ArrayRef<int64_t> encoding;
  size_t position = 0;
};

/// `{a, b}`.
void printAxes(llvm::raw_ostream &os, const sharding::SubAxes &axes);
/// Parses a list of axes. With `optional`, nothing at all is an empty list too.
mlir::ParseResult parseAxes(mlir::AsmParser &parser, LayoutEncoder &encoder,
                            bool optional = false);

/// `{a, b}`, or `3 * 8{a} * 64`.
void printDim(llvm::raw_ostream &os, LayoutDecoder &decoder);
mlir::ParseResult parseDim(mlir::AsmParser &parser, LayoutEncoder &encoder);

/// `[{a}, {}]` and, if there is one, `SEPARATORpartial sum {b}`.
void printLayout(llvm::raw_ostream &os, LayoutAttr layout,
                 llvm::StringRef separator);
/// Null when it is malformed. A comma is the separator, or nothing.
LayoutAttr parseLayout(mlir::AsmParser &parser, bool withComma);

} // namespace ax

#endif // AX_LIB_DIALECT_LAYOUTENCODING_H
