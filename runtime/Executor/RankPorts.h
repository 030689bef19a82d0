//===- RankPorts.h - One rank's parts of inputs and outputs -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_RANKPORTS_H
#define AX_RUNTIME_RANKPORTS_H

#include <cstdint>
#include <memory>

namespace ax::rt {

/// The rank's part of one input or output, micro-batch after micro-batch, as
/// the host has it. Parts are dense and of one size.
class BoundPort {
public:
  virtual ~BoundPort() = default;
  virtual int64_t getBytes() const = 0;
  /// Whether the host has all parts as they are, aligned as kernels need them:
  /// a device that works on the host's memory uses them there.
  virtual bool isInPlace() const = 0;
  /// Where such a part is: of an input to be read, of an output to be written.
  virtual void *find(int32_t microBatch) const = 0;
};

class BoundInput : public BoundPort {
public:
  /// Writes the whole part to `part`.
  virtual void pack(int32_t microBatch, void *part) const = 0;
};

class BoundOutput : public BoundPort {
public:
  /// Whether the part is this rank's to hand over, and not that of another one
  /// that has the same.
  virtual bool isOwn(int32_t microBatch) const = 0;
  /// Hands over the part, which is at `part`, and its own.
  virtual void unpack(int32_t microBatch, const void *part) const = 0;
};

/// Where a rank's parts come from and go to.
class RankPorts {
public:
  virtual ~RankPorts() = default;
  /// Program::inputs[port], Program::outputs[port]. Called while the rank
  /// prepares, on its thread.
  virtual std::unique_ptr<BoundInput> bindInput(int32_t port) = 0;
  virtual std::unique_ptr<BoundOutput> bindOutput(int32_t port) = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_RANKPORTS_H
