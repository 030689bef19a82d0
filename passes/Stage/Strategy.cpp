//===- Strategy.cpp - Strategies from flags and files ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Passes/Strategy.h"

#include "ax/Dialect/MeshAxes.h"

#include "ax/Cost/Schedule.h"
#include "ax/Support/Error.h"
#include "ax/Support/Nearest.h"
#include "ax/Support/Yaml.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using namespace ax;

static llvm::Error usage(const llvm::Twine &message) {
  return makeError(ExitCode::Usage, message);
}

static int64_t &sizeOf(Strategy &strategy, llvm::StringRef axis) {
  if (axis == meshAxis::pipe)
    return strategy.pipe;
  if (axis == meshAxis::data)
    return strategy.data;
  if (axis == meshAxis::context)
    return strategy.context;
  if (axis == meshAxis::depth)
    return strategy.tensor.depth;
  return axis == meshAxis::row ? strategy.tensor.row : strategy.tensor.col;
}

llvm::Expected<sharding::Mesh> Strategy::mesh() const {
  std::vector<std::string> names = order;
  auto place = llvm::find(names, meshAxis::context);
  bool hasContext = place != names.end();
  if (hasContext)
    names.erase(place);
  std::sort(names.begin(), names.end());
  if (names != std::vector<std::string>{meshAxis::col, meshAxis::data,
                                        meshAxis::depth, meshAxis::pipe,
                                        meshAxis::row})
    return usage("the order of axes must name pipe, data, depth, row and col, "
                 "each once, and may name context");
  names = order;
  if (!hasContext && context != 1)
    names.insert(llvm::find(names, meshAxis::data) + 1, meshAxis::context);
  std::vector<sharding::Axis> axes;
  int64_t ranks = 1;
  for (const std::string &name : names) {
    int64_t size = sizeOf(const_cast<Strategy &>(*this), name);
    if (size < 1 || size > maxRanks || (ranks *= size) > maxRanks)
      return usage("axis " + name + " = " + llvm::Twine(size) +
                   ": sizes are at least 1, and there are at most " +
                   llvm::Twine(maxRanks) + " ranks");
    axes.push_back({name, size, false});
  }
  if (micro < 1 || micro > maxRanks)
    return usage("--micro-batches=" + llvm::Twine(micro) + ": at least 1");
  axes.push_back({meshAxis::micro, micro, true});
  return sharding::Mesh(std::move(axes));
}

int64_t Strategy::parts() const {
  int64_t fewest = pipe == 1 ? 1 : schedule.get().parts().first;
  return virtualStages.value_or(fewest);
}

llvm::Error Strategy::checkSchedule() const {
  bool isPipeline = pipe > 1 || virtualStages;
  return isPipeline ? cost::check(schedule.get(), {pipe, parts(), micro})
                    : llvm::Error::success();
}

ScheduleChoice::ScheduleChoice()
    : ScheduleChoice(llvm::cantFail(parse("1f1b"))) {}

llvm::Expected<ScheduleChoice> ScheduleChoice::parse(llvm::StringRef name) {
  auto known = cost::PipelineSchedules::get().parse(name);
  if (!known)
    return known.takeError();
  return ScheduleChoice(*known);
}

std::string ScheduleChoice::toText() const { return schedule->name().str(); }

llvm::Expected<TensorGrid> TensorGrid::parse(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, 'x');
  llvm::SmallVector<int64_t> sizes;
  for (llvm::StringRef part : parts)
    if (int64_t size; !part.getAsInteger(10, size) && size >= 1)
      sizes.push_back(size);
  if (sizes.size() == parts.size() && sizes.size() == 1)
    return TensorGrid{1, sizes[0], 1};
  if (sizes.size() == parts.size() && sizes.size() == 3)
    return TensorGrid{sizes[0], sizes[1], sizes[2]};
  return usage("expected T, or ROWSxCOLUMNSxDEPTH, sizes at least 1");
}

std::string TensorGrid::toText() const {
  return llvm::formatv("{0}x{1}x{2}", row, col, depth);
}

llvm::Expected<ShardPin> ShardPin::parse(llvm::StringRef text) {
  auto [pattern, layout] = text.rsplit('=');
  if (pattern.empty() || layout.empty())
    return usage("expected PATTERN=colwise|rowwise|replicate|LAYOUT");
  return ShardPin{pattern.str(), layout.str()};
}

//===----------------------------------------------------------------------===//
// YAML
//===----------------------------------------------------------------------===//

LLVM_YAML_IS_SEQUENCE_VECTOR(ax::ShardPin)
LLVM_YAML_IS_SEQUENCE_VECTOR(ax::ParameterGroup)
LLVM_YAML_IS_SEQUENCE_VECTOR(ax::FrozenRows)

namespace {
/// The context of reading.
struct Reading {
  /// Has room for what is wrong.
  std::string fault;
  /// The strategy's, while what trains is read, and whether it was there.
  ax::Precision *precision = nullptr;
  bool hasPrecision = false;
};

/// Of a value that has `parse` and `toText`.
template <typename T>
struct TextTraits {
  static void output(const T &value, void *, llvm::raw_ostream &os) {
    os << value.toText();
  }
  static llvm::StringRef input(llvm::StringRef text, void *context, T &value) {
    llvm::Expected<T> parsed = T::parse(text);
    if (!parsed)
      return static_cast<Reading *>(context)->fault =
                 describeError(parsed.takeError()).message;
    value = std::move(*parsed);
    return "";
  }
  static llvm::yaml::QuotingType mustQuote(llvm::StringRef text) {
    return llvm::yaml::needsQuotes(text);
  }
};
} // namespace

namespace llvm::yaml {
template <>
struct ScalarTraits<ax::ScheduleChoice> : TextTraits<ax::ScheduleChoice> {};
template <>
struct ScalarTraits<ax::Loss> : TextTraits<ax::Loss> {};
template <>
struct ScalarTraits<ax::Optimizer> : TextTraits<ax::Optimizer> {};
template <>
struct ScalarTraits<ax::LearningRateSchedule>
    : TextTraits<ax::LearningRateSchedule> {};
template <>
struct ScalarTraits<ax::ParameterGroup> : TextTraits<ax::ParameterGroup> {};
template <>
struct ScalarTraits<ax::FrozenRows> : TextTraits<ax::FrozenRows> {};
template <>
struct ScalarTraits<ax::Precision> : TextTraits<ax::Precision> {};
template <>
struct ScalarTraits<ax::BatchNormMode> : TextTraits<ax::BatchNormMode> {};
template <>
struct ScalarTraits<ax::RecomputeMode> : TextTraits<ax::RecomputeMode> {};
template <>
struct ScalarTraits<ax::Decimal> : TextTraits<ax::Decimal> {
  static QuotingType mustQuote(StringRef) { return QuotingType::None; }
};

/// What is as it is without being written, is not written.
template <typename T>
static void mapText(IO &io, const char *key, T &value) {
  if (!io.outputting() || value.toText() != T().toText())
    io.mapOptional(key, value);
}

template <>
struct MappingTraits<ax::ShardPin> {
  static void mapping(IO &io, ax::ShardPin &pin) {
    io.mapRequired("pattern", pin.pattern);
    io.mapRequired("layout", pin.layout);
  }
};
template <>
struct MappingTraits<ax::Training> {
  static void mapping(IO &io, ax::Training &t) {
    io.mapRequired("loss", t.loss ? *t.loss : t.loss.emplace());
    mapText(io, "optimizer", t.optimizer);
    mapText(io, "lr-schedule", t.learningRateSchedule);
    io.mapOptional("param-group", t.groups);
    mapText(io, "clip-norm", t.clipNorm);
    mapText(io, "recompute", t.recompute);
    // As files of other versions have it.
    if (!io.outputting()) {
      std::vector<llvm::StringRef> keys = io.keys();
      if (llvm::is_contained(keys, "recompute") &&
          llvm::is_contained(keys, "checkpoint"))
        io.setError("'checkpoint' is another name of 'recompute'");
      mapText(io, "checkpoint", t.recompute);
    }
    // As files of other versions have it.
    if (!io.outputting()) {
      auto *reading = static_cast<Reading *>(io.getContext());
      if (reading->hasPrecision && llvm::is_contained(io.keys(), "precision"))
        io.setError("'precision' is given twice");
      mapText(io, "precision", *reading->precision);
    }
    mapText(io, "batchnorm", t.batchNorm);
    mapText(io, "dropout", t.dropout);
    io.mapOptional("trainable", t.trainable);
    io.mapOptional("frozen", t.frozen);
    io.mapOptional("frozen-rows", t.frozenRows);
  }
};
template <>
struct MappingTraits<ax::Strategy> {
  static void mapping(IO &io, ax::Strategy &s) {
    io.mapOptional(meshAxis::data, s.data, int64_t(1));
    io.mapOptional(meshAxis::context, s.context, int64_t(1));
    io.mapOptional(meshAxis::depth, s.tensor.depth, int64_t(1));
    io.mapOptional(meshAxis::row, s.tensor.row, int64_t(1));
    io.mapOptional(meshAxis::col, s.tensor.col, int64_t(1));
    io.mapOptional(meshAxis::pipe, s.pipe, int64_t(1));
    io.mapOptional("micro-batches", s.micro, int64_t(1));
    io.mapOptional("order", s.order);
    io.mapOptional("sequence-parallel", s.sequenceParallel, false);
    io.mapOptional("zero", s.zero, int64_t(0));
    mapText(io, "schedule", s.schedule);
    io.mapOptional("virtual-stages", s.virtualStages);
    io.mapOptional("shard", s.shard);
    io.mapOptional("cut", s.cuts);
    // A key that was asked for is there.
    if (!io.outputting()) {
      auto *reading = static_cast<Reading *>(io.getContext());
      reading->precision = &s.precision;
      reading->hasPrecision = llvm::is_contained(io.keys(), "precision");
    }
    mapText(io, "precision", s.precision);
    io.mapOptional("train", s.training);
  }
};
} // namespace llvm::yaml

/// What the user may have meant, as the command line calls it or nearly.
static std::string adviseKey(llvm::StringRef key) {
  constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> flags[] = {
      {"dp", meshAxis::data},
      {"cp", meshAxis::context},
      {"tp", "row, col and depth"},
      {"pp", meshAxis::pipe}};
  for (const auto &[flag, meant] : flags)
    if (key == flag)
      return ("; --" + flag + " is " + meant + " here").str();
  constexpr llvm::StringLiteral known[] = {meshAxis::data,
                                           meshAxis::context,
                                           meshAxis::depth,
                                           meshAxis::row,
                                           meshAxis::col,
                                           meshAxis::pipe,
                                           "micro-batches",
                                           "order",
                                           "zero",
                                           "schedule",
                                           "virtual-stages",
                                           "shard",
                                           "cut",
                                           "train",
                                           "loss",
                                           "optimizer",
                                           "lr-schedule",
                                           "param-group",
                                           "clip-norm",
                                           "recompute",
                                           "precision",
                                           "batchnorm",
                                           "dropout",
                                           "trainable",
                                           "frozen",
                                           "frozen-rows",
                                           "pattern",
                                           "layout",
                                           "sequence-parallel"};
  return suggestNearest(key, llvm::SmallVector<llvm::StringRef>(
                                 std::begin(known), std::end(known)));
}

llvm::Expected<Strategy> Strategy::fromYAML(llvm::StringRef text,
                                            llvm::StringRef fileName) {
  Strategy strategy;
  Reading reading;
  if (llvm::Error error =
          parseYaml(text, fileName, strategy, adviseKey, &reading))
    return error;
  llvm::Expected<sharding::Mesh> checked = strategy.mesh();
  if (!checked)
    return addContext(checked.takeError(), fileName);
  return strategy;
}

llvm::Expected<Strategy> Strategy::fromFile(llvm::StringRef path) {
  auto text = readYamlFile(path);
  if (!text)
    return text.takeError();
  return fromYAML(*text, path);
}

llvm::Expected<Strategy> Strategy::parse(llvm::StringRef text) {
  if (!text.contains(": "))
    return fromFile(text);
  // The parser of pipelines takes the outermost braces away.
  bool isWhole = text.starts_with("{") || text.starts_with("---");
  return fromYAML(isWhole ? text.str() : ("{" + text + "}").str(), "strategy");
}

std::string Strategy::toYAML() const { return printYaml(*this); }
