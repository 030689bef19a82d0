//===- GlobalPorts.cpp - Parts of global tensors in this process ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GlobalPorts.h"

#include "HeldParts.h"
#include "OutputExchange.h"

#include "llvm/ADT/STLExtras.h"

namespace ax::rt {

namespace {

bool areInPlace(llvm::ArrayRef<Part> parts) {
  return llvm::all_of(parts, [](const Part &part) {
    return part.isContiguous() && part.contiguousOffset % bufferAlignment == 0;
  });
}

class InputParts : public BoundInput {
public:
  InputParts(const RankContext &context, int32_t number,
             const RunData *const &data)
      : number(static_cast<size_t>(number)), data(data),
        parts(partsOf(context.program, context.program.inputs[this->number],
                      context.rank)) {}

  int64_t getBytes() const override { return parts.front().localBytes; }
  bool isInPlace() const override { return areInPlace(parts); }
  // Whoever gets the address reads only: checkProgram sees to that.
  void *find(int32_t microBatch) const override {
    return const_cast<uint8_t *>(
        global() + parts[static_cast<size_t>(microBatch)].contiguousOffset);
  }
  void pack(int32_t microBatch, void *to) const override {
    const Part &part = parts[static_cast<size_t>(microBatch)];
    if (!part.isFull)
      std::memset(to, 0, static_cast<size_t>(part.localBytes));
    part.box.copy(global(), to);
  }

private:
  const uint8_t *global() const { return data->inputs[number]; }

  /// The port's number among the program's inputs.
  size_t number;
  /// The request's data, which GlobalPorts has: another one for each request.
  const RunData *const &data;
  std::vector<Part> parts;
};

class OutputParts : public BoundOutput {
public:
  OutputParts(const RankContext &context, int32_t number,
              const RunData *const &data)
      : number(static_cast<size_t>(number)), data(data),
        parts(partsOf(context.program, portOf(context), context.rank)),
        isOwner(OutputOwners(context.program).find(number, context.rank)) {}

  int64_t getBytes() const override { return parts.front().localBytes; }
  // What others hand over must not be written to at the same time.
  bool isInPlace() const override {
    return areInPlace(parts) && !llvm::is_contained(isOwner, false);
  }
  void *find(int32_t microBatch) const override {
    return global() + parts[static_cast<size_t>(microBatch)].contiguousOffset;
  }
  bool isOwn(int32_t microBatch) const override {
    return isOwner[static_cast<size_t>(microBatch)];
  }
  void unpack(int32_t microBatch, const void *from) const override {
    parts[static_cast<size_t>(microBatch)].box.copyBack(global(), from);
  }

private:
  const Port &portOf(const RankContext &context) const {
    return context.program.outputs[number];
  }
  uint8_t *global() const { return data->outputs[number]; }

  /// As of InputParts.
  size_t number;
  const RunData *const &data;
  std::vector<Part> parts;
  /// Whether this rank hands the part over, by micro-batch.
  std::vector<bool> isOwner;
};

/// Parts that go to other processes.
class BundledParts : public BoundOutput {
public:
  BundledParts(const OutputBundle::Item &item, uint8_t *message)
      : item(item), message(message) {}

  int64_t getBytes() const override { return item.parts.front().localBytes; }
  bool isInPlace() const override {
    return !llvm::is_contained(item.offsets, -1);
  }
  void *find(int32_t microBatch) const override {
    return message + item.offsets[static_cast<size_t>(microBatch)];
  }
  bool isOwn(int32_t microBatch) const override {
    return item.offsets[static_cast<size_t>(microBatch)] >= 0;
  }
  void unpack(int32_t microBatch, const void *from) const override {
    std::memcpy(find(microBatch), from, static_cast<size_t>(getBytes()));
  }

private:
  const OutputBundle::Item &item;
  uint8_t *message;
};

} // namespace

std::unique_ptr<BoundInput> GlobalPorts::bindInput(int32_t port) {
  return std::make_unique<InputParts>(context, port, inputs);
}

std::unique_ptr<BoundOutput> GlobalPorts::bindOutput(int32_t port) {
  uint8_t *message = nullptr;
  if (exchange)
    if (const OutputBundle::Item *item = exchange->find(port, message))
      return std::make_unique<BundledParts>(*item, message);
  return std::make_unique<OutputParts>(context, port, outputs);
}

} // namespace ax::rt
