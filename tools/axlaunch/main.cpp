//===- main.cpp - axlaunch: a command that outlives failures --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Launch.h"

#include "ax/Support/Error.h"
#include "ax/Support/Process.h"

using namespace ax;

int main(int argc, char **argv) {
  setUpProcess("axlaunch");
  auto options = parseLaunchOptions(argc, argv);
  if (!options)
    return reportError("axlaunch", options.takeError());
  auto code = launch(*options);
  if (!code)
    return reportError("axlaunch", code.takeError());
  return *code;
}
