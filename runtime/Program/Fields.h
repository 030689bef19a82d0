//===- Fields.h - The fields of programs, by number -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One list of fields serves both directions: an archive is called with each
// field's number and the field, and writes it or, where the number is that of
// what it has read, sets it. Numbers and names are those of CompiledPlan.proto.
// A number is never used for something else again: the version is raised.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_PROGRAM_FIELDS_H
#define AX_RUNTIME_PROGRAM_FIELDS_H

#include "ax/Runtime/CompiledPlan.h"

namespace ax::rt::fields {

// How many values an enumeration has.
template <typename Enum>
constexpr int64_t count = 0;
template <>
inline constexpr int64_t count<DType> = static_cast<int64_t>(DType::F8E5M2) + 1;
template <>
inline constexpr int64_t count<sharding::ReduceKind> =
    static_cast<int64_t>(sharding::ReduceKind::Min) + 1;
template <>
inline constexpr int64_t count<CollectiveKind> =
    static_cast<int64_t>(CollectiveKind::Permute) + 1;
template <>
inline constexpr int64_t count<Activation> =
    static_cast<int64_t>(Activation::Sigmoid) + 1;
template <>
inline constexpr int64_t count<ActivationForm> =
    static_cast<int64_t>(ActivationForm::Gradient) + 1;
template <>
inline constexpr int64_t count<ConvKind> =
    static_cast<int64_t>(ConvKind::WeightGradient) + 1;
template <>
inline constexpr int64_t count<PoolKind> =
    static_cast<int64_t>(PoolKind::MaxGradient) + 1;
template <>
inline constexpr int64_t count<GroupedKind> =
    static_cast<int64_t>(GroupedKind::WeightGradient) + 1;
template <>
inline constexpr int64_t count<MicroBatches> =
    static_cast<int64_t>(MicroBatches::Once) + 1;
template <>
inline constexpr int64_t count<Role> = static_cast<int64_t>(Role::Correct) + 1;
template <>
inline constexpr int64_t count<Space> = static_cast<int64_t>(Space::Kept) + 1;

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

template <typename Archive>
void visit(Archive &a, sharding::Axis &axis) {
  a(1, axis.name), a(2, axis.size), a(3, axis.inTime);
}

template <typename Archive>
void visit(Archive &a, sharding::SubAxis &axis) {
  a(1, axis.axis), a(2, axis.pre), a(3, axis.size);
}

template <typename Archive>
void visit(Archive &a, sharding::Factor &factor) {
  a(1, factor.size), a(2, factor.axes);
}

template <typename Archive>
void visit(Archive &a, sharding::DimLayout &dim) {
  a(1, dim.factors);
}

template <typename Archive>
void visit(Archive &a, sharding::Layout &layout) {
  a(1, layout.dims), a(2, layout.partial), a(3, layout.partialKind);
}

//===----------------------------------------------------------------------===//
// Library operations
//===----------------------------------------------------------------------===//

template <typename Archive>
void visit(Archive &a, TensorDesc &desc) {
  a(1, desc.dtype), a(2, desc.sizes), a(3, desc.strides);
}

template <typename Archive>
void visit(Archive &a, MatmulDesc &desc) {
  a(1, desc.a), a(2, desc.b), a(3, desc.c), a(4, desc.hasBias);
  a(5, desc.hasResidual), a(6, desc.residual), a(7, desc.activation);
  a(8, desc.constantB), a(9, desc.form), a(10, desc.input);
}

template <typename Archive>
void visit(Archive &a, ConvDesc &desc) {
  a(1, desc.kind), a(2, desc.x), a(3, desc.w), a(4, desc.y);
  a(5, desc.strides), a(6, desc.dilations), a(7, desc.padsLow);
  a(8, desc.padsHigh), a(9, desc.groups), a(10, desc.hasBias);
  a(11, desc.hasResidual), a(12, desc.activation);
  a(13, desc.activationLast), a(14, desc.constantW);
}

template <typename Archive>
void visit(Archive &a, PoolDesc &desc) {
  a(1, desc.kind), a(2, desc.x), a(3, desc.y), a(4, desc.dx);
  a(5, desc.kernel), a(6, desc.strides), a(7, desc.dilations);
  a(8, desc.padsLow), a(9, desc.padsHigh), a(10, desc.countIncludePad);
}

template <typename Archive>
void visit(Archive &a, AttentionDesc &desc) {
  a(1, desc.q), a(2, desc.k), a(3, desc.v), a(4, desc.out);
  a(5, desc.hasMask), a(6, desc.mask), a(7, desc.scale), a(8, desc.causal);
  a(9, desc.softcap), a(10, desc.emptyRowsZero), a(11, desc.givesLogSums);
  a(12, desc.emptyRowsMean), a(13, desc.window);
}

template <typename Archive>
void visit(Archive &a, AttentionGradientDesc &desc) {
  a(1, desc.forward), a(2, desc.gradient);
  a(3, desc.dq), a(4, desc.dk), a(5, desc.dv);
}

template <typename Archive>
void visit(Archive &a, TopKDesc &desc) {
  a(1, desc.x), a(2, desc.dim), a(3, desc.k), a(4, desc.smallest);
}

template <typename Archive>
void visit(Archive &a, NonMaxSuppressionDesc &desc) {
  a(1, desc.boxes), a(2, desc.scores), a(3, desc.limit);
  a(4, desc.iouThreshold), a(5, desc.scoreThreshold);
}

template <typename Archive>
void visit(Archive &a, IndexCheckDesc &desc) {
  a(1, desc.indices), a(2, desc.sizes), a(3, desc.isCount);
  a(4, desc.layout), a(5, desc.order);
}

template <typename Archive>
void visit(Archive &a, LookUpDesc &desc) {
  a(1, desc.table), a(2, desc.x);
}

template <typename Archive>
void visit(Archive &a, GroupedMatmulDesc &desc) {
  a(1, desc.kind), a(2, desc.x), a(3, desc.w), a(4, desc.y);
  a(5, desc.groups), a(6, desc.constantW);
}

template <typename Archive>
void visit(Archive &a, BlockMatmulDesc &desc) {
  a(1, desc.x), a(2, desc.w), a(3, desc.scales), a(4, desc.y);
  a(5, desc.bits), a(6, desc.hasZeros);
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

template <typename Archive>
void visit(Archive &a, Labels &labels) {
  a(1, labels.classes), a(2, labels.ignored), a(3, labels.shift);
}

template <typename Archive>
void visit(Archive &a, Port::Count &count) {
  a(1, count.dim), a(2, count.output);
}

template <typename Archive>
void visit(Archive &a, Port &port) {
  a(1, port.name), a(2, port.dtype), a(3, port.shape), a(4, port.layout);
  a(5, port.labels), a(6, port.indexed), a(7, port.isBatched);
  a(8, port.samples), a(9, port.count);
  a(10, port.role);
}

template <typename Archive>
void visit(Archive &a, Dealt &dealt) {
  a(1, dealt.dim), a(2, dealt.parts), a(3, dealt.hands);
}

template <typename Archive>
void visit(Archive &a, State &state) {
  a(1, state.name), a(2, state.dtype), a(3, state.shape), a(4, state.layout);
  a(5, state.file), a(6, state.offset), a(7, state.fingerprint);
  a(8, state.value), a(9, state.isZeroAtFirst), a(10, state.isWeight);
  a(11, state.isMutable), a(12, state.isPrepared), a(13, state.isUnused);
  a(14, state.fileType), a(15, state.dealt);
}

template <typename Archive>
void visit(Archive &a, Transfer &transfer) {
  a(1, transfer.name), a(2, transfer.fromStage), a(3, transfer.toStage);
  a(4, transfer.bytes), a(5, transfer.slots);
}

template <typename Archive>
void visit(Archive &a, Kept &kept) {
  a(1, kept.name), a(2, kept.bytes), a(3, kept.slots), a(4, kept.isOnce);
}

template <typename Archive>
void visit(Archive &a, Buffer &buffer) {
  a(1, buffer.space), a(2, buffer.offset), a(3, buffer.index);
  a(4, buffer.bytes), a(5, buffer.name);
}

template <typename Archive>
void visit(Archive &a, BufferRef &ref) {
  a(1, ref.buffer), a(2, ref.byteOffset);
}

template <typename Archive>
void visit(Archive &a, Scalar &scalar) {
  a(1, scalar.constant), a(2, scalar.scale), a(3, scalar.axes);
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

template <typename Archive>
void visit(Archive &a, KernelArgument &argument) {
  a(1, argument.bytes), a(2, argument.alignment), a(3, argument.isWritten);
}

template <typename Archive>
void visit(Archive &a, LaunchShape &shape) {
  a(1, shape.blocks), a(2, shape.threadsPerBlock), a(3, shape.groupThreads);
}

template <typename Archive>
void visit(Archive &a, Kernel &kernel) {
  a(1, kernel.name), a(2, kernel.key), a(3, kernel.format);
  a(4, kernel.entry), a(5, kernel.image), a(6, kernel.scratchBytes);
  a(8, kernel.arguments), a(9, kernel.scalarBounds);
  a(10, kernel.iterations), a(11, kernel.launch);
}

template <typename Archive>
void visit(Archive &a, KernelCommand &command) {
  a(1, command.kernel), a(2, command.buffers), a(3, command.scalars);
}

template <typename Archive>
void visit(Archive &a, LibraryCommand &command) {
  // 2 to 8: an operation each.
  a(1, command.arguments), a(2, command.desc);
}

template <typename Archive>
void visit(Archive &a, CollectivePart &part) {
  a(1, part.kind), a(2, part.reduce), a(3, part.dtype), a(4, part.shape);
  a(5, part.gatherDim), a(6, part.gatherSize), a(7, part.scatterDim);
  a(8, part.scatterPart), a(9, part.permutation);
  a(11, part.source), a(12, part.destination);
}

template <typename Archive>
void visit(Archive &a, CollectiveCommand &command) {
  a(1, command.parts), a(2, command.groupSet), a(3, command.request);
  a(4, command.reduction);
}

template <typename Archive>
void visit(Archive &a, WaitCommand &command) {
  a(1, command.request);
}

template <typename Archive>
void visit(Archive &a, CopyCommand &command) {
  a(1, command.source), a(2, command.destination);
  a(3, command.elementBytes), a(4, command.sizes);
  a(5, command.sourceStrides), a(6, command.destinationStrides);
}

template <typename Archive>
void visit(Archive &a, SendCommand &command) {
  a(1, command.transfer), a(2, command.source);
}

template <typename Archive>
void visit(Archive &a, RecvCommand &command) {
  a(1, command.transfer);
}

template <typename Archive>
void visit(Archive &a, FaultCommand &command) {
  a(1, command.check), a(2, command.word);
}

template <typename Archive>
void visit(Archive &a, Command &command) {
  // 4 to 11: a body each.
  a(1, command.name), a(2, command.bytes), a(3, command.nodes);
  a(4, command.body), a(12, command.microBatches);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

template <typename Archive>
void visit(Archive &a, GroupSet &groups) {
  a(1, groups.name), a(2, groups.groups);
}

template <typename Archive>
void visit(Archive &a, CommandList &list) {
  a(1, list.name), a(2, list.commands), a(3, list.isOnceAStep);
}

template <typename Archive>
void visit(Archive &a, Action &action) {
  a(1, action.microBatch), a(2, action.list);
}

template <typename Archive>
void visit(Archive &a, StageProgram &stage) {
  a(1, stage.name), a(2, stage.ranks), a(3, stage.buffers);
  a(4, stage.arenaBytes), a(5, stage.kept), a(6, stage.groups);
  a(7, stage.lists), a(8, stage.schedule);
}

template <typename Archive>
void visit(Archive &a, Program &program) {
  a(1, program.name), a(2, program.mesh), a(3, program.inputs);
  a(4, program.outputs), a(5, program.states), a(6, program.transfers);
  a(7, program.kernels), a(8, program.stages), a(9, program.learningRateSteps);
  a(10, program.optimizer), a(11, program.folded);
  a(12, program.foldedParameters);
  a(13, program.predictedSeconds), a(14, program.predictedFor);
}

template <typename Archive>
void visit(Archive &a, PlanFiles &files) {
  a(1, files.folder), a(2, files.fingerprints), a(3, files.ofStates);
}

template <typename Archive>
void visit(Archive &a, EmbeddedPiece &piece) {
  a(1, piece.bytes), a(2, piece.checksum);
}

template <typename Archive>
void visit(Archive &a, CodeTarget &target) {
  a(1, target.name), a(2, target.features);
}

template <typename Archive>
void visit(Archive &a, TargetPrograms &programs) {
  a(1, programs.target), a(2, programs.programs);
}

template <typename Archive>
void visit(Archive &a, CompiledPlan &plan) {
  // Up to version 5, 1, 2 and 7 were its only target.
  a(3, plan.text), a(4, plan.files), a(5, plan.states), a(6, plan.isTraining);
  // 9: the weights themselves (EmbeddedWeights.h).
  a(8, plan.embedded), a(10, plan.targets);
}

} // namespace ax::rt::fields

#endif // AX_RUNTIME_PROGRAM_FIELDS_H
