//===- Batches.cpp - Samples in the order of training ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Batches.h"

#include "ax/Runtime/Checkpoint.h"
#include "ax/Support/Error.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

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
  if (shuffle && all.needsOrder())
    return all.fault("there is an array for each batch, so samples stay in "
                     "their order: give --no-shuffle");
  batches.order.resize(static_cast<size_t>(all.size()));
  batches.beginEpoch();
  return batches;
}

/// Fisher and Yates, from a generator that is the same everywhere.
void Batches::beginEpoch() {
  std::iota(order.begin(), order.end(), 0);
  if (!shuffle)
    return;
  std::seed_seq mixed{seed, seed >> 32, static_cast<uint64_t>(place.epoch)};
  std::mt19937_64 random(mixed);
  for (uint64_t i = order.size() - 1; i > 0; --i)
    std::swap(order[i], order[random() % (i + 1)]);
}

llvm::Error Batches::next(std::vector<HostTensor> &inputs) {
  int64_t batch = samples.getBatch(), left = samples.size() - place.position;
  if (left <= 0 || (left < batch && last == LastBatch::Drop)) {
    setPlace({place.epoch + 1, 0});
    left = samples.size();
  }
  int64_t count = std::min(batch, left);
  if (llvm::Error error = samples.beginBatch(place.position / batch, inputs))
    return error;
  given.clear();
  for (int64_t at = 0; at < batch; ++at) {
    int64_t sample = order[static_cast<size_t>(place.position + at % count)];
    if (llvm::Error error = samples.check(sample, at))
      return error;
    given.push_back(sample);
    samples.copy(sample, at, inputs);
    if (at >= count)
      samples.ignore(at, inputs);
  }
  place.position += count;
  return llvm::Error::success();
}

int64_t Batches::stepsUntil(int64_t epochs) const {
  if (place.epoch >= epochs)
    return 0;
  auto batchesOf = [&](int64_t count) {
    bool hasRest = count % samples.getBatch() && last == LastBatch::Pad;
    return count / samples.getBatch() + hasRest;
  };
  return batchesOf(samples.size() - place.position) +
         (epochs - place.epoch - 1) * batchesOf(samples.size());
}

void Batches::setPlace(Place to) {
  bool isOther = std::exchange(place, to).epoch != to.epoch;
  if (isOther)
    beginEpoch();
}

llvm::json::Object Batches::toJSON(const Stretch &stretch) {
  return llvm::json::Object{{"step", stretch.step},
                            {"epoch", stretch.end.epoch},
                            {"position", stretch.end.position},
                            {"batch", stretch.batch},
                            {"pads", stretch.pads}};
}

llvm::json::Object Batches::getPosition(Place at) const {
  llvm::json::Object result =
      toJSON(Stretch{0, at, samples.getBatch(), last == LastBatch::Pad});
  // The checkpoint has it.
  result.erase("step");
  result["samples"] = samples.size();
  result["shuffle"] = shuffle;
  result["seed"] = seed;
  llvm::json::Array before;
  for (const Stretch &stretch : earlier)
    before.push_back(toJSON(stretch));
  result["earlier"] = std::move(before);
  return result;
}

/// Numbers of JSON, 0 where there are none; nothing when they are out of range.
std::optional<Batches::Stretch>
Batches::readStretch(const llvm::json::Object &from, int64_t step) const {
  Stretch read;
  read.step = step;
  read.end.epoch = from.getInteger("epoch").value_or(0);
  read.end.position = from.getInteger("position").value_or(0);
  read.batch = from.getInteger("batch").value_or(samples.getBatch());
  read.pads = from.getBoolean("pads").value_or(last == LastBatch::Pad);
  if (read.end.epoch < 0 || read.end.epoch > rt::checkpoint::mostSteps ||
      read.end.position < 0 || read.end.position > samples.size() ||
      read.batch < 1 || step < 0)
    return std::nullopt;
  return read;
}

/// How many batches end at `to` that begin at `from`: of what is left of its
/// epoch, of whole ones, and of the last one. Nothing when none do, or more
/// than `most`.
static std::optional<int64_t> countBatches(Batches::Place from,
                                           Batches::Place to, int64_t samples,
                                           int64_t batch, bool pads,
                                           int64_t most) {
  auto count = [&](int64_t of) {
    return of / batch + (pads && of % batch ? 1 : 0);
  };
  if (to.epoch < from.epoch)
    return std::nullopt;
  bool isSameEpoch = to.epoch == from.epoch;
  int64_t inLast = to.position - (isSameEpoch ? from.position : 0);
  if (inLast < 0 || (inLast % batch && !(pads && to.position == samples)))
    return std::nullopt;
  if (isSameEpoch)
    return count(inLast);
  int64_t whole = count(samples), epochs = to.epoch - from.epoch - 1;
  if (whole < 1 || epochs > most / whole)
    return std::nullopt;
  return count(samples - from.position) + epochs * whole + count(inLast);
}

/// Whether each begins where the one before has ended, the first at the first
/// sample.
bool Batches::fits(llvm::ArrayRef<Stretch> stretches) const {
  Place from;
  int64_t step = 0;
  for (const Stretch &stretch : stretches) {
    auto given = countBatches(from, stretch.end, samples.size(), stretch.batch,
                              stretch.pads, stretch.step);
    if (!given || *given != stretch.step - step)
      return false;
    from = stretch.end;
    step = stretch.step;
  }
  return true;
}

llvm::Error Batches::setPosition(const llvm::json::Object &from, int64_t step) {
  int64_t count = from.getInteger("samples").value_or(0);
  if (count != samples.size())
    return samples.fault("there are " + llvm::Twine(samples.size()) +
                         " samples; the checkpoint was made with " +
                         llvm::Twine(count) +
                         ": to train on with other data, give --weights=DIR "
                         "instead of --resume=DIR");
  std::vector<std::optional<Stretch>> read;
  if (const llvm::json::Array *before = from.getArray("earlier"))
    for (const llvm::json::Value &value : *before) {
      const llvm::json::Object none, *object = value.getAsObject();
      read.push_back(
          readStretch(object ? *object : none,
                      object ? object->getInteger("step").value_or(-1) : -1));
    }
  read.push_back(readStretch(from, step));
  std::vector<Stretch> stretches;
  for (const std::optional<Stretch> &stretch : read)
    if (stretch)
      stretches.push_back(*stretch);
  if (stretches.size() != read.size() || !fits(stretches))
    return samples.fault("the checkpoint's place in the data, sample " +
                         llvm::Twine(from.getInteger("position").value_or(0)) +
                         " of epoch " +
                         llvm::Twine(from.getInteger("epoch").value_or(0)) +
                         ", is not where step " + llvm::Twine(step) + " ends");
  const Stretch &now = stretches.back();
  setPlace(now.end);
  if (now.batch == samples.getBatch() && now.pads == (last == LastBatch::Pad))
    stretches.pop_back();
  earlier = std::move(stretches);
  return llvm::Error::success();
}
