//===- DriverCalls.h - The simulated driver, called by tests ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_DRIVERCALLS_H
#define AX_TEST_DRIVERCALLS_H

#include "Driver.h"
#include "TestSimgpu.h"

#include "gtest/gtest.h"

#include <cstring>
#include <vector>

namespace ax::rt {

/// A thread's context on card 0, with a stream and what is needed for copies.
class DriverCalls {
public:
  using Driver = cuda::Driver;
  static constexpr size_t size = 256;

  explicit DriverCalls(const std::string &order = "eager",
                       std::map<std::string, std::string> settings = {}) {
    settings["ORDER"] = order;
    startSimgpu(settings);
    driver = llvm::cantFail(Driver::load());
    ok(&Driver::cuDevicePrimaryCtxRetain, &context, 0);
    ok(&Driver::cuCtxSetCurrent, context);
    stream = makeStream();
    ok(&Driver::cuMemAlloc, &memory, size);
    ok(&Driver::cuMemHostAlloc, reinterpret_cast<void **>(&pinned), size, 0U);
  }

  template <typename Function, typename... Args>
  CUresult call(Function Driver::*member, Args... args) {
    return ((*driver).*member).function(args...);
  }
  template <typename Function, typename... Args>
  void ok(Function Driver::*member, Args... args) {
    EXPECT_EQ(call(member, args...), CUDA_SUCCESS) << simgpuReported();
  }
  /// The call is refused, and the report has `why`.
  template <typename Function, typename... Args>
  void refused(CUresult result, const std::string &why,
               Function Driver::*member, Args... args) {
    simgpuReported();
    EXPECT_EQ(call(member, args...), result);
    std::string report = simgpuReported();
    EXPECT_EQ(report.find(((*driver).*member).name), 0U) << report;
    EXPECT_NE(report.find(why), std::string::npos) << report;
  }

  CUstream makeStream() {
    CUstream made = nullptr;
    ok(&Driver::cuStreamCreateWithPriority, &made,
       static_cast<unsigned>(CU_STREAM_NON_BLOCKING), 0);
    return made;
  }
  CUevent makeEvent(unsigned flags = CU_EVENT_DISABLE_TIMING) {
    CUevent made = nullptr;
    ok(&Driver::cuEventCreate, &made, flags);
    return made;
  }
  void synchronize() { ok(&Driver::cuStreamSynchronize, stream); }
  unsigned char readByte() {
    ok(&Driver::cuMemcpyDtoHAsync, static_cast<void *>(pinned), memory,
       size_t(1), stream);
    synchronize();
    return pinned[0];
  }

  std::shared_ptr<const Driver> driver;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  unsigned char *pinned = nullptr;
};

} // namespace ax::rt

#endif // AX_TEST_DRIVERCALLS_H
