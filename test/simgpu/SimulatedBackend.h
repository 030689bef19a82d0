//===- SimulatedBackend.h - Device cuda on a simulated GPU ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMULATEDBACKEND_H
#define AX_TEST_SIMULATEDBACKEND_H

#include "DeviceSuite.h"
#include "TestSimgpu.h"

namespace ax::rt {

/// Streams of it do their work in an order that SIMGPU_ORDER may have.
class SimulatedBackend : public DeviceBackend {
public:
  SimulatedBackend(std::string name, std::string order)
      : DeviceBackend(std::move(name), "cuda"), order(std::move(order)) {}
  void begin() override { startSimgpu({{"ORDER", order}}); }

private:
  std::string order;
};

} // namespace ax::rt

#endif // AX_TEST_SIMULATEDBACKEND_H
