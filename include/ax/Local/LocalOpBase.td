//===- LocalOpBase.td - The vocabulary of one rank ---------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LOCAL_OP_BASE_TD
#define AX_LOCAL_OP_BASE_TD

include "ax/Dialect/AxOpBase.td"
include "ax/Local/LocalEnums.td"

def Axl_Dialect : Dialect {
  let name = "axl";
  let cppNamespace = "::ax";
  let summary = "What one rank of a stage does, for all ranks at once";
  let description = [{
    A plan's stage is written on global shapes with layouts. Localised, it is the
    same computation on the part that one rank holds: operations of `ax` on types
    without layouts, and those of this dialect for what only ranks know. All
    ranks of a stage have one program, in which a rank's place is a number read at
    run time. It is made of a verified plan by `axl-localize`, changed by the
    passes after it, and becomes commands in the end; no plan's text has it.
  }];
  let dependentDialects = ["::ax::AxDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

def Axl_PlaceAttr : AttrDef<Axl_Dialect, "Place"> {
  let mnemonic = "place";
  let summary = "Where a result of a command lies in a rank's memory";
  let description = [{
    In the list `axl.places` of the command, after `axl-place-buffers`:

    - `arena 128`: from byte 128 on of the memory that the stage's values share;
    - `result 1`: where the stage's result 1 goes when the stage is done;
    - `operand 0`: in the memory of the command's operand 0, which nothing reads
      afterwards;
    - `kept 0`: in memory that nothing else of the stage has, from step to step;
    - `copy 1`: likewise, where all lists of a rank find the program's copy 1 of a
      state.
  }];
  let parameters = (ins EnumParameter<Axl_PlaceKind>:$kind, "int64_t":$number);
  let assemblyFormat = "`<` $kind $number `>`";
}

class Axl_Op<string mnemonic, list<Trait> traits = []>
    : Op<Axl_Dialect, mnemonic, traits>;

/// Types are local: an encoding would be a layout.
class Axl_Local<TypeConstraint type>
    : Type<And<[type.predicate, CPred<
          "!::llvm::cast<::mlir::RankedTensorType>($_self).getEncoding()">]>,
        type.summary # " without a layout", type.cppType>;
def Axl_Tensor : Axl_Local<Ax_Tensor>;
def Axl_FloatTensor : Axl_Local<Ax_FloatTensor>;
def Axl_IndexTensor : Axl_Local<Ax_IndexTensor>;

#endif // AX_LOCAL_OP_BASE_TD
