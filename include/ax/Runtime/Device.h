//===- Device.h - What computes: memory, kernels, libraries -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One Device per rank, used by one thread at a time. Work is put on streams,
// each of which does its own in order, some time later; on the CPU it is done
// at once. Events and marks say how far a stream is. Backends.h has devices by
// name.
//
// What lies in a device's memory only its streams read and write. A device may
// work on the host's own memory (HostMapping): then nothing needs to be moved,
// and HostTransfer.h does what needs to be done elsewhere.
//
// Errors of work come late: from any later call of the stream, or from one that
// waits for it. What a device has made does not outlive it, but for memory.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_DEVICE_H
#define AX_RUNTIME_DEVICE_H

#include "ax/Runtime/LibraryOps.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
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
  /// Returns false for the address of nothing.
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

/// Memory of a device, which is freed when this is destroyed: not before the
/// work that uses it is done.
class DeviceMemory {
public:
  virtual ~DeviceMemory();
  /// Returns where the memory begins; the address of nothing where the size is
  /// 0.
  DeviceAddress getAddress() const { return address; }
  int64_t getSize() const { return size; }

protected:
  DeviceMemory(DeviceAddress address, int64_t size)
      : address(address), size(size) {}

private:
  DeviceAddress address;
  int64_t size;
};

/// Memory of the host that a device reaches by itself; freed likewise.
class PinnedMemory {
public:
  virtual ~PinnedMemory();
  /// Aligned to 64 bytes at least; null where the size is 0.
  void *getData() const { return data; }
  int64_t getSize() const { return size; }

protected:
  PinnedMemory(void *data, int64_t size) : data(data), size(size) {}

private:
  void *data;
  int64_t size;
};

/// Work that is ready to be put on streams.
class PreparedWork {
public:
  /// Returns how much scratch memory it is to be given each time, aligned to 64
  /// bytes, that nothing else uses meanwhile.
  int64_t getWorkspaceBytes() const { return workspaceBytes; }

protected:
  ~PreparedWork() = default;
  int64_t workspaceBytes = 0;
};

/// A kernel whose code is on the device, until this is destroyed: not before
/// the work that uses it is done.
class DeviceKernel : public PreparedWork {
public:
  virtual ~DeviceKernel();
};

/// A library operation, ready to execute.
class LibraryOp : public PreparedWork {
public:
  virtual ~LibraryOp();
  /// Returns false where the constant operand was packed: executions do not
  /// look at its argument any more.
  bool readsConstant() const { return readsConstantOperand; }

protected:
  bool readsConstantOperand = true;
};

/// A point in a stream's work: where it was recorded last. One that never was
/// counts as done. It may be gone before those that were told to wait for it.
class Event {
public:
  virtual ~Event();
  /// Returns whether all work up to it is done.
  virtual llvm::Expected<bool> isDone() const = 0;
  /// Returns when it is.
  virtual llvm::Error synchronize() const = 0;
  /// Returns the time from `earlier` to this one. Both are timed, and done.
  virtual llvm::Expected<std::chrono::nanoseconds>
  since(const Event &earlier) const = 0;
};

/// A number that a stream sets when it gets there, and any thread reads.
class Mark {
public:
  virtual ~Mark();
  /// Returns what was set last; 0 at first.
  uint64_t get() const { return number->load(std::memory_order_relaxed); }
  /// Sets it from the host, while no stream has anything to set.
  void reset(uint64_t to) { number->store(to, std::memory_order_relaxed); }

protected:
  explicit Mark(std::atomic<uint64_t> *number) : number(number) {}
  std::atomic<uint64_t> *number;
};

class Stream;

/// What streams were given while they were captured. Not destroyed before the
/// work of its launches is done.
class StreamGraph {
public:
  virtual ~StreamGraph();
  /// Does all of it once more, behind what the stream holds. Launches come one
  /// after another, whatever streams they are on. All memory, kernels and
  /// operations that were used while it was captured are still there.
  virtual llvm::Error launch(Stream &stream) = 0;
};

/// Work that a device does in the order of calls, also when this is gone.
class Stream {
public:
  virtual ~Stream();
  /// Does all iterations of the kernel, some of which may run at the same time.
  /// The arrays are read during the call. `workspace`, here and below, has as
  /// many bytes as are asked for.
  virtual llvm::Error launch(const DeviceKernel &kernel,
                             const DeviceAddress *buffers,
                             const int64_t *scalars,
                             DeviceAddress workspace) = 0;
  /// Does the operation once.
  virtual llvm::Error execute(LibraryOp &op, const DeviceAddress *arguments,
                              DeviceAddress workspace) = 0;
  /// Copies the box that `box` describes, whose own buffers are ignored.
  virtual llvm::Error copyStrided(const CopyCommand &box, DeviceAddress source,
                                  DeviceAddress destination) = 0;
  /// Makes `bytes` bytes zero.
  virtual llvm::Error clear(DeviceAddress memory, int64_t bytes) = 0;
  /// Copies `bytes` bytes from, and to, those of pinned memory of this device
  /// that begin at `offset`. The host leaves them alone until that is done.
  virtual llvm::Error upload(const PinnedMemory &host, int64_t offset,
                             DeviceAddress device, int64_t bytes) = 0;
  virtual llvm::Error download(DeviceAddress device, PinnedMemory &host,
                               int64_t offset, int64_t bytes) = 0;
  /// Makes the event the end of all work that was put here so far.
  virtual llvm::Error record(Event &event) = 0;
  /// Lets later work of this stream wait for what the event is the end of now.
  virtual llvm::Error wait(const Event &event) = 0;
  /// Sets the mark, which no other stream sets.
  virtual llvm::Error set(Mark &mark, uint64_t number) = 0;
  /// What the stream gets from now on is not done, but becomes a graph; so does
  /// what other streams get from when they wait for an event of it. They wait
  /// for no events that were recorded before, and nobody asks how far they are.
  /// Before its end, this stream waits for what all others have. An Unsupported
  /// error where the device does not capture.
  virtual llvm::Error beginCapture();
  /// Ends that, also after an error, on the same thread. Events that were
  /// recorded meanwhile are recorded anew before anybody waits for them. After
  /// an error there is no graph, and nothing was done.
  virtual llvm::Expected<std::unique_ptr<StreamGraph>> endCapture();
  /// As `record`, but each launch of what is captured records the event: for
  /// streams beside the graph.
  virtual llvm::Error recordAtLaunch(Event &event);
  /// Returns whether all work is done.
  virtual llvm::Expected<bool> isDone() = 0;
  /// Returns when all work is done, with the first error of it.
  virtual llvm::Error synchronize() = 0;
};

/// The value of an operand that never changes.
struct ConstantOperand {
  /// The address of nothing where there is no such operand, or it is not to be
  /// packed.
  DeviceAddress data;
  /// A number for the tensor in which `data` lies, `byteOffset` behind its
  /// beginning. Equal tensors have equal numbers, so that operations and ranks
  /// of one process share packed copies; 0 says that nothing is known.
  uint64_t identity = 0;
  int64_t byteOffset = 0;
};

/// What all devices of this process are told alike.
struct DeviceOptions {
  int32_t threadsPerRank = 1;
  /// What is computed takes subnormal numbers for 0 and gives 0 for them (x86's
  /// FTZ and DAZ, Arm's FZ): many processors take a hundred times as long for
  /// one as for another number.
  bool flushDenormals = false;
  /// Products may round factors of f32 to as many bits as TF32 has, ten behind
  /// the point, where that is faster.
  bool tf32 = false;
  /// Sums may have another order in each run, and so another rounding, where
  /// that is faster.
  bool nondeterministic = false;
};

/// How a device whose memory is the host's, and who works for it, find the same
/// place by an address and by a pointer.
class HostMapping {
public:
  virtual ~HostMapping();
  virtual DeviceAddress toDevice(const void *host) const = 0;
  virtual void *toHost(DeviceAddress address) const = 0;
};

/// Of two streams that have work, the device does that of High first.
enum class StreamPriority { Normal, High };

/// The memory of a device in bytes, which other processes may use, too.
struct MemorySize {
  int64_t free = 0, total = 0;
};

class Device {
public:
  virtual ~Device();

  /// Returns the name by which it is registered, as `cpu`.
  virtual const char *getName() const = 0;
  /// Returns its number among the machine's devices of that name.
  virtual int32_t getCard() const { return 0; }
  /// Returns what people call it, as `NVIDIA H100 80GB HBM3`; its name where
  /// nothing better is known.
  virtual llvm::Expected<std::string> findModel() const;
  /// Is to be called once, on the thread that will use the device.
  virtual void attachThread() = 0;
  /// Returns how many threads of this process compute for it at the same time,
  /// the one that uses it among them.
  virtual int32_t getNumThreads() const = 0;

  /// Returns null where the device has memory of its own: then what the host
  /// has is uploaded, and what it wants is downloaded.
  virtual const HostMapping *getHostMapping() const = 0;
  /// Returns a number that this device shares with those of this process which
  /// find its memory by the same addresses.
  virtual int32_t getMemorySpace() const = 0;
  /// Whether streams of this device read and write memory of the other one, and
  /// record and wait for its events, while the host need not come to it.
  virtual bool canReach(const Device &other) const;
  /// Whether its streams can be captured.
  virtual bool canCapture() const;

  /// Returns memory that is aligned to 64 bytes at least, whatever is in it; a
  /// RunFailed error when there is not so much.
  virtual llvm::Expected<std::unique_ptr<DeviceMemory>>
  allocate(int64_t bytes) = 0;
  /// Returns memory that is zero, which a device may have cheaper than by
  /// clearing it.
  virtual llvm::Expected<std::unique_ptr<DeviceMemory>>
  allocateZeroed(int64_t bytes) = 0;
  /// Returns memory of the host, whatever is in it; a RunFailed error when
  /// there is not so much.
  virtual llvm::Expected<std::unique_ptr<PinnedMemory>>
  allocatePinned(int64_t bytes) = 0;
  virtual llvm::Expected<MemorySize> getMemorySize() const = 0;
  /// DeviceOptions::nondeterministic, of a device that does something by it.
  virtual bool isNondeterministic() const { return false; }
  /// Tells how much of the free memory nobody is known to need, now or later:
  /// of that `prepare` may use some for a while; before it is told, none.
  virtual void setSpareMemory(int64_t bytes);
  virtual llvm::Expected<std::unique_ptr<Stream>>
  createStream(StreamPriority priority = StreamPriority::Normal) = 0;
  virtual llvm::Expected<std::unique_ptr<Event>>
  createEvent(bool isTimed = false) = 0;
  virtual llvm::Expected<std::unique_ptr<Mark>> createMark() = 0;
  /// Returns what `launch` takes; BadPlan where the image is damaged,
  /// Unsupported where it is of another kind of device.
  virtual llvm::Expected<std::unique_ptr<DeviceKernel>>
  loadKernel(const Kernel &kernel) = 0;
  /// Returns what `loadKernel` of these will find done as long as the result
  /// lives, where a device makes their code faster several at a time; null
  /// where nothing is won. An error of one is that of its own `loadKernel`.
  virtual std::shared_ptr<const void>
  loadAhead(llvm::ArrayRef<const Kernel *> kernels);
  /// Returns as much scratch memory as what `prepare` makes of it will ask for,
  /// or more, before anything is allocated: 0 where that cannot be known, or
  /// the device lacks the operation.
  virtual llvm::Expected<int64_t> findWorkspace(const LibraryDesc &desc);
  /// Returns the operation that `desc`, which has no fault, describes; an
  /// Unsupported error where the device cannot do it. `constant` is read only
  /// during the call, unless the result `readsConstant()`.
  virtual llvm::Expected<std::unique_ptr<LibraryOp>>
  prepare(const LibraryDesc &desc, const ConstantOperand &constant) = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_DEVICE_H
