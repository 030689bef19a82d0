//===- Results.cpp - Outputs of which there are fewer than there is room --===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Session/Session.h"
#include "ax/Support/Error.h"

#include <cstring>

using namespace ax;

std::vector<bool> ax::areCounts(const std::vector<rt::Port> &outputs) {
  std::vector<bool> result(outputs.size());
  for (const rt::Port &port : outputs)
    if (port.count)
      result[port.count->output] = true;
  return result;
}

std::vector<rt::Port> ax::portsOfResults(const std::vector<rt::Port> &outputs) {
  std::vector<bool> counts = areCounts(outputs);
  std::vector<rt::Port> result;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!counts[i])
      result.push_back(outputs[i]);
  return result;
}

/// The first `count` along `dim`, at most as many as there are.
static HostTensor cut(const HostTensor &value, int64_t dim, int64_t count) {
  Shape shape = value.getShape();
  int64_t rows = 1, row = byteSize(value.getType());
  for (size_t d = 0; d < shape.size(); ++d)
    (static_cast<int64_t>(d) < dim ? rows : row) *=
        static_cast<int64_t>(d) == dim ? 1 : shape[d];
  int64_t whole = row * shape[dim];
  shape[dim] = count;
  int64_t part = row * shape[dim];
  HostTensor result(value.getType(), shape);
  for (int64_t i = 0; i < rows && part; ++i)
    std::memcpy(result.mutableData() + i * part, value.data() + i * whole,
                static_cast<size_t>(part));
  return result;
}

llvm::Expected<std::vector<HostTensor>>
ax::cutToResults(const std::vector<rt::Port> &outputs,
                 std::vector<HostTensor> values) {
  std::vector<bool> counts = areCounts(outputs);
  std::vector<HostTensor> result;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (counts[i])
      continue;
    if (!outputs[i].count) {
      result.push_back(values[i]);
      continue;
    }
    int64_t dim = outputs[i].count->dim, room = values[i].getShape()[dim];
    int64_t count = values[outputs[i].count->output].getInt(0);
    if (count < 0 || count > room)
      return makeErrorf(ExitCode::RunFailed,
                        "output '{0}' has room for {1} results along dimension "
                        "{2}, but the plan counts {3}",
                        outputs[i].name, room, dim, count);
    result.push_back(cut(values[i], dim, count));
  }
  return result;
}
