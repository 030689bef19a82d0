//===- Checker.h - Faults of a command program ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_PROGRAM_CHECKER_H
#define AX_RUNTIME_PROGRAM_CHECKER_H

#include "ax/Runtime/ExchangeOrder.h"
#include "ax/Support/Error.h"
#include "ax/Support/FloatConversion.h"

#include <map>
#include <set>

namespace ax::rt {

/// Collects the first fault.
class Checker {
public:
  explicit Checker(const Program &program) : program(program) {}

  llvm::Error run() {
    if (llvm::Error error = checkMesh())
      return error;
    checkRanks();
    for (const Port &port : program.inputs)
      checkLayout("input", port.name, port.shape, port.layout, port.dtype);
    for (const Port &port : program.outputs) {
      checkLayout("output", port.name, port.shape, port.layout, port.dtype);
      checkCounts(port);
    }
    for (const State &state : program.states) {
      checkLayout("state", state.name, state.shape, state.layout, state.dtype);
      require(canConvert(state.dtype, state.getTypeInFile()),
              "a file has not that type of it");
      checkOrder(state);
    }
    checkKernels();
    for (size_t s = 0; s < program.stages.size() && fault.empty(); ++s)
      checkStage(static_cast<int32_t>(s));
    if (fault.empty())
      checkTransfers();
    if (llvm::Error error = takeFault())
      return error;
    return orderExchanges(program).takeError();
  }

  void operator()(const KernelCommand &c);
  void operator()(const LibraryCommand &c);
  void operator()(const CollectiveCommand &c);
  void operator()(const WaitCommand &c) {
    require(pending.erase(c.request) == 1, "nothing to wait for");
  }
  void operator()(const CopyCommand &c);
  void operator()(const SendCommand &c) {
    if (!require(isIndex(c.transfer, program.transfers), "no such transfer"))
      return;
    const Transfer &t = program.transfers[static_cast<size_t>(c.transfer)];
    require(t.fromStage == stageIndex, "sent from a foreign stage");
    checkRef(c.source, t.bytes);
    require(sent.emplace(c.transfer, list).second, "sent twice");
  }
  void operator()(const RecvCommand &c) {
    if (!require(isIndex(c.transfer, program.transfers), "no such transfer"))
      return;
    const Transfer &t = program.transfers[static_cast<size_t>(c.transfer)];
    require(t.toStage == stageIndex, "received by a foreign stage");
    require(received.emplace(c.transfer, list).second, "received twice");
  }
  void operator()(const FaultCommand &c);

private:
  template <typename T>
  static bool isIndex(int32_t index, const std::vector<T> &list) {
    return index >= 0 && static_cast<size_t>(index) < list.size();
  }
  bool require(bool condition, const std::string &what) {
    if (!condition && fault.empty())
      fault = where + what;
    return condition && fault.empty();
  }
  llvm::Error takeFault() {
    if (fault.empty())
      return llvm::Error::success();
    return makeError(ExitCode::BadPlan,
                     "program '" + program.name + "': " + fault);
  }
  /// What all else counts by.
  llvm::Error checkMesh();
  /// Which dimensions of an output count samples and results.
  void checkCounts(const Port &output) {
    auto isDim = [&](int64_t dim) {
      return dim >= 0 && dim < static_cast<int64_t>(output.shape.size());
    };
    require(!output.samples || isDim(*output.samples),
            "samples along a dimension that it has not");
    require(!output.count || (isDim(output.count->dim) &&
                              output.count->output < program.outputs.size()),
            "results along a dimension, or counted by an output, that is not "
            "there");
  }
  void checkOrder(const State &state) {
    if (state.dealt)
      if (auto why = state.dealt->findFault(state.shape))
        require(false, *why);
  }
  void checkRanks();
  void checkLayout(const char *kind, const std::string &name,
                   const Shape &shape, const sharding::Layout &layout,
                   DType dtype) {
    where = std::string(kind) + " '" + name + "': ";
    if (std::optional<std::string> why =
            sharding::findFault(layout, shape, program.mesh))
      require(false, *why);
    else if (require(layout.partial.empty(), "it is partial"))
      require(bytesOf(dtype, shape) >= 0 &&
                  bytesOf(dtype, layout.localShape()) >= 0,
              "its size is impossible");
  }
  void checkStage(int32_t index);
  void checkMicroBatches(const Command &command);
  void checkSchedule();
  void checkBuffers();
  void checkGroups();
  void checkTransfers();
  void checkKernels();
  /// `bytes` at `ref`, which is a multiple of `alignment`.
  void checkRef(const BufferRef &ref, int64_t bytes, int64_t alignment = 1);
  /// A place that is written, too.
  void checkResult(const BufferRef &ref, int64_t bytes, int64_t alignment = 1);
  void checkOrigin(const IndexCheckDesc &check);
  void checkReduction(const CollectiveCommand &c, size_t members);
  /// Bytes from the first to the end of the last element; -1: none can be so
  /// far away.
  static int64_t spanOf(const CopyCommand &copy,
                        const std::vector<int64_t> &strides);
  const Buffer &bufferOf(const BufferRef &ref) const {
    return stage->buffers[static_cast<size_t>(ref.buffer)];
  }
  int64_t bytesOf(DType dtype, const std::vector<int64_t> &shape) const {
    std::optional<int64_t> count = checkedNumElements(shape, byteSize(dtype));
    return count ? *count * byteSize(dtype) : -1;
  }

  const Program &program;
  const StageProgram *stage = nullptr;
  int32_t stageIndex = 0;
  std::string where;
  std::string fault;
  std::set<int32_t> pending;
  /// Transfer -> the list that does it.
  std::map<int32_t, int32_t> sent, received;
  /// Buffer of an input or output -> the list that has it.
  std::map<int32_t, int32_t> listOf;
  int32_t list = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_PROGRAM_CHECKER_H
