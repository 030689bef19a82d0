//===- CpuDeviceTest.cpp - Device cpu does what every device must ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DeviceSuite.h"

using namespace ax::rt;

static DeviceBackend cpu("Cpu", "cpu");

INSTANTIATE_TEST_SUITE_P(Cpu, DeviceSuite, ::testing::Values(&cpu));
