//===- StepProgram.h - Programs that several tests run ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_STEPPROGRAM_H
#define AX_TEST_STEPPROGRAM_H

#include "ProgramBuilder.h"

namespace ax::rt {

inline int64_t numLocal(const sharding::Layout &layout) {
  int64_t count = 1;
  for (int64_t size : layout.localShape())
    count *= size;
  return count;
}

/// One kernel between input and output of `shape`, both split the same way.
inline void addMap(ProgramBuilder &b, const Shape &shape,
                   const std::vector<sharding::SubAxes> &axes) {
  sharding::Layout layout = b.split(shape, axes);
  int64_t count = numLocal(layout);
  b.stages(1);
  int32_t in =
      b.buffer(0, Space::Input, b.input("x", shape, layout), count * 4);
  int32_t out =
      b.buffer(0, Space::Output, b.output("y", shape, layout), count * 4);
  b.kernel(0, "double", doublePlusOne, {in, out}, count);
}

/// Ways to split a matrix, in space over `data` and `col` and in time over
/// `micro`.
inline std::vector<std::vector<sharding::SubAxes>>
waysToSplit(const std::vector<sharding::Axis> &axes) {
  ProgramBuilder b(axes);
  sharding::SubAxes data = b.over("data"), micro = b.over("micro"),
                    col = b.over("col");
  return {{},           {data}, {{}, col}, {micro}, {{data[0], micro[0]}, col},
          {micro, data}};
}

/// Stages that each double, with `slots` per transfer.
inline ProgramBuilder makePipeline(int32_t stages, int64_t microBatches,
                                   int32_t slots, int64_t ranksPerStage = 1) {
  ProgramBuilder b({{"pipe", stages, false},
                    {"data", ranksPerStage, false},
                    {"micro", microBatches, true}});
  Shape shape{12 * ranksPerStage, 3};
  sharding::Layout layout =
      b.split(shape, {{b.over("data")[0], b.over("micro")[0]}});
  int64_t count = numLocal(layout);
  b.stages(stages);
  int32_t in = b.input("x", shape, layout), out = b.output("y", shape, layout);
  for (int32_t s = 0; s + 1 < stages; ++s)
    b.transfer(s, count * 4, slots);
  for (int32_t s = 0; s < stages; ++s) {
    int32_t from = s == 0 ? b.buffer(s, Space::Input, in, count * 4)
                          : b.buffer(s, Space::Received, s - 1, count * 4);
    if (s > 0)
      b.add(s, RecvCommand{s - 1}, "recv");
    bool last = s + 1 == stages;
    int32_t to = last ? b.buffer(s, Space::Output, out, count * 4)
                      : b.buffer(s, Space::Arena, 0, count * 4);
    b.kernel(s, "double", doublePlusOne, {from, to}, count);
    if (!last)
      b.add(s, SendCommand{s, {to, 0}}, "send");
  }
  return b;
}

/// buffers[1] += buffers[0], which is written to buffers[2], too.
inline void addTo(void *const *buffers, const int64_t *, int64_t begin,
                  int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    static_cast<float *>(buffers[2])[i] = static_cast<float *>(buffers[1])[i] +=
        static_cast<const float *>(buffers[0])[i];
}

/// Something like training: each step adds its input to a state w that two
/// ranks have halves of, and gives the state, a scalar that only some rank has,
/// and a value for each sample; a state m that both have grows by the sum of
/// all. In a pipeline a stage before that sends the input on; there is a
/// constant, too.
struct StepProgram {
  explicit StepProgram(bool isPipeline, int64_t ranksPerStage = 2)
      : builder(
            isPipeline
                ? std::vector<sharding::Axis>{{"pipe", 2, false},
                                              {"data", ranksPerStage, false}}
                : std::vector<sharding::Axis>{{"data", ranksPerStage, false}}) {
    ProgramBuilder &b = builder;
    Shape shape{4, 4};
    sharding::Layout rows = b.split(shape, {b.over("data")});
    sharding::Layout whole = b.split({4}, {});
    const int64_t count = 16 / ranksPerStage, bytes = count * 4;
    b.stages(isPipeline ? 2 : 1);
    int32_t s = isPipeline ? 1 : 0;
    int32_t in = b.buffer(0, Space::Input, b.input("x", shape, rows), bytes);
    if (isPipeline) {
      b.transfer(0, bytes, 2);
      b.add(0, SendCommand{0, {in, 0}}, "send");
      in = b.buffer(1, Space::Received, 0, bytes);
      b.add(1, RecvCommand{0}, "recv");
    }
    weights = addState("w", countingTensor(shape, 1), rows);
    moment = addState("m", HostTensor(DType::F32, {4}), whole);
    constant = b.state("c", countingTensor({4}, 5), whole);
    int32_t w = b.buffer(s, Space::State, weights, bytes);
    int32_t m = b.buffer(s, Space::State, moment, 16);
    int32_t c = b.buffer(s, Space::State, constant, 16);
    output = b.output("y", shape, rows);
    loss = b.output("loss", {}, {});
    perSample = b.output("each", {4}, b.split({4}, {b.over("data")}));
    b.program->outputs.back().role = Role::LossSum;
    b.program->outputs.back().samples = 0;
    int32_t y = b.buffer(s, Space::Output, output, bytes);
    b.kernel(s, "add", addTo, {in, w, y}, count);
    markWritten(b, {1, 2});
    int32_t sum = b.buffer(s, Space::Arena, 0, bytes);
    b.allReduce(s, b.group(s, "data"), y, sum, {count});
    int32_t grown = b.buffer(s, Space::Arena, 0, 16);
    b.kernel(s, "grow", addTo, {sum, m, grown}, 4);
    markWritten(b, {1, 2});
    int32_t more = b.buffer(s, Space::Arena, 0, 16);
    b.kernel(s, "double", doublePlusOne, {c, more}, 4);
    b.kernel(s, "loss", doublePlusOne,
             {grown, b.buffer(s, Space::Output, loss, 4)}, 1);
    b.kernel(s, "each", doublePlusOne,
             {y, b.buffer(s, Space::Output, perSample, bytes / 4)}, count / 4);
  }

  int32_t numRanks() const {
    return static_cast<int32_t>(builder.program->mesh.numRanks());
  }
  static HostTensor makeInput(double start = 0) {
    return countingTensor({4, 4}, start);
  }

  ProgramBuilder builder;
  int32_t weights = 0, moment = 0, constant = 0;
  int32_t output = 0, loss = 0, perSample = 0;

private:
  int32_t addState(const char *name, const HostTensor &value,
                   sharding::Layout layout) {
    int32_t number = builder.state(name, value, std::move(layout));
    State &state = builder.program->states.back();
    state.isMutable = true;
    state.isWeight = number == 0;
    return number;
  }
  static void markWritten(ProgramBuilder &b, std::vector<size_t> arguments) {
    for (size_t each : arguments)
      b.program->kernels.back().arguments[each].isWritten = true;
  }
};

} // namespace ax::rt

#endif // AX_TEST_STEPPROGRAM_H
