//===- AxDialect.td - The ax dialect -----------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_TD
#define AX_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Ax_Dialect : Dialect {
  let name = "ax";
  let cppNamespace = "::ax";
  let summary = "Tensor programs spread over a mesh of ranks";
  let description = [{
    Tensor-valued operations with static shapes. A value's type is the *global*
    shape; after the Shard phase its encoding is an `#ax.layout`, from which the
    shape each rank holds is derived.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasNonDefaultDestructor = 1;
  let extraClassDeclaration = [{
    /// What `ax::getLayout` remembers of types.
    std::unique_ptr<::ax::KnownLayoutsOfThreads> knownLayouts;
  }];
}

#endif // AX_DIALECT_TD
