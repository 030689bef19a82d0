//===- CheckProgramTest.cpp - Every fault of a program is named -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramBuilder.h"

#include "ax/Support/Error.h"

#include <functional>
#include <gtest/gtest.h>

namespace ax::rt {
namespace {

/// Two stages of two ranks, two micro-batches; one command of each kind. The
/// commands of stage 0 are kernel, sum, wait, copy, send.
ProgramBuilder makeProgram() {
  ProgramBuilder b({{"pipe", 2, false}, {"col", 2, false}, {"micro", 2, true}});
  sharding::Layout layout = b.split({8}, {b.over("micro")});
  b.stages(2);
  int32_t in = b.buffer(0, Space::Input, b.input("x", {8}, layout), 16);
  int32_t sum = b.buffer(0, Space::Arena, 0, 16);
  int32_t copied = b.buffer(0, Space::Arena, 0, 16);
  b.kernel(0, "double", doublePlusOne, {in, sum}, 4);
  b.allReduce(0, b.group(0, "col"), sum, sum, {4}, 0);
  b.add(0, WaitCommand{0}, "wait");
  CopyCommand copy;
  copy.sizes = {4};
  copy.sourceStrides = copy.destinationStrides = {1};
  copy.source = {sum, 0};
  copy.destination = {copied, 0};
  b.add(0, copy, "copy");
  b.transfer(0, 16, 2);
  b.add(0, SendCommand{0, {copied, 0}}, "send");
  b.add(1, RecvCommand{0}, "recv");
  int32_t received = b.buffer(1, Space::Received, 0, 16);
  int32_t w =
      b.buffer(1, Space::State,
               b.state("w", countingTensor({4, 4}), b.split({4, 4}, {})), 64);
  int32_t out = b.buffer(1, Space::Output, b.output("y", {8}, layout), 16);
  LibraryCommand matmul;
  MatmulDesc desc;
  desc.a = TensorDesc{DType::F32, {1, 4}, {4, 1}};
  desc.b = TensorDesc{DType::F32, {4, 4}, {4, 1}};
  desc.c = TensorDesc{DType::F32, {1, 4}, {4, 1}};
  desc.constantB = true;
  matmul.desc = desc;
  matmul.arguments = {{received, 0}, {w, 0}, {out, 0}};
  b.add(1, matmul, "matmul");
  return b;
}

template <typename C>
C &command(Program &program, size_t stage, size_t number) {
  return std::get<C>(program.stages[stage].lists[0].commands[number].body);
}

/// In place of the product of stage 1: a check of 4 indices, part of what has
/// `layout`.
void checkIndices(Program &program, sharding::Layout layout) {
  auto &library = command<LibraryCommand>(program, 1, 1);
  IndexCheckDesc check;
  check.indices = TensorDesc::dense(DType::I32, {4});
  check.sizes = {7};
  check.layout = std::move(layout);
  library.desc = check;
  library.arguments.erase(library.arguments.begin() + 1);
}

/// Kernels check four indices into a dimension of `size`.
void reportFault(Program &program, int64_t size, BufferRef word) {
  FaultCommand fault;
  fault.check.indices = TensorDesc::dense(DType::I32, {4});
  fault.check.sizes = {size};
  fault.check.layout = sharding::Layout::replicated({4});
  fault.word = word;
  program.stages[0].lists[0].commands.push_back({fault, "fault", 0, {}});
}

/// Stage 0 has to have what stage 1 makes of what it will send.
void waitForEachOther(Program &program) {
  program.transfers.push_back({"back", 1, 0, 16, 2});
  Command receive, send;
  receive.body = RecvCommand{1};
  send.body = SendCommand{1, {0, 0}};
  program.stages[0].lists.push_back({"L", {receive}});
  program.stages[0].schedule = {{0, 1}, {0, 0}, {1, 1}, {1, 0}};
  program.stages[1].lists[0].commands.push_back(send);
}

struct Fault {
  const char *message;
  std::function<void(Program &)> make;
};

const Fault faults[] = {
    // Ranks and schedules
    {"stages have different numbers of ranks",
     [](Program &p) { p.stages[0].ranks.pop_back(); }},
    {"rank 9 is impossible", [](Program &p) { p.stages[1].ranks[1] = 9; }},
    {"rank 0 is impossible", [](Program &p) { p.stages[1].ranks[1] = 0; }},
    {"a rank of the mesh is in no stage",
     [](Program &p) { p.stages.pop_back(); }},
    {"micro-batch 0 is scheduled twice or does not exist",
     [](Program &p) { p.stages[0].schedule[1].microBatch = 0; }},
    {"a micro-batch is not scheduled",
     [](Program &p) { p.stages[0].schedule.pop_back(); }},
    {"its micro-batches are sent in another order than received",
     [](Program &p) {
       std::swap(p.stages[1].schedule[0], p.stages[1].schedule[1]);
     }},
    // Mesh
    {"mesh: more ranks and slices than there can be, or none",
     [](Program &p) {
       p.mesh = sharding::Mesh({{"col", int64_t(1) << 40, false},
                                {"micro", int64_t(1) << 40, true}});
     }},
    {"mesh: more ranks and slices than there can be, or none",
     [](Program &p) { p.mesh = sharding::Mesh({{"col", 0, false}}); }},
    // Ports and states
    {"output 'y': samples along a dimension that it has not",
     [](Program &p) { p.outputs[0].samples = 9; }},
    {"output 'y': samples along a dimension that it has not",
     [](Program &p) { p.outputs[0].samples = -1; }},
    {"output 'y': results along a dimension, or counted by an output, that is "
     "not there",
     [](Program &p) { p.outputs[0].count = Port::Count{0, 1}; }},
    {"input 'x': it is partial",
     [](Program &p) { p.inputs[0].layout.partial = {p.mesh.whole("col")}; }},
    {"output 'y': its size is impossible",
     [](Program &p) {
       p.outputs[0].shape = {int64_t(1) << 62, 4};
       p.outputs[0].layout = sharding::Layout::replicated(p.outputs[0].shape);
     }},
    {"state 'w': a file has not that type of it",
     [](Program &p) {
       State state;
       state.name = "w";
       state.shape = {4};
       state.layout = sharding::Layout::replicated(state.shape);
       state.fileType = DType::I32;
       p.states.push_back(state);
     }},
    // Buffers
    {"its offset is not a multiple of 64",
     [](Program &p) { p.stages[0].buffers[1].offset = 8; }},
    {"buffer 'b1': its 200 bytes do not fit",
     [](Program &p) { p.stages[0].buffers[1].bytes = 200; }},
    {"no such state", [](Program &p) { p.stages[1].buffers[1].index = 1; }},
    {"no such input or output",
     [](Program &p) { p.stages[0].buffers[0].index = -1; }},
    {"buffer 'b0': no such transfer",
     [](Program &p) { p.stages[1].buffers[0].index = 7; }},
    {"a transfer to another stage",
     [](Program &p) { p.stages[0].buffers[0] = p.stages[1].buffers[0]; }},
    // Groups
    {"groups have different sizes",
     [](Program &p) { p.stages[0].groups[0].groups.push_back({0}); }},
    {"rank 2 is foreign or repeated",
     [](Program &p) { p.stages[0].groups[0].groups[0][1] = 2; }},
    {"a rank is in no group",
     [](Program &p) { p.stages[0].groups[0].groups[0].pop_back(); }},
    // Commands
    {"'double': no such kernel",
     [](Program &p) { command<KernelCommand>(p, 0, 0).kernel = 5; }},
    {"the kernel has no code", [](Program &p) { p.kernels[0].image.clear(); }},
    {"kernel 'double': negative iterations",
     [](Program &p) { p.kernels[0].iterations = -1; }},
    {"kernel 'double': it has no room",
     [](Program &p) { p.kernels[0].scratchBytes = int64_t(1) << 60; }},
    {"kernel 'double': no launch that GPUs do",
     [](Program &p) { p.kernels[0].format = kernelFormat::ptx; }},
    {"kernel 'double': no launch that GPUs do",
     [](Program &p) {
       p.kernels[0].format = kernelFormat::ptx;
       p.kernels[0].launch = {1, 2048};
     }},
    {"kernel 'double': its threads have no room",
     [](Program &p) {
       p.kernels[0].format = kernelFormat::ptx;
       p.kernels[0].launch = {int64_t(1) << 30, 1024};
       p.kernels[0].scratchBytes = 4;
     }},
    {"kernel 'double': no launch that GPUs do",
     [](Program &p) {
       p.kernels[0].format = kernelFormat::ptx;
       p.kernels[0].launch = {1, 100, /*groupThreads=*/32};
     }},
    {"kernel 'double': no launch that GPUs do",
     [](Program &p) {
       p.kernels[0].format = kernelFormat::ptx;
       p.kernels[0].launch = {1, 32, /*groupThreads=*/0};
     }},
    {"kernel 'double': an impossible argument",
     [](Program &p) { p.kernels[0].arguments[0].alignment = 0; }},
    {"the kernel has another number of buffers",
     [](Program &p) { p.kernels[0].arguments.pop_back(); }},
    {"the kernel has another number of scalars",
     [](Program &p) { command<KernelCommand>(p, 0, 0).scalars = {{}}; }},
    {"a scalar that the kernel does not take",
     [](Program &p) {
       p.kernels[0].scalarBounds = {2};
       command<KernelCommand>(p, 0, 0).scalars = {
           {1, 1, {p.mesh.whole("col")}}};
     }},
    {"a scalar that the kernel does not take",
     [](Program &p) {
       p.kernels[0].scalarBounds = {2};
       command<KernelCommand>(p, 0, 0).scalars = {
           {0, INT64_MAX, {p.mesh.whole("micro"), p.mesh.whole("col")}}};
     }},
    {"the mesh has no axis 'other'",
     [](Program &p) {
       p.kernels[0].scalarBounds = {2};
       command<KernelCommand>(p, 0, 0).scalars = {{0, 1, {{"other", 1, 2}}}};
     }},
    {"16 bytes at 4 are not inside buffer 'b0' of 16",
     [](Program &p) {
       command<KernelCommand>(p, 0, 0).buffers[0].byteOffset = 4;
     }},
    {"byte 2 of buffer 'b1' begins no element",
     [](Program &p) {
       p.kernels[0].arguments[1].bytes = 8;
       command<KernelCommand>(p, 0, 0).buffers[1].byteOffset = 2;
     }},
    {"it writes to buffer 'b0', which does not change",
     [](Program &p) { command<KernelCommand>(p, 0, 0).buffers[1] = {0, 0}; }},
    {"'double': no such buffer",
     [](Program &p) {
       command<KernelCommand>(p, 0, 0).buffers[0].buffer = 17;
     }},
    {"16 bytes at -4 are not inside buffer 'b0' of 16",
     [](Program &p) {
       command<KernelCommand>(p, 0, 0).buffers[0].byteOffset = -4;
     }},
    {"no such group set",
     [](Program &p) { command<CollectiveCommand>(p, 0, 1).groupSet = 1; }},
    {"no such kernel",
     [](Program &p) { command<CollectiveCommand>(p, 0, 1).reduction = 99; }},
    // Of what a command launches.
    {"a kernel that does not reduce",
     [](Program &p) { command<CollectiveCommand>(p, 0, 1).reduction = 0; }},
    {"a kernel for what reduces nothing",
     [](Program &p) {
       auto &collective = command<CollectiveCommand>(p, 0, 1);
       collective.parts[0].kind = CollectiveKind::Permute;
       collective.parts[0].permutation = {1, 0};
       collective.reduction = 0;
     }},
    {"its request is in use",
     [](Program &p) {
       p.stages[0].lists[0].commands[2] = p.stages[0].lists[0].commands[1];
     }},
    {"nothing to wait for",
     [](Program &p) { command<WaitCommand>(p, 0, 2).request = 3; }},
    {"a collective is never waited for",
     [](Program &p) {
       p.stages[0].lists[0].commands.erase(
           p.stages[0].lists[0].commands.begin() + 2);
     }},
    {"'copy': sizes and strides do not match",
     [](Program &p) { command<CopyCommand>(p, 0, 3).sizes.push_back(1); }},
    {"'copy': 20 bytes at 0 are not inside buffer 'b1' of 16",
     [](Program &p) { command<CopyCommand>(p, 0, 3).sizes[0] = 5; }},
    {"'send': no such transfer",
     [](Program &p) { command<SendCommand>(p, 0, 4).transfer = 1; }},
    {"sent from a foreign stage",
     [](Program &p) { p.transfers[0].fromStage = 1; }},
    {"sent twice",
     [](Program &p) {
       p.stages[0].lists[0].commands.push_back(
           p.stages[0].lists[0].commands[4]);
     }},
    {"'recv': no such transfer",
     [](Program &p) { command<RecvCommand>(p, 1, 0).transfer = -1; }},
    {"received by a foreign stage",
     [](Program &p) {
       p.stages[0].lists[0].commands.push_back(
           p.stages[1].lists[0].commands[0]);
     }},
    {"'double': only a product that is done for each micro-batch may be left "
     "out of some",
     [](Program &p) {
       p.stages[0].lists[0].commands[0].microBatches = MicroBatches::First;
     }},
    {"'matmul': only a product that is done for each micro-batch may be left "
     "out of some",
     [](Program &p) {
       checkIndices(p, sharding::Layout::replicated({4}));
       p.stages[1].lists[0].commands[1].microBatches =
           MicroBatches::AllButFirst;
     }},
    {"'matmul': only a product that is done for each micro-batch may be left "
     "out of some",
     [](Program &p) {
       p.stages[1].lists[0].isOnceAStep = true;
       p.stages[1].lists[0].commands[1].microBatches = MicroBatches::First;
     }},
    {"'matmul': only what computes may be done once",
     [](Program &p) {
       checkIndices(p, sharding::Layout::replicated({4}));
       p.stages[1].lists[0].commands[1].microBatches = MicroBatches::Once;
     }},
    {"kept value 'made once': it is of no micro-batch and has several slots",
     [](Program &p) { p.stages[0].kept.push_back({"made once", 4, 2, true}); }},
    {"'recv': only what computes may be done once",
     [](Program &p) {
       p.stages[1].lists[0].commands[0].microBatches = MicroBatches::Once;
     }},
    {"received twice",
     [](Program &p) {
       p.stages[1].lists[0].commands.push_back(
           p.stages[1].lists[0].commands[0]);
     }},
    {"'matmul': wrong number of arguments",
     [](Program &p) { command<LibraryCommand>(p, 1, 1).arguments.pop_back(); }},
    {"'matmul': sizes and strides do not match",
     [](Program &p) {
       std::get<MatmulDesc>(command<LibraryCommand>(p, 1, 1).desc)
           .a.strides.pop_back();
     }},
    {"'copy': impossible strides",
     [](Program &p) {
       command<CopyCommand>(p, 0, 3).sourceStrides[0] = INT64_MAX / 2;
     }},
    {"'copy': impossible strides",
     [](Program &p) {
       command<CopyCommand>(p, 0, 3).destinationStrides[0] = -1;
     }},
    {"buffer 'b0' is not yet received",
     [](Program &p) {
       std::swap(p.stages[1].lists[0].commands[0],
                 p.stages[1].lists[0].commands[1]);
     }},
    {"buffer 'b0' is another list's",
     [](Program &p) {
       p.stages[0].lists.push_back({"L", {p.stages[0].lists[0].commands[0]}});
     }},
    {"it writes to buffer 'b1', which does not change",
     [](Program &p) {
       command<LibraryCommand>(p, 1, 1).arguments[2] = {1, 0};
     }},
    {"'matmul': its sizes do not fit each other",
     [](Program &p) {
       std::get<MatmulDesc>(command<LibraryCommand>(p, 1, 1).desc).c.sizes = {
           1, 3};
     }},
    {"'matmul': a layout of other indices",
     [](Program &p) { checkIndices(p, sharding::Layout::replicated({5})); }},
    {"'matmul': impossible sizes",
     [](Program &p) {
       constexpr int64_t size = int64_t(1) << 40;
       sharding::Layout layout = sharding::Layout::replicated({4});
       layout.dims[0].factors = {{size, {}}, {size, {}}};
       checkIndices(p, layout);
     }},
    {"'fault': its sizes do not fit each other",
     [](Program &p) { reportFault(p, -1, {2, 0}); }},
    {"'fault': a size of 0, of which there is no index to go on with",
     [](Program &p) { reportFault(p, 0, {2, 0}); }},
    {"'fault': 16 bytes at 8 are not inside buffer 'b2' of 16",
     [](Program &p) { reportFault(p, 7, {2, 8}); }},
    {"'fault': a layout of other indices",
     [](Program &p) {
       reportFault(p, 7, {2, 0});
       command<FaultCommand>(p, 0, 5).check.layout =
           sharding::Layout::replicated({5});
     }},
    {"a constant operand that is not state",
     [](Program &p) {
       std::get<MatmulDesc>(command<LibraryCommand>(p, 1, 1).desc).b.strides = {
           0, 1};
       command<LibraryCommand>(p, 1, 1).arguments[1] = {0, 0};
     }},
    // Transfers
    {"it has no room", [](Program &p) { p.transfers[0].slots = 0; }},
    {"it has too many slots",
     [](Program &p) { p.transfers[0].slots = 1 << 20; }},
    {"it is never sent",
     [](Program &p) { p.stages[0].lists[0].commands.pop_back(); }},
    {"it is never received",
     [](Program &p) { p.stages[1].lists[0].commands.clear(); }},
    {"transfer 'back': it must go to another stage",
     [](Program &p) { p.transfers.push_back({"back", 1, 1, 16, 2}); }},
    // Lists
    {"no such kept value",
     [](Program &p) { p.stages[0].buffers[0].space = Space::Kept; }},
    {"kept value 'k': it has no room",
     [](Program &p) { p.stages[0].kept.push_back({"k", 4, 0}); }},
    {"kept value 'k': it has no room",
     [](Program &p) {
       p.stages[0].kept.push_back({"k", int64_t(1) << 60, 1 << 10});
     }},
    {"stage 'forward1': its arena has no room",
     [](Program &p) { p.stages[1].arenaBytes = -64; }},
    {"program 'test' never ends: stage 0 (ranks 0, 1), before 'L' of "
     "micro-batch 0, waits to receive 'back' of micro-batch 0 from stage 1 "
     "(ranks 2, 3); stage 1 (ranks 2, 3), before 'forward1' of micro-batch 0, "
     "waits to receive 'value0' of micro-batch 0 from stage 0 (ranks 0, 1)",
     waitForEachOther},
    {"it schedules what it does not have",
     [](Program &p) { p.stages[0].schedule[0].list = 1; }},
};

TEST(CheckProgramTest, FaultsAreNamed) {
  ProgramBuilder good = makeProgram();
  llvm::Error none = checkProgram(*good.program);
  ASSERT_FALSE(bool(none)) << describeError(std::move(none)).message;
  for (const Fault &fault : faults) {
    ProgramBuilder b = makeProgram();
    fault.make(*b.program);
    ErrorDescription error = describeError(checkProgram(*b.program));
    EXPECT_EQ(error.code, ExitCode::BadPlan) << fault.message;
    EXPECT_NE(error.message.find(fault.message), std::string::npos)
        << "expected: " << fault.message << "\ngot: " << error.message;
  }
}

} // namespace
} // namespace ax::rt
