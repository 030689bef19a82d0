//===- Emitter.h - ax operations with folding -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every importer is a composition of these functions. Each emits one ax
// operation, or a constant when everything it needs is known. A null value
// stands for a failure that is already recorded: functions given one return
// null, so that importers need not look at each step. Once something failed,
// nothing is emitted, so optional operands are plain null too.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_IMPORT_EMITTER_H
#define AX_LIB_IMPORT_EMITTER_H

#include "RunningStatistics.h"
#include "WeightKinds.h"
#include "Weights.h"

#include "ax/Support/Error.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"

#include "ax/Dialect/AxEnums.h"

namespace ax::import {

using llvm::ArrayRef;
using mlir::Value;

/// Windows of convolutions and pools, one entry a spatial dimension.
struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  /// The pads of every dimension at its low end, then at its high end.
  std::vector<int64_t> pads;
  /// Pool: elements past the high padding. Transposed convolution: extra
  /// elements of the result.
  std::vector<int64_t> extra;
};

struct DotDims {
  std::vector<int64_t> lhsBatch, rhsBatch, lhsContract, rhsContract;
};

struct AttentionOptions {
  double scale = 1;
  bool causal = false;
  double softcap = 0; // 0: none
  bool emptyRowsZero = false;
};

/// Says that along `dim`, which has room for more, are as many results as the
/// i64 scalar `count` says; padding follows.
struct Bound {
  int64_t dim = 0;
  Value count;
  /// Where they come from.
  std::string node;
};

/// `--max NODE=COUNT`.
struct MaxResults {
  std::string node;
  int64_t count = 0;
  bool isUsed = false;
};

/// What a state becomes by what calls of a layer have seen.
struct StatisticUpdate {
  std::string state;
  Value value;
  /// Of how many parts of a batch that is; 0: of none.
  int64_t numParts;
  llvm::SmallVector<Observation, 1> calls;
};

/// Numbers of outputs, and the dimensions along which they are counted.
using CountedOutputs = llvm::SmallVector<std::pair<unsigned, int64_t>>;

class Emitter {
public:
  Emitter(mlir::MLIRContext *context, ModelFolder &folder, bool training,
          bool evaluationMode);

  mlir::OpBuilder &getOpBuilder() { return builder; }
  /// Training modes of nodes do not count.
  bool isEvaluationMode() const { return evaluationMode; }
  /// Into how many parts batches are cut whose statistics count, at least 1,
  /// and which inputs have none.
  void setBatchParts(int64_t parts, std::vector<std::string> withoutBatch) {
    batchParts = parts;
    unbatched = std::move(withoutBatch);
  }
  /// That number of parts; 0 where nothing of a batch is in a value.
  int64_t batchPartsOf(Value value) const;
  mlir::Location getLocation() const { return location; }
  void setLocation(mlir::Location newLocation) { location = newLocation; }

  // Types. The value must not be null.
  static ArrayRef<int64_t> shapeOf(Value value);
  static DType typeOf(Value value);
  static int64_t rankOf(Value value) { return shapeOf(value).size(); }
  static int64_t numElementsOf(Value value);
  /// The type in which elements of `type` are added up and what comes of the
  /// sum is computed: f32 for narrow floats.
  static DType sumType(DType type);

  // Constants.
  Value constant(HostTensor tensor);
  Value scalar(DType type, double value);
  Value splat(DType type, ArrayRef<int64_t> shape, double value);
  Value ints(ArrayRef<int64_t> values);
  /// A scalar of `value`'s element type.
  Value like(Value value, double number);
  /// The value of a state.
  Value load(const std::string &name, const Weight &weight);
  /// What else is known of a state, also in another shape; nothing when `state`
  /// is none, or when it is known already.
  void setKind(Value state, WeightKind kind);
  /// The file has it in four bits; here each is a byte.
  void noteFourBits(Value value) { ofFourBits.insert(value); }
  bool isOfFourBits(Value value) const { return ofFourBits.contains(value); }
  /// A recurrent layer begins with it; nothing unless these are zeros.
  void noteInitialState(Value state);
  /// A node sees this of a batch for the state that `old` is; nothing when it
  /// is none. `numParts`: as batchPartsOf says.
  void observe(Value old, int64_t numParts, Observation seen);
  llvm::ArrayRef<StatisticUpdate> getUpdates() const { return updates; }
  /// The contents of a value that does not depend on inputs, up to a size;
  /// nothing otherwise.
  std::optional<HostTensor> knownValue(Value value);
  /// What shapes are decided by: the contents of any value that does not depend
  /// on inputs, worked out when asked for, however it is made. With `fewer`,
  /// what a value is that depends on them by numbers of results (`--max`) only,
  /// when there are as many as there is room for, less `fewer`.
  std::optional<HostTensor> demand(Value value,
                                   std::optional<int64_t> fewer = {});
  /// Whether element `at` is the same whatever the inputs are, for all that can
  /// be seen without its neighbours.
  bool isFixed(Value value, int64_t at);
  /// That element of a short list of integers, if it is known.
  std::optional<int64_t> elementOf(Value list, int64_t at);
  /// By how much that element of `to` is more than that of `from`, whatever
  /// they are, if it is seen.
  std::optional<int64_t> distance(Value from, Value to, int64_t at);
  /// Whether it is seen to be a number of results: 0 or more.
  bool isCount(Value value);

  /// Names of the program's inputs that a value depends on.
  std::vector<std::string> inputsBehind(Value value) const;
  /// The node whose number of results, and nothing else that is unknown,
  /// decides a value.
  std::optional<std::string> countBehind(Value value);

  /// Calls fn with what `values` are for many numbers of results of each node
  /// that has some, until it is false; false, too, where one is not known then.
  bool forNumbersOfResults(ArrayRef<Value> values,
                           llvm::function_ref<bool(ArrayRef<HostTensor>)> fn);

  // Results of which there may be fewer, see Bounds.cpp.
  void setMaxResults(ArrayRef<std::pair<std::string, int64_t>> given) {
    for (const auto &[node, count] : given)
      allMaxResults.push_back({node, count});
  }
  /// A failure when some were for no node.
  void checkMaxResults();
  /// Returns what the user gave for this node, if anything.
  std::optional<int64_t> maxResults();
  /// The same, or a failure.
  std::optional<int64_t> roomForResults();
  const Bound *boundOf(Value value) const;
  /// The name of the node that an operation is of.
  static std::string nodeOf(mlir::Location location);
  /// Whether it is a constant, and how many of its elements count is known.
  bool isConstant(Value value) const;
  /// A value of the same elements as `x` that nobody else has.
  Value copied(Value x);
  /// `x`, which nobody else has.
  Value bounded(Value x, int64_t dim, Value count);
  /// Whether `count` is seen to be how many results `x` has.
  bool hasCount(Value x, Value count);
  /// Which of a bounded tensor's are results: [1, .., size, .., 1].
  Value isLive(Value x);
  /// `x`, the scalar `number` where it was padding, and no longer bounded.
  Value filled(Value x, Value number);
  Value filled(Value x, double number) { return filled(x, like(x, number)); }
  /// `x`, bounded as before, 0 where it was padding: an index of nothing.
  Value cleared(Value x);
  /// What `make` gives of `x`, whose padding along `dim` is `neutral` to it: of
  /// the same shape, and bounded as `x` is.
  Value alongResults(Value x, int64_t dim, double neutral,
                     llvm::function_ref<Value(Value)> make);
  /// The lowest or highest number of x's element type.
  Value extremeOf(Value x, bool lowest);
  /// Where `mask` is true in row-major order, [room], then zeros; and how many
  /// there are, which is an error of the run when they have no room.
  std::pair<Value, Value> compact(Value mask, int64_t room);
  void beginNode();
  /// The node accounts itself for what of its inputs is no result.
  void dropBounds() { dropsBounds = true; }
  /// False, and a failure, when a node lost sight of how many results it has.
  bool checkDropped(ArrayRef<Value> inputs, ArrayRef<Value> outputs);
  /// Appends the counts of outputs that are bounded behind the program's
  /// outputs.
  CountedOutputs addCounts(llvm::SmallVectorImpl<Value> &outputs,
                           llvm::SmallVectorImpl<mlir::StringAttr> &names);

  // Element-wise; operands broadcast.
  Value atMost(Value x, int64_t limit);
  Value unary(UnaryKind kind, Value x);
  Value binary(BinaryKind kind, Value lhs, Value rhs);
  Value compare(CompareKind kind, Value lhs, Value rhs);
  Value select(Value condition, Value onTrue, Value onFalse);
  Value cast(Value x, DType type);
  /// `x` as `type`, which has each of its elements: cast back to its own type
  /// it is `x` again.
  Value castExactly(Value x, DType type);
  /// Returns x in the type in which it is added up.
  Value wide(Value x) { return x ? cast(x, sumType(typeOf(x))) : x; }
  /// Random ops of one id drop the same elements, of different ids others.
  int64_t takeRandomId() { return randomIds++; }
  Value dropout(Value x, double rate, int64_t id);
  /// f32 in [0, 1).
  Value uniform(ArrayRef<int64_t> shape, int64_t id);
  Value add(Value a, Value b) { return binary(BinaryKind::add, a, b); }
  Value sub(Value a, Value b) { return binary(BinaryKind::sub, a, b); }
  Value mul(Value a, Value b) { return binary(BinaryKind::mul, a, b); }
  Value div(Value a, Value b) { return binary(BinaryKind::div, a, b); }
  Value max(Value a, Value b) { return binary(BinaryKind::max, a, b); }
  Value min(Value a, Value b) { return binary(BinaryKind::min, a, b); }
  Value add(Value a, double b) { return add(a, like(a, b)); }
  Value mul(Value a, double b) { return mul(a, like(a, b)); }
  /// The square root of a sum of squares. Where all of them are 0, no gradient
  /// goes back through it, as in PyTorch's norms: the root's own is infinite.
  Value rootOfSquares(Value sum);

  // Moving elements.
  Value reshape(Value x, ArrayRef<int64_t> shape);
  Value transpose(Value x, ArrayRef<int64_t> permutation);
  Value broadcast(Value x, ArrayRef<int64_t> shape);
  Value slice(Value x, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes,
              ArrayRef<int64_t> steps = {});
  Value sliceDim(Value x, int64_t dim, int64_t start, int64_t size,
                 int64_t step = 1);
  Value concat(ArrayRef<Value> values, int64_t dim);
  Value pad(Value x, ArrayRef<int64_t> low, ArrayRef<int64_t> high,
            PadMode mode, Value value);
  Value iota(DType type, ArrayRef<int64_t> shape, int64_t dim);
  Value gather(Value x, Value indices, int64_t axis);
  Value gatherElements(Value x, Value indices, int64_t axis);
  Value gatherND(Value x, Value indices, int64_t batchDims);
  Value scatterElements(ScatterKind kind, Value x, Value indices, Value updates,
                        int64_t axis);
  Value scatterND(ScatterKind kind, Value x, Value indices, Value updates);

  // Reductions and norms.
  Value reduce(ReduceOpKind kind, Value x, ArrayRef<int64_t> dims,
               bool keepDims);
  Value argReduce(Value x, int64_t dim, bool min, bool last);
  Value cumulative(ReduceOpKind kind, Value x, int64_t dim, bool exclusive,
                   bool reverse);
  std::pair<Value, Value> topK(Value x, int64_t k, int64_t dim, bool smallest);
  Value nonMaxSuppression(Value boxes, Value scores, int64_t limit,
                          double iouThreshold,
                          std::optional<double> scoreThreshold);
  Value softmax(Value x, int64_t dim, bool log);
  Value fakeQuantize(Value x);
  Value layerNorm(Value x, Value scale, Value bias, int64_t axis,
                  double epsilon);
  Value rmsNorm(Value x, Value scale, Value bias, int64_t axis, double epsilon);

  // Contractions. `mask` may be null.
  Value dot(Value lhs, Value rhs, const DotDims &dims);
  Value conv(Value x, Value w, const Window &window, int64_t groups);
  Value convTranspose(Value x, Value w, const Window &window, int64_t groups);
  Value pool(PoolKind kind, Value x, const Window &window,
             bool countIncludePad);
  Value attention(Value q, Value k, Value v, Value mask,
                  const AttentionOptions &options);

  // Failures.
  Value fail(ExitCode code, const llvm::Twine &message);
  bool hasFailed() const { return failed; }
  bool isTraining() const { return training; }
  /// Puts `context: ` before the message, unless that was done before.
  void addContext(const llvm::Twine &context);
  /// The recorded failure, which is forgotten.
  llvm::Error takeFailure();

  /// A weight that is a constant, or of which constants were made.
  void noteFolded(const std::string &name, HostTensor tensor) {
    folded.insert_or_assign(name, std::move(tensor));
  }
  /// All of them, by the names of states.
  const std::map<std::string, HostTensor> &getFolded() const { return folded; }

  /// Erases what nothing uses and writes constants into the IR. `states` gets
  /// those that are still loaded, and with them, for training, what is known of
  /// them.
  void finish(mlir::Block &body, mlir::OpBuilder &states);

private:
  struct LoadedState {
    std::string name;
    Weight weight;
    std::optional<HostTensor> contents;
    std::optional<WeightKind> kind;
  };

  enum class OpClass { Elementwise, Moving, Other };
  /// Emits an operation whose result type follows from the rest, or is `type`.
  template <typename OpTy, typename SetProperties>
  llvm::SmallVector<Value> emit(OpClass opClass, ArrayRef<Value> operands,
                                SetProperties setProperties,
                                mlir::RankedTensorType type = {});
  template <typename OpTy>
  Value norm(Value x, Value scale, Value bias, int64_t axis, double epsilon);
  llvm::SmallVector<Value> finishEmit(OpClass opClass, mlir::Operation *op);
  void keepBounds(mlir::Operation *op);
  bool isSame(Value a, Value b, int depth = 0);
  /// What data give between equal bounds, as of Min(Max(x, 10), 10).
  std::optional<HostTensor> betweenEqualBounds(mlir::Operation *op);
  void remember(mlir::Operation *op);
  std::optional<std::vector<HostTensor>>
  interpret(mlir::Operation *op, ArrayRef<HostTensor> operands);
  bool fold(OpClass opClass, mlir::Operation *op,
            llvm::SmallVectorImpl<Value> &results);
  Value constantOp(mlir::RankedTensorType type, mlir::DenseElementsAttr value);
  bool isKnown(Value value) const;
  /// Folding does nothing that takes long.
  static bool isCheap(mlir::Operation *op);
  std::optional<HostTensor> demand(Value value, std::optional<int64_t> fewer,
                                   llvm::DenseMap<Value, HostTensor> &made,
                                   int depth);
  /// The state that `value` is, in whatever shape.
  LoadedState *stateOf(Value value);
  /// What else is known of it, or what its values say.
  std::optional<WeightKind> kindOf(const LoadedState &state);
  /// The value of each element when all are the same and this is a constant.
  std::optional<HostTensor> uniformValue(Value value) const;
  mlir::RankedTensorType tensorType(DType type, ArrayRef<int64_t> shape);

  mlir::OpBuilder builder;
  mlir::Location location;
  ModelFolder &folder;
  bool training, evaluationMode;
  int64_t batchParts = 1;
  std::vector<std::string> unbatched;
  /// Contents of constants that are not uniform.
  llvm::DenseMap<Value, HostTensor> contents;
  llvm::DenseMap<Value, LoadedState> states;
  llvm::StringMap<Value> loads;
  std::vector<MaxResults> allMaxResults;
  llvm::DenseMap<Value, Bound> bounds;
  /// What values were narrowed from that have the same elements.
  llvm::DenseMap<Value, Value> exact;
  llvm::DenseSet<Value> ofFourBits;
  /// Operations of this node that depend on none of its inputs.
  llvm::DenseSet<mlir::Operation *> own;
  bool dropsBounds = false;
  std::vector<StatisticUpdate> updates;
  std::map<std::string, HostTensor> folded;
  /// Elements that folding may still compute: no model keeps us for hours.
  int64_t foldBudget = int64_t(1) << 28;
  int64_t randomIds = 0, numOperations = 0;
  bool failed = false, hasContext = false;
  ExitCode failureCode = ExitCode::BadModel;
  std::string failure;
  mlir::ScopedDiagnosticHandler diagnostics;
};

} // namespace ax::import

#endif // AX_LIB_IMPORT_EMITTER_H
