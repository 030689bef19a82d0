//===- FusionTest.cpp - What shares a kernel, and that it is right --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs are interpreted as written, and fused: kernels natively, everything
// else by the reference interpreter.
//
//===----------------------------------------------------------------------===//
#include "PlanText.h"

#include "ax/Codegen/Kernel.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Codegen/Localize.h"
#include "ax/Interpreter/Interpreter.h"
#include "ax/Runtime/CpuKernel.h"
#include "ax/Support/Error.h"
#include "mlir/Pass/PassManager.h"

using namespace ax;
using namespace ax::codegen;
using namespace mlir;

namespace {

KernelCompiler &compiler() {
  static std::unique_ptr<KernelCompiler> made =
      llvm::cantFail(KernelCompiler::create());
  return *made;
}

llvm::SmallVector<HostTensor> runKernel(FusionOp fusion,
                                        llvm::ArrayRef<HostTensor> operands) {
  auto compiled = compiler().compile(fusion);
  if (!compiled) {
    ADD_FAILURE() << describeError(compiled.takeError()).message;
    return {};
  }
  // Kernels may count on alignment that host tensors need not have.
  std::vector<std::unique_ptr<uint8_t, decltype(&free)>> memory;
  std::vector<void *> buffers;
  auto add = [&](int64_t bytes) {
    memory.emplace_back(
        static_cast<uint8_t *>(aligned_alloc(64, (bytes + 127) / 64 * 64)),
        &free);
    buffers.push_back(memory.back().get());
    return memory.back().get();
  };
  for (const HostTensor &operand : operands)
    std::memcpy(add(operand.numBytes()), operand.data(), operand.numBytes());
  llvm::SmallVector<HostTensor> results;
  for (Value result : fusion.getResults()) {
    RankedTensorType type = tensorType(result);
    results.emplace_back(*interpreter::toDType(type.getElementType()),
                         Shape(type.getShape()));
    add(results.back().numBytes());
  }
  if (compiled->signature.scratchBytes)
    add(compiled->signature.scratchBytes);
  std::vector<int64_t> scalars(compiled->signature.scalars.size(), 0);
  auto loaded = llvm::cantFail(rt::loadCpuKernel(*compiled->image));
  loaded->getFunction()(buffers.data(), scalars.data(), 0,
                        compiled->signature.outerCount);
  for (auto [i, result] : llvm::enumerate(results))
    std::memcpy(result.mutableData(), buffers[operands.size() + i],
                result.numBytes());
  return results;
}

/// All passes behind localisation that do with one stage.
void fuse(LocalStageOp stage) {
  PassManager manager(stage.getContext(), LocalStageOp::getOperationName());
  for (std::unique_ptr<Pass> &pass : stagePasses(
           /*separateKernels=*/false, Target(*CpuTarget::find("x86-64-v3"))))
    if (!pass->getOpName())
      manager.addPass(std::move(pass));
  EXPECT_TRUE(succeeded(manager.run(stage)));
}

struct Fused {
  unsigned kernels = 0;
  /// Top-level operations that are neither kernels nor views.
  std::vector<std::string> others;
  /// Transposes that are left at the top level, as views.
  unsigned views = 0;
  /// Transposes in kernels: that read or write across memory.
  unsigned turned = 0;
};

/// Fuses `body` (of one rank), compares its result with the interpreter's, and
/// tells what became of it.
Fused fuseAndRun(const std::vector<std::string> &inputs,
                 const std::string &body, const std::string &result) {
  Fused fused;
  auto module = parsePlan(planText("[col = 1]", inputs, body, result));
  if (!module)
    return fused;
  auto local = llvm::cantFail(
      localize(findOp<StageOp>(*module), getMesh(findOp<ProgramOp>(*module))));
  llvm::SmallVector<HostTensor> globals;
  for (auto [i, type] : llvm::enumerate(local->getBody().getArgumentTypes()))
    globals.push_back(randomTensor(type, i + 1));
  auto wanted = interpreter::interpretRanks(
      *local, getMesh(findOp<PlanOp>(*module)), {globals});
  if (!wanted) {
    ADD_FAILURE() << describeError(wanted.takeError()).message;
    return fused;
  }

  fuse(*local);
  std::string text;
  llvm::raw_string_ostream(text) << *local;
  SCOPED_TRACE(text);
  llvm::DenseMap<Value, HostTensor> values;
  Block &block = local->getBlock();
  for (BlockArgument argument : block.getArguments())
    values[argument] = globals[argument.getArgNumber()];
  for (Operation &op : block) {
    llvm::SmallVector<HostTensor> operands;
    for (Value operand : op.getOperands())
      operands.push_back(values.at(operand));
    if (isa<LocalYieldOp>(op)) {
      for (auto [got, want] : llvm::zip_equal(operands, wanted->front()))
        expectClose(got, want, 1e-5);
      break;
    }
    llvm::SmallVector<HostTensor> results;
    if (auto fusion = dyn_cast<FusionOp>(op)) {
      ++fused.kernels;
      fusion.walk([&](TransposeOp) { ++fused.turned; });
      results = runKernel(fusion, operands);
    } else {
      fused.views += isa<TransposeOp>(op);
      Operation *named = &op;
      if (auto library = dyn_cast<LibraryOp>(op))
        named = library.getCore();
      if (!isa<ReshapeOp, TransposeOp, SliceOp, BroadcastOp, ConstantOp>(op))
        fused.others.push_back(named->getName().stripDialect().str());
      auto made = interpreter::interpret(&op, operands);
      if (!made) {
        ADD_FAILURE() << describeError(made.takeError()).message;
        return fused;
      }
      results = *made;
    }
    if (results.size() != op.getNumResults())
      return fused;
    for (auto [value, tensor] : llvm::zip_equal(op.getResults(), results))
      values[value] = tensor;
  }
  return fused;
}

std::string f32(const std::string &shape) {
  return "tensor<" + shape + "xf32>";
}

} // namespace

TEST(Fusion, AChainIsOneKernel) {
  std::string t = f32("4x40");
  Fused fused = fuseAndRun(
      {t, t},
      "%a = ax.binary add %x0, %x1 : " + t + ", " + t + " -> " + t +
          "\n%b = ax.unary gelu %a : " + t + " -> " + t +
          "\n%r = ax.binary mul %b, %x0 : " + t + ", " + t + " -> " + t,
      t);
  EXPECT_EQ(fused.kernels, 1u);
}

TEST(Fusion, ResidualIsWrittenByTheNormThatReadsIt) {
  std::string t = f32("4x40"), w = f32("40x40"), s = f32("40");
  Fused fused = fuseAndRun(
      {t, t, s, w},
      "%a = ax.binary add %x0, %x1 : " + t + ", " + t + " -> " + t +
          "\n%n = ax.layer_norm %a scale %x2 : " + s + " bias %x2 : " + s +
          " axis 1 epsilon 1.0e-5 : " + t + " -> " + t +
          "\n%l = ax.linear %n, %x3 : " + t + ", " + w + " -> " + t +
          "\n%r = ax.binary add %l, %a : " + t + ", " + t + " -> " + t,
      t);
  EXPECT_EQ(fused.kernels, 1u);
  EXPECT_EQ(fused.others, std::vector<std::string>{"linear"});
}

TEST(Fusion, DecomposedSoftmaxIsOneKernel) {
  std::string t = f32("2x3x40"), m = f32("2x3x1");
  Fused fused = fuseAndRun(
      {t},
      "%m = ax.reduce max %x0 dims [2] keep_dims : " + t + " -> " + m +
          "\n%d = ax.binary sub %x0, %m : " + t + ", " + m + " -> " + t +
          "\n%e = ax.unary exp %d : " + t + " -> " + t +
          "\n%s = ax.reduce sum %e dims [2] keep_dims : " + t + " -> " + m +
          "\n%r = ax.binary div %e, %s : " + t + ", " + m + " -> " + t,
      t);
  EXPECT_EQ(fused.kernels, 1u);
}

TEST(Fusion, HeadsNeedNoCopies) {
  std::string x = f32("1x5x24"), h = f32("1x5x2x4"), q = f32("1x2x5x4"),
              o = f32("1x5x8"), third = f32("1x5x8");
  std::string body;
  for (int i = 0; i < 3; ++i) {
    std::string n = std::to_string(i);
    body += "%s" + n + " = ax.slice %x0 starts [0, 0, " +
            std::to_string(8 * i) + "] steps [1, 1, 1] : " + x + " -> " +
            third + "\n%h" + n + " = ax.reshape %s" + n + " : " + third +
            " -> " + h + "\n%q" + n + " = ax.transpose %h" + n +
            " [0, 2, 1, 3] : " + h + " -> " + q + "\n";
  }
  body += "%a = ax.attention %q0, %q1, %q2 scale 0.5 {causal} : " + q + ", " +
          q + ", " + q + " -> " + q +
          "\n%t = ax.transpose %a [0, 2, 1, 3] : " + q + " -> " + h +
          "\n%o = ax.reshape %t : " + h + " -> " + o +
          "\n%r = ax.linear %o, %x1 : " + o + ", " + f32("8x8") + " -> " + o;
  Fused fused = fuseAndRun({x, f32("8x8")}, body, o);
  EXPECT_EQ(fused.kernels, 0u);
  EXPECT_EQ(fused.others, (std::vector<std::string>{"attention", "linear"}));
}

TEST(Fusion, NoCycleThroughWhatLeavesAKernel) {
  // a goes to the last product both directly and through a linear: a kernel
  // with a and the product would wait for itself.
  std::string t = f32("4x8"), w = f32("8x8");
  Fused fused = fuseAndRun(
      {t, w},
      "%a = ax.unary exp %x0 : " + t + " -> " + t +
          "\n%l = ax.linear %a, %x1 : " + t + ", " + w + " -> " + t +
          "\n%r = ax.binary mul %a, %l : " + t + ", " + t + " -> " + t,
      t);
  EXPECT_EQ(fused.kernels, 2u);
}

TEST(Fusion, CostlyValuesAreNotRepeated) {
  std::string small = f32("1x64"), t = f32("64x64");
  Fused fused = fuseAndRun({small, t},
                           "%e = ax.unary erf %x0 : " + small + " -> " + small +
                               "\n%r = ax.binary mul %e, %x1 : " + small +
                               ", " + t + " -> " + t,
                           t);
  EXPECT_EQ(fused.kernels, 2u);
}

TEST(Fusion, LibrariesDoActivationsThatTheyHave) {
  std::string t = f32("4x8"), w = f32("8x8");
  for (bool has : {false, true}) {
    std::string kind = has ? "gelu" : "sin";
    Fused fused = fuseAndRun(
        {t, w},
        "%l = ax.linear %x0, %x1 : " + t + ", " + w + " -> " + t +
            "\n%a = ax.unary " + kind + " %l : " + t + " -> " + t +
            "\n%r = ax.binary add %x0, %a : " + t + ", " + t + " -> " + t,
        t);
    EXPECT_EQ(fused.kernels, has ? 0u : 1u);
    EXPECT_EQ(fused.others, std::vector<std::string>{"linear"});
  }
}

TEST(Fusion, TransposedWeightLikeOperandIsReadInPlace) {
  std::string a = f32("4x8"), b = f32("6x8"), bt = f32("8x6"), r = f32("4x6");
  Fused fused = fuseAndRun(
      {a, b},
      "%t = ax.transpose %x1 [1, 0] : " + b + " -> " + bt +
          "\n%r = ax.dot %x0, %t batch [] x [] contract [1] x [0] : " + a +
          ", " + bt + " -> " + r,
      r);
  EXPECT_EQ(fused.kernels, 0u);
}

TEST(Fusion, ImagesKeepTheirChannelsLast) {
  std::string x = f32("2x3x6x6"), w = f32("4x3x3x3"), y = f32("2x4x6x6"),
              v = f32("4x4x3x3"), s = f32("4x1x1"), p = f32("2x4x3x3"),
              r = f32("2x4");
  std::string conv = " strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] : ";
  Fused fused = fuseAndRun(
      {x, w, v, s},
      "%a = ax.conv %x0, %x1" + conv + x + ", " + w + " -> " + y +
          "\n%m = ax.binary mul %a, %x3 : " + y + ", " + s + " -> " + y +
          "\n%v = ax.conv %m, %x2" + conv + y + ", " + v + " -> " + y +
          "\n%b = ax.binary add %v, %m : " + y + ", " + y + " -> " + y +
          "\n%c = ax.binary add %b, %a : " + y + ", " + y + " -> " + y +
          "\n%d = ax.concat %c, %a dim 0 : " + y + ", " + y + " -> " +
          f32("4x4x6x6") +
          "\n%e = ax.slice %d starts [1, 0, 0, 0] "
          "steps [1, 1, 1, 1] : " +
          f32("4x4x6x6") + " -> " + y +
          "\n%f = ax.pool max %e kernel [2, 2] strides [2, 2] pads "
          "[0, 0, 0, 0] dilations [1, 1] ceil_extra [0, 0] : " +
          y + " -> " + p + "\n%r = ax.reduce sum %f dims [2, 3] : " + p +
          " -> " + r,
      r);
  EXPECT_EQ(fused.others, (std::vector<std::string>{"conv", "conv", "pool"}));
  EXPECT_EQ(fused.kernels, 3u);
}

TEST(Fusion, SlicesPadsAndSumsOfImagesWithTheirChannelsLast) {
  std::string x = f32("2x3x4x6x5"), w = f32("4x3x1x3x1"), y = f32("2x4x4x4x5"),
              s = f32("2x2x4x2x5"), p = f32("2x3x5x4x5"), m = f32("1x3x1x1x1");
  Fused fused = fuseAndRun(
      {x, w},
      "%a = ax.conv %x0, %x1 strides [1, 1, 1] pads [0, 0, 0, 0, 0, 0] "
      "dilations [1, 1, 1] : " +
          x + ", " + w + " -> " + y +
          "\n%b = ax.slice %a starts [0, 1, 0, 1, 0] steps [1, 2, 1, 2, 1] : " +
          y + " -> " + s +
          "\n%z = ax.constant dense<0.5> : tensor<f32> -> tensor<f32>"
          "\n%c = ax.pad %b value %z : tensor<f32> low [0, 1, 0, 2, 0] high "
          "[0, 0, 1, 0, 0] : " +
          s + " -> " + p +
          "\n%m = ax.reduce sum %c dims [0, 2, 3, 4] keep_dims : " + p +
          " -> " + m + "\n%r = ax.binary sub %c, %m : " + p + ", " + m +
          " -> " + p,
      p);
  EXPECT_EQ(fused.others, (std::vector<std::string>{"conv"}));
}

TEST(Fusion, NormsOfImagesAreWhereTheChannelsAreLast) {
  const std::string x = f32("2x8x5x6"), w = f32("8x8x1x1"), c = f32("8x1x1");
  // Over channels each by itself, some, all, and all of a row of channels.
  const struct {
    std::string shape, norm, parameters;
  } norms[] = {{"16x30", "rms_norm", ""},
               {"2x4x60", "layer_norm", ""},
               {"2x240", "layer_norm", "240"},
               {"2x8x5x6", "layer_norm", "8x5x6"},
               {"2x8x5x6", "rms_norm", "6"}};
  for (const auto &norm : norms) {
    SCOPED_TRACE(norm.shape);
    std::string seen = f32(norm.shape), p = f32(norm.parameters), given;
    if (!norm.parameters.empty())
      given = " scale %x3 : " + p + " bias %x3 : " + p;
    else
      p = c;
    int64_t rank = llvm::StringRef(norm.shape).count('x') + 1,
            over = norm.parameters.empty()
                       ? 1
                       : llvm::StringRef(norm.parameters).count('x') + 1;
    std::string conv =
        " strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : " + x + ", " + w +
        " -> " + x;
    Fused fused = fuseAndRun(
        {x, w, c, p},
        "%a = ax.conv %x0, %x1" + conv + "\n%b = ax.reshape %a : " + x +
            " -> " + seen + "\n%n = ax." + norm.norm + " %b" + given +
            " axis " + std::to_string(rank - over) + " epsilon 1.0e-5 : " +
            seen + " -> " + seen + "\n%d = ax.reshape %n : " + seen + " -> " +
            x + "\n%e = ax.binary mul %d, %x2 : " + x + ", " + c + " -> " + x +
            "\n%r = ax.conv %e, %x1" + conv,
        x);
    EXPECT_EQ(fused.others, (std::vector<std::string>{"conv", "conv"}));
    // The input and the result, and parameters of more than channels.
    EXPECT_LE(fused.turned, norm.parameters.empty() ? 2u : 4u);
  }
}

/// Whose strides say nothing.
TEST(Fusion, WindowsOverEmptyImages) {
  std::string x = "tensor<1x3x28x0xf32>";
  auto module = parsePlan(planText("[col = 1]", {x},
                                   "%a = ax.unary abs %x0 : " + x + " -> " + x +
                                       "\n%r = ax.pool sum %a kernel [3, 3] "
                                       "strides [1, 1] pads [2, 2, 2, 2] "
                                       "dilations [1, 1] ceil_extra [0, 0] : " +
                                       x + " -> tensor<1x3x30x2xf32>",
                                   "tensor<1x3x30x2xf32>"));
  ASSERT_TRUE(module);
  auto stage = findOp<StageOp>(*module);
  auto local = llvm::cantFail(localize(stage, getMesh(stage)));
  fuse(*local);
  EXPECT_TRUE(findOp<PoolOp>(*local));
}

TEST(Fusion, ViewsEndAtWhatLaterOpsPutInMemory) {
  // Turned twice, u is a in its own order; but the first top_k must not see it
  // through t, which stands in memory for the second, and so in t's order.
  std::string x = f32("4x6"), t = f32("6x4"), p = f32("4x2"), q = f32("6x2");
  Fused fused = fuseAndRun(
      {x},
      "%a = ax.unary exp %x0 : " + x + " -> " + x +
          "\n%t = ax.transpose %a [1, 0] : " + x + " -> " + t +
          "\n%u = ax.transpose %t [1, 0] : " + t + " -> " + x +
          "\n%p, %i = ax.top_k %u k 2 dim 1 : " + x + " -> " + p +
          ", tensor<4x2xi64>" + "\n%q, %j = ax.top_k %t k 2 dim 1 : " + t +
          " -> " + q + ", tensor<6x2xi64>" +
          "\n%r = ax.dot %p, %q batch [] x [] contract [1] x [1] : " + p +
          ", " + q + " -> " + x,
      x);
  EXPECT_EQ(fused.views, 0u);
}

TEST(Fusion, MemberViewOfWhatAnotherKernelMakes) {
  // The kernel of s and m comes before e's, and builds that one first; then the
  // reshape, a part of the kernel, reads e's result.
  std::string t = f32("4x8x8"), small = f32("1x4x8"), v = f32("4x8x1"),
              w = f32("8x8");
  Fused fused = fuseAndRun(
      {t, small, w},
      "%s = ax.binary add %x0, %x0 : " + t + ", " + t + " -> " + t +
          "\n%e = ax.unary exp %x1 : " + small + " -> " + small +
          "\n%v = ax.reshape %e : " + small + " -> " + v +
          "\n%m = ax.binary mul %s, %v : " + t + ", " + v + " -> " + t +
          "\n%p = ax.linear %s, %x2 : " + t + ", " + w + " -> " + t +
          "\n%q = ax.linear %m, %x2 : " + t + ", " + w + " -> " + t +
          "\n%r = ax.binary sub %p, %q : " + t + ", " + t + " -> " + t,
      t);
  EXPECT_EQ(fused.kernels, 3u);
}

TEST(Fusion, RandomBroadcastsThroughReshapes) {
  // Large values, and smaller ones in all shapes of as many elements; linears
  // make kernels end, and have several results.
  const std::string large = f32("4x8x8"), weight = f32("8x8");
  const std::vector<std::string> shapes = {
      f32("1x4x8"), f32("4x8x1"), f32("4x1x8"), f32("2x2x8"), f32("32")};
  for (unsigned seed = 0; seed != 60; ++seed) {
    std::mt19937 random(seed);
    auto pick = [&](size_t n) { return random() % n; };
    std::vector<std::string> larges = {"%x0"};
    std::vector<std::pair<std::string, size_t>> smalls = {{"%x1", 0}};
    std::string body;
    auto add = [&](const std::string &op, const std::string &type) {
      std::string name = "%v" + std::to_string(seed) + "_" +
                         std::to_string(larges.size() + smalls.size());
      body += name + " = ax." + op + " -> " + type + "\n";
      return name;
    };
    for (int i = 0; i != 14; ++i) {
      std::string x = larges[pick(larges.size())];
      auto [s, shape] = smalls[pick(smalls.size())];
      switch (pick(8)) {
      case 0: {
        std::string y = larges[pick(larges.size())];
        larges.push_back(
            add("binary sub " + x + ", " + y + " : " + large + ", " + large,
                large));
        break;
      }
      case 1: {
        std::string y = larges.emplace_back(
            add("linear " + x + ", %x2 : " + large + ", " + weight, large));
        larges.push_back(add("unary tanh " + y + " : " + large, large));
        break;
      }
      case 2:
        smalls.push_back(
            {add("unary erf " + s + " : " + shapes[shape], shapes[shape]),
             shape});
        break;
      case 3: {
        size_t to = pick(shapes.size());
        smalls.push_back(
            {add("reshape " + s + " : " + shapes[shape], shapes[to]), to});
        break;
      }
      default: {
        size_t to = 1 + pick(2);
        smalls.push_back(
            {add("unary erf " + s + " : " + shapes[shape], shapes[shape]),
             shape});
        std::string v =
            add("reshape " + smalls.back().first + " : " + shapes[shape],
                shapes[to]);
        smalls.push_back({v, to});
        larges.push_back(add("binary max " + x + ", " + v + " : " + large +
                                 ", " + shapes[to],
                             large));
      }
      }
    }
    std::string sum = larges.back();
    // What a linear reads is in memory.
    for (size_t i = 1, e = larges.size(); i < e; i += 2)
      larges.push_back(add(
          "linear " + larges[i] + ", %x2 : " + large + ", " + weight, large));
    for (size_t i = larges.size() - 1; i-- > 0;)
      larges.push_back(sum = add("binary add " + sum + ", " + larges[i] +
                                     " : " + large + ", " + large,
                                 large));
    body += "%r = ax.unary tanh " + sum + " : " + large + " -> " + large;
    SCOPED_TRACE(body);
    fuseAndRun({large, shapes[0], weight}, body, large);
    if (HasFailure())
      return;
  }
}
