//===- AxOpBase.td - Base classes of the operations --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_OP_BASE_TD
#define AX_OP_BASE_TD

include "ax/Dialect/AxAttrs.td"
include "ax/Dialect/AxInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Ax_Op<string mnemonic, list<Trait> traits = []>
    : Op<Ax_Dialect, mnemonic, traits>;

def Ax_Tensor : StaticShapeTensorOf<[AnyType]>;
def Ax_FloatTensor : StaticShapeTensorOf<[AnyFloat]>;
def Ax_BoolTensor : StaticShapeTensorOf<[I1]>;
def Ax_IntTensor : StaticShapeTensorOf<[AnyInteger]>;
def Ax_IndexTensor : StaticShapeTensorOf<[I32, I64]>;

/// A pure function of tensors with a sharding rule; result types given.
class Ax_ComputeOp<string mnemonic, list<Trait> traits = []>
    : Ax_Op<mnemonic, !listconcat([
        Pure, DeclareOpInterfaceMethods<Ax_ShardingRuleOpInterface>], traits)>;

/// A compute op whose result types follow from operands and attributes. Types
/// are compared without their layouts; those are checked against the rule.
class Ax_InferredOp<string mnemonic, list<Trait> traits = []>
    : Ax_ComputeOp<mnemonic, !listconcat([InferTypeOpAdaptor], traits)> {
  code inferredDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange lhs,
                                        ::mlir::TypeRange rhs) {
      return ::ax::sameWithoutLayout(lhs, rhs);
    }
  }];
  let extraClassDeclaration = inferredDeclaration;
}

/// A sum of products. Of narrow floats its result may be f32: the sum before it
/// is rounded.
class Ax_ContractionOp<string mnemonic, list<Trait> traits = []>
    : Ax_InferredOp<mnemonic, !listconcat([
        DeclareOpInterfaceMethods<Ax_ContractionOpInterface>], traits)> {
  let inferredDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred,
                                        ::mlir::TypeRange actual) {
      return ::ax::sameOrUnrounded(inferred, actual);
    }
  }];
}

/// One of data with a weight.
class Ax_LayerOp<string mnemonic, list<Trait> traits = []>
    : Ax_ContractionOp<mnemonic, !listconcat([
        DeclareOpInterfaceMethods<Ax_LayerOpInterface>], traits)>;

#endif // AX_OP_BASE_TD
