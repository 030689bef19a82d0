//===- AxAttrs.td - Attributes and enums of ax -------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_ATTRS_TD
#define AX_ATTRS_TD

include "ax/Dialect/AxDialect.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"

class Ax_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Ax_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Ax_LayoutAttr : Ax_Attr<"Layout", "layout"> {
  let summary = "How a tensor is spread over the mesh";
  let description = [{
    For each dimension its split, and the axes over which each rank holds only
    an addend:

    ```
    #ax.layout<[{data, micro}, {}, 3 * 8{col} * 64], partial sum {row}>
    ```

    A dimension is a list of axes (`{data, micro}`, first axis slowest), or a
    product of factors, each with an optional list of axes. `col:(1)2` is the
    digit of size 2 with 1 part before it inside the axis `col`. The attribute
    does not know the mesh: a plain axis name is the whole axis, whatever its
    size; `resolve` gives the sizes.
  }];
  // Flat encoding, see LayoutAttr.cpp. Axes are names, sizes of whole axes and
  // of dimensions with one factor are 0: nothing here repeats the mesh or the
  // shape.
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axisNames,
                        ArrayRefParameter<"int64_t">:$encoding);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// Canonical attribute of a layout that is legal on `mesh`.
    static LayoutAttr get(::mlir::MLIRContext *context,
                          const ::ax::sharding::Layout &layout,
                          const ::ax::sharding::Mesh &mesh);
    /// The layout of a tensor of `shape`. Sizes come from shape and mesh; an
    /// axis that the mesh lacks has size 1. Call `sharding::findFault` on what
    /// a user may have written.
    ::ax::sharding::Layout resolve(::llvm::ArrayRef<int64_t> shape,
                                   const ::ax::sharding::Mesh &mesh) const;
    int64_t getNumDims() const { return getEncoding()[0]; }
  }];
}

def Ax_AxesAttr : Ax_Attr<"Axes", "axes"> {
  let summary = "An ordered list of (sub-)axes, first slowest: `{data, col:(1)2}`";
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axisNames,
                        ArrayRefParameter<"int64_t">:$encoding);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    static AxesAttr get(::mlir::MLIRContext *context,
                        const ::ax::sharding::SubAxes &axes,
                        const ::ax::sharding::Mesh &mesh);
    ::ax::sharding::SubAxes resolve(const ::ax::sharding::Mesh &mesh) const;
  }];
}

def Ax_PinAttr : Ax_Attr<"Pin", "pin"> {
  let summary = "What is asked of a tensor's split, and why";
  let description = [{
    In the list `ax.pins` of the operation that makes the tensor, or of a
    program's input, between the steps of the Shard phase:

    ```
    #ax.pin<[{data}, {}, ?] open because "the batch is split">
    #ax.pin<result 1 [{}, 3 * 8{col} * 64] user because "--shard=heads">
    ```

    Whoever uses the tensor finds the dimensions so, if need be after a
    resharding; nothing is said of `?`. Of a state: how it is stored. `user`: it
    comes before what a recipe says. `weak`: it gives way to what a recipe says of
    the same dimension, and operations learn of it when all other pins have
    spread. Of two equal ones the last holds. `open`: propagation may split
    further. `here_only`: operations beside it do not learn of it.
  }];
  let parameters = (ins "unsigned":$result, "::ax::LayoutAttr":$layout,
                        ArrayRefParameter<"int64_t">:$dims, "bool":$user,
                        "bool":$weak, "bool":$open, "bool":$hereOnly,
                        "::mlir::StringAttr":$because);
  let hasCustomAssemblyFormat = 1;
}

def Ax_FactorPinAttr : Ax_Attr<"FactorPin", "factor_pin"> {
  let summary = "What is asked of the split of one of an operation's factors";
  let description = [{
    In the list `ax.pins` of the operation. The factor is named by a dimension
    that it is in; `part`: as which one, where the dimension is made of several:

    ```
    #ax.factor_pin<operand 0 dim 2 = {row} any_place because "--tp=2x2x2">
    #ax.factor_pin<result 0 dim 1 part 1 = 3 * 4{col} user because "by hand">
    ```

    `{}` splits it never. `user` and `open` are as in `#ax.pin`. `any_place`: the
    axes are reserved, and neighbours say where in the factor they split; when none
    does, the text holds, or with `else_whole` nothing splits it. `asks` is what a
    warning calls the factor if propagation splits it into fewer parts.
  }];
  let parameters = (ins "bool":$ofResult, "unsigned":$tensor, "unsigned":$dim,
                        "unsigned":$part, "::ax::LayoutAttr":$split,
                        "bool":$user, "bool":$open, "bool":$anyPlace,
                        "bool":$elseWhole, "::mlir::StringAttr":$because,
                        "::mlir::StringAttr":$asks);
  let hasCustomAssemblyFormat = 1;
}

def Ax_ShardingAttr : Ax_Attr<"Sharding", "sharding"> {
  let summary = "In which layouts an operation takes and gives its tensors";
  let description = [{
    As `ax.sharding` of an operation, from ax-propagate to ax-insert-reshards,
    which exchanges what operands have and it takes otherwise:

    ```
    #ax.sharding<([{data}, 8{col} * 64], [8{col} * 64]) -> ([{data}, 64] partial sum {col})
        because {data} "the batch is split", {col} "--tp=2">
    ```

    Of loads, constants and inputs of a program there are results only.
  }];
  let parameters = (ins ArrayRefParameter<"::ax::LayoutAttr">:$operands,
                        ArrayRefParameter<"::ax::LayoutAttr">:$results,
                        ArrayRefParameter<"::ax::AxesAttr">:$axes,
                        ArrayRefParameter<"::mlir::StringAttr">:$reasons);
  let hasCustomAssemblyFormat = 1;
}

def Ax_StoredAttr : Ax_Attr<"Stored", "stored", [ElementsAttrInterface]> {
  let summary = "Elements that lie in the file beside the plan";
  let description = [{
    The value of a constant in a plan's text:

    ```
    #ax.stored<offset 64 length 19208 checksum "8c1d3f0a52b7e964"> : tensor<49x49xi64>
    ```

    Bytes `offset` .. `offset + length` of the file that the plan's attribute
    `ax.data` names are the tensor, row-major, little endian, a boolean as one
    byte; `checksum` is their XXH3. Reading the plan replaces it by the elements.
  }];
  let parameters = (ins AttributeSelfTypeParameter<"", "::mlir::ShapedType">:$type,
                        "int64_t":$offset, "int64_t":$length,
                        StringRefParameter<>:$checksum);
  let hasCustomAssemblyFormat = 1;
}

def Ax_DealtAttr : Ax_Attr<"Dealt", "dealt"> {
  let summary = "In which order a state has the elements of one dimension";
  let description = [{
    Of a weight that gives q, k and v to 2 ranks, which have half of each:

    ```
    dealt <[2048, 512, 512] to 2 along 0>
    ```

    The dimension is parts of these sizes, in the model's order. The state has
    the first half of each part one behind the other, and then the second: what
    `{col}` splits in two halves are these.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$parts, "int64_t":$hands,
                        "int64_t":$dim);
  let assemblyFormat = "`<` `[` $parts `]` `to` $hands `along` $dim `>`";
  let extraClassDeclaration = [{
    ::ax::Dealt getOrder() const {
      return {getDim(), getParts().vec(), getHands()};
    }
  }];
}

class Ax_Enum<string name, string doc, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, doc, cases> {
  let cppNamespace = "::ax";
  let genSpecializedAttr = 0;
}

class Ax_Cases<list<string> names> {
  list<I32EnumAttrCase> cases =
      !foreach(i, !range(!size(names)),
               I32EnumAttrCase<names[i], i, names[i]>);
}

def Ax_UnaryKind : Ax_Enum<"UnaryKind", "element-wise function of one operand",
  Ax_Cases<["neg", "abs", "sign", "exp", "log", "log1p", "expm1", "sqrt",
            "rsqrt", "reciprocal", "sin", "cos", "tan", "asin", "acos", "atan",
            "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
            "sigmoid", "relu", "gelu", "gelu_tanh", "silu", "softplus",
            "ceil", "floor", "round", "trunc", "logical_not", "bit_not",
            "is_nan", "is_pos_inf", "is_neg_inf"]>.cases>;
def Ax_UnaryKindAttr : EnumAttr<Ax_Dialect, Ax_UnaryKind, "unary_kind">;

def Ax_BinaryKind : Ax_Enum<"BinaryKind", "element-wise function of two operands",
  Ax_Cases<["add", "sub", "mul", "div", "pow", "max", "min", "floor_mod",
            "trunc_mod", "logical_and", "logical_or", "logical_xor", "bit_and",
            "bit_or", "bit_xor", "shl", "shr"]>.cases>;
def Ax_BinaryKindAttr : EnumAttr<Ax_Dialect, Ax_BinaryKind, "binary_kind">;

def Ax_CompareKind : Ax_Enum<"CompareKind", "comparison",
  Ax_Cases<["eq", "ne", "lt", "le", "gt", "ge"]>.cases>;
def Ax_CompareKindAttr : EnumAttr<Ax_Dialect, Ax_CompareKind, "compare_kind">;

def Ax_ReduceOpKind : Ax_Enum<"ReduceOpKind", "how elements combine",
  Ax_Cases<["sum", "prod", "max", "min"]>.cases>;
def Ax_ReduceOpKindAttr : EnumAttr<Ax_Dialect, Ax_ReduceOpKind, "reduce_kind">;

def Ax_PoolKind : Ax_Enum<"PoolKind", "what a window becomes",
  Ax_Cases<["max", "avg", "sum"]>.cases>;
def Ax_PoolKindAttr : EnumAttr<Ax_Dialect, Ax_PoolKind, "pool_kind">;

def Ax_PadMode : Ax_Enum<"PadMode", "what padding holds",
  Ax_Cases<["constant", "reflect", "edge", "wrap"]>.cases>;
def Ax_PadModeAttr : EnumAttr<Ax_Dialect, Ax_PadMode, "pad_mode">;

def Ax_ScatterKind : Ax_Enum<"ScatterKind", "how an update meets what is there",
  Ax_Cases<["set", "add", "mul", "max", "min"]>.cases>;
def Ax_ScatterKindAttr : EnumAttr<Ax_Dialect, Ax_ScatterKind, "scatter_kind">;

def Ax_ResultRole : Ax_Enum<"ResultRole", "what a result of a program that trains is",
  Ax_Cases<["loss", "gradient_norm", "learning_rate", "loss_scale", "loss_sum",
            "loss_count", "correct", "scaled_loss_sum"]>.cases>;
def Ax_ResultRoleAttr : EnumAttr<Ax_Dialect, Ax_ResultRole, "role"> {
  let summary = "What a result of a program that trains is: `#ax.role<loss>`";
  let description = [{
    On a result, as `ax.role`, whatever its name. Of what changes states: `loss`
    (the mean), `gradient_norm`, `learning_rate`, `loss_scale`. Of what measures
    them: `loss_sum`, `loss_count` and `correct`, how many predictions are right.
    `scaled_loss_sum` is what is differentiated in f16, and gone afterwards.
  }];
  let assemblyFormat = "`<` $value `>`";
}

#endif // AX_ATTRS_TD
