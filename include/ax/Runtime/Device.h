//===- Device.h - What computes: memory, kernels, libraries -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One Device per rank, used by one thread at a time. Work is put on streams and
// done in order; on the CPU it is done at once. Backends.h has them by name.
//
// What lies in a device's memory only its streams read and write. A device may
// work on the host's own memory (HostMapping): then nothing needs to be moved.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_DEVICE_H
#define AX_RUNTIME_DEVICE_H

#include "ax/Runtime/LibraryOps.h"
#include "ax/Runtime/StridedCopy.h"

#include "llvm/Support/Error.h"

#include <memory>
#include <vector>

namespace ax::rt {

struct Kernel;
struct CopyCommand;

/// A place in the memory of a device. The host may carry it about and count
/// from it, but what is there it cannot read: only a device makes a pointer of
/// it, by what DeviceAccess.h has.
class DeviceAddress {
public:
  DeviceAddress() = default;
  /// False: nothing is there.
  explicit operator bool() const { return value != 0; }
  DeviceAddress operator+(int64_t bytes) const {
    DeviceAddress moved;
    moved.value = value + static_cast<uintptr_t>(bytes);
    return moved;
  }
  bool operator==(DeviceAddress other) const { return value == other.value; }

private:
  friend struct DeviceAccess;
  uintptr_t value = 0;
};

/// Freed when destroyed.
class DeviceMemory {
public:
  virtual ~DeviceMemory();
  /// None where the size is 0.
  DeviceAddress getAddress() const { return address; }
  int64_t getSize() const { return size; }

protected:
  DeviceMemory(DeviceAddress address, int64_t size)
      : address(address), size(size) {}

private:
  DeviceAddress address;
  int64_t size;
};

/// A kernel whose code is on the device.
class DeviceKernel {
public:
  virtual ~DeviceKernel();
};

/// A library operation, ready to execute.
class LibraryOp {
public:
  virtual ~LibraryOp();
  /// Scratch memory that every execution needs (64-byte aligned).
  int64_t getWorkspaceBytes() const { return workspaceBytes; }
  /// False: the constant operand was packed, and its argument is not looked at
  /// any more.
  bool readsConstant() const { return readsConstantOperand; }

protected:
  int64_t workspaceBytes = 0;
  bool readsConstantOperand = true;
};

/// A point in a stream's work.
class Event {
public:
  virtual ~Event();
};

class Stream {
public:
  virtual ~Stream();
  /// Iterations may run at the same time.
  virtual llvm::Error launch(const DeviceKernel &kernel,
                             const DeviceAddress *buffers,
                             const int64_t *scalars, int64_t iterations) = 0;
  virtual llvm::Error execute(LibraryOp &op, const DeviceAddress *arguments,
                              DeviceAddress workspace) = 0;
  /// The box that `box` describes; its buffers are ignored.
  virtual llvm::Error copyStrided(const CopyCommand &box, DeviceAddress source,
                                  DeviceAddress destination) = 0;
  /// Makes `bytes` bytes zero.
  virtual llvm::Error clear(DeviceAddress memory, int64_t bytes) = 0;
  /// Moves `box`, whose source is memory of the host, to the device. When it
  /// returns, the host may overwrite what it was given.
  virtual llvm::Error upload(const StridedBox &box, const void *host,
                             DeviceAddress device) = 0;
  /// Moves `box`, whose source is memory of the host, back from the device.
  /// When it returns, the host has it, and all of the stream's work before is
  /// done.
  virtual llvm::Error download(const StridedBox &box, DeviceAddress device,
                               void *host) = 0;
  virtual llvm::Error record(Event &event) = 0;
  /// Later work of this stream waits for what was recorded.
  virtual llvm::Error wait(Event &event) = 0;
  virtual llvm::Error synchronize() = 0;

  /// The same of `bytes` bytes in one piece.
  llvm::Error upload(const void *host, DeviceAddress device, int64_t bytes);
  llvm::Error download(DeviceAddress device, void *host, int64_t bytes);
};

/// The value of an operand that never changes.
struct ConstantOperand {
  /// None: there is none, or it is not to be packed.
  DeviceAddress data;
  /// Of the contents that `data` is `byteOffset` behind the beginning of: equal
  /// for equal ones, so that operations and ranks of one process share packed
  /// copies. 0: unknown.
  uint64_t identity = 0;
  int64_t byteOffset = 0;
};

/// What the devices of this process have alike.
struct DeviceOptions {
  int32_t threadsPerRank = 1;
  /// What is computed takes subnormal numbers for 0 and gives 0 for them (x86's
  /// FTZ and DAZ, Arm's FZ): many processors take a hundred times as long for
  /// one as for another number.
  bool flushDenormals = false;
};

/// Of a device whose memory is the host's: an address is that of a place here.
class HostMapping {
public:
  virtual ~HostMapping();
  virtual DeviceAddress toDevice(const void *host) const = 0;
  virtual void *toHost(DeviceAddress address) const = 0;
};

class Device {
public:
  virtual ~Device();

  /// `cpu`.
  virtual const char *getName() const = 0;
  /// Call once on the thread that will use the device.
  virtual void attachThread() = 0;
  /// Threads of this process that compute for it at the same time, with the one
  /// that uses it.
  virtual int32_t getNumThreads() const = 0;

  /// Null: what the host has is uploaded, and what it wants is downloaded.
  virtual const HostMapping *getHostMapping() const = 0;
  /// Devices of this process with equal numbers use each other's memory by the
  /// same addresses.
  virtual int32_t getMemorySpace() const = 0;

  /// Memory with anything in it, aligned to 64 bytes at least. A RunFailed
  /// error when memory is short.
  virtual llvm::Expected<std::unique_ptr<DeviceMemory>>
  allocate(int64_t bytes) = 0;
  /// The same, of zeros: what a device may have cheaper than by clearing.
  virtual llvm::Expected<std::unique_ptr<DeviceMemory>>
  allocateZeroed(int64_t bytes) = 0;
  virtual llvm::Expected<std::unique_ptr<Stream>> createStream() = 0;
  virtual llvm::Expected<std::unique_ptr<Event>> createEvent() = 0;
  virtual llvm::Expected<std::unique_ptr<DeviceKernel>>
  loadKernel(const Kernel &kernel) = 0;
  /// An Unsupported error for what the device cannot do. `constant` is read
  /// only during the call unless the result `readsConstant()`.
  virtual llvm::Expected<std::unique_ptr<LibraryOp>>
  prepare(const LibraryDesc &desc, const ConstantOperand &constant) = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_DEVICE_H
