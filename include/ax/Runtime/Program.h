//===- Program.h - Command lists: what the executor runs --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contract between Codegen, which makes a Program, and the executor, which
// runs it. Plain data, no MLIR. A few command lists per pipeline stage
// (forward, backward, update), the same for all its ranks; what depends on the
// rank or the micro-batch is worked out here from mesh coordinates.
//
// All sizes are local (per rank) unless they say global. A dimension that does
// not divide has local extent ceil(n / p); the elements of the last parts that
// do not exist (padding) are zero in inputs and state, anything elsewhere.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_PROGRAM_H
#define AX_RUNTIME_PROGRAM_H

#include "ax/Runtime/Collective.h"
#include "ax/Runtime/LibraryOps.h"
#include "ax/Sharding/Layout.h"
#include "ax/Support/HostTensor.h"
#include "ax/Support/PiecedTensor.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ax {
class MappedFile;
} // namespace ax

namespace ax::rt {

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

/// What an input that holds labels may hold.
struct Labels {
  /// 0 .. classes - 1, and `ignored`.
  int64_t classes = 0;
  int64_t ignored = 0;
  /// So many places does the program itself move them to the left along their
  /// last dimension.
  int64_t shift = 0;

  bool allow(int64_t value) const {
    return (value >= 0 && value < classes) || value == ignored;
  }
  /// What is allowed, behind "is none of".
  std::string describe() const;
};

/// What training takes an output for.
enum class Role {
  Loss,
  GradientNorm,
  LearningRate,
  LossScale,
  LossSum,
  LossCount,
  Correct
};

/// A global tensor given to, or made by, one run. Each rank of every stage that
/// names it holds its part for the current micro-batch.
struct Port {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
  /// Axes in time choose the micro-batch's slice. Never partial.
  sharding::Layout layout;
  std::optional<Labels> labels;
  /// An input's: all of its elements are indices into a dimension of this
  /// size, negative ones counted from the end. Runs check that, too.
  std::optional<int64_t> indexed = std::nullopt;
  /// An input's: its first dimension counts the samples of a batch.
  bool isBatched = true;
  /// An output's: the dimension that counts samples; nothing if none does.
  std::optional<int64_t> samples = std::nullopt;
  /// An output's, in a program that trains: what it is taken for.
  std::optional<Role> role = std::nullopt;
  /// An output's that has room for more results than there may be: the
  /// dimension along which they come first, and which output says how many
  /// there are.
  struct Count {
    int64_t dim = 0;
    size_t output = 0;
  };
  std::optional<Count> count = std::nullopt;
};

std::vector<std::string> namesOf(const std::vector<Port> &ports);

/// A tensor that lives across runs: a weight, or a constant of the plan.
struct State {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
  /// How ranks store it: never partial, no axes in time.
  sharding::Layout layout;
  /// Where the global tensor comes from, row-major and little endian: bytes
  /// [offset, offset + its size) of `file` (relative to the folder given when
  /// the program is loaded); without a file `value`, or zero.
  std::string file;
  int64_t offset = 0;
  /// The type of its elements in the file, where that is a narrower one.
  std::optional<DType> fileType;
  /// What the file must have that holds the state (MappedFile::fingerprint), as
  /// the one had that the program was made from; empty: any file will do.
  std::string fingerprint;
  /// The order in which ranks have a dimension. Files, and tensors that are
  /// given in their place, have the model's.
  std::optional<Dealt> dealt;
  /// The file, where it is open: that of a compiled plan that has its weights
  /// itself. It is not opened by its name again, which may be another's by
  /// then.
  std::shared_ptr<MappedFile> openFile;
  HostTensor value;
  /// In place of `value` and the file; null where the state is no such.
  std::shared_ptr<const PiecedTensor> pieces;
  /// Zero unless there is a value.
  bool isZeroAtFirst = false;
  /// The plan has it from a file.
  bool isWeight = false;
  /// Commands write to it, in this program or in another over the same states:
  /// every rank keeps a copy of its own.
  bool isMutable = false;
  /// What another program has stored in it once, if it is not mutable.
  bool isPrepared = false;
  /// A weight that only other programs use; what a run saves has it, too.
  bool isUnused = false;

  DType getTypeInFile() const { return fileType.value_or(dtype); }

  /// It begins as the tensor, which has its type and shape, in the model's
  /// order, and no file.
  void give(const HostTensor &tensor) {
    if (dealt)
      return give(PiecedTensor::of(tensor));
    file.clear();
    offset = 0;
    value = tensor;
    pieces.reset();
  }
  void give(PiecedTensor tensor) {
    file.clear();
    offset = 0;
    value = HostTensor();
    tensor.wanted = dealt;
    pieces = std::make_shared<const PiecedTensor>(std::move(tensor));
  }
};

/// A value sent from the ranks of one stage to those of another: i-th to i-th.
/// A tensor that one list sends and one receives, for the same micro-batches in
/// one order.
struct Transfer {
  std::string name;
  int32_t fromStage = 0;
  int32_t toStage = 0;
  int64_t bytes = 0;
  /// How many micro-batches' values the receiver can hold at a time.
  int32_t slots = 2;
};

enum class Space {
  Arena,  ///< `offset` in the rank's arena; contents last for one command list
  State,  ///< Program::states[index], the rank's part
  Input,  ///< Program::inputs[index], the rank's part for this micro-batch
  Output, ///< Program::outputs[index], likewise; every rank writes its part
  Received, ///< Program::transfers[index], after its Recv
  Kept,     ///< StageProgram::kept[index], the slot of this micro-batch
};

/// A value that one list of a stage leaves for others, or for its own later
/// steps. Slot `micro-batch % slots` is that of a micro-batch; zero before the
/// first run.
struct Kept {
  std::string name;
  int64_t bytes = 0;
  int32_t slots = 1;
  /// Commands make it once (MicroBatches::Once), for all steps until others
  /// do; it has one slot.
  bool isOnce = false;
};

constexpr int64_t bufferAlignment = 64;

/// A contiguous piece of memory of one rank; starts are multiples of
/// bufferAlignment.
struct Buffer {
  Space space = Space::Arena;
  int64_t offset = 0;
  int32_t index = 0;
  int64_t bytes = 0;
  /// The plan's name of the value, for traces and messages.
  std::string name;
};

/// A place in StageProgram::buffers[buffer].
struct BufferRef {
  int32_t buffer = -1;
  int64_t byteOffset = 0;
};

/// constant + scale * (the rank's number along `axes` at the current
/// micro-batch), see sharding::Mesh::index.
struct Scalar {
  int64_t constant = 0;
  int64_t scale = 0;
  sharding::SubAxes axes;
};

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

/// What a kernel's code can be; devices say what they load.
namespace kernelFormat {
/// A relocatable object file, whose entry is a function of the C interface:
/// void entry(void *const *buffers, const int64_t *scalars, int64_t begin,
/// int64_t end), which does iterations begin <= i < end of the kernel's
/// outermost loop. `buffers`: one address per argument, offsets added.
inline constexpr const char *elfX86 = "elf-x86-64";
/// Text for GPUs of NVIDIA's, ended by a NUL, whose entry is a kernel: of any
/// grid of blocks in one dimension, each thread does its part of the
/// iterations. It has up to 48 KiB of shared memory, declared in it. Its
/// parameters: an address per argument, offsets added; then the scalars, 64
/// bits each; then, of a kernel with scratch, the address of that. Behind the
/// NUL there may be an object file for x86-64 with the same function, which
/// calls `simgpu_tid_x`, `simgpu_ntid_x`, `simgpu_ctaid_x` and
/// `simgpu_nctaid_x` to know which thread it is; `simgpu_barrier`,
/// `simgpu_warp_barrier`, `simgpu_shfl_bfly` and `simgpu_shfl_idx`, with the
/// operands of the instructions of that name, to meet others; and
/// `simgpu_shared` for the address of its block's shared memory, from so many
/// bytes on; and with `ENTRY_call`, which takes an array of the parameters'
/// addresses instead.
inline constexpr const char *ptx = "ptx";
} // namespace kernelFormat

/// On how many threads of a GPU a kernel is to be launched. Any other number of
/// blocks is right, too, with as much scratch as they need; and of threads,
/// where groups have one.
struct LaunchShape {
  int64_t blocks = 0;
  int64_t threadsPerBlock = 0;
  /// So many of a block do an iteration together.
  int64_t groupThreads = 1;

  int64_t numThreads() const { return blocks * threadsPerBlock; }
  int64_t numGroups() const { return numThreads() / groupThreads; }
};

/// What a kernel's code does with one of the buffers that it is given.
struct KernelArgument {
  /// It touches so many bytes from the address on.
  int64_t bytes = 0;
  /// The address is a multiple of it, a power of 2 up to that of buffers.
  int64_t alignment = 1;
  bool isWritten = false;
};

/// Code as data: only a device makes something that runs of it. It does
/// independent iterations of one loop, which may run at the same time. What is
/// said here of the code is as trusted as the code; commands are held against
/// it.
struct Kernel {
  /// Names it in traces.
  std::string name;
  /// Equal keys are equal code: a hash of what it was compiled from, of the
  /// compiler and of the processor.
  std::string key;
  std::string format;
  /// Symbol in the image.
  std::string entry;
  std::vector<uint8_t> image;
  /// When > 0: one more buffer after the command's, private to each thread that
  /// calls it and aligned to 64 bytes; its content does not matter. A kernel
  /// that is launched gets those of all groups, one behind the other.
  int64_t scratchBytes = 0;
  std::vector<KernelArgument> arguments;
  /// Scalar i is from 0 to less than bound i.
  std::vector<int64_t> scalarBounds;
  /// The loop has so many iterations, all of which have to be done, in any
  /// order.
  int64_t iterations = 1;
  /// Of PTX; zero for what is called instead.
  LaunchShape launch;
};

struct KernelCommand {
  int32_t kernel = 0;
  std::vector<BufferRef> buffers;
  std::vector<Scalar> scalars;
};

struct LibraryCommand {
  LibraryDesc desc;
  /// Operands and results, in the order that the description documents.
  std::vector<BufferRef> arguments;
};

/// One tensor of a collective; see CollectiveSpec for the shapes.
struct CollectivePart : CollectiveSpec {
  /// They must not overlap, except that AllReduce may have
  /// destination == source.
  BufferRef source, destination;
};

/// How a device does what an AllReduce or a ReduceScatter computes, in the
/// order of the members: by a kernel that has the sources of all of them for
/// buffers, then the destinations, of an AllReduce those of all members, of a
/// ReduceScatter one. A destination may be a source. Its scalars, of which
/// commands that launch a kernel have none but 0, are how many rows of elements
/// there are, how many elements a row has, and how many lie between the
/// beginnings of two rows, in sources and in destinations.
namespace reductionKernel {
inline constexpr size_t numScalars = 4;
size_t numBuffers(CollectiveKind kind, size_t members);
} // namespace reductionKernel

/// One collective in each group of a group set.
struct CollectiveCommand {
  /// What is exchanged: at least one tensor, all by one kind of collective.
  std::vector<CollectivePart> parts;
  /// Into StageProgram::groups.
  int32_t groupSet = 0;
  /// >= 0: only started here; a WaitCommand of that number, in the same list,
  /// comes before the destination is read or the source is overwritten.
  int32_t request = -1;
  /// The kernel that reduces on devices (reductionKernel); -1: the host does.
  int32_t reduction = -1;
};

struct WaitCommand {
  int32_t request = 0;
};

/// Element-wise copy of a strided box.
struct CopyCommand {
  BufferRef source, destination;
  int64_t elementBytes = 4;
  std::vector<int64_t> sizes;
  /// How many elements lie between neighbours, for each dimension.
  std::vector<int64_t> sourceStrides, destinationStrides;
};

/// Sends `source` (transfer.bytes long) for the current micro-batch. What comes
/// behind it in the list does not overwrite the source.
struct SendCommand {
  int32_t transfer = 0;
  BufferRef source;
};

/// Waits for the transfer's value of the current micro-batch; Received buffers
/// of it are valid until the end of the command list.
struct RecvCommand {
  int32_t transfer = 0;
};

/// Keeps what kernels found of a check of indices until the request ends: two
/// i64 at `word`, the place of the first index that is out of range, as in
/// IndexFault::Entry, and the index. None is where there is no such place.
struct FaultCommand {
  IndexCheckDesc check;
  BufferRef word;
};
inline constexpr int64_t faultWordBytes = 16;

/// For which micro-batches a command is done, in a list that is done for each
/// of them; Once: when the list is done for the first time of all.
enum class MicroBatches { All, First, AllButFirst, Once };

struct Command {
  std::variant<KernelCommand, LibraryCommand, CollectiveCommand, WaitCommand,
               CopyCommand, SendCommand, RecvCommand, FaultCommand>
      body;
  /// The plan's name: ONNX node or value, with its cause; in traces, timings
  /// and error messages.
  std::string name;
  /// Bytes read and written, for reports; 0 when unknown.
  int64_t bytes = 0;
  /// The ONNX nodes that it computes, for reports.
  std::vector<std::string> nodes;
  /// First and AllButFirst only of products; Once only of what computes.
  MicroBatches microBatches = MicroBatches::All;

  /// Whether it is done for a micro-batch, where its list has been done before
  /// or not.
  bool isFor(int32_t microBatch, bool isFirstTime) const {
    switch (microBatches) {
    case MicroBatches::All:
      return true;
    case MicroBatches::First:
      return microBatch == 0;
    case MicroBatches::AllButFirst:
      return microBatch != 0;
    case MicroBatches::Once:
      return isFirstTime;
    }
    return false;
  }
};

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// A partition of (some of) a stage's ranks into groups of equal size that do
/// the same collectives.
struct GroupSet {
  /// `{col}`: for messages.
  std::string name;
  std::vector<std::vector<int32_t>> groups;
};

/// What is done in one go.
struct CommandList {
  /// `B`: forward lists have none.
  std::string name;
  std::vector<Command> commands;
  /// The list is done once a step, not for each micro-batch.
  bool isOnceAStep = false;
};

/// One entry of a schedule: a list for one micro-batch; 0 for what is done once
/// a step.
struct Action {
  int32_t microBatch = 0;
  int32_t list = 0;
};

struct StageProgram {
  std::string name;
  /// The stage's ranks, in increasing order. Stages have the same number of
  /// them, and none in common.
  std::vector<int32_t> ranks;
  std::vector<Buffer> buffers;
  /// How large an arena the list needs that needs most.
  int64_t arenaBytes = 0;
  std::vector<Kept> kept;
  std::vector<GroupSet> groups;
  std::vector<CommandList> lists;
  std::vector<Action> schedule;

  /// Returns the commands of all lists, one after another.
  std::vector<const Command *> allCommands() const;
};

struct Program {
  std::string name;
  /// Ranks are 0 .. mesh.numRanks() - 1, all of them in some stage.
  sharding::Mesh mesh;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<State> states;
  /// Weights of the model of which constants were made, by name: fingerprintOf
  /// each. Other values of them need another program.
  std::map<std::string, std::string> folded;
  /// Those of them that a file which has the model's weights has.
  std::vector<std::string> foldedParameters;
  std::vector<Transfer> transfers;
  std::vector<Kernel> kernels;
  std::vector<StageProgram> stages;
  /// Steps of training that the learning rate's schedule has; 0: any number.
  int64_t learningRateSteps = 0;
  /// What it trains with, as `adamw(lr=0.001,...)`; empty: not said.
  std::string optimizer;
  /// How long one step was predicted to take, and on which machine; 0: nobody
  /// has asked.
  double predictedSeconds = 0;
  std::string predictedFor;
};

/// The group of every rank of `ranks` over `axes`, each group once.
GroupSet makeGroupSet(const sharding::Mesh &mesh, const sharding::SubAxes &axes,
                      const std::vector<int32_t> &ranks);

/// The buffers that a command works on: of a collective all sources, then all
/// destinations.
std::vector<BufferRef> buffersOf(const Command &command);

/// `kernel`, `matmul 128x512 x ...`, `all_reduce {col}`: what a command does.
std::string describe(const Program &program, const StageProgram &stage,
                     const Command &command);

/// A fault that would make the executor read or write outside buffers, hang or
/// mix up ranks: ids out of range, arguments larger than their buffers, groups
/// with foreign ranks, requests without wait, transfers without both ends,
/// stages that wait for each other (orderExchanges). A BadPlan error naming
/// stage and command.
llvm::Error checkProgram(const Program &program);

} // namespace ax::rt

#endif // AX_RUNTIME_PROGRAM_H
