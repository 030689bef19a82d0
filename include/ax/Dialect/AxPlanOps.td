//===- AxPlanOps.td - Plans, programs, stages, state -------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PLAN_OPS_TD
#define AX_PLAN_OPS_TD

include "ax/Dialect/AxOpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Ax_PlanOp : Ax_Op<"plan", [IsolatedFromAbove, SymbolTable, Symbol,
    NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "What one file holds: mesh, state, programs over the same state";
  let description = "Created by Import, with neither mesh nor stages.";
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$version);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `version` $version attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// What has constants in a file, or a program that prepares states, is of
    /// the second version: who knows only the first would not do without.
    static constexpr int64_t firstVersion = 1, preparedVersion = 2,
                             rolesVersion = 3, fileTypeVersion = 4,
                             dealtVersion = 5, currentVersion = 5;
    /// Raises the version to the first one that has what the plan now needs.
    void needVersion(int64_t version) {
      if (static_cast<int64_t>(getVersion()) < version)
        setVersion(version);
    }
    /// The plan's mesh; one without axes before the Shard phase.
    ::ax::sharding::Mesh getMesh();
  }];
}

def Ax_MeshOp : Ax_Op<"mesh", [HasParent<"PlanOp">]> {
  let summary = "Axes, outermost first: `[pipe = 2, col = 4] in time [micro = 2]`";
  let arguments = (ins StrArrayAttr:$names, DenseI64ArrayAttr:$sizes,
                       I64Attr:$num_space);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = "::ax::sharding::Mesh getMesh();";
  let builders = [OpBuilder<(ins "const ::ax::sharding::Mesh &":$mesh)>];
}

def Ax_StateOp : Ax_Op<"state", [HasParent<"PlanOp">, Symbol]> {
  let summary = "A tensor that lives across steps";
  let description = [{
    `type` has the *stored* layout. `file` is relative to the folder of the model
    (`ax.model_dir` of the plan unless the runtime is told otherwise); bytes
    `offset` .. `offset + length` hold the global tensor, row-major, little
    endian, in f16 or bf16 where the file is read `as` that and the state is f32:
    a trained weight of a model of narrow floats. Without a file it is zero at
    first: an optimizer's moments, a decoder's cache. What is `prepared` is what the program `@prepare`, which runs once when the states
    are loaded, has stored. `stages`: those that hold it. What is `dealt` has the
    elements of one dimension in another order than the model, whose order is
    that of the file, and of what is saved.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type,
    DefaultValuedAttr<StrAttr, "\"\"">:$file,
    DefaultValuedAttr<I64Attr, "0">:$offset,
    DefaultValuedAttr<I64Attr, "0">:$length, OptionalAttr<TypeAttr>:$file_type,
    OptionalAttr<DenseI64ArrayAttr>:$stages, OptionalAttr<Ax_DealtAttr>:$dealt,
    UnitAttr:$trainable, UnitAttr:$prepared);
  let assemblyFormat = [{
    $sym_name `:` $type (`dealt` $dealt^)? (`stages` $stages^)?
    (`from` $file^ `offset` $offset `length` $length (`as` $file_type^)?)?
    attr-dict }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name,
                                 "::mlir::RankedTensorType":$type), [{
    build($_builder, $_state, name, type, "", 0, 0, nullptr, nullptr, nullptr);
  }]>];
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getType());
    }
    /// Of the elements as the file has them.
    ::mlir::Type getElementTypeInFile() {
      return getFileType().value_or(getTensorType().getElementType());
    }
    bool isZeroAtFirst() { return getFile().empty() && !getPrepared(); }
  }];
}

def Ax_LoadOp : Ax_Op<"load", [Pure, Ax_SourceLike,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<Ax_ShardingRuleOpInterface>]> {
  let summary = "The value of a state at the start of the step, as stored";
  let arguments = (ins FlatSymbolRefAttr:$state);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = "$state attr-dict `:` type($result)";
}

def Ax_StoreOp : Ax_Op<"store", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The value of a state from the next step on";
  let description = [{
    Created by Train, and of what is carried by Shard. The operand has the state's
    stored layout. All loads of the step come before it.
  }];
  let arguments = (ins FlatSymbolRefAttr:$state, Ax_Tensor:$operand);
  let assemblyFormat = "$state `,` $operand attr-dict `:` type($operand)";
}

def Ax_ProgramOp : Ax_Op<"program", [HasParent<"PlanOp">, IsolatedFromAbove,
    FunctionOpInterface, Symbol]> {
  let summary = "What runs in one step, from global inputs to global outputs";
  let description = [{
    Arguments and results carry `ax.name` (their ONNX names). `ax.samples = DIM`
    of a result: its dimension DIM counts the samples of a batch, each of which
    has an equal part of it, in their order; none does where there is no such
    attribute. Created by Import, which follows the batch from the inputs, and
    for what a loss adds by Train. `ax.role = #ax.role<loss>` of a result says
    what training takes it for. Before the Pipeline phase the body is
    operations and `ax.return`; after it `ax.stage`, `ax.transfer`, one
    `ax.schedule` and `ax.return`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
    TypeAttrOf<FunctionType>:$function_type,
    OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name,
      "::mlir::FunctionType":$type,
      CArg<"::llvm::ArrayRef<::mlir::StringAttr>", "{}">:$argNames,
      CArg<"::llvm::ArrayRef<::mlir::StringAttr>", "{}">:$resultNames)>];
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    /// ONNX name of an argument or result; empty when it has none.
    ::llvm::StringRef getArgName(unsigned i);
    /// Whether an argument's first dimension counts samples: it does unless the
    /// plan says otherwise.
    bool isBatched(unsigned i);
    /// Samples that a run takes: the first dimension of the first input whose
    /// first dimension counts them. Nothing without such an input.
    ::std::optional<int64_t> getBatch();
    /// The dimension of a result that counts samples, if one does.
    ::std::optional<int64_t> getSampleDim(unsigned i);
    void setSampleDim(unsigned i, int64_t dim);
    /// `ax.counted_dim`: along it are as many results as another output says.
    ::std::optional<int64_t> getCountedDim(unsigned i);
    ::llvm::StringRef getResultName(unsigned i);
    /// What training takes a result for, if for anything.
    ::std::optional<::ax::ResultRole> getRole(unsigned i);
    /// Says what training takes result `i` for. The plan is of a version that has
    /// roles.
    void setRole(unsigned i, ::ax::ResultRole role);
    /// Returns the number of the result of this role; nothing when none has it.
    ::std::optional<unsigned> findResult(::ax::ResultRole role);
  }];
  let hasVerifier = 1;
}

def Ax_ReturnOp : Ax_Op<"return", [Pure, ReturnLike, Terminator,
    HasParent<"ProgramOp">]> {
  let summary = "Outputs of a program";
  let arguments = (ins Variadic<Ax_Tensor>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
  let hasVerifier = 1;
}

def Ax_StageOp : Ax_Op<"stage", [HasParent<"ProgramOp">, IsolatedFromAbove,
    SingleBlock]> {
  let summary = "What the ranks of one pipeline stage do for one micro-batch";
  let description = [{
    ```
    %r = ax.stage @forward0 on 0 (%a = %x : tensor<...>) -> (tensor<...>) { ... }
    ```
    `on` is the coordinate on the axis `pipe`. Operands and results have global
    types; each run handles one slice of the axes in time.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$on,
                       Variadic<Ax_Tensor>:$operands);
  let results = (outs Variadic<Ax_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Ax_YieldOp : Ax_Op<"yield", [Pure, ReturnLike, Terminator,
    HasParent<"StageOp">]> {
  let summary = "Results of a stage";
  let arguments = (ins Variadic<Ax_Tensor>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
}

def Ax_TransferOp : Ax_Op<"transfer", [HasParent<"ProgramOp">, Pure,
    AllTypesMatch<["operand", "result"]>]> {
  let summary = "Send and receive between the same coordinates of two stages";
  let description = [{
    `slots`: how many micro-batches' values the receiver can hold at a time.
  }];
  let arguments = (ins Ax_Tensor:$operand, I64Attr:$from, I64Attr:$to,
                       I64Attr:$slots);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    $operand `from` $from `to` $to `slots` $slots attr-dict `:` type($result) }];
  let hasVerifier = 1;
}

def Ax_ScheduleOp : Ax_Op<"schedule", [HasParent<"ProgramOp">]> {
  let summary = "For each stage the order of its actions";
  let description = [{
    ```
    ax.schedule "gpipe" { stage 0: "F0 F1", stage 1: "F0 F1" }
    ```
    `F`n: forward of micro-batch n.
  }];
  let arguments = (ins StrAttr:$policy, StrArrayAttr:$orders);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

#endif // AX_PLAN_OPS_TD
