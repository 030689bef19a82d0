//===- Run.cpp - The ranks of this process --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Run.h"

#include "ax/Runtime/AllBackends.h"
#include "ax/Support/AtomicFile.h"

using namespace ax;

llvm::Error ax::prepareCalibration(CollectivesOptions &options,
                                   int32_t numRanks, bool isFirst) {
  CalibrateOptions &calibration = options.calibration;
  if (calibration.file.empty())
    return llvm::Error::success();
  if (isFirst)
    if (llvm::Error error = AtomicFile::check(calibration.file))
      return error;
  rt::BackendOptions &backends = options.backends;
  // As axrun does.
  backends.devices.threadsPerRank = rt::findThreadsPerRank(numRanks, backends);
  auto target = rt::allBackends().findTarget(numRanks, backends);
  if (!target)
    return target.takeError();
  if (const GpuTarget *gpu = target->getGpu())
    calibration.target = gpu->architecture();
  return llvm::Error::success();
}

llvm::Error ax::runRank(rt::Communicator &comm, rt::Device &device,
                        const CollectivesOptions &options) {
  device.attachThread();
  if (options.calibration.file.empty())
    return measureAll(comm, device, options.measure);
  return calibrate(comm, device, options.calibration,
                   options.measure.reductions);
}
