//===- WeightKinds.cpp - Parameters, buffers, tables ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "WeightKinds.h"

#include "ax/Support/FloatConversion.h"
#include "ax/Support/HostTensor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <cstring>

using namespace ax;
using namespace ax::import;
using llvm::ArrayRef;

//===----------------------------------------------------------------------===//
// What the exporter says
//===----------------------------------------------------------------------===//

std::optional<WeightKind>
ax::import::declaredKind(const onnx::StringStringEntryProto &entry) {
  if (entry.key() != "pkg.torch.export.graph_signature.InputSpec.kind")
    return std::nullopt;
  return llvm::StringSwitch<std::optional<WeightKind>>(entry.value())
      .Case("PARAMETER", WeightKind::Parameter)
      .Cases({"BUFFER", "CONSTANT_TENSOR"}, WeightKind::Buffer)
      .Default(std::nullopt);
}

/// Vectors that PyTorch's spectral norm has found, by the names that it gives
/// them: `weight_u` and `weight_v` beside `weight_orig`, and `weight.0._u` and
/// `weight.0._v` beside `weight.original`.
static void collectSpectralNorms(const onnx::GraphProto &graph,
                                 WeightKinds &kinds) {
  llvm::StringSet<> names;
  for (const onnx::TensorProto &weight : graph.initializer())
    names.insert(weight.name());
  for (const onnx::TensorProto &weight : graph.initializer()) {
    llvm::StringRef stem = weight.name();
    if (weight.dims_size() != 1 ||
        (!stem.consume_back("_u") && !stem.consume_back("_v")))
      continue;
    if (names.contains((stem + "_orig").str()) ||
        (stem.consume_back(".0.") &&
         names.contains((stem + ".original").str())))
      kinds.emplace(weight.name(), WeightKind::Buffer);
  }
}

/// The quoted names in `text` that stand behind `before`.
static llvm::StringSet<> quotedNames(llvm::StringRef text,
                                     llvm::StringRef before) {
  llvm::StringSet<> names;
  std::string opening = (before + "'").str();
  for (text = text.split(opening).second; !text.empty();
       text = text.split(opening).second) {
    auto [name, rest] = text.split('\'');
    names.insert(name);
    text = rest;
  }
  return names;
}

/// What the exporter has folded of values none of which was a parameter. Of
/// initializers that it dropped for that, the graph's signature tells.
static void collectFolded(const onnx::GraphProto &graph, WeightKinds &kinds) {
  std::optional<llvm::StringSet<>> parameters;
  for (const onnx::StringStringEntryProto &entry : graph.metadata_props())
    if (entry.key() == "pkg.torch.export.ExportedProgram.graph_signature")
      parameters = quotedNames(entry.value(), ": PARAMETER target=");
  if (!parameters)
    return;
  for (const onnx::ValueInfoProto &value : graph.value_info())
    for (const onnx::StringStringEntryProto &entry : value.metadata_props())
      if (entry.key() == "pkg.onnxscript.optimizer.folded_from" &&
          llvm::none_of(
              quotedNames(entry.value(), "").keys(),
              [&](llvm::StringRef name) { return parameters->contains(name); }))
        kinds.emplace(value.name(), WeightKind::Constant);
}

void ax::import::collectDeclared(const onnx::ModelProto &model,
                                 const std::set<std::string> &constants,
                                 WeightKinds &kinds) {
  const onnx::GraphProto &graph = model.graph();
  for (const auto *values : {&graph.value_info(), &graph.input()})
    for (const onnx::ValueInfoProto &value : *values)
      for (const onnx::StringStringEntryProto &entry : value.metadata_props())
        if (std::optional<WeightKind> kind = declaredKind(entry))
          kinds.emplace(value.name(), *kind);
  collectSpectralNorms(graph, kinds);
  collectFolded(graph, kinds);
  if (model.producer_name() == "pytorch")
    for (const std::string &name : constants)
      kinds.emplace(name, WeightKind::Constant);
}

bool ax::import::areParametersDeclared(const WeightKinds &kinds) {
  return llvm::any_of(kinds, [](const auto &kind) {
    return kind.second == WeightKind::Parameter;
  });
}

//===----------------------------------------------------------------------===//
// What operators say
//===----------------------------------------------------------------------===//

/// Those of onnxruntime's operators.
static ArrayRef<int> contribParameters(llvm::StringRef name) {
  static const int second[] = {1}, third[] = {2}, fourth[] = {3}, fifth[] = {4},
                   sixth[] = {5}, scaleAndBias[] = {2, 3},
                   scaleAndBiases[] = {2, 3, 4}, ofEmbedding[] = {5, 6};
  return llvm::StringSwitch<ArrayRef<int>>(name)
      .Cases({"BiasAdd", "BiasGelu", "FastGelu"}, second)
      .Cases({"Attention", "FusedConv", "FusedGemm", "GemmFastGelu"}, third)
      .Cases({"DynamicQuantizeLSTM", "MultiHeadAttention"}, fourth)
      .Case("DynamicQuantizeMatMul", fifth)
      .Case("MatMulNBits", sixth)
      .Case("SkipLayerNormalization", scaleAndBiases)
      .Case("SkipSimplifiedLayerNormalization", scaleAndBias)
      .Case("EmbedLayerNormalization", ofEmbedding)
      .Default({});
}

ArrayRef<int> ax::import::parameterInputs(llvm::StringRef name) {
  static const int second[] = {1}, third[] = {2}, scaleAndBias[] = {1, 2},
                   ofRecurrence[] = {1, 2, 3};
  if (name.consume_front("com.microsoft."))
    return contribParameters(name);
  return llvm::StringSwitch<ArrayRef<int>>(name)
      .Cases({"PRelu", "SimplifiedLayerNormalization"}, second)
      .Cases({"Gemm", "Conv", "ConvTranspose"}, third)
      .Cases({"BatchNormalization", "InstanceNormalization",
              "GroupNormalization", "LayerNormalization"},
             scaleAndBias)
      .Cases({"LSTM", "GRU", "RNN"}, ofRecurrence)
      .Default({});
}

ArrayRef<int> ax::import::bufferInputs(llvm::StringRef name) {
  static const int third[] = {2};
  return llvm::StringSwitch<ArrayRef<int>>(name)
      .Cases({"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}, third)
      .Default({});
}

//===----------------------------------------------------------------------===//
// What values say
//===----------------------------------------------------------------------===//

namespace {

/// f32, f16 or bf16 at any alignment.
class Values {
public:
  Values(DType type, ArrayRef<uint8_t> bytes, ArrayRef<int64_t> shape)
      : type(type), bytes(bytes), shape(shape) {}

  ArrayRef<int64_t> getShape() const { return shape; }
  int64_t size() const {
    return static_cast<int64_t>(bytes.size()) / byteSize(type);
  }
  double operator[](int64_t i) const {
    float x;
    copyConverted(DType::F32, reinterpret_cast<uint8_t *>(&x), type,
                  bytes.data() + i * byteSize(type), 1);
    return x;
  }
  /// By how much of itself a number may be off, having been rounded.
  double getRounding() const {
    return std::ldexp(1, type == DType::BF16  ? -9
                         : type == DType::F16 ? -11
                                              : -24);
  }
  bool areOneNumber() const {
    size_t one = static_cast<size_t>(byteSize(type));
    return bytes.size() > one && std::memcmp(bytes.data(), bytes.data() + one,
                                             bytes.size() - one) == 0;
  }

private:
  DType type;
  ArrayRef<uint8_t> bytes;
  ArrayRef<int64_t> shape;
};

/// A tensor as rows of its last dimension.
struct Rows {
  explicit Rows(const Values &values)
      : values(values),
        width(values.getShape().empty() ? 1 : values.getShape().back()),
        count(width ? values.size() / width : 0) {}

  double at(int64_t row, int64_t column) const {
    return values[row * width + column];
  }

  const Values &values;
  int64_t width, count;
};

} // namespace

static bool isClose(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

/// Sines and cosines of the same angles: their squares add up to one.
static bool hasPairsOfSines(const Rows &rows) {
  if (rows.width < 4 || rows.width % 2 || rows.count < 2)
    return false;
  int64_t numRows = 0;
  bool differ = false;
  double tolerance = 1e-3 + 2 * rows.values.getRounding();
  for (int64_t row = 0; row < rows.count; ++row) {
    double sum = 0;
    for (int64_t column = 0; column < rows.width; ++column) {
      double x = rows.at(row, column);
      // Only the first rows have to be read of what is none.
      if (!(std::abs(x) <= 1.001))
        return false;
      sum += x * x;
      differ |= row > 0 && x != rows.at(0, column);
    }
    // A row of zeros is that of padding.
    if (sum == 0)
      continue;
    if (!isClose(sum, static_cast<double>(rows.width) / 2, tolerance))
      return false;
    ++numRows;
  }
  return differ && numRows >= 2;
}

/// A column, as far as the row `count`, is a sinusoid of the row's number:
/// x[i-1] + x[i+1] is the same multiple of x[i] throughout. Gives its range.
static std::optional<double> rangeOfSinusoid(const Rows &rows, int64_t column,
                                             int64_t count) {
  double product = 0, square = 0, low = 1, high = -1;
  for (int64_t row = 0; row < count; ++row) {
    double x = rows.at(row, column);
    if (!(std::abs(x) <= 1.001))
      return std::nullopt;
    low = std::min(low, x);
    high = std::max(high, x);
    if (row == 0 || row + 1 == count)
      continue;
    product += x * (rows.at(row - 1, column) + rows.at(row + 1, column));
    square += x * x;
  }
  double factor = square > 0 ? product / square : 0;
  double tolerance =
      (5e-3 + 4 * rows.values.getRounding()) * std::max(high, -low);
  for (int64_t row = 1; row + 1 < count; ++row)
    if (std::abs(rows.at(row - 1, column) + rows.at(row + 1, column) -
                 factor * rows.at(row, column)) > tolerance)
      return std::nullopt;
  return high - low;
}

static bool areSinusoids(const Rows &rows) {
  if (rows.width < 2 || rows.count < 8)
    return false;
  // A few rows tell most weights apart.
  double largest = 0;
  for (int64_t count : {std::min<int64_t>(rows.count, 16), rows.count})
    for (int64_t column = 0; column < rows.width; ++column) {
      std::optional<double> range = rangeOfSinusoid(rows, column, count);
      if (!range)
        return false;
      largest = std::max(largest, *range);
    }
  return largest > 0.9;
}

/// Two values, 0 and one that is negative, as masks add it, or 1, as masks
/// multiply with it.
static bool isMask(const Values &values) {
  bool sawZero = false;
  double other = 0;
  for (int64_t i = 0, e = values.size(); i < e; ++i) {
    double x = values[i];
    if (x == 0)
      sawZero = true;
    else if (other == 0 && (x < 0 || x == 1))
      other = x;
    else if (x != other)
      return false;
  }
  return sawZero && other != 0;
}

/// Numbers at one distance, or in one ratio: positions, frequencies, slopes.
static bool isProgression(const Values &values) {
  int64_t size = values.size();
  bool isVector =
      llvm::count_if(values.getShape(), [](int64_t n) { return n > 1; }) == 1;
  if (!isVector || size < 4 || values[0] == values[1])
    return false;
  double first = values[0], step = values[1] - first,
         largest = std::max(std::abs(first), std::abs(values[size - 1]));
  bool isArithmetic = true, isGeometric = first != 0;
  double tolerance = 1e-5 + 4 * values.getRounding();
  // Scales near 1, say, are one to within what they were rounded by.
  if (std::abs(values[size - 1] - first) <= 32 * values.getRounding() * largest)
    return false;
  for (int64_t i = 2; i < size && (isArithmetic || isGeometric); ++i) {
    double before = values[i - 1], x = values[i];
    isArithmetic &= std::abs(x - before - step) <= tolerance * largest;
    isGeometric &= isClose(x * first, before * (first + step), tolerance);
  }
  return isArithmetic || isGeometric;
}

/// Coordinates: every element of the last dimension says where it is along one
/// of the other dimensions, and changes along no other.
static bool isGrid(const Values &values) {
  llvm::SmallVector<int64_t> shape;
  llvm::copy_if(values.getShape(), std::back_inserter(shape),
                [](int64_t size) { return size != 1; });
  if (shape.size() < 3 || values.size() == 0)
    return false;
  std::vector<int64_t> strides = rowMajorStrides(shape);
  int64_t width = shape.back(), rank = static_cast<int64_t>(shape.size()) - 1;
  bool changes = false;
  for (int64_t column = 0; column < width; ++column) {
    std::optional<int64_t> along;
    for (int64_t i = column, e = values.size(); i < e; i += width)
      for (int64_t dim = 0; dim < rank; ++dim) {
        if (i / strides[dim] % shape[dim] == 0 ||
            values[i] == values[i - strides[dim]])
          continue;
        if (along.value_or(dim) != dim)
          return false;
        along = dim;
      }
    changes |= along.has_value();
  }
  return changes;
}

/// PyTorch's biases have one dimension.
static bool isRowOfZeros(const Values &values) {
  if (values.getShape().size() < 2 || values.size() < 2 ||
      values.getShape().back() != values.size())
    return false;
  return llvm::all_of(llvm::seq<int64_t>(0, values.size()),
                      [&](int64_t i) { return values[i] == 0; });
}

/// Whether rows repeat, but not all of one number, which new weights often are.
static bool isRepeated(const Values &values) {
  ArrayRef<int64_t> shape = values.getShape();
  if (shape.size() < 2 || shape[0] < 2 || values.size() == 0)
    return false;
  int64_t part = values.size() / shape[0];
  bool differ = false;
  for (int64_t i = 0; i < values.size(); ++i) {
    if (i >= part && values[i] != values[i - part])
      return false;
    differ |= values[i] != values[0];
  }
  return differ;
}

std::optional<WeightKind> ax::import::kindByValues(DType type,
                                                   ArrayRef<uint8_t> bytes,
                                                   ArrayRef<int64_t> shape) {
  if (!canConvert(DType::F32, type))
    return std::nullopt;
  Values values(type, bytes, shape);
  // Each of the others would read all of it. Weights of zeros are those of
  // files that are holes, as large as those of a model.
  if (values.areOneNumber())
    return isRowOfZeros(values) ? std::optional(WeightKind::ZeroRow)
                                : std::nullopt;
  Rows rows(values);
  if (hasPairsOfSines(rows) || areSinusoids(rows))
    return WeightKind::Sines;
  if (isMask(values))
    return WeightKind::Mask;
  if (isRowOfZeros(values))
    return WeightKind::ZeroRow;
  if (isProgression(values))
    return WeightKind::Progression;
  if (isGrid(values))
    return WeightKind::Grid;
  if (isRepeated(values))
    return WeightKind::Repeated;
  return std::nullopt;
}
