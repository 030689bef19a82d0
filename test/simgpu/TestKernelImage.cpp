//===- TestKernelImage.cpp - Images for the simulated driver --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestKernelImage.h"

#include <fstream>
#include <iterator>

namespace ax::rt {

// As LLVM writes it, but for code.
static constexpr const char *text = R"(//
// .entry in a comment
//
.version 8.0
.target sm_90
.address_size 64
/* .entry in another */
.visible .entry add(
	.param .u64 .ptr .global .align 64 add_param_0,
	.param .u64 .ptr .align 64 add_param_1,
	.param .u64 .ptr .align 4 add_param_2,
	.param .u32 add_param_3
)
{
	ld.param.b64 	%rd6, [add_param_0];
	ret;
}
.visible .entry poke(.param .u64 .ptr .align 1 poke_param_0,
                     .param .u64 poke_param_1) { ret; }
.visible .entry peek(.param .u64 .ptr .align 1 peek_param_0,
                     .param .u64 peek_param_1) { ret; }
.visible .entry line_up(.param .u64 .ptr .align 4 line_up_param_0) { ret; }
)";

TestKernelImage::TestKernelImage() : text(rt::text) {
  std::ifstream file(driverFolder() + "/TestKernels.o", std::ios::binary);
  object.assign(std::istreambuf_iterator<char>(file), {});
  EXPECT_FALSE(object.empty());
}

TestKernelImage &TestKernelImage::replace(const std::string &old,
                                          const std::string &by) {
  size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, old.size(), by);
  return *this;
}

KernelCalls::KernelCalls(const std::string &order,
                         std::map<std::string, std::string> settings)
    : DriverCalls(order, std::move(settings)) {
  EXPECT_EQ(load(TestKernelImage()), CUDA_SUCCESS);
}

CUresult KernelCalls::load(const TestKernelImage &image) {
  return ModuleLoadDataEx(
      &module, static_cast<const void *>(image.join().data()), 0U,
      static_cast<CUjit_option *>(nullptr), static_cast<void **>(nullptr));
}

CUfunction KernelCalls::find(const char *name) {
  CUfunction found = nullptr;
  EXPECT_EQ(ModuleGetFunction(&found, module, name), CUDA_SUCCESS);
  return found;
}

CUdeviceptr KernelCalls::allocate(size_t bytes) {
  CUdeviceptr address = 0;
  ok(&Driver::cuMemAlloc, &address, bytes);
  return address;
}

void expectRefused(CUresult result, CUresult expected, const std::string &why) {
  EXPECT_EQ(result, expected);
  std::string report = simgpuReported();
  EXPECT_NE(report.find(why), std::string::npos) << report;
}

} // namespace ax::rt
