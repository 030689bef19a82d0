//===- LocalInterfaces.td - What local operations declare --*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LOCAL_INTERFACES_TD
#define AX_LOCAL_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Axl_CollectiveOpInterface : OpInterface<"LocalCollectiveOpInterface"> {
  let cppNamespace = "::ax";
  let description = [{
    An exchange between the ranks of each group over some axes. Result i is made
    of the operands i of the group's ranks, in group order; those of one op are
    exchanged together.
  }];
  let methods = [
    InterfaceMethod<"What it does.",
                    "::ax::sharding::StepKind", "getStepKind">,
    InterfaceMethod<"How elements of several ranks combine, if they do.",
                    "::std::optional<::ax::ReduceOpKind>", "getReduction", (ins),
                    "", "return ::std::nullopt;">,
    InterfaceMethod<"The dimension of result i in which parts are joined; -1: none.",
                    "int64_t", "getGatherDimOf", (ins "unsigned":$part),
                    "", "return -1;">,
    InterfaceMethod<"The dimension of operand i that is split; -1: none.",
                    "int64_t", "getScatterDimOf", (ins "unsigned":$part),
                    "", "return -1;">
  ];
  let extraSharedClassDeclaration = [{
    ::ax::AxesAttr getMovedAxes() {
      return ::llvm::cast<::ax::AxesAttr>($_op->getAttr("axes"));
    }
    ::mlir::StringAttr getCause() {
      return $_op->template getAttrOfType<::mlir::StringAttr>("because");
    }
    /// It goes on while others are done, until an `axl.await`.
    bool isStarted() { return $_op->hasAttr("start"); }
  }];
}

#endif // AX_LOCAL_INTERFACES_TD
