//===- ProgramBuilder.h - Small command programs for tests ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_PROGRAMBUILDER_H
#define AX_TEST_PROGRAMBUILDER_H

#include "KernelImage.h"
#include "TestDevice.h"

#include "ax/Runtime/Executor.h"

#include <numeric>

namespace ax::rt {

/// With ranks that are threads.
inline llvm::Expected<std::unique_ptr<Executor>>
createExecutor(std::shared_ptr<const Program> program,
               const ExecutorOptions &options = {},
               const DeviceOptions &devices = {}) {
  BackendOptions backends;
  backends.device = AX_TEST_DEVICE;
  backends.devices = devices;
  auto ranks = allBackends().create(program->mesh.numRanks(), backends);
  if (!ranks)
    return ranks.takeError();
  return Executor::create(std::move(program), std::move(*ranks), options);
}

/// Builds programs of f32 tensors, with kernels written in C++.
class ProgramBuilder {
public:
  explicit ProgramBuilder(std::vector<sharding::Axis> axes) {
    program = std::make_shared<Program>();
    program->name = "test";
    program->mesh = sharding::Mesh(std::move(axes));
  }

  sharding::Layout split(const Shape &shape,
                         const std::vector<sharding::SubAxes> &axes) const {
    sharding::Layout layout;
    for (size_t d = 0; d < shape.size(); ++d)
      layout.dims.push_back(sharding::DimLayout::split(
          shape[d], d < axes.size() ? axes[d] : sharding::SubAxes{}));
    return layout;
  }
  sharding::SubAxes over(const char *axis) const {
    return {program->mesh.whole(axis)};
  }

  int32_t input(const std::string &name, Shape shape, sharding::Layout layout) {
    program->inputs.push_back(
        {name, DType::F32, std::move(shape), std::move(layout), {}});
    return static_cast<int32_t>(program->inputs.size() - 1);
  }
  int32_t output(const std::string &name, Shape shape,
                 sharding::Layout layout) {
    program->outputs.push_back(
        {name, DType::F32, std::move(shape), std::move(layout), {}});
    return static_cast<int32_t>(program->outputs.size() - 1);
  }
  int32_t state(const std::string &name, const HostTensor &value,
                sharding::Layout layout) {
    State state;
    state.name = name;
    state.dtype = value.getType();
    state.shape = value.getShape();
    state.layout = std::move(layout);
    state.value = value;
    program->states.push_back(std::move(state));
    return static_cast<int32_t>(program->states.size() - 1);
  }
  int32_t transfer(int32_t from, int64_t bytes, int32_t slots) {
    program->transfers.push_back(
        {"value" + std::to_string(from), from, from + 1, bytes, slots});
    return static_cast<int32_t>(program->transfers.size() - 1);
  }

  /// Stages of equal numbers of ranks, in order.
  void stages(int32_t count) {
    auto perStage = static_cast<int32_t>(program->mesh.numRanks()) / count;
    program->stages.resize(static_cast<size_t>(count));
    for (int32_t s = 0; s < count; ++s) {
      StageProgram &stage = program->stages[static_cast<size_t>(s)];
      stage.name = "forward" + std::to_string(s);
      stage.ranks.resize(static_cast<size_t>(perStage));
      std::iota(stage.ranks.begin(), stage.ranks.end(), s * perStage);
      stage.lists.resize(1);
      for (int32_t m = 0; m < program->mesh.numTimeSlices(); ++m)
        stage.schedule.push_back({m});
    }
  }
  StageProgram &stage(int32_t index = 0) {
    return program->stages[static_cast<size_t>(index)];
  }

  int32_t buffer(int32_t s, Space space, int32_t index, int64_t bytes) {
    StageProgram &st = stage(s);
    Buffer buffer;
    buffer.space = space;
    buffer.index = index;
    buffer.bytes = bytes;
    buffer.name = "b" + std::to_string(st.buffers.size());
    if (space == Space::Arena) {
      buffer.offset = st.arenaBytes;
      st.arenaBytes += (bytes + 63) / 64 * 64;
    }
    st.buffers.push_back(buffer);
    return static_cast<int32_t>(st.buffers.size() - 1);
  }

  /// `buffers`: addresses of the arguments.
  void kernel(int32_t s, const std::string &name, CpuKernelFn function,
              const std::vector<int32_t> &buffers, int64_t iterations,
              std::vector<Scalar> scalars = {}) {
    program->kernels.push_back(makeKernel(name, function));
    Kernel &kernel = program->kernels.back();
    for (int32_t b : buffers)
      kernel.arguments.push_back(
          {stage(s).buffers[static_cast<size_t>(b)].bytes, sizeof(float)});
    // As these kernels do.
    kernel.arguments.back().isWritten = true;
    kernel.scalarBounds.assign(scalars.size(), int64_t(1) << 40);
    kernel.iterations = iterations;
    KernelCommand command;
    command.kernel = static_cast<int32_t>(program->kernels.size() - 1);
    for (int32_t b : buffers)
      command.buffers.push_back({b, 0});
    command.scalars = std::move(scalars);
    add(s, std::move(command), name);
  }
  template <typename C>
  void add(int32_t s, C command, const std::string &name) {
    Command c;
    c.body = std::move(command);
    c.name = name;
    stage(s).lists.back().commands.push_back(std::move(c));
  }
  int32_t group(int32_t s, const char *axis) {
    stage(s).groups.push_back(
        makeGroupSet(program->mesh, over(axis), stage(s).ranks));
    return static_cast<int32_t>(stage(s).groups.size() - 1);
  }
  void allReduce(int32_t s, int32_t group, int32_t from, int32_t to,
                 Shape shape, int32_t request = -1) {
    CollectiveCommand command;
    command.groupSet = group;
    CollectivePart &part = command.parts.emplace_back();
    part.shape = std::move(shape);
    part.source = {from, 0};
    part.destination = {to, 0};
    command.request = request;
    add(s, std::move(command), "sum" + std::to_string(from));
  }

  std::shared_ptr<Program> program;
};

/// 0, 1, 2, ...
inline HostTensor countingTensor(Shape shape, double start = 0) {
  HostTensor tensor(DType::F32, std::move(shape));
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.setDouble(i, start + static_cast<double>(i));
  return tensor;
}

/// buffers[1] = 2 buffers[0] + 1
inline void doublePlusOne(void *const *buffers, const int64_t *, int64_t begin,
                          int64_t end) {
  const auto *from = static_cast<const float *>(buffers[0]);
  auto *to = static_cast<float *>(buffers[1]);
  for (int64_t i = begin; i < end; ++i)
    to[i] = 2 * from[i] + 1;
}

} // namespace ax::rt

#endif // AX_TEST_PROGRAMBUILDER_H
