//===- Batches.cpp - Samples in the order of training ---------------------===//
#include "Batches.h"

#include "ax/Runtime/Checkpoint.h"
#include "ax/Support/Error.h"

#include <algorithm>
#include <numeric>
#include <random>

using namespace ax;

llvm::Expected<Batches> Batches::create(Samples samples, bool shuffle,
                                        uint64_t seed, LastBatch last) {
  Batches batches(std::move(samples));
  batches.shuffle = shuffle;
  batches.seed = seed;
  batches.last = last;
  const Samples &all = batches.samples;
  if (last == LastBatch::Pad && !all.hasLabels())
    return makeError(ExitCode::Usage,
                     "--last=pad needs a loss that can ignore samples: "
                     "cross_entropy");
  if (last == LastBatch::Drop && all.size() < all.getBatch())
    return all.fault(llvm::Twine(all.size()) +
                     " samples are less than one batch of " +
                     llvm::Twine(all.getBatch()));
  batches.order.resize(static_cast<size_t>(all.size()));
  batches.beginEpoch();
  return batches;
}

/// Fisher and Yates, from a generator that is the same everywhere.
void Batches::beginEpoch() {
  std::iota(order.begin(), order.end(), 0);
  if (!shuffle)
    return;
  std::seed_seq mixed{seed, seed >> 32, static_cast<uint64_t>(epoch)};
  std::mt19937_64 random(mixed);
  for (uint64_t i = order.size() - 1; i > 0; --i)
    std::swap(order[i], order[random() % (i + 1)]);
}

llvm::Error Batches::next(std::vector<HostTensor> &inputs) {
  int64_t batch = samples.getBatch(), left = samples.size() - position;
  if (left <= 0 || (left < batch && last == LastBatch::Drop)) {
    ++epoch;
    position = 0;
    beginEpoch();
    left = samples.size();
  }
  int64_t count = std::min(batch, left);
  for (int64_t at = 0; at < batch; ++at) {
    int64_t sample = order[static_cast<size_t>(position + at % count)];
    if (llvm::Error error = samples.checkLabels(sample))
      return error;
    samples.copy(sample, at, inputs);
    if (at >= count)
      samples.ignore(at, inputs);
  }
  position += count;
  return llvm::Error::success();
}

llvm::json::Object Batches::getPosition() const {
  return llvm::json::Object{{"samples", samples.size()},
                            {"shuffle", shuffle},
                            {"seed", seed},
                            {"epoch", epoch},
                            {"position", position}};
}

llvm::Error Batches::setPosition(const llvm::json::Object &from) {
  int64_t count = from.getInteger("samples").value_or(0);
  if (count != samples.size())
    return samples.fault("there are " + llvm::Twine(samples.size()) +
                         " samples; the checkpoint was made with " +
                         llvm::Twine(count) +
                         ": to train on with other data, give --weights=DIR "
                         "instead of --resume=DIR");
  epoch = std::clamp<int64_t>(from.getInteger("epoch").value_or(0), 0,
                              rt::checkpoint::mostSteps);
  position =
      std::clamp<int64_t>(from.getInteger("position").value_or(0), 0, count);
  beginEpoch();
  return llvm::Error::success();
}
