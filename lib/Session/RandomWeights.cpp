//===- RandomWeights.cpp - Made-up weights for a plan ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RandomWeights.h"

#include "ax/Support/Error.h"
#include "ax/Support/Philox.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/xxhash.h"

#include <cmath>
#include <map>

using namespace ax;

static llvm::Expected<HostTensor> makeWeight(const rt::State &state,
                                             uint64_t seed) {
  auto made = HostTensor::allocate(state.dtype, state.shape);
  if (!made)
    return addContext(made.takeError(), "state '" + state.name + "'");
  HostTensor tensor = std::move(*made);
  if (!isFloat(state.dtype))
    return tensor;
  float least = 0.5F, most = 1.5F;
  int64_t count = tensor.numElements();
  if (state.shape.size() >= 2 && count > 0) {
    int64_t terms = count / *llvm::max_element(state.shape);
    most = std::sqrt(3.0F / static_cast<float>(terms));
    least = -most;
  }
  // Names are the same in all programs, numbers are not.
  uint64_t id = llvm::xxh3_64bits(state.name);
  auto value = [&](int64_t i) {
    return least + (most - least) * philox::uniform(static_cast<uint64_t>(i),
                                                    seed, id >> 32, id);
  };
  if (state.dtype == DType::F32)
    for (auto [i, element] : llvm::enumerate(llvm::MutableArrayRef<float>(
             static_cast<float *>(static_cast<void *>(tensor.mutableData())),
             static_cast<size_t>(count))))
      element = value(static_cast<int64_t>(i));
  else
    for (int64_t i = 0; i < count; ++i)
      tensor.setDouble(i, value(i));
  return tensor;
}

llvm::Error ax::makeWeights(llvm::ArrayRef<rt::Program *> programs,
                            uint64_t seed) {
  std::map<std::string, HostTensor> known;
  for (rt::Program *program : programs)
    for (rt::State &state : program->states) {
      if (!state.isWeight)
        continue;
      auto at = known.find(state.name);
      if (at == known.end()) {
        auto made = makeWeight(state, seed);
        if (!made)
          return made.takeError();
        at = known.emplace(state.name, std::move(*made)).first;
      }
      state.give(at->second);
    }
  return llvm::Error::success();
}
