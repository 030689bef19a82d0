//===- Emitter.h - What a kernel does, loop by loop -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements are *pulled*: the element of a value at some indices is asked of its
// operands, down to loads, so nothing inside a fusion needs a buffer; except
// *row values* (reductions, scans, and expensive values that several nests
// read), computed once per outer iteration before the nest that asks for them.
//
// The kernel: for each outer iteration, nests of row values, then nests that
// store the results. The Emitter tells it to a writer, once to write it, and
// before that, to a writer that writes nothing, while loops are chosen.
//
//===----------------------------------------------------------------------===//
#ifndef AX_CODEGEN_KERNELS_EMITTER_H
#define AX_CODEGEN_KERNELS_EMITTER_H

#include "Nests.h"
#include "Staying.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace ax::codegen {

/// Axes of the axis_index ops, each once, in order of appearance.
llvm::SmallVector<AxesAttr, 2> collectScalars(FusionOp fusion);

/// Reductions of rows that are results, and of which nothing else in the kernel
/// is made: the loops over another result with as many elements find them, too.
llvm::SmallVector<ReduceOp> findBeside(FusionOp fusion);
/// Values that are computed once per outer iteration, though elements of them
/// could be pulled: expensive, and read by several nests.
llvm::DenseSet<mlir::Operation *> chooseKept(FusionOp fusion,
                                             llvm::ArrayRef<ReduceOp> beside);
/// Reductions and the like; not values that are kept.
bool isRowOp(mlir::Operation *op);
bool isScatter(mlir::Operation *op);
/// There are scatters, and each is one result and nothing else, so that it can
/// be done in parts of the result.
bool hasScattersInParts(FusionOp fusion);

class Emitter {
public:
  /// Nests that `nests` lacks are added to it, unrefined.
  Emitter(FusionOp fusion, KernelNests &nests, KernelWriter &writer);

  /// Tells the writer all of the kernel.
  void run();

  //===--- What was found on the way --------------------------------------===//

  /// Refines the nests as indices asked for; true when something was.
  bool refineNests() { return space.applyRequests(); }
  bool wantsRefining() const { return space.wantsRefining(); }
  /// Iterations would do the same again, or need each other's rows.
  bool wantsFewerIterations() const { return wantsFewer; }
  /// Returns what KernelNests::tiledSize is to be.
  int64_t getWantedTiledSize() const { return wantedTiledSize; }
  int64_t getScratchBytes() const { return scratchBytes; }
  /// Returns how many points the largest nest has that is not within another.
  int64_t getMostPoints() const { return mostPoints; }
  /// Returns how many bytes an element has at most of those that neighbouring
  /// points within an iteration have next to each other.
  int64_t getWidest() const;
  /// Where most of what an iteration reads lies next to what its neighbours
  /// read, and apart from point to point: how many neighbours a thread may do
  /// together. Else 0.
  int64_t getColumnLanes() const;
  /// Points that a thread may do together for the sake of bytes that each row
  /// has for itself, of the largest nest; 1 where there are none.
  int64_t getByteLanes() const;
  /// Makes lanes where accesses are next to each other; true when there are
  /// more of them then.
  bool makeLanes();
  /// Makes tiles where an operand lies along another dimension than results;
  /// true when there were none.
  bool makeTile();

private:
  using Value = mlir::Value;
  using Values = KernelWriter::Values;
  using Body = llvm::function_ref<Values(mlir::ValueRange carried)>;
  using IndexBody =
      llvm::function_ref<Values(llvm::ArrayRef<IndexExpr>, mlir::ValueRange)>;

  /// Where a row value's elements are.
  struct RowValue {
    bool isScalar = false; // There is one element, and it is in no memory.
    Value scalar;
    Value base;
    llvm::SmallVector<int64_t, 4> strides; // in elements, 0: fixed dimension
  };
  using RowKey = std::pair<mlir::Operation *, Indices>;
  struct Bound {
    IndexExpr index;
    int64_t lo, hi; // lo <= index < hi
    int64_t mostPieces = IndexSpace::usualPieces;
  };
  struct Store {
    Value value, near, further;
    mlir::Type type;
  };
  /// What is being written of several points of a nest, which has so many
  /// around it, and what these are to store, by where it goes, once all are
  /// written. Nests within a point store at once: what they store they read.
  struct Lanes {
    int64_t count;
    int depth;
    llvm::MapVector<Value, llvm::SmallVector<Store>> stores;
  };
  /// What is known of accesses at neighbouring points of a plan's last loop.
  struct Neighbours {
    /// How many are next to each other and aligned, and how many apart or not.
    int64_t together = 0, apart = 0;
    /// Of those that are together: bytes of an element, and points that one
    /// access may be of; the most that any has.
    int64_t widest = 1, points = 1;
    /// There are loops within a point.
    bool hasLoops = false;
    /// Of those that are next to each other, aligned or not, where that of
    /// point 0 is, and bytes of an element.
    llvm::SmallVector<std::pair<IndexExpr, int64_t>, 4> beside;
    /// All of them, and bytes of an element; the variables of the plan's atoms.
    llvm::SmallVector<std::pair<IndexExpr, int64_t>, 4> all;
    llvm::SmallVector<int, 4> vars;
  };
  /// Points of a nest that a group does, with so many lanes each.
  struct Turns {
    int64_t count, lanes;
    /// Of a plan with a shift, how many points are before the first lanes; and
    /// of those that are in no lanes, how many there are between the ones
    /// before all lanes and those behind.
    Value head;
    int64_t between = 0;
  };
  /// Lanes of a plan with a shift while they are written: the first one is so
  /// far behind what is before all, and which it is now.
  struct Shifted {
    const IndexSpace::Nest *nest;
    Value head, start;
    int64_t lane = 0;
  };

  // Emitter.cpp
  void emitIterations();
  void noteStride(const IndexExpr &offset, mlir::Type type);
  LoopPlan &getPlan(mlir::Operation *op, int which,
                    llvm::ArrayRef<int64_t> sizes);
  void bindPoint(const IndexSpace::Nest &nest, Value number);
  void noteOrder(const IndexExpr &offset);
  /// Points may be done in any order; what is carried is `combining`'s, and
  /// nothing if it is null.
  Values emitLoops(IndexSpace::Nest &nest, mlir::ValueRange carried, Body body,
                   ReduceOp combining = {});
  Values emitLoops(IndexSpace::Nest &nest, unsigned group,
                   mlir::ValueRange carried, Body body, ReduceOp combining);
  int64_t togetherOf(const IndexSpace::Nest &nest, const Turns &turns) const;
  Values dealOut(IndexSpace::Nest &nest, mlir::ValueRange carried, Body body,
                 ReduceOp combining);
  /// A nest over all points of `sizes`; the body gets the index of each
  /// dimension.
  Values emitNest(mlir::Operation *op, NestRole role,
                  llvm::ArrayRef<int64_t> sizes, mlir::ValueRange carried,
                  IndexBody body);
  /// A nest whose points depend on those before them that differ from them in
  /// dimensions that are `ordered`, and in no other.
  void emitOrdered(mlir::Operation *op, NestRole role,
                   llvm::ArrayRef<int64_t> sizes,
                   llvm::function_ref<bool(unsigned)> isOrdered,
                   IndexBody body);
  void atRowLevel(llvm::function_ref<void()> body);
  /// What `body` emits is within a nest of which all threads of the group do
  /// all points: in `emitLoop` they do so, in `emitTogether` these are dealt
  /// out. They meet where the body says so.
  void atAnchor(llvm::function_ref<void()> body);
  Values emitLoop(
      mlir::Operation *op, NestRole role, int64_t size,
      mlir::ValueRange carried,
      llvm::function_ref<Values(const IndexExpr &, mlir::ValueRange)> body);
  void emitTogether(mlir::Operation *op, NestRole role, int64_t size,
                    llvm::function_ref<void(const IndexExpr &)> body);
  Value loadElement(Value base, const IndexExpr &offset, mlir::Type type);
  void storeElement(Value value, Value base, const IndexExpr &offset,
                    mlir::Type type);

  /// Iterations are elements of results, and nothing else is computed.
  bool areElements() const { return mostPoints == 1 && rowValues.empty(); }

  /// Neighbouring iterations that a thread does together, where it shares each
  /// with others.
  int64_t columnLanes() const {
    return nests.group.isColumn() ? nests.outer.numLanes() : 1;
  }

  // EmitResults.cpp
  void emitResults(llvm::ArrayRef<unsigned> part);
  void emitRowResults(llvm::SmallVectorImpl<unsigned> &members, LoopPlan &plan);
  void emitResultNest(llvm::ArrayRef<unsigned> members, LoopPlan &plan,
                      bool isOnly, ReduceOp along);
  void storeResults(llvm::ArrayRef<unsigned> members, const IndexExpr &inner);
  IndexExpr offsetInResult(unsigned number, const IndexExpr &inner);
  Indices indicesInResult(unsigned number, const IndexExpr &inner);
  ReduceOp findBesideOf(int64_t elements) const;
  TransposeOp transposedFrom(unsigned number, unsigned other);

  // EmitStaying.cpp
  void choosePartsOfResults();
  void emitPart(llvm::ArrayRef<unsigned> part);
  bool isChosenOnce(unsigned result, int64_t points) const;
  bool isChosenAt(const IndexSpace::Nest &nest, unsigned group) const;
  void emitChosen(IndexSpace::Nest &nest, unsigned group,
                  llvm::function_ref<void()> body);
  void emitWhereNew(llvm::ArrayRef<unsigned> part, const IndexExpr &inner,
                    llvm::function_ref<void()> body);

  // EmitLanes.cpp
  void noteNeighbours(const IndexExpr &offset, mlir::Type type);
  void noteAlong(const IndexSpace::Nest &nest, const IndexExpr &offset,
                 mlir::Type type, Neighbours &of);
  IndexExpr atLane(const IndexExpr &index, int64_t lane) const;
  /// Returns an address, and what to add to it.
  std::pair<Value, Value> placeOf(Value base, IndexExpr offset,
                                  mlir::Type type);
  Values emitLanes(IndexSpace::Nest &nest, mlir::ValueRange carried, Body body);
  void emitStores(const Lanes &lanes);
  bool makeShift(LoopPlan &plan, const Neighbours &of);
  int64_t byteLanes(const LoopPlan &plan, const Neighbours &of) const;
  bool areByteLanes(const LoopPlan &plan, const Neighbours &of,
                    int64_t lanes) const;
  bool isShiftedAlong(const IndexExpr &offset) const;
  llvm::SmallVector<Turns, 2> turnsOf(const IndexSpace::Nest &nest);
  Values emitTurn(IndexSpace::Nest &nest, const Turns &turns, Value point,
                  mlir::ValueRange carried, Body body);

  // EmitTiles.cpp
  int64_t columnStep(const IndexExpr &offset, mlir::RankedTensorType tensor,
                     int row, int column) const;
  void noteTile(const IndexExpr &offset, mlir::RankedTensorType tensor);
  void emitTile(llvm::function_ref<void()> body);
  IndexExpr tileOffset(IndexExpr offset, int64_t step) const;
  IndexExpr placeInTile(mlir::Type type) const;
  /// Where a tile is, of which columns are so many elements apart.
  struct Square {
    Value base;
    int64_t step;
  };
  void copyTile(const Square &from, const Square &to, const IndexExpr &first,
                mlir::Type type);
  void storeTransposed(Value value, unsigned number, TransposeOp transpose,
                       llvm::ArrayRef<IndexExpr> indices);
  void writeTiles();
  Value pullArgument(unsigned number, mlir::RankedTensorType tensor,
                     const IndexExpr &offset);
  Value loadFromTile(unsigned number, const IndexExpr &offset, int64_t step,
                     mlir::Type type);

  // EmitElement.cpp
  Value pull(Value value, llvm::ArrayRef<IndexExpr> indices);
  Value pullOp(mlir::OpResult value, llvm::ArrayRef<IndexExpr> indices);
  Value pullBroadcast(Value operand, llvm::ArrayRef<IndexExpr> indices);
  Value pullConstant(ConstantOp op, llvm::ArrayRef<IndexExpr> indices);
  Value pullConcat(ConcatOp op, llvm::ArrayRef<IndexExpr> indices);
  Value pullPad(PadOp op, llvm::ArrayRef<IndexExpr> indices);
  Value pullDynamicSlice(DynamicSliceOp op, llvm::ArrayRef<IndexExpr> indices);
  Value pullGather(GatherOp op, llvm::ArrayRef<IndexExpr> indices);
  Value pullGatherElements(GatherElementsOp op,
                           llvm::ArrayRef<IndexExpr> indices);
  Value pullGatherND(GatherNDOp op, llvm::ArrayRef<IndexExpr> indices);
  Value wideNumber(int64_t value);
  /// A number from memory that is an index.
  Value indexOf(Value number, mlir::Type type);
  IndexExpr dynamicIndex(Value number, mlir::Type type, int64_t size);
  IndexExpr chooseIndex(const IndexExpr &index, int64_t bound,
                        const IndexExpr &below, const IndexExpr &notBelow);
  Value guarded(llvm::ArrayRef<Bound> bounds, mlir::Type type,
                llvm::function_ref<Value()> inside,
                llvm::function_ref<Value()> outside);
  Value choose(Value condition, mlir::Type type,
               llvm::function_ref<Value()> inside,
               llvm::function_ref<Value()> outside);

  // EmitRows.cpp
  Value pullRow(mlir::OpResult value, llvm::ArrayRef<IndexExpr> indices);
  RowValue &getRowValue(mlir::Operation *op, llvm::ArrayRef<IndexExpr> indices);
  RowValue emitRowValue(mlir::Operation *op, llvm::ArrayRef<IndexExpr> fixed);
  RowValue allocateRow(mlir::OpResult value, llvm::ArrayRef<IndexExpr> fixed);
  Value allocateScratch(int64_t count, mlir::Type element);
  IndexExpr rowOffset(const RowValue &row, llvm::ArrayRef<IndexExpr> indices);
  RowValue emitKept(mlir::Operation *op, llvm::ArrayRef<IndexExpr> fixed);

  // EmitReduce.cpp
  struct Blocks;
  struct Reduction;
  RowValue emitReduce(ReduceOp op, llvm::ArrayRef<IndexExpr> fixed);
  RowValue emitColumns(const Reduction &r, llvm::ArrayRef<IndexExpr> fixed);
  bool isDoneAlong(const Reduction &r) const;
  RowValue emitMaxAndSum(const Reduction &r, llvm::ArrayRef<IndexExpr> fixed);
  Value reduceElements(const Reduction &r, llvm::ArrayRef<IndexExpr> outer,
                       Value acc);
  int64_t placesOf(const Reduction &r);
  Value sumByPlaces(const Reduction &r, llvm::ArrayRef<IndexExpr> outer,
                    Value acc, int64_t places);
  void reduceRows(const Reduction &r, Value base);

  // EmitScans.cpp
  RowValue emitCumulative(CumulativeOp op, llvm::ArrayRef<IndexExpr> fixed);

  // EmitScatters.cpp
  struct Scatter;
  RowValue emitScatterElements(ScatterElementsOp op);
  RowValue emitScatterND(ScatterNDOp op);
  RowValue emitScatter(const Scatter &scatter);
  void emitOperand(const Scatter &scatter, Value base);
  void emitUpdate(const Scatter &scatter, Value base, const IndexExpr &offset,
                  Value update);

  // EmitScatterParts.cpp
  struct Share;
  struct Lists;
  bool isInParts(mlir::Operation *op) const;
  Share shareOf(const Scatter &scatter);
  Value isOwnRow(const Scatter &scatter, const Share &share,
                 llvm::ArrayRef<IndexExpr> place);
  void emitOwnOperand(const Scatter &scatter, const Share &share, Value base);
  void emitColumns(const Scatter &scatter, const Share &share,
                   llvm::function_ref<void(llvm::ArrayRef<IndexExpr>)> body);
  void emitUpdatesByColumn(const Scatter &scatter, const Share &share,
                           Value base);
  Value
  emitList(const Scatter &scatter, const Share &share, const IndexExpr &first,
           int64_t length, Value start,
           llvm::function_ref<Value(const IndexExpr &, Value, Value)> body);
  void emitChoosing(const Scatter &scatter, const Share &share,
                    const IndexExpr &first, const Lists &lists);
  void emitUpdatesTogether(const Scatter &scatter, const Share &share,
                           Value base);

  FusionOp fusion;
  KernelNests &nests;
  KernelWriter &writer;
  mlir::Operation *yield;
  unsigned numOperands;
  mlir::Type i64;
  /// What loops over results find, too: of a GPU's kernel, whose threads have
  /// elements of a row in registers.
  llvm::SmallVector<ReduceOp> beside;
  llvm::DenseSet<mlir::Operation *> kept;
  /// Of maxima the sums that are found along with them, and the other way.
  llvm::DenseMap<mlir::Operation *, ReduceOp> sumsAlong, maximaAlong;
  bool hasRows, scattersInParts;
  llvm::SmallVector<AxesAttr, 2> scalars;
  /// The place of each of the fusion's operations among them.
  llvm::DenseMap<mlir::Operation *, int64_t> numbers;

  IndexSpace space;
  IndexSpace::Nest outer;
  bool wantsFewer = false;
  int64_t wantedTiledSize = 0;
  /// The nest of the results while it is emitted; null when it cannot run in
  /// tiles.
  const IndexSpace::Nest *resultNest = nullptr;
  /// That nest in any case.
  const IndexSpace::Nest *nestOfResults = nullptr;
  /// The first point of the tile, and the one behind its last.
  std::pair<Value, Value> tile;
  int64_t scratchBytes = 0, mostPoints = 1;
  /// The nest being emitted that is not within another.
  const IndexSpace::Nest *wholeNest = nullptr;
  int64_t columnReads = 0, rowReads = 0;
  std::map<LoopPlan *, Neighbours> neighbours;
  /// Of accesses within iterations at neighbouring iterations.
  Neighbours ofColumns;
  /// Null where a point is written by itself.
  Lanes *inLanes = nullptr;
  const Shifted *inShifted = nullptr;
  /// The last atoms of two loops, how many points a side may have, and bytes
  /// that a point has in all tiles.
  struct TileWish {
    int row, column;
    int64_t side, bytes;
  };
  std::optional<TileWish> tileWish;
  /// Where tiles of operands are read.
  mlir::Operation *tilePlace = nullptr;
  /// Where they lie then, by operand and the offset of the first element.
  std::map<std::pair<unsigned, IndexExpr>, Value> tiles;
  /// Parts of results that lie along the other dimension, by result and the
  /// offset of the first element: where they are until the tile is whole.
  struct WrittenTile {
    Value tile;
    int64_t step;
    mlir::Type type;
  };
  std::map<std::pair<unsigned, IndexExpr>, WrittenTile> writtenTiles;
  /// Of choices at run time around what is being emitted.
  int choiceDepth = 0;
  llvm::SmallVector<char> resultDone;
  /// Of results in place that choose between old elements and new ones.
  llvm::SmallVector<std::optional<Staying>> stays;
  /// Results that are stored one part behind the other: of each part all stay
  /// alike, or none does.
  llvm::SmallVector<llvm::SmallVector<unsigned>, 2> parts;
  /// What of each result is stored: the result, or where it has been found that
  /// the old element is not chosen, what is.
  llvm::SmallVector<Value> stored;
  /// Those of the nest that is emitted for which that is yet to be found.
  llvm::SmallVector<unsigned> choosing;
  /// Where the row-level nests being emitted begin, innermost last.
  llvm::SmallVector<mlir::Operation *> anchors;
  int nestDepth = 0;
  using Memo = std::map<std::pair<void *, Indices>, Value>;
  llvm::SmallVector<Memo> memos;
  std::map<RowKey, RowValue> rowValues;
  mlir::Operation *inKept = nullptr;
};

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_EMITTER_H
