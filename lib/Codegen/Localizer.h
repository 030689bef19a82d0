//===- Localizer.h - State of one localisation ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_LOCALIZER_H
#define AX_LIB_CODEGEN_LOCALIZER_H

#include "ax/Codegen/Localize.h"
#include "ax/Dialect/Ax.h"
#include "ax/Local/Local.h"
#include "ax/Sharding/Digits.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringMap.h"

namespace ax::codegen {

class Localizer {
public:
  Localizer(mlir::MLIRContext *context, const sharding::Mesh &mesh)
      : mesh(mesh), builder(mlir::UnknownLoc::get(context), context) {}

  llvm::Expected<mlir::OwningOpRef<LocalStageOp>> run(StageOp stage);

private:
  // Rules of localisation: of operations of which a rank does something else
  // than the same on its parts.
  llvm::Error localize(AtMostOp op);
  llvm::Error localize(AttentionOp op);
  llvm::Error localize(AttentionGradientOp op);
  llvm::Error localize(CastOp op);
  llvm::Error localize(ConstantOp op);
  llvm::Error localize(ConvOp op);
  llvm::Error localize(ConvTransposeOp op);
  llvm::Error localize(ConvWeightGradientOp op);
  llvm::Error localize(DropoutOp op);
  llvm::Error localize(GatherGradientOp op);
  llvm::Error localize(GatherOp op);
  llvm::Error localize(IotaOp op);
  llvm::Error localize(PadOp op);
  llvm::Error localize(ReshapeOp op);
  llvm::Error localize(SliceOp op);
  llvm::Error localize(UniformOp op);
  /// What has none of these.
  template <typename OpTy>
  llvm::Error localize(OpTy op) {
    static_assert(OpTy::template hasTrait<DoneByParts>() ||
                      OpTy::template hasTrait<ElementwiseLike>(),
                  "what is not done by parts has a rule of localisation");
    return doOnParts(op);
  }

  // Localize.cpp
  llvm::Error localizeOp(mlir::Operation *op);
  template <typename OpTy, typename... Others>
  llvm::Error localizeAs(mlir::Operation *op);
  /// Does the same op on the parts of its operands, padding that must not count
  /// masked and indices checked; `adjust` changes what it is then.
  llvm::Error
  doOnParts(mlir::Operation *op,
            llvm::function_ref<void(mlir::Operation *local)> adjust = nullptr);
  /// Returns the same op on the parts as they are.
  mlir::Operation *cloneLocal(mlir::Operation *op);
  void widenOperands(mlir::Operation *local);
  void widenMemory(mlir::Operation *op, mlir::Operation *local);
  mlir::Value stored(StoreOp store);
  mlir::Value addedUp(mlir::Value addend, mlir::Value sum, BinaryKind kind);
  llvm::Error fault(mlir::Operation *op, const llvm::Twine &message);

  // LocalizeOps.cpp
  std::pair<mlir::Value, mlir::Value>
  localIndex(mlir::Value indices, const sharding::DimLayout &dim);
  template <typename OpTy>
  void writePlaces(OpTy op, OpTy local);
  /// f32, by each element's place in the whole tensor.
  template <typename OpTy>
  mlir::Value randomNumbers(OpTy op, const sharding::Layout &layout);

  // LocalizeIndices.cpp
  /// The indices of a gather or scatter, none out of range: those that are not
  /// known to be fine are checked when the program runs.
  llvm::Expected<mlir::Value> checkedIndices(mlir::Operation *op);
  CheckIndicesOp check(mlir::Operation *op, mlir::Value local,
                       mlir::Value global, llvm::ArrayRef<int64_t> sizes);

  // LocalizeMask.cpp
  /// Replaces operands by ones whose padding cannot change the result: those
  /// that have a factor which `op` sums over and which is split unevenly.
  llvm::Error maskReduced(mlir::Operation *op);
  /// `value`, with `neutral` where its index along `dim` is padding.
  mlir::Value maskDim(mlir::Value value, int64_t dim,
                      const sharding::DimLayout &layout, mlir::Value neutral);

  // LocalizeCollectives.cpp
  /// Neighbouring digits of one dimension, moved by one exchange.
  struct Run {
    sharding::SubAxes axes;
    /// Local extent of the digits before them; of those behind them, with the
    /// moved ones; and that times the moved digits themselves. Exchanged in
    /// order when local digits become told, in reverse order otherwise, the
    /// dimension is `major x whole` on the local side and `major x minor` on
    /// the other.
    int64_t major = 1, minor = 1, whole = 1;
  };
  /// One tensor of an exchange: what of it is sent, the shape of what comes,
  /// and that which it is read as.
  struct Part {
    mlir::Value operand;
    llvm::SmallVector<int64_t> shape, result;
    int64_t gatherDim = -1, scatterDim = -1;
  };
  llvm::Error localizeCollective(CollectiveOpInterface op);
  /// The same, of which the last exchange is only started: what comes behind it
  /// comes behind the wait.
  llvm::Error startCollective(CollectiveOpInterface op);
  void localizeWait(WaitOp op);
  llvm::Expected<mlir::Value> localizeStep(CollectiveOpInterface op,
                                           mlir::Value operand,
                                           mlir::Value changed);
  llvm::Expected<llvm::SmallVector<Part>> sharedParts(mlir::Operation *op,
                                                      sharding::SubAxes &axes);
  llvm::Expected<mlir::Value> moveParts(CollectiveOpInterface op,
                                        mlir::Value value,
                                        const sharding::Layout &from,
                                        const sharding::Layout &to,
                                        const sharding::SubAxes &axes);
  /// This rank's part of `value`, whose dimension `dim` becomes `layout` by
  /// splitting over `axes`.
  llvm::Expected<mlir::Value> slicePart(mlir::Operation *op, mlir::Value value,
                                        int64_t dim,
                                        const sharding::DimLayout &layout,
                                        const sharding::SubAxes &axes);
  llvm::Expected<llvm::SmallVector<Run>>
  runsOf(mlir::Operation *op, const sharding::DimLayout &layout,
         const sharding::SubAxes &axes, int64_t wholeSize);
  /// `kind`: what is done of what `op` does. `sources`: of a permutation.
  llvm::SmallVector<mlir::Value> exchange(CollectiveOpInterface op,
                                          sharding::StepKind kind,
                                          llvm::ArrayRef<Part> parts,
                                          const sharding::SubAxes &axes,
                                          llvm::ArrayRef<int64_t> sources = {});
  Part wholePart(mlir::Value value);
  Part runPart(mlir::Value value, int64_t dim, const Run &run, bool gathers);
  Part swapRuns(mlir::Value value, int64_t gatherDim, const Run &gather,
                int64_t scatterDim, const Run &scatter);
  mlir::Value sliceRun(mlir::Value value, int64_t dim, const Run &run);

  // LocalizeBuild.cpp
  const sharding::Layout &layoutOf(mlir::Value value) {
    return getLayout(tensorType(value), mesh);
  }
  mlir::RankedTensorType localType(mlir::Type type);
  /// The value itself where its elements are such.
  mlir::Value castTo(mlir::Value value, mlir::Type element);
  mlir::RankedTensorType i64Type(llvm::ArrayRef<int64_t> shape = {});
  mlir::RankedTensorType boolType(llvm::ArrayRef<int64_t> shape);
  /// A scalar.
  mlir::Value constant(mlir::Attribute value);
  mlir::Value constantInt(int64_t value);
  mlir::Value axisIndex(const sharding::SubAxes &axes);
  mlir::Value binary(BinaryKind kind, mlir::Value lhs, mlir::Value rhs);
  mlir::Value compare(CompareKind kind, mlir::Value lhs, mlir::Value rhs);
  mlir::Value select(mlir::Value condition, mlir::Value onTrue,
                     mlir::Value onFalse);
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value dynamicSlice(mlir::Value value, mlir::ValueRange starts,
                           llvm::ArrayRef<int64_t> shape);
  /// Global index along a dimension of each local one: i64, `rank`
  /// dimensions, all of extent 1 but `dim`.
  mlir::Value globalIndex(const sharding::DimLayout &layout, int64_t dim,
                          int64_t rank);

  const sharding::Mesh &mesh;
  mlir::ImplicitLocOpBuilder builder;
  mlir::IRMapping mapping;
  llvm::DenseMap<AxesAttr, mlir::Value> axisIndices;
  /// Results of started collectives in the plan, and what ends them.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Operation *>> endings;
  /// The number among the stage's of the plan's operation that is localised.
  int64_t opNumber = 0;
};

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_LOCALIZER_H
