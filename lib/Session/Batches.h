//===- Batches.h - Samples in the order of training -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SESSION_BATCHES_H
#define AX_LIB_SESSION_BATCHES_H

#include "Samples.h"

#include "llvm/Support/JSON.h"

namespace ax {

/// Goes through the samples again and again. What comes next depends on seed,
/// epoch and position alone, so that it can be gone on with elsewhere.
class Batches {
public:
  /// Usage errors when there are too few samples, or --last=pad has nothing to
  /// pad with.
  static llvm::Expected<Batches> create(Samples samples, bool shuffle,
                                        uint64_t seed, LastBatch last);

  /// The next batch. A BadInput error when it has a label that is no class.
  llvm::Error next(std::vector<HostTensor> &inputs);
  /// Whether the batch given last has a label that counts.
  bool anyCounts(const std::vector<HostTensor> &inputs) const {
    return samples.anyCounts(inputs, samples.getBatch());
  }
  const Samples &getSamples() const { return samples; }
  /// Numbers of the samples of the batch given last, those that fill it up
  /// included.
  llvm::ArrayRef<int64_t> getGiven() const { return given; }
  /// Batches until so many epochs are over, from this place on.
  int64_t stepsUntil(int64_t epochs) const;

  /// How far it is in the samples.
  struct Place {
    int64_t epoch = 0, position = 0;
  };
  Place getPlace() const { return place; }

  /// A place that it was at, and what was given until there, for setPosition.
  llvm::json::Object getPosition(Place at) const;
  /// Goes on there after `step` batches; an error when it is the position of
  /// other data, or none that so many batches end at.
  llvm::Error setPosition(const llvm::json::Object &position, int64_t step);

private:
  explicit Batches(Samples samples) : samples(std::move(samples)) {}
  void beginEpoch();
  void setPlace(Place to);

  Samples samples;
  bool shuffle = false;
  uint64_t seed = 0;
  LastBatch last = LastBatch::Drop;
  /// Samples of the epoch given so far.
  Place place;
  /// Batches of one size.
  struct Stretch {
    /// How many there were in all when it ended, and where.
    int64_t step = 0;
    Place end;
    int64_t batch = 0;
    bool pads = false;
  };
  static llvm::json::Object toJSON(const Stretch &stretch);
  std::optional<Stretch> readStretch(const llvm::json::Object &from,
                                     int64_t step) const;
  bool fits(llvm::ArrayRef<Stretch> stretches) const;

  /// Those before batches had this size.
  std::vector<Stretch> earlier;
  std::vector<int64_t> order, given;
};

} // namespace ax

#endif // AX_LIB_SESSION_BATCHES_H
