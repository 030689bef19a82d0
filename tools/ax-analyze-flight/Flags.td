//===- Flags.td - The command line of ax-analyze-flight -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

include "ax/Support/Flags.td"
