//===- Device.h - What computes: memory, kernels, libraries -----*- C++ -*-===//
//
// One Device per rank, used by one thread at a time. Work is put on streams and
// done in order; on the CPU it is done at once. Backends.h has them by name.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_DEVICE_H
#define AX_RUNTIME_DEVICE_H

#include "ax/Runtime/LibraryOps.h"

#include "llvm/Support/Error.h"

#include <memory>
#include <vector>

namespace ax::rt {

struct Kernel;
struct CopyCommand;

/// Freed when destroyed.
class DeviceMemory {
public:
  virtual ~DeviceMemory();
  void *getAddress() const { return address; }
  int64_t getSize() const { return size; }

protected:
  DeviceMemory(void *address, int64_t size) : address(address), size(size) {}
  void *address;
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
  virtual llvm::Error launch(const DeviceKernel &kernel, void *const *buffers,
                             const int64_t *scalars, int64_t iterations) = 0;
  virtual llvm::Error execute(LibraryOp &op, void *const *arguments,
                              void *workspace) = 0;
  virtual llvm::Error copy(const void *source, void *destination,
                           int64_t bytes) = 0;
  /// The box that `box` describes; its buffers are ignored.
  virtual llvm::Error copyStrided(const CopyCommand &box, const void *source,
                                  void *destination) = 0;
  virtual llvm::Error record(Event &event) = 0;
  /// Later work of this stream waits for what was recorded.
  virtual llvm::Error wait(Event &event) = 0;
  virtual llvm::Error synchronize() = 0;
};

/// The value of an operand that never changes.
struct ConstantOperand {
  /// Null: there is none, or it is not to be packed.
  const void *data = nullptr;
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

  /// Zeroed, aligned to 64 bytes at least. A RunFailed error when memory is
  /// short.
  virtual llvm::Expected<std::unique_ptr<DeviceMemory>>
  allocate(int64_t bytes) = 0;
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
