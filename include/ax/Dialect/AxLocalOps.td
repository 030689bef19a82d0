//===- AxLocalOps.td - Only inside Codegen ----------------------*- tablegen -*-===//
#ifndef AX_LOCAL_OPS_TD
#define AX_LOCAL_OPS_TD

include "ax/Dialect/AxOpBase.td"

def Ax_CheckIndicesOp : Ax_Op<"check_indices", [Pure,
    AllTypesMatch<["indices", "result"]>]> {
  let summary = "The indices, negative ones counted from the end, or an error";
  let description = [{
    Created by localisation for indices that are not known. The run ends with an
    error unless every element i is in [-s, s), where s = sizes[i mod number of
    sizes].
  }];
  let arguments = (ins Ax_IndexTensor:$indices, DenseI64ArrayAttr:$sizes);
  let results = (outs Ax_IndexTensor:$result);
  let assemblyFormat = "$indices `sizes` $sizes attr-dict `:` type($result)";
}

#endif // AX_LOCAL_OPS_TD
