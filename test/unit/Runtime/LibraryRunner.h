//===- LibraryRunner.h - Library operations on test data --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_LIBRARYRUNNER_H
#define AX_TEST_LIBRARYRUNNER_H

#include "TestDevice.h"
#include "ax/Runtime/HostTransfer.h"

#include "ax/Support/HostTensor.h"

#include "gtest/gtest.h"

#include <cmath>
#include <random>

namespace ax::rt {

/// An image whose channels are innermost, with room for `more` at each place.
inline TensorDesc channelsLast(DType dtype, const std::vector<int64_t> &sizes,
                               int64_t more = 0) {
  TensorDesc view = TensorDesc::dense(dtype, sizes);
  int64_t stride = sizes[1] + more;
  view.strides[1] = 1;
  for (size_t d = sizes.size(); d-- > 2;) {
    view.strides[d] = stride;
    stride *= sizes[d];
  }
  view.strides[0] = stride;
  return view;
}

/// A strided view of memory of its own, read and written as double.
struct ViewData {
  TensorDesc view;
  HostTensor memory;

  explicit ViewData(TensorDesc viewIn) : view(std::move(viewIn)) {
    memory = HostTensor(view.dtype, {view.spanBytes() / byteSize(view.dtype)});
  }
  int64_t offset(const std::vector<int64_t> &index) const {
    int64_t result = 0;
    for (size_t d = 0; d < index.size(); ++d)
      result += (view.sizes[d] == 1 ? 0 : index[d]) * view.strides[d];
    return result;
  }
  double get(const std::vector<int64_t> &index) const {
    return memory.getDouble(offset(index));
  }
  void fill(double value) {
    for (int64_t i = 0; i < memory.numElements(); ++i)
      memory.setDouble(i, value);
  }
  /// Small values; whole numbers for integers.
  void fillRandom(std::mt19937 &random) {
    std::uniform_real_distribution<double> real(-1, 1);
    for (int64_t i = 0; i < memory.numElements(); ++i)
      memory.setDouble(i, isFloat(view.dtype) ? real(random)
                          : isUnsigned(view.dtype)
                              ? std::floor(real(random) + 2)
                              : std::floor(real(random) * 2));
  }
};

/// Calls fn(index) for every index of a shape.
template <typename Fn>
void forEachIndex(const std::vector<int64_t> &sizes, Fn &&fn) {
  std::vector<int64_t> index(sizes.size(), 0);
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  for (int64_t i = 0; i < count; ++i) {
    fn(index);
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++index[d] < sizes[d])
        break;
      index[d] = 0;
    }
  }
}

/// Random arguments; the first element of argument `poisoned` is `poison`.
inline std::vector<ViewData> randomArguments(const LibraryDesc &desc,
                                             int poisoned = -1,
                                             double poison = NAN) {
  std::mt19937 random(7);
  std::vector<ViewData> data;
  for (int i = 0; i < numArguments(desc); ++i) {
    data.emplace_back(argumentDesc(desc, i));
    data.back().fillRandom(random);
  }
  if (poisoned >= 0)
    data[static_cast<size_t>(poisoned)].memory.setDouble(0, poison);
  return data;
}

/// How far a result is from what it is to be: 0 if both are NaN.
inline double distance(double got, double wanted) {
  if (std::isnan(got) || std::isnan(wanted))
    return std::isnan(got) && std::isnan(wanted) ? 0 : INFINITY;
  return got == wanted ? 0 : std::abs(got - wanted);
}

/// Test data in memory of a device while it lives.
class OnDevice {
public:
  OnDevice(Device &device, HostTransfer &transfer, ViewData &data)
      : transfer(transfer), data(data),
        memory(llvm::cantFail(
            device.allocate(std::max<int64_t>(1, data.memory.numBytes())))) {
    llvm::cantFail(transfer.upload(data.memory.data(), getAddress(),
                                   data.memory.numBytes()));
  }
  DeviceAddress getAddress() const { return memory->getAddress(); }
  void bringBack() {
    llvm::cantFail(transfer.download(getAddress(), data.memory.mutableData(),
                                     data.memory.numBytes()));
  }

private:
  HostTransfer &transfer;
  ViewData &data;
  std::unique_ptr<DeviceMemory> memory;
};

/// Random arguments, then one execution, or two where the first must not
/// matter. Arguments are in `data` afterwards.
inline void runLibrary(const LibraryDesc &desc, std::vector<ViewData> &data,
                       int32_t threads = 1, bool constants = true) {
  if (data.empty())
    data = randomArguments(desc);
  std::vector<std::unique_ptr<Device>> devices =
      createTestDevices(1, DeviceOptions{threads});
  Device &device = *devices[0];
  device.attachThread();
  auto stream = llvm::cantFail(device.createStream());
  HostTransfer transfer(device, *stream);
  ConstantOperand constant;
  int packed = packedArgument(desc);
  std::vector<OnDevice> arguments;
  std::vector<DeviceAddress> addresses;
  for (ViewData &d : data)
    addresses.push_back(
        arguments.emplace_back(device, transfer, d).getAddress());
  if (packed >= 0 && constants)
    constant.data = addresses[static_cast<size_t>(packed)];
  auto op = device.prepare(desc, constant);
  ASSERT_TRUE(bool(op)) << toString(desc) << ": "
                        << llvm::toString(op.takeError());
  auto workspace =
      llvm::cantFail(device.allocate((*op)->getWorkspaceBytes() + 64));
  if (packed >= 0 && !(*op)->readsConstant())
    addresses[static_cast<size_t>(packed)] = {};
  llvm::cantFail(
      stream->execute(**op, addresses.data(), workspace->getAddress()));
  for (OnDevice &argument : arguments)
    argument.bringBack();
}

inline double tolerance(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return 1e-12;
  case DType::F32:
    return 2e-6;
  case DType::F16:
    return 2e-3;
  case DType::BF16:
    return 2e-2;
  default:
    return 0;
  }
}

inline double activate(Activation activation, double x) {
  switch (activation) {
  case Activation::None:
    return x;
  case Activation::Relu:
    return std::max(x, 0.0);
  case Activation::GeluErf:
    return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  case Activation::GeluTanh:
    return 0.5 * x *
           (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  case Activation::Silu:
    return x / (1 + std::exp(-x));
  case Activation::Tanh:
    return std::tanh(x);
  case Activation::Sigmoid:
    return 1 / (1 + std::exp(-x));
  }
  __builtin_unreachable();
}

const Activation allActivations[] = {Activation::None,    Activation::Relu,
                                     Activation::GeluErf, Activation::GeluTanh,
                                     Activation::Silu,    Activation::Tanh,
                                     Activation::Sigmoid};

} // namespace ax::rt

#endif // AX_TEST_LIBRARYRUNNER_H
