//===- SimcudnnGraphTest.cpp - Graphs that the simulated cuDNN refuses ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudnnGraph.h"
#include "DriverCalls.h"

#include <functional>

using namespace ax::rt;
using namespace ax::rt::cuda;

namespace {

using Tensor = CudnnGraph::Tensor;

enum Number : int64_t { Q = 1, K, V, Out, Stats, Scale };

/// Attention of 2 heads, which tests change; all is well at first.
struct Attention {
  Four q = {1, 2, 4, 16}, k = {1, 2, 16, 6}, v = {1, 2, 6, 16};
  Four qStrides = packedStrides(q), kStrides = {192, 96, 1, 16},
       vStrides = packedStrides(v);
  cudnnDataType_t type = CUDNN_DATA_HALF, typeOfV = type, typeOfP = type,
                  typeOfStats = CUDNN_DATA_FLOAT;
  bool hasStats = true;
  bool hidesWhatIsSeen = false, hasMask = false;
  Four maskStrides = {24, 24, 6, 1};
  cudnnDataType_t typeOfMask = CUDNN_DATA_FLOAT;

  void addTo(CudnnGraph &graph) const {
    Four rows = {1, 2, 4, 1}, scores = {1, 2, 4, 6}, out = {1, 2, 4, v[3]};
    auto apply = [&](cudnnPointwiseMode_t mode, const Tensor &x,
                     const Tensor *b = nullptr) {
      Tensor y = graph.between(scores);
      graph.pointwise(mode, y, x, b);
      return y;
    };
    Tensor s = graph.between(scores), scale = graph.scalar(Scale);
    graph.matmul(graph.tensor(Q, q, qStrides, type),
                 graph.tensor(K, k, kStrides, type), s);
    s = apply(CUDNN_POINTWISE_MUL, s, &scale);
    if (hasMask) {
      constexpr int64_t number = 50;
      Tensor mask = graph.tensor(number, {1, 1, 4, 6}, maskStrides, typeOfMask);
      s = apply(CUDNN_POINTWISE_ADD, s, &mask);
    }
    if (hidesWhatIsSeen) {
      Tensor query = graph.indices(s, 2), key = graph.indices(s, 3);
      Tensor isSeen = graph.between(scores, CUDNN_DATA_BOOLEAN);
      graph.pointwise(CUDNN_POINTWISE_CMP_GE, isSeen, key, &query, nullptr,
                      CUDNN_DATA_BOOLEAN);
      Tensor y = graph.between(scores);
      graph.pointwise(CUDNN_POINTWISE_BINARY_SELECT, y, s, &scale, &isSeen);
      s = y;
    }
    Tensor m = graph.between(rows), l = graph.between(rows),
           log = graph.between(rows), p = graph.between(scores, typeOfP);
    graph.reduce(CUDNN_REDUCE_TENSOR_MAX, m, s);
    Tensor e = apply(CUDNN_POINTWISE_EXP, apply(CUDNN_POINTWISE_SUB, s, &m));
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, l, e);
    graph.pointwise(CUDNN_POINTWISE_LOG, log, l);
    if (hasStats)
      graph.pointwise(
          CUDNN_POINTWISE_ADD,
          graph.tensor(Stats, rows, packedStrides(rows), typeOfStats), m, &log);
    graph.pointwise(CUDNN_POINTWISE_DIV, p, e, &l);
    graph.matmul(p, graph.tensor(V, v, vStrides, typeOfV),
                 graph.tensor(Out, out, packedStrides(out), type));
  }
};

class SimcudnnGraphTest : public ::testing::Test {
protected:
  SimcudnnGraphTest() { start("eager"); }

  void start(const std::string &order) {
    cudnn.reset();
    driver.emplace(order);
    cudnn = llvm::cantFail(CudnnHandle::create(llvm::cantFail(Card::open(0))));
    driver->ok(&Driver::cuMemAlloc, &memory, bytesOfMemory);
  }

  /// What the graph is refused for.
  std::string build(const std::function<void(CudnnGraph &)> &fill) {
    CudnnGraph graph(cudnn);
    fill(graph);
    auto plan = graph.build();
    char text[256];
    cudnn->getLibrary().cudnnGetLastErrorString.function(text, sizeof(text));
    said = text;
    return plan ? "" : llvm::toString(plan.takeError());
  }
  void refused(const std::string &status, const std::string &why,
               const std::function<void(CudnnGraph &)> &fill) {
    std::string message = build(fill);
    EXPECT_EQ(
        message.find("cudnnBackendFinalize: CUDNN_STATUS_" + status + " ("), 0U)
        << message;
    EXPECT_NE(message.find("): " + why), std::string::npos) << message;
  }
  /// No engine does it.
  void unknown(const std::string &why, const Attention &attention) {
    EXPECT_EQ(build([&](CudnnGraph &graph) { attention.addTo(graph); }),
              "cuDNN: it knows no kernel for it");
    EXPECT_EQ(said, "no engine: " + why);
  }

  void *at(uint64_t place) { return reinterpret_cast<void *>(memory + place); }
  std::vector<CudnnPlan::Argument> arguments() {
    return {{Q, at(0)},      {K, at(1024)},     {V, at(2048)},
            {Out, at(3072)}, {Stats, at(4096)}, {Scale, &scale}};
  }
  std::string execute(const std::vector<CudnnPlan::Argument> &given,
                      CUdeviceptr workspace) {
    if (!plan) {
      CudnnGraph graph(cudnn);
      Attention().addTo(graph);
      plan = llvm::cantFail(graph.build());
    }
    return llvm::toString(plan->execute(driver->stream, given, workspace));
  }
  CUdeviceptr workspace() { return memory + 8192; }
  void refused(const std::string &status, const std::string &why,
               const std::vector<CudnnPlan::Argument> &given,
               CUdeviceptr workspace) {
    std::string message = execute(given, workspace);
    EXPECT_EQ(
        message.find("cudnnBackendExecute: CUDNN_STATUS_" + status + " ("), 0U)
        << message;
    EXPECT_NE(message.find("): " + why), std::string::npos) << message;
  }

  /// Numbers that are not all alike go up; what f16 `place` has comes down.
  void upload() {
    auto *to = reinterpret_cast<uint16_t *>(driver->pinned);
    for (size_t i = 0; i < DriverCalls::size / 2; ++i)
      to[i] = static_cast<uint16_t>(0x3000 + 97 * (i % 19));
    for (uint64_t place = 0; place < 3072; place += DriverCalls::size)
      driver->ok(&Driver::cuMemcpyHtoDAsync, memory + place,
                 static_cast<const void *>(driver->pinned), DriverCalls::size,
                 driver->stream);
    driver->synchronize();
  }
  std::vector<uint16_t> download(uint64_t place) {
    driver->ok(&Driver::cuMemcpyDtoHAsync, static_cast<void *>(driver->pinned),
               memory + place, DriverCalls::size, driver->stream);
    driver->synchronize();
    auto *from = reinterpret_cast<uint16_t *>(driver->pinned);
    return {from, from + DriverCalls::size / 2};
  }
  std::vector<uint16_t> result(const Attention &attention) {
    CudnnGraph graph(cudnn);
    attention.addTo(graph);
    plan = llvm::cantFail(graph.build());
    upload();
    EXPECT_EQ(execute(arguments(), workspace()), "");
    return download(3072);
  }

  static constexpr size_t bytesOfMemory = 16384;
  std::optional<DriverCalls> driver;
  SharedCudnn cudnn;
  std::unique_ptr<CudnnPlan> plan;
  /// What cuDNN said last when a graph was built.
  std::string said;
  CUdeviceptr memory = 0;
  float scale = 0.25F;
};

TEST_F(SimcudnnGraphTest, SizesThatDoNotFit) {
  const std::string status = "BAD_PARAM_SHAPE_MISMATCH";
  Four a = {1, 2, 4, 8}, b = {1, 2, 8, 6}, c = {1, 2, 4, 6};
  auto multiply = [](const Four &a, const Four &b, const Four &c) {
    return [=](CudnnGraph &g) {
      g.matmul(g.tensor(Q, a, packedStrides(a), CUDNN_DATA_HALF),
               g.tensor(K, b, packedStrides(b), CUDNN_DATA_HALF), g.between(c));
    };
  };
  const char *sizes = "the sizes of a product do not fit each other";
  refused(status, sizes, multiply(a, {1, 2, 4, 6}, c));
  refused(status, sizes, multiply(a, b, {1, 2, 6, 4}));
  refused(status, "the batches of a product do not fit each other",
          multiply(a, {1, 3, 8, 6}, c));
  auto apply = [](const Four &x, const Four &y) {
    return [=](CudnnGraph &g) {
      g.pointwise(CUDNN_POINTWISE_EXP, g.between(y),
                  g.tensor(Q, x, packedStrides(x), CUDNN_DATA_HALF));
    };
  };
  refused(status, "the sizes of a pointwise operation do not fit each other",
          apply(a, c));
  auto reduce = [](const Four &x, const Four &y) {
    return [=](CudnnGraph &g) {
      g.reduce(CUDNN_REDUCE_TENSOR_ADD, g.between(y),
               g.tensor(Q, x, packedStrides(x), CUDNN_DATA_HALF));
    };
  };
  const char *sums = "the sizes of a reduction do not fit each other";
  refused(status, sums, reduce({1, 6, 4, 8}, {1, 4, 4, 8}));
  refused(status, sums, reduce({1, 6, 4, 8}, {1, 6, 2, 8}));
}

TEST_F(SimcudnnGraphTest, OperationsThatCannotBe) {
  Four sizes = {1, 2, 4, 8};
  auto x = [&](CudnnGraph &g) {
    return g.tensor(Q, sizes, packedStrides(sizes), CUDNN_DATA_HALF);
  };
  refused("NOT_SUPPORTED", "the pointwise mode is not known here",
          [&](CudnnGraph &g) {
            g.pointwise(CUDNN_POINTWISE_ERF, g.between(sizes), x(g));
          });
  const char *number = "the pointwise mode has another number of operands";
  refused("BAD_PARAM", number, [&](CudnnGraph &g) {
    g.pointwise(CUDNN_POINTWISE_MUL, g.between(sizes), x(g));
  });
  refused("BAD_PARAM", number, [&](CudnnGraph &g) {
    Tensor b = x(g);
    g.pointwise(CUDNN_POINTWISE_EXP, g.between(sizes), x(g), &b);
  });
  const char *other = "the pointwise mode does not compute in that type";
  refused("NOT_SUPPORTED_DATA_TYPE", other, [&](CudnnGraph &g) {
    g.pointwise(CUDNN_POINTWISE_EXP, g.between(sizes), x(g), nullptr, nullptr,
                CUDNN_DATA_HALF);
  });
  const char *booleans = "comparisons are booleans, and nothing else is";
  refused("NOT_SUPPORTED_DATA_TYPE", booleans, [&](CudnnGraph &g) {
    g.pointwise(CUDNN_POINTWISE_EXP, g.between(sizes, CUDNN_DATA_BOOLEAN),
                x(g));
  });
  refused("NOT_SUPPORTED_DATA_TYPE", "what selects is not a boolean",
          [&](CudnnGraph &g) {
            Tensor b = x(g);
            g.pointwise(CUDNN_POINTWISE_BINARY_SELECT, g.between(sizes), x(g),
                        &b, &b);
          });
  const char *axis = "indices have an axis, and nothing else";
  refused("BAD_PARAM", axis, [&](CudnnGraph &g) { g.indices(x(g), 4); });
  refused("BAD_PARAM", axis, [&](CudnnGraph &g) {
    g.pointwise(CUDNN_POINTWISE_GEN_INDEX, g.between(sizes, CUDNN_DATA_INT32),
                x(g));
  });
  refused("NOT_SUPPORTED", "the reduction is not known here",
          [&](CudnnGraph &g) {
            g.reduce(CUDNN_REDUCE_TENSOR_AVG, g.between({1, 2, 4, 1}), x(g));
          });
}

TEST_F(SimcudnnGraphTest, TensorsThatCannotBeWritten) {
  Four sizes = {1, 2, 4, 8};
  auto exp = [&](CudnnGraph &g, const Tensor &y) {
    g.pointwise(CUDNN_POINTWISE_EXP, y,
                g.tensor(Q, sizes, packedStrides(sizes), CUDNN_DATA_HALF));
  };
  refused("BAD_PARAM", "tensor 4 is written, and overlaps itself",
          [&](CudnnGraph &g) {
            exp(g, g.tensor(Out, sizes, {64, 8, 8, 1}, CUDNN_DATA_HALF));
          });
  refused("BAD_PARAM", "tensor 6 is a number by value, and written",
          [&](CudnnGraph &g) {
            Tensor one = g.scalar(Scale);
            g.pointwise(CUDNN_POINTWISE_EXP, one, one);
          });
  refused("BAD_PARAM", "tensor 4 is written twice", [&](CudnnGraph &g) {
    for (int i = 0; i < 2; ++i)
      exp(g, g.tensor(Out, sizes, packedStrides(sizes), CUDNN_DATA_HALF));
  });
  refused("BAD_PARAM_DUPLICATED_ENTRIES", "tensor 1 is described in two ways",
          [&](CudnnGraph &g) {
            exp(g, g.tensor(Q, sizes, packedStrides(sizes), CUDNN_DATA_FLOAT));
          });
  refused("BAD_PARAM", "tensor 101 is virtual, and nobody writes it",
          [&](CudnnGraph &g) {
            Tensor y = g.between(sizes);
            g.pointwise(CUDNN_POINTWISE_EXP, y, g.between(sizes));
          });
  refused("BAD_PARAM", "operations wait for each other", [&](CudnnGraph &g) {
    Tensor x = g.between(sizes), y = g.between(sizes);
    g.pointwise(CUDNN_POINTWISE_EXP, y, x);
    g.pointwise(CUDNN_POINTWISE_EXP, x, y);
  });
}

TEST_F(SimcudnnGraphTest, GraphsThatAreNotAttention) {
  EXPECT_EQ(build([](CudnnGraph &g) { Attention().addTo(g); }), "");
  EXPECT_EQ(said, "");
  EXPECT_EQ(build([](CudnnGraph &g) {
              Four sizes = {1, 2, 4, 8};
              g.pointwise(
                  CUDNN_POINTWISE_EXP,
                  g.tensor(Out, sizes, packedStrides(sizes), CUDNN_DATA_HALF),
                  g.tensor(Q, sizes, packedStrides(sizes), CUDNN_DATA_HALF));
            }),
            "cuDNN: it knows no kernel for it");
  EXPECT_EQ(said, "no engine: it is no convolution, and not attention, which "
                  "has 2 products, or its gradient, which has 5");
  // That is no misuse.
  EXPECT_EQ(simgpuReported(), "");
  Attention made;
  made.hasStats = false;
  unknown("no number for each row is written to memory", made);
  made = {};
  made.typeOfStats = CUDNN_DATA_HALF;
  unknown("tensor 5 has a number for each row, not in f32", made);
  made = {};
  made.typeOfV = CUDNN_DATA_FLOAT;
  unknown("tensor 3 is neither of f16 nor of bf16", made);
  made.typeOfV = CUDNN_DATA_BFLOAT16;
  unknown("tensors are of f16 and of bf16", made);
  made = {};
  made.typeOfP = CUDNN_DATA_FLOAT;
  unknown("tensor 105 is a factor, and not narrow", made);
  made = {};
  made.qStrides = {256, 128, 32, 2};
  unknown("tensor 1 has nothing one behind another", made);
  made.qStrides = {256, 128, 20, 1};
  unknown("tensor 1 has a stride that is no multiple of 8", made);
  made = {};
  made.q[3] = made.k[2] = 12;
  unknown("tensor 1 has heads of a size that is no multiple of 8 up to 256",
          made);
  made = {};
  made.hasMask = true;
  EXPECT_EQ(build([&](CudnnGraph &graph) { made.addTo(graph); }), "");
  made.typeOfMask = CUDNN_DATA_BFLOAT16;
  unknown("tensor 50 is added, and neither of f32 nor of the factors' type",
          made);
  made.typeOfMask = CUDNN_DATA_HALF;
  made.maskStrides = {48, 48, 12, 2};
  unknown("tensor 50 is added, and has nothing one behind another", made);
}

TEST_F(SimcudnnGraphTest, PlacesThatCannotBe) {
  EXPECT_EQ(execute(arguments(), workspace()), "");
  auto given = arguments();
  refused("BAD_PARAM_NULL_POINTER", "the workspace is nowhere", given, 0);
  refused("BAD_PARAM_MISALIGNED_POINTER",
          "the workspace is not aligned to 256 bytes", given, workspace() + 16);
  refused("BAD_PARAM", "the workspace overlaps a tensor", given, memory + 1024);
  given[0].at = nullptr;
  refused("BAD_PARAM_NULL_POINTER", "tensor 1 is nowhere", given, workspace());
  given[0].at = at(8);
  refused("BAD_PARAM_MISALIGNED_POINTER",
          "tensor 1 is less aligned than it was said to be", given,
          workspace());
  given = arguments();
  given.erase(given.begin());
  refused("BAD_PARAM", "not all of the graph's tensors are given", given,
          workspace());
  for (int64_t number : {int64_t(77), CudnnGraph::firstBetween}) {
    given = arguments();
    given.push_back({number, at(0)});
    refused("BAD_PARAM",
            "tensor " + std::to_string(number) +
                " is nothing that the graph has in memory",
            given, workspace());
  }
  given = arguments();
  given[3].at = at(1040);
  refused("BAD_PARAM", "tensor 4 is written, and overlaps another", given,
          workspace());
  given = arguments();
  given[5].at = at(5000);
  refused("BAD_PARAM", "tensor 6 is a number by value, and not the host's",
          given, workspace());
}

// As of every kernel, it comes out late.
TEST_F(SimcudnnGraphTest, MemoryThatIsNotTheCards) {
  auto ends = [&](const std::vector<CudnnPlan::Argument> &given,
                  CUdeviceptr workspace) {
    EXPECT_EQ(execute(given, workspace), "");
    EXPECT_EQ(driver->call(&Driver::cuStreamSynchronize, driver->stream),
              CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_NE(simgpuReported().find(
                  "a graph of cuDNN uses what is not memory of the card"),
              std::string::npos);
    plan.reset();
  };
  alignas(16) static char host[4096];
  start("lazy");
  auto given = arguments();
  given[0].at = host;
  ends(given, workspace());
  start("lazy");
  given = arguments();
  given[3].at = at(bytesOfMemory - 128);
  ends(given, workspace());
  start("lazy");
  CUdeviceptr tooSmall = 0;
  driver->ok(&Driver::cuMemAlloc, &tooSmall, size_t(200));
  ends(arguments(), tooSmall);
}

TEST_F(SimcudnnGraphTest, GraphsThatAreWrongGiveOtherNumbers) {
  std::vector<uint16_t> right = result({});
  EXPECT_EQ(result({}), right);
  Attention made;
  made.hidesWhatIsSeen = true;
  EXPECT_NE(result(made), right);
  made = {};
  made.kStrides = {192, 96, 1, 8};
  EXPECT_NE(result(made), right);
  made = {};
  made.vStrides = {192, 16, 32, 1};
  EXPECT_NE(result(made), right);
  scale = 0.5F;
  EXPECT_NE(result({}), right);
}

// Plans can be made where there is no card.
TEST_F(SimcudnnGraphTest, PlansOfCardsThatAreDescribed) {
  driver->ok(&Driver::cuCtxSetCurrent, static_cast<CUcontext>(nullptr));
  CudnnGraph graph(llvm::cantFail(CudnnHandle::describe("{}")));
  Attention().addTo(graph);
  EXPECT_EQ(llvm::cantFail(graph.build())->getWorkspaceBytes(), 256);
  EXPECT_EQ(llvm::toString(CudnnHandle::describe("sm_90").takeError()),
            "cudnnBackendFinalize: CUDNN_STATUS_BAD_PARAM (2000): what "
            "describes a card is no JSON");
}

TEST_F(SimcudnnGraphTest, WorkspaceIsOverwritten) {
  ASSERT_EQ(execute(arguments(), workspace()), "");
  driver->synchronize();
  EXPECT_EQ(plan->getWorkspaceBytes(), 256);
  for (uint16_t word : download(8192))
    EXPECT_EQ(word, 0xffff);
}

TEST_F(SimcudnnGraphTest, IsCaptured) {
  for (const char *order : {"eager", "lazy", "random:1"}) {
    plan.reset();
    start(order);
    std::vector<uint16_t> right = result({});
    // A number by value is that of the call.
    driver->ok(&Driver::cuMemsetD8Async, memory + 3072,
               static_cast<unsigned char>(0), size_t(256), driver->stream);
    driver->synchronize();
    driver->ok(&Driver::cuStreamBeginCapture, driver->stream,
               CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    EXPECT_EQ(execute(arguments(), workspace()), "");
    scale = 7;
    CUgraph graph = nullptr;
    CUgraphExec made = nullptr;
    driver->ok(&Driver::cuStreamEndCapture, driver->stream, &graph);
    driver->ok(&Driver::cuGraphInstantiateWithFlags, &made, graph, 0ULL);
    EXPECT_NE(download(3072), right);
    driver->ok(&Driver::cuGraphLaunch, made, driver->stream);
    EXPECT_EQ(download(3072), right);
    scale = 0.25F;
  }
}

} // namespace
