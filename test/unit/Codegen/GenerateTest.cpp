//===- GenerateTest.cpp - Whole programs as commands ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PlanText.h"

#include "ax/Codegen/Codegen.h"
#include "ax/Dialect/FunctionFacts.h"
#include "ax/Support/Error.h"

using namespace ax;
using namespace ax::codegen;

static std::optional<rt::Program> generated(const std::string &text) {
  auto module = parsePlan(text);
  if (!module)
    return std::nullopt;
  auto program = generate(findOp<ProgramOp>(*module));
  if (!program) {
    ADD_FAILURE() << describeError(program.takeError()).message;
    return std::nullopt;
  }
  if (llvm::Error error = rt::checkProgram(*program))
    ADD_FAILURE() << describeError(std::move(error)).message;
  return std::move(*program);
}

static std::vector<std::string> commandsOf(const rt::Program &program,
                                           size_t stage = 0) {
  std::vector<std::string> names;
  for (const rt::Command &command : program.stages[stage].lists[0].commands)
    names.push_back(
        llvm::StringRef(rt::describe(program, program.stages[stage], command))
            .split(' ')
            .first.str());
  return names;
}

using Names = std::vector<std::string>;

/// A transpose behind a product is no reason to write columns.
TEST(Generate, ProductsWriteRows) {
  std::string x = "tensor<5x6xf32>", w = "tensor<6x8xf32>",
              h = "tensor<5x8xf32>", t = "tensor<8x5xf32>";
  auto program = generated(planText(
      "[col = 1]", {x, t},
      "%w = ax.load @w : " + w + "\n%h = ax.linear %x0, %w : " + x + ", " + w +
          " -> " + h + "\n%t = ax.transpose %h [1, 0] : " + h + " -> " + t +
          "\n%r = ax.binary add %t, %x1 : " + t + ", " + t + " -> " + t,
      t, "ax.state @w : " + w + " from \"w\" offset 0 length 192\n"));
  ASSERT_TRUE(program);
  EXPECT_EQ(commandsOf(*program), Names({"matmul", "kernel"}));
  const auto &product = std::get<rt::LibraryCommand>(
      program->stages[0].lists[0].commands[0].body);
  EXPECT_EQ(std::get<rt::MatmulDesc>(product.desc).c.strides,
            (std::vector<int64_t>{8, 1}));
}

/// What joins them and what makes commands of them know the same ones.
TEST(Generate, ActivationsThatAreJoinedAreTheCommands) {
  std::string x = "tensor<5x6xf32>", w = "tensor<6x8xf32>",
              h = "tensor<5x8xf32>";
  int numJoined = 0;
  for (uint32_t i = 0; i <= getMaxEnumValForUnaryKind(); ++i) {
    auto kind = static_cast<UnaryKind>(i);
    if (!factsOf(kind).isOfFloats())
      continue;
    auto program = generated(planText(
        "[col = 1]", {x},
        "%w = ax.load @w : " + w + "\n%h = ax.linear %x0, %w : " + x + ", " +
            w + " -> " + h + "\n%r = ax.unary " +
            stringifyUnaryKind(kind).str() + " %h : " + h + " -> " + h,
        h, "ax.state @w : " + w + " from \"w\" offset 0 length 192\n"));
    ASSERT_TRUE(program);
    const auto &product = std::get<rt::LibraryCommand>(
        program->stages[0].lists[0].commands[0].body);
    bool joined = commandsOf(*program).size() == 1;
    numJoined += joined;
    EXPECT_EQ(std::get<rt::MatmulDesc>(product.desc).activation !=
                  rt::Activation::None,
              joined)
        << stringifyUnaryKind(kind).str();
  }
  EXPECT_EQ(numJoined, 6);
}

TEST(Generate, MLPOnTwoRanks) {
  std::string x = "tensor<4x6xf32>";
  std::string h = "tensor<4x8xf32, #ax.layout<[{}, {col}]>>";
  std::string w1 = "tensor<6x8xf32, #ax.layout<[{}, {col}]>>";
  std::string w2 = "tensor<8x6xf32, #ax.layout<[{col}, {}]>>";
  std::string p = "tensor<4x6xf32, #ax.layout<[{}, {}], partial sum {col}>>";
  auto program = generated(planText(
      "[col = 2]", {x},
      "%w1 = ax.load @w1 : " + w1 + "\n%w2 = ax.load @w2 : " + w2 +
          "\n%l = ax.linear %x0, %w1 : " + x + ", " + w1 + " -> " + h +
          "\n%h = ax.unary gelu %l : " + h + " -> " + h +
          "\n%p = ax.linear %h, %w2 : " + h + ", " + w2 + " -> " + p +
          "\n%r = ax.all_reduce %p over {col} : " + p + " -> " + x,
      x,
      "ax.state @w1 : " + w1 + " from \"w\" offset 0 length 192\n" +
          "ax.state @w2 : " + w2 + " from \"w\" offset 192 length 192\n"));
  ASSERT_TRUE(program);
  EXPECT_EQ(commandsOf(*program), Names({"matmul", "matmul", "all_reduce"}));
  EXPECT_EQ(program->stages[0].ranks, (std::vector<int32_t>{0, 1}));
  ASSERT_EQ(program->states.size(), 2u);
  EXPECT_EQ(program->states[1].offset, 192);
  // The hidden activation and the partial sum; the result is the output.
  EXPECT_EQ(program->stages[0].arenaBytes, 64 + 128);
}

TEST(Generate, APermutationSendsOnceFromEachRank) {
  // The part that two ranks want is on two.
  std::string from = "tensor<4xf32, #ax.layout<[{a}]>>";
  std::string to = "tensor<4xf32, #ax.layout<[{b}]>>";
  auto program = generated(planText(
      "[a = 2, b = 2]", {from},
      "%r = ax.collective_permute %x0 over {a, b} : " + from + " -> " + to,
      to));
  ASSERT_TRUE(program);
  ASSERT_EQ(commandsOf(*program), Names({"permute"}));
  EXPECT_EQ(std::get<rt::CollectiveCommand>(
                program->stages[0].lists[0].commands[0].body)
                .parts[0]
                .permutation,
            (std::vector<int32_t>{0, 2, 1, 3}));
}

TEST(Generate, ProductsWhoseOperandsEndInBatches) {
  // Written to memory, neither operand would be a matrix.
  std::string a = "tensor<2x3x4x5xf32>", b = "tensor<2x6x4x5xf32>";
  std::string c = "tensor<2x5x3x6xf32>", d = "tensor<3x6xf32>";
  auto program = generated(planText(
      "[col = 1]", {a, b},
      "%a = ax.unary exp %x0 : " + a + " -> " + a +
          "\n%c = ax.dot %a, %x1 batch [0, 3] x [0, 3] contract [2] x [2] : " +
          a + ", " + b + " -> " + c +
          "\n%p = ax.dot %a, %x1 batch [] x [] contract [3, 0, 2] x "
          "[3, 0, 2] : " +
          a + ", " + b + " -> " + d +
          "\n%t = ax.reduce sum %c dims [0, 1] : " + c + " -> " + d +
          "\n%r = ax.binary add %p, %t : " + d + ", " + d + " -> " + d,
      d));
  ASSERT_TRUE(program);
  std::vector<std::string> names = commandsOf(*program);
  EXPECT_EQ(llvm::count(names, "matmul"), 2);
}

TEST(Generate, ImagesKeepTheirChannelsLastThroughCollectives) {
  // %a is gathered, and also the residual of a convolution. The kernel is for
  // the result, which has its channels first.
  std::string x = "tensor<1x8x4x4xf32>";
  std::string y = "tensor<1x8x4x4xf32, #ax.layout<[{}, {col}, {}, {}]>>";
  std::string w = "tensor<8x8x3x3xf32, #ax.layout<[{col}, {}, {}, {}]>>";
  std::string state = w + " from \"w\" offset 0 length 2304\n";
  std::string window = " strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] : ";
  auto program = generated(planText(
      "[col = 2]", {x},
      "%w = ax.load @w : " + w + "\n%a = ax.conv %x0, %w" + window + x + ", " +
          w + " -> " + y + "\n%g = ax.all_gather %a over {col} : " + y +
          " -> " + x + "\n%c = ax.conv %g, %w" + window + x + ", " + w +
          " -> " + y + "\n%r = ax.binary add %c, %a : " + y + ", " + y +
          " -> " + y,
      y, "ax.state @w : " + state));
  ASSERT_TRUE(program);
  EXPECT_EQ(commandsOf(*program),
            Names({"conv", "all_gather", "conv", "kernel"}));
}

TEST(Generate, DepthwiseConvolutionsTurnNoSignals) {
  // Nor is what follows a convolution with its channels last turned back for
  // one.
  std::string t = "tensor<1x8x50xf32>", w = "tensor<8x8x1xf32>";
  std::string d = "tensor<8x1x3xf32>";
  std::string dilated = "ax.conv %a, %d strides [1] pads [4, 4] dilations [4] "
                        "{groups = 8 : i64} : " +
                        t + ", " + d + " -> " + t;
  auto alone = generated(planText("[col = 1]", {t, d},
                                  "%a = ax.unary exp %x0 : " + t + " -> " + t +
                                      "\n%d = ax.unary exp %x1 : " + d +
                                      " -> " + d + "\n%r = " + dilated,
                                  t));
  ASSERT_TRUE(alone);
  EXPECT_EQ(commandsOf(*alone), Names({"kernel", "kernel", "conv"}));
  auto between = generated(planText(
      "[col = 1]", {t, w, d},
      "%a = ax.conv %x0, %x1 strides [1] pads [0, 0] dilations [1] : " + t +
          ", " + w + " -> " + t + "\n%d = ax.unary exp %x2 : " + d + " -> " +
          d + "\n%b = " + dilated +
          "\n%r = ax.conv %b, %x1 strides [1] pads [0, 0] dilations [1] : " +
          t + ", " + w + " -> " + t,
      t));
  ASSERT_TRUE(between);
  int64_t depthwise = 0;
  for (const rt::Command &command : between->stages[0].lists[0].commands)
    if (const auto *call = std::get_if<rt::LibraryCommand>(&command.body))
      if (const auto *conv = std::get_if<rt::ConvDesc>(&call->desc);
          conv && conv->groups == 8) {
        ++depthwise;
        EXPECT_EQ(conv->x.strides[1], 1);
        EXPECT_EQ(conv->y.strides[1], 1);
      }
  EXPECT_EQ(depthwise, 1);
}

TEST(Generate, StatesAreUpdatedInPlace) {
  // Both moments and the weight in one kernel, over what they replace; what
  // something reads later, or reads elsewhere, is made aside and copied.
  std::string t = "tensor<64xf32>", s = "tensor<8x8xf32>";
  auto binary = [&](const char *name, const char *kind, const char *x,
                    const char *y) {
    return std::string("%") + name + " = ax.binary " + kind + " %" + x + ", %" +
           y + " : " + t + ", " + t + " -> " + t + "\n";
  };
  std::string states;
  for (const char *name : {"w", "m", "late", "moved"})
    states += std::string("ax.state @") + name + " : " + t + "\n";
  auto program = generated(planText(
      "[col = 1]", {t},
      "%w = ax.load @w : " + t + "\n%m = ax.load @m : " + t +
          "\n%late = ax.load @late : " + t +
          "\n%moved = ax.load @moved : " + t + "\n" +
          binary("m1", "add", "m", "x0") + binary("w1", "sub", "w", "m1") +
          "ax.store @m, %m1 : " + t + "\nax.store @w, %w1 : " + t + "\n" +
          binary("l1", "mul", "late", "x0") + "ax.store @late, %l1 : " + t +
          "\n%f = ax.reshape %l1 : " + t + " -> " + s +
          "\n%g = ax.reshape %late : " + t + " -> " + s +
          "\n%d = ax.dot %f, %g batch [] x [] contract [1] x [0] : " + s +
          ", " + s + " -> " + s +
          "\n%v = ax.slice %moved starts [63] steps [-1] : " + t + " -> " + t +
          "\n" + binary("v1", "add", "v", "x0") + "ax.store @moved, %v1 : " +
          t + "\n%r = ax.reshape %d : " + s + " -> " + t,
      t, states));
  ASSERT_TRUE(program);
  std::vector<std::string> copied;
  for (const rt::Command &command : program->stages[0].lists[0].commands)
    if (std::holds_alternative<rt::CopyCommand>(command.body))
      copied.push_back(command.name);
  EXPECT_EQ(copied, Names({"late", "moved"}));
  for (const rt::State &state : program->states)
    EXPECT_TRUE(state.isMutable && state.isZeroAtFirst);
}

TEST(Generate, StagesSendWhatOthersNeed) {
  std::string t = "tensor<6xf32, #ax.layout<[{micro}]>>";
  auto program = generated(
      "ax.plan @p version 1 {\nax.mesh [pipe = 2] in time [micro = 3]\n"
      "ax.program @main(%a: " +
      t + ") -> " + t +
      " {\n"
      "%0 = ax.stage @f0 on 0 (%x = %a : " +
      t + ") -> (" + t +
      ") {\n"
      "%e = ax.unary exp %x : " +
      t + " -> " + t + "\nax.yield %e : " + t +
      "\n}\n%1 = ax.transfer %0 from 0 to 1 slots 2 : " + t +
      "\n"
      "%2 = ax.stage @f1 on 1 (%x = %1 : " +
      t + ", %y = %a : " + t + ") -> (" + t +
      ") {\n%e = ax.binary add %x, %y : " + t + ", " + t + " -> " + t +
      "\nax.yield %e : " + t +
      "\n}\n"
      "ax.schedule \"forward\" { stage 0: \"F0 F1 F2\", stage 1: \"F0 F1 F2\" "
      "}\nax.return %2 : " +
      t + "\n}\n}");
  ASSERT_TRUE(program);
  EXPECT_EQ(commandsOf(*program, 0), Names({"kernel", "send"}));
  EXPECT_EQ(commandsOf(*program, 1), Names({"recv", "kernel"}));
  ASSERT_EQ(program->transfers.size(), 1u);
  EXPECT_EQ(program->transfers[0].bytes, 8);
  EXPECT_EQ(program->stages[1].schedule.size(), 3u);
}

TEST(Generate, OutputsThatAreInputsOrTheSameValueAreCopied) {
  std::string t = "tensor<4xf32>";
  auto program = generated(
      "ax.plan @p version 1 {\nax.mesh [col = 1]\nax.program @main(%a: " + t +
      ") -> (" + t + ", " + t + ", " + t +
      ") {\n"
      "%0:2 = ax.stage @f on 0 (%x = %a : " +
      t + ") -> (" + t + ", " + t + ") {\n%e = ax.unary exp %x : " + t +
      " -> " + t + "\nax.yield %e, %x : " + t + ", " + t +
      "\n}\nax.schedule \"forward\" { stage 0: \"F0\" }\n"
      "ax.return %0#0, %0#0, %0#1 : " +
      t + ", " + t + ", " + t + "\n}\n}");
  ASSERT_TRUE(program);
  EXPECT_EQ(commandsOf(*program), Names({"kernel", "copy", "copy"}));
}

TEST(Generate, EqualKernelsAndConstantsAreShared) {
  std::string t = "tensor<128xf32>";
  std::string values;
  for (int i = 0; i < 128; ++i)
    values += (i ? ", " : "") + std::to_string(i) + ".0";
  std::string c = "ax.constant dense<[" + values + "]> : " + t + " -> " + t;
  std::string w = "tensor<128x128xf32>", m = "tensor<1x128xf32>";
  auto program = generated(planText(
      "[col = 1]", {m, w},
      "%c = " + c + "\n%r0 = ax.reshape %c : " + t + " -> " + m +
          "\n%a = ax.binary add %x0, %r0 : " + m + ", " + m + " -> " + m +
          "\n%l = ax.linear %a, %x1 : " + m + ", " + w + " -> " + m +
          "\n%d = " + c + "\n%r1 = ax.reshape %d : " + t + " -> " + m +
          "\n%r = ax.binary add %l, %r1 : " + m + ", " + m + " -> " + m,
      m));
  ASSERT_TRUE(program);
  EXPECT_EQ(program->kernels.size(), 1u);
  EXPECT_EQ(program->states.size(), 1u);
}
