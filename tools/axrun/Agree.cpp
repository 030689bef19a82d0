//===- Agree.cpp - Outputs beside the expected ones -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Agree.h"

#include "ax/Support/Compare.h"
#include "ax/Support/Error.h"

using namespace ax;

bool ax::agree(const RunOptions &options, const std::vector<rt::Port> &ports,
               const std::vector<HostTensor> &outputs,
               const rt::NamedTensors &expected) {
  bool agrees = true;
  for (const auto &[name, wanted] : expected) {
    auto port = llvm::find_if(
        ports, [&, name = name](const rt::Port &p) { return p.name == name; });
    const HostTensor &got = outputs[port - ports.begin()];
    if (got.getShape() != wanted.getShape() ||
        got.getType() != wanted.getType()) {
      tell("axrun", name + " is " + got.typeToString() + ", expected is " +
                        wanted.typeToString());
      agrees = false;
      continue;
    }
    Difference difference = compare(got, wanted, options.rtol, options.atol);
    tell("axrun", describe(name, difference, got, wanted));
    agrees &= difference.numDiffering == 0;
  }
  std::string others;
  for (const rt::Port &port : ports)
    if (llvm::none_of(expected, [&](const auto &pair) {
          return pair.first == port.name;
        }))
      others += " " + port.name;
  if (!expected.empty() && !others.empty())
    tell("axrun", "note: not compared:" + others);
  return agrees;
}
