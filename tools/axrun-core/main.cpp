//===- main.cpp - axrun-core: run compiled plans --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// axrun without a compiler and without ONNX: small, and there at once.
//
//===----------------------------------------------------------------------===//
#include "../axrun/RunTool.h"

int main(int argc, char **argv) {
  return ax::runMain(argc, argv, {"axrun-core", "MODEL.axc"});
}
