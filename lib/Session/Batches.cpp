//===- Batches.cpp - Samples in the order of training ---------------------===//
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
  for (int64_t at = 0; at < batch; ++at) {
    int64_t sample = order[static_cast<size_t>(place.position + at % count)];
    if (llvm::Error error = samples.checkLabels(sample))
      return error;
    samples.copy(sample, at, inputs);
    if (at >= count)
      samples.ignore(at, inputs);
  }
  place.position += count;
  return llvm::Error::success();
}

int64_t Batches::stepsOf(int64_t epochs) const {
  int64_t batch = samples.getBatch();
  int64_t whole = samples.size() / batch;
  bool hasRest = samples.size() % batch && last == LastBatch::Pad;
  return epochs * (whole + hasRest);
}

void Batches::setPlace(Place to) {
  bool isOther = std::exchange(place, to).epoch != to.epoch;
  if (isOther)
    beginEpoch();
}

static llvm::json::Object toJSON(Batches::Place place) {
  return llvm::json::Object{{"epoch", place.epoch},
                            {"position", place.position}};
}

llvm::json::Object Batches::getPosition() const {
  llvm::json::Object start = toJSON(this->start);
  start["step"] = startStep;
  llvm::json::Object result = toJSON(place);
  result["samples"] = samples.size();
  result["shuffle"] = shuffle;
  result["seed"] = seed;
  result["batch"] = samples.getBatch();
  result["pads"] = last == LastBatch::Pad;
  result["start"] = std::move(start);
  return result;
}

/// Numbers of JSON, 0 where there are none; nothing when they are out of range.
static std::optional<Batches::Place> readPlace(const llvm::json::Object &from,
                                               int64_t samples) {
  Batches::Place place;
  place.epoch = from.getInteger("epoch").value_or(0);
  place.position = from.getInteger("position").value_or(0);
  if (place.epoch < 0 || place.epoch > rt::checkpoint::mostSteps ||
      place.position < 0 || place.position > samples)
    return std::nullopt;
  return place;
}

/// How many of `batch` there are in so many samples.
static int64_t countBatches(int64_t samples, int64_t batch, bool pads) {
  return (samples + (pads ? batch - 1 : 0)) / batch;
}

llvm::Error Batches::setPosition(const llvm::json::Object &from, int64_t step) {
  int64_t count = from.getInteger("samples").value_or(0);
  if (count != samples.size())
    return samples.fault("there are " + llvm::Twine(samples.size()) +
                         " samples; the checkpoint was made with " +
                         llvm::Twine(count) +
                         ": to train on with other data, give --weights=DIR "
                         "instead of --resume=DIR");
  const llvm::json::Object none, *startFrom = from.getObject("start");
  auto to = readPlace(from, count),
       began = readPlace(startFrom ? *startFrom : none, count);
  int64_t first = startFrom ? startFrom->getInteger("step").value_or(0) : 0;
  int64_t batch = from.getInteger("batch").value_or(samples.getBatch());
  bool pads = from.getBoolean("pads").value_or(last == LastBatch::Pad);
  // Of what is left of the epoch in which it began, of whole ones, and of the
  // last one.
  auto given = [&]() -> std::optional<int64_t> {
    if (!to || !began || batch < 1 || first < 0 || first > step ||
        to->epoch < began->epoch)
      return std::nullopt;
    int64_t inLast =
        to->position - (to->epoch == began->epoch ? began->position : 0);
    if (inLast < 0 || (inLast % batch && !(pads && to->position == count)))
      return std::nullopt;
    int64_t result = countBatches(inLast, batch, pads);
    if (to->epoch == began->epoch)
      return result;
    int64_t whole = countBatches(count, batch, pads);
    int64_t epochs = to->epoch - began->epoch - 1;
    if (whole < 1 || epochs > step / whole)
      return std::nullopt;
    return result + countBatches(count - began->position, batch, pads) +
           epochs * whole;
  }();
  if (!given || *given != step - first)
    return samples.fault("the checkpoint's place in the data, sample " +
                         llvm::Twine(from.getInteger("position").value_or(0)) +
                         " of epoch " +
                         llvm::Twine(from.getInteger("epoch").value_or(0)) +
                         ", is not where step " + llvm::Twine(step) + " ends");
  setPlace(*to);
  start = *began;
  startStep = first;
  if (batch != samples.getBatch() || pads != (last == LastBatch::Pad)) {
    start = place;
    startStep = step;
  }
  return llvm::Error::success();
}
