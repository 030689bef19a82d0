//===- CardEntries.cpp - The simulated driver's cards and contexts --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Simulator.h"

#include <cstdio>

using namespace simgpu;

static Simulator &sim() { return Simulator::get(); }

static CUresult checkCard(CUdevice card) {
  if (card >= 0 && static_cast<uint64_t>(card) < sim().settings.cards)
    return CUDA_SUCCESS;
  return sim().refuse(CUDA_ERROR_INVALID_DEVICE,
                      "there is no card " + std::to_string(card));
}

SIMGPU_ENTRY CUresult cuDriverGetVersion(int *version) {
  return sim().enter("cuDriverGetVersion", [&] {
    *version = static_cast<int>(sim().settings.driver);
    return CUDA_SUCCESS;
  });
}

SIMGPU_ENTRY CUresult cuInit(unsigned flags) {
  return sim().enter("cuInit", [&] {
    if (flags)
      return sim().refuse(CUDA_ERROR_INVALID_VALUE, "there are no flags");
    if (sim().settings.cards == 0)
      return CUDA_ERROR_NO_DEVICE;
    sim().isStarted = true;
    return CUDA_SUCCESS;
  });
}

SIMGPU_ENTRY CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  return sim().enter("cuDeviceGet", [&] {
    *device = ordinal;
    return checkCard(ordinal);
  });
}

SIMGPU_ENTRY CUresult cuDeviceGetCount(int *count) {
  return sim().enter("cuDeviceGetCount", [&] {
    *count = static_cast<int>(sim().settings.cards);
    return CUDA_SUCCESS;
  });
}

SIMGPU_ENTRY CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  return sim().enter("cuDeviceGetName", [&] {
    std::snprintf(name, static_cast<size_t>(length), "Simulated GPU");
    return checkCard(device);
  });
}

SIMGPU_ENTRY CUresult cuDeviceGetAttribute(int *value,
                                           CUdevice_attribute attribute,
                                           CUdevice device) {
  return sim().enter("cuDeviceGetAttribute", [&] {
    if (CUresult result = checkCard(device))
      return result;
    auto capability = static_cast<int>(sim().settings.capabilityOf(device));
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = capability / 10;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = capability % 10;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      *value = maxPitch;
      break;
    default:
      return sim().refuse(CUDA_ERROR_INVALID_VALUE, "no such attribute here");
    }
    return CUDA_SUCCESS;
  });
}

// The header's name may be that of a later function of the same type.
#undef cuDeviceGetUuid
// Cards of all processes of a host are the same.
SIMGPU_ENTRY CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
  return sim().enter("cuDeviceGetUuid_v2", [&] {
    if (CUresult result = checkCard(device))
      return result;
    *uuid = {};
    uuid->bytes[0] = static_cast<char>(1 + device);
    return CUDA_SUCCESS;
  });
}

SIMGPU_ENTRY CUresult cuDevicePrimaryCtxRetain(CUcontext *context,
                                               CUdevice device) {
  return sim().enter("cuDevicePrimaryCtxRetain", [&] {
    if (CUresult result = checkCard(device))
      return result;
    for (auto &[number, known] : sim().contexts)
      if (known->card == device) {
        ++known->numHolders;
        *context = Simulator::handle<CUcontext>(number);
        return CUDA_SUCCESS;
      }
    uint64_t number = sim().nextNumber();
    auto made = std::make_unique<Context>(device, sim().settings);
    made->numHolders = 1;
    sim().contexts[number] = std::move(made);
    *context = Simulator::handle<CUcontext>(number);
    return CUDA_SUCCESS;
  });
}

SIMGPU_ENTRY CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return sim().enter("cuDevicePrimaryCtxRelease", [&] {
    for (auto entry = sim().contexts.begin(); entry != sim().contexts.end();
         ++entry) {
      Context &context = *entry->second;
      if (context.card != device)
        continue;
      if (--context.numHolders == 0) {
        sim().forget(context);
        sim().contexts.erase(entry);
      }
      return CUDA_SUCCESS;
    }
    return sim().refuse(CUDA_ERROR_INVALID_CONTEXT, "nobody holds it");
  });
}

SIMGPU_ENTRY CUresult cuCtxSetCurrent(CUcontext context) {
  return sim().enter("cuCtxSetCurrent", [&] {
    uint64_t number = Simulator::number(context);
    if (number && !sim().contexts.count(number))
      return sim().refuse(CUDA_ERROR_INVALID_CONTEXT,
                          "there is no such context");
    Simulator::currentContext() = number;
    return CUDA_SUCCESS;
  });
}

SIMGPU_ENTRY CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  return sim().enterContext("cuCtxGetStreamPriorityRange", [&](Context &) {
    *least = leastPriority;
    *greatest = greatestPriority;
    return CUDA_SUCCESS;
  });
}

SIMGPU_ENTRY CUresult cuMemGetInfo(size_t *free, size_t *total) {
  return sim().enterContext("cuMemGetInfo", [&](Context &context) {
    *total = context.memory.getSize();
    *free = *total - context.memory.getUsed();
    return CUDA_SUCCESS;
  });
}
