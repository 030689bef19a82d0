//===- MemoryEntries.cpp - The simulated driver's memory and copies -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Simulator.h"

#include <cstring>

using namespace simgpu;

static Simulator &sim() { return Simulator::get(); }

static std::string toText(size_t bytes, CUdeviceptr address) {
  char text[64];
  std::snprintf(text, sizeof(text), "%zu bytes at 0x%llx", bytes,
                static_cast<unsigned long long>(address));
  return text;
}

static Range toRange(CUdeviceptr address, size_t bytes) {
  return {address, address + bytes};
}

static CUdeviceptr addressOf(const void *host) {
  return static_cast<CUdeviceptr>(Simulator::number(host));
}

/// Frees what begins at the address. Work that uses it would find something
/// else there: no later call of the context does any good.
static CUresult release(Context &context, Allocations &allocations,
                        CUdeviceptr address) {
  Range memory = allocations.startingAt(address);
  if (!memory.begin)
    return sim().refuse(CUDA_ERROR_INVALID_VALUE,
                        "nothing was allocated at " + toText(0, address));
  if (const Item *user = sim().scheduler->findUser(memory)) {
    context.fault = CUDA_ERROR_ILLEGAL_ADDRESS;
    return sim().refuse(context.fault, "work is to use it: " + user->what);
  }
  if (allocations.free(address))
    return CUDA_SUCCESS;
  context.fault = CUDA_ERROR_ILLEGAL_ADDRESS;
  return sim().refuse(context.fault,
                      "somebody wrote next to the " +
                          toText(memory.end - memory.begin, address));
}

SIMGPU_ENTRY CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  return sim().enterUnsafe("cuMemAlloc", [&](Context &context) {
    if (bytes == 0)
      return sim().refuse(CUDA_ERROR_INVALID_VALUE, "no bytes are asked for");
    *address = context.memory.allocate(bytes);
    sim().countMemory(context);
    return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  });
}

SIMGPU_ENTRY CUresult cuMemFree(CUdeviceptr address) {
  return sim().enterUnsafe("cuMemFree", [&](Context &context) {
    return release(context, context.memory, address);
  });
}

SIMGPU_ENTRY CUresult cuMemHostAlloc(void **host, size_t bytes, unsigned) {
  return sim().enterUnsafe("cuMemHostAlloc", [&](Context &context) {
    if (bytes == 0)
      return sim().refuse(CUDA_ERROR_INVALID_VALUE, "no bytes are asked for");
    *host = context.pinned.allocate(bytes);
    return *host ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  });
}

SIMGPU_ENTRY CUresult cuMemFreeHost(void *host) {
  return sim().enterUnsafe("cuMemFreeHost", [&](Context &context) {
    return release(context, context.pinned, addressOf(host));
  });
}

SIMGPU_ENTRY CUresult cuMemHostGetDevicePointer(CUdeviceptr *address,
                                                void *host, unsigned) {
  return sim().enterContext("cuMemHostGetDevicePointer", [&](Context &) {
    *address = addressOf(host);
    if (!sim().findPinned(host, 1))
      return sim().refuse(CUDA_ERROR_INVALID_VALUE,
                          "the memory is not pinned: " + toText(1, *address));
    return CUDA_SUCCESS;
  });
}

namespace {

/// One end of a copy: what it is called, and where its bytes are.
struct End {
  Range range;
  unsigned char *bytes = nullptr;

  static End onCard(Context &context, CUdeviceptr address, size_t bytes) {
    return {toRange(address, bytes), context.memory.find(address, bytes)};
  }
  static End pinned(const void *host, size_t bytes) {
    return {toRange(addressOf(host), bytes), sim().findPinned(host, bytes)};
  }
  std::string describe() const {
    return toText(range.end - range.begin, range.begin);
  }
};

} // namespace

/// Refuses ends that are nowhere. The driver takes memory of the host that is
/// not pinned, and then waits for the copy or does not; here it must be pinned.
static CUresult check(const End &end, bool isHost) {
  if (end.bytes)
    return CUDA_SUCCESS;
  return sim().refuse(CUDA_ERROR_INVALID_VALUE,
                      end.describe() + (isHost ? " are not in pinned memory"
                                               : " are not in memory of the "
                                                 "card"));
}

/// A copy from one end to another. Bytes are read and written when the stream
/// gets there.
static CUresult copy(Stream &stream, End from, bool isFromHost, End to,
                     bool isToHost) {
  if (CUresult result = check(from, isFromHost))
    return result;
  if (CUresult result = check(to, isToHost))
    return result;
  if (from.range.meets(to.range))
    return sim().refuse(CUDA_ERROR_INVALID_VALUE, "the ends overlap");
  Item item;
  item.what = "a copy of " + from.describe() + " to " + to.describe();
  item.uses = {from.range, to.range};
  item.run = [=] {
    std::memcpy(to.bytes, from.bytes, from.range.end - from.range.begin);
    return CUDA_SUCCESS;
  };
  sim().scheduler->push(stream, std::move(item));
  return CUDA_SUCCESS;
}

SIMGPU_ENTRY CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from,
                                        size_t bytes, CUstream handle) {
  return sim().enterStream(
      "cuMemcpyHtoDAsync", handle, [&](Context &context, Stream &stream) {
        if (!stream.capture)
          sim().countUpload();
        return copy(stream, End::pinned(from, bytes), true,
                    End::onCard(context, to, bytes), false);
      });
}

SIMGPU_ENTRY CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from,
                                        size_t bytes, CUstream handle) {
  return sim().enterStream(
      "cuMemcpyDtoHAsync", handle, [&](Context &context, Stream &stream) {
        return copy(stream, End::onCard(context, from, bytes), false,
                    End::pinned(to, bytes), true);
      });
}

SIMGPU_ENTRY CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from,
                                        size_t bytes, CUstream handle) {
  return sim().enterStream(
      "cuMemcpyDtoDAsync", handle, [&](Context &context, Stream &stream) {
        return copy(stream, End::onCard(context, from, bytes), false,
                    End::onCard(context, to, bytes), false);
      });
}

/// How far a copy of several dimensions reaches at one end; 0: no pitch.
static size_t reachOf(const CUDA_MEMCPY3D &copy, size_t pitch, size_t height) {
  if (pitch < copy.WidthInBytes || pitch > static_cast<size_t>(maxPitch) ||
      (copy.Depth > 1 && height < copy.Height))
    return 0;
  return ((copy.Depth - 1) * height + copy.Height - 1) * pitch +
         copy.WidthInBytes;
}

SIMGPU_ENTRY CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D *given,
                                      CUstream handle) {
  return sim().enterStream(
      "cuMemcpy3DAsync", handle, [&](Context &context, Stream &stream) {
        CUDA_MEMCPY3D copy = *given;
        if (copy.srcMemoryType != CU_MEMORYTYPE_DEVICE ||
            copy.dstMemoryType != CU_MEMORYTYPE_DEVICE || copy.srcXInBytes ||
            copy.srcY || copy.srcZ || copy.srcLOD || copy.dstXInBytes ||
            copy.dstY || copy.dstZ || copy.dstLOD || copy.reserved0 ||
            copy.reserved1)
          return sim().refuse(CUDA_ERROR_INVALID_VALUE,
                              "here it copies from card to card, whole boxes");
        if (!copy.WidthInBytes || !copy.Height || !copy.Depth)
          return CUDA_SUCCESS;
        size_t fromBytes = reachOf(copy, copy.srcPitch, copy.srcHeight);
        size_t toBytes = reachOf(copy, copy.dstPitch, copy.dstHeight);
        if (!fromBytes || !toBytes)
          return sim().refuse(CUDA_ERROR_INVALID_VALUE,
                              "rows or slices overlap, or are too far apart");
        End from = End::onCard(context, copy.srcDevice, fromBytes);
        End to = End::onCard(context, copy.dstDevice, toBytes);
        if (CUresult result = check(from, false))
          return result;
        if (CUresult result = check(to, false))
          return result;
        Item item;
        item.what =
            "a box copied within " + from.describe() + " to " + to.describe();
        item.uses = {from.range, to.range};
        item.run = [=] {
          for (size_t z = 0; z < copy.Depth; ++z)
            for (size_t y = 0; y < copy.Height; ++y)
              std::memcpy(to.bytes + (z * copy.dstHeight + y) * copy.dstPitch,
                          from.bytes + (z * copy.srcHeight + y) * copy.srcPitch,
                          copy.WidthInBytes);
          return CUDA_SUCCESS;
        };
        sim().scheduler->push(stream, std::move(item));
        return CUDA_SUCCESS;
      });
}

// It is a kernel of the driver's: what it must not touch it finds out late.
SIMGPU_ENTRY CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value,
                                      size_t bytes, CUstream handle) {
  return sim().enterStream(
      "cuMemsetD8Async", handle, [&](Context &context, Stream &stream) {
        Item item;
        item.what = "a memset of " + toText(bytes, address);
        unsigned char *memory = context.memory.find(address, bytes);
        if (memory) {
          item.uses = {toRange(address, bytes)};
          item.run = [=] {
            std::memset(memory, value, bytes);
            return CUDA_SUCCESS;
          };
        } else {
          sim().refuse(CUDA_ERROR_ILLEGAL_ADDRESS,
                       toText(bytes, address) + " are not in memory of the "
                                                "card");
          item.run = [] { return CUDA_ERROR_ILLEGAL_ADDRESS; };
        }
        sim().scheduler->push(stream, std::move(item));
        return CUDA_SUCCESS;
      });
}
