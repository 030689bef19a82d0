//===- Listing.cpp - A program's commands as text -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Session/Session.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace ax;
using namespace ax::rt;

static const char *spaceName(Space space) {
  switch (space) {
  case Space::Arena:
    return "arena";
  case Space::State:
    return "state";
  case Space::Input:
    return "input";
  case Space::Output:
    return "output";
  case Space::Received:
    return "received";
  case Space::Kept:
    return "kept";
  }
  return "";
}

static void print(const BufferRef &ref, llvm::raw_ostream &os) {
  os << 'b' << ref.buffer;
  if (ref.byteOffset)
    os << '+' << ref.byteOffset;
}

static void printAll(const std::vector<BufferRef> &refs,
                     llvm::raw_ostream &os) {
  llvm::interleaveComma(refs, os,
                        [&](const BufferRef &ref) { print(ref, os); });
}

static const char *whenOf(const Command &command) {
  switch (command.microBatches) {
  case MicroBatches::All:
    return "";
  case MicroBatches::First:
    return ", in the first micro-batch";
  case MicroBatches::AllButFirst:
    return ", in the other micro-batches";
  case MicroBatches::Once:
    return ", in the first step";
  }
  return "";
}

namespace {
struct Operands {
  const Program &program;
  llvm::raw_ostream &os;

  void operator()(const KernelCommand &c) const {
    printAll(c.buffers, os);
    os << " x " << program.kernels[static_cast<size_t>(c.kernel)].iterations;
  }
  void operator()(const LibraryCommand &c) const { printAll(c.arguments, os); }
  void operator()(const CollectiveCommand &c) const {
    std::vector<BufferRef> refs;
    for (const CollectivePart &part : c.parts)
      refs.insert(refs.end(), {part.source, part.destination});
    printAll(refs, os);
  }
  void operator()(const CopyCommand &c) const {
    printAll({c.source, c.destination}, os);
  }
  void operator()(const SendCommand &c) const { print(c.source, os); }
  void operator()(const RecvCommand &c) const { os << 't' << c.transfer; }
  void operator()(const FaultCommand &c) const { print(c.word, os); }
  void operator()(const WaitCommand &c) const { os << 'r' << c.request; }
};
} // namespace

void ax::printListing(const Program &program, llvm::raw_ostream &os) {
  for (const StageProgram &stage : program.stages) {
    os << "stage " << stage.name << ": arena " << stage.arenaBytes
       << " bytes\n";
    for (auto [number, buffer] : llvm::enumerate(stage.buffers))
      os << llvm::formatv(
          "  b{0} = {1} {2}, {3} bytes, {4}\n", number, spaceName(buffer.space),
          buffer.space == Space::Arena ? buffer.offset : buffer.index,
          buffer.bytes, buffer.name);
    for (const CommandList &list : stage.lists) {
      if (!list.name.empty())
        os << "  " << list.name << ":\n";
      for (auto [number, command] : llvm::enumerate(list.commands)) {
        os << "  " << number << ": " << describe(program, stage, command)
           << " (";
        std::visit(Operands{program, os}, command.body);
        os << ") " << command.name << whenOf(command) << '\n';
      }
    }
  }
}

/// How many times a rank does it in a step behind the first.
static int64_t timesOf(const Command &command, const CommandList &list,
                       const Program &program) {
  int64_t all = list.isOnceAStep ? 1 : program.mesh.numTimeSlices();
  int64_t times = 0;
  for (int64_t microBatch = 0; microBatch < all; ++microBatch)
    times +=
        command.isFor(static_cast<int32_t>(microBatch), /*isFirstTime=*/false);
  return times;
}

int64_t ax::countFlops(const Program &program) {
  int64_t flops = 0;
  for (const StageProgram &stage : program.stages)
    for (const CommandList &list : stage.lists)
      for (const Command &command : list.commands)
        if (auto *library = std::get_if<LibraryCommand>(&command.body))
          flops += rt::countFlops(library->desc) *
                   static_cast<int64_t>(stage.ranks.size()) *
                   timesOf(command, list, program);
  return flops;
}
