//===- Strategy.h - What the user asks of the mesh --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_STRATEGY_H
#define AX_PASSES_STRATEGY_H

#include "ax/Dialect/MeshAxes.h"
#include "ax/Passes/Training.h"
#include "ax/Sharding/Mesh.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace ax {

namespace cost {
class PipelineSchedule;
} // namespace cost

/// A layer's or tensor's layout: `PATTERN=colwise|rowwise|replicate|LAYOUT`.
/// PATTERN is a glob over node, scope, state, input and output names.
struct ShardPin {
  std::string pattern;
  std::string layout;

  static llvm::Expected<ShardPin> parse(llvm::StringRef text);
  std::string toText() const { return pattern + "=" + layout; }
};

/// Ranks of tensor parallelism: `T` (columns), or `ROWSxCOLUMNSxDEPTH`.
struct TensorGrid {
  int64_t row = 1, col = 1, depth = 1;

  static llvm::Expected<TensorGrid> parse(llvm::StringRef text);
  std::string toText() const;
};

/// One of cost::PipelineSchedules, by its name.
class ScheduleChoice {
public:
  /// `1f1b`.
  ScheduleChoice();

  static llvm::Expected<ScheduleChoice> parse(llvm::StringRef name);
  std::string toText() const;
  const cost::PipelineSchedule &get() const { return *schedule; }

private:
  explicit ScheduleChoice(const cost::PipelineSchedule *schedule)
      : schedule(schedule) {}

  const cost::PipelineSchedule *schedule;
};

/// A list of pins on the layout of everything; propagation makes the rest.
struct Strategy {
  /// A mesh has no more, nor a batch more slices.
  static constexpr int64_t maxRanks = int64_t(1) << 20;

  int64_t data = 1, context = 1, pipe = 1, micro = 1;
  TensorGrid tensor;
  /// Space axes, outermost first; a permutation of pipe, data, depth, row, col,
  /// in which context may be, too: else that comes behind data.
  std::vector<std::string> order = {meshAxis::pipe, meshAxis::data,
                                    meshAxis::depth, meshAxis::row,
                                    meshAxis::col};
  bool sequenceParallel = false;
  /// Of a program that trains.
  ScheduleChoice schedule;
  /// How many stages each coordinate on pipe has; nothing: as few as the
  /// schedule can have.
  std::optional<int64_t> virtualStages;
  /// What training splits over data and context: 1, 2: optimizer state and
  /// gradients; 3: weights too.
  int64_t zero = 0;
  std::vector<ShardPin> shard;
  /// Names of nodes after which a stage ends; empty: balanced cuts.
  std::vector<std::string> cuts;
  /// Of a plan that trains or not, but for fp8, which only training has.
  Precision precision;
  /// The plan trains the model.
  std::optional<Training> training;

  /// Space axes in order, context only if it is more than one or named there,
  /// then `micro`. Fails when a size is not positive, the ranks are too many,
  /// or the order is no permutation of the axes.
  llvm::Expected<sharding::Mesh> mesh() const;

  /// How many stages each coordinate on pipe has.
  int64_t parts() const;
  /// A Usage error where there is no such schedule for these stages and
  /// micro-batches.
  llvm::Error checkSchedule() const;

  /// The YAML file of --strategy; writing and reading again gives the same.
  static llvm::Expected<Strategy> fromYAML(llvm::StringRef text,
                                           llvm::StringRef fileName);
  static llvm::Expected<Strategy> fromFile(llvm::StringRef path);
  std::string toYAML() const;

  /// Reads an option of a pipeline: the name of such a file, or its text, in
  /// which a colon and a space come after each key: `{col: 2, pipe: 2}`.
  static llvm::Expected<Strategy> parse(llvm::StringRef text);
  std::string toText() const { return toYAML(); }
};

} // namespace ax

#endif // AX_PASSES_STRATEGY_H
