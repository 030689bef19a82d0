//===- AxOps.td - All operations of ax ---------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_OPS_TD
#define AX_OPS_TD

include "ax/Dialect/AxCollectiveOps.td"
include "ax/Dialect/AxContractionOps.td"
include "ax/Dialect/AxElementwiseOps.td"
include "ax/Dialect/AxPlanOps.td"
include "ax/Dialect/AxReductionOps.td"
include "ax/Dialect/AxShapeOps.td"

#endif // AX_OPS_TD
