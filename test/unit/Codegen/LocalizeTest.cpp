//===- LocalizeTest.cpp - Ranks together compute what the plan says -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every case is done twice by the reference interpreter: as written, on
// global tensors; and localised, on every rank, where padding of inputs holds
// poison. The ranks' results together must be the global result.
//
//===----------------------------------------------------------------------===//
#include "PlanText.h"

#include "ax/Codegen/Localize.h"
#include "ax/Interpreter/Distribute.h"
#include "ax/Interpreter/Interpreter.h"
#include "ax/Support/Error.h"

using namespace ax;
using namespace ax::codegen;

namespace {

/// Interprets both ways and compares.
void expectSame(const std::string &mesh, const std::vector<std::string> &inputs,
                const std::string &body, const std::string &result,
                int64_t limit = 10) {
  std::string text = planText(mesh, inputs, body, result);
  auto module = parsePlan(text);
  if (!module)
    return;
  auto program = findOp<ProgramOp>(*module);
  auto stage = findOp<StageOp>(*module);
  llvm::SmallVector<HostTensor> globals;
  for (auto [i, type] : llvm::enumerate(program.getArgumentTypes()))
    globals.push_back(randomTensor(type, i + 1, limit));
  auto dense = interpreter::interpretProgram(
      program, globals, [](LoadOp) -> llvm::Expected<HostTensor> {
        return makeError(ExitCode::Internal, "no states");
      });
  if (!dense) {
    FAIL() << describeError(dense.takeError()).message << text;
  }

  sharding::Mesh at = getMesh(program);
  auto local = localize(stage, at);
  if (!local) {
    FAIL() << describeError(local.takeError()).message << text;
  }
  interpreter::PerRank parts;
  for (int64_t rank = 0; rank < at.numRanks(); ++rank) {
    parts.emplace_back();
    for (auto [i, type] : llvm::enumerate(program.getArgumentTypes()))
      parts.back().push_back(interpreter::localPart(
          globals[i], getLayout(llvm::cast<mlir::RankedTensorType>(type), at),
          at, at.coordinates(rank), interpreter::Padding::Poison));
  }
  auto results = interpreter::interpretRanks(**local, at, parts);
  if (!results) {
    std::string ir;
    llvm::raw_string_ostream(ir) << **local;
    FAIL() << describeError(results.takeError()).message << ir;
  }
  std::vector<interpreter::Part> returned;
  for (int64_t rank = 0; rank < at.numRanks(); ++rank)
    returned.push_back({at.coordinates(rank), (*results)[rank][0]});
  auto whole = interpreter::assemble(
      returned,
      getLayout(llvm::cast<mlir::RankedTensorType>(program.getResultTypes()[0]),
                at),
      at);
  if (!whole) {
    std::string ir;
    llvm::raw_string_ostream(ir) << **local;
    FAIL() << describeError(whole.takeError()).message << ir;
  }
  SCOPED_TRACE(text);
  expectClose(*whole, dense->front());
}

std::string f32(const std::string &shape, const std::string &layout = "") {
  return "tensor<" + shape + "xf32" +
         (layout.empty() ? "" : ", #ax.layout<" + layout + ">") + ">";
}
std::string i64(const std::string &shape, const std::string &layout = "") {
  return "tensor<" + shape + "xi64" +
         (layout.empty() ? "" : ", #ax.layout<" + layout + ">") + ">";
}

} // namespace

/// Two Linears by columns, then rows, and one all-reduce.
static void mlp(const std::string &hidden) {
  std::string h = f32("4x" + hidden, "[{}, {col}]");
  std::string w1 = f32("6x" + hidden, "[{}, {col}]");
  std::string w2 = f32(hidden + "x5", "[{col}, {}]");
  std::string p = f32("4x5", "[{}, {}], partial sum {col}");
  expectSame("[col = 2]", {f32("4x6"), w1, w2},
             "%h = ax.linear %x0, %x1 : " + f32("4x6") + ", " + w1 + " -> " +
                 h + "\n%g = ax.unary gelu %h : " + h + " -> " + h +
                 "\n%p = ax.linear %g, %x2 : " + h + ", " + w2 + " -> " + p +
                 "\n%r = ax.all_reduce %p over {col} : " + p + " -> " +
                 f32("4x5"),
             f32("4x5"));
}

TEST(Localize, MLP) { mlp("8"); }

/// Addends that f16 does not hold; their sum it does.
TEST(Localize, NarrowAddendsAreF32) {
  std::string h = "tensor<4x8xf16, #ax.layout<[{}, {col}]>>";
  std::string w = "tensor<8x5xf16, #ax.layout<[{col}, {}]>>";
  std::string p = "tensor<4x5xf16, #ax.layout<[{}, {}], partial sum {col}>>";
  std::string whole = "tensor<4x5xf16>";
  std::string body =
      "%p = ax.linear %x0, %x1 : " + h + ", " + w + " -> " + p +
      "\n%n = ax.unary neg %p : " + p + " -> " + p +
      "\n%s = ax.binary mul %n, %x2 : " + p + ", " + whole + " -> " + p +
      "\n%t = ax.reduce sum %s dims [0] keep_dims : " + p +
      " -> tensor<1x5xf16, #ax.layout<[{}, {}], partial sum {col}>>"
      "\n%r = ax.all_reduce %t over {col} : tensor<1x5xf16, "
      "#ax.layout<[{}, {}], partial sum {col}>> -> tensor<1x5xf16>";
  auto module =
      parsePlan(planText("[col = 2]", {h, w, whole}, body, "tensor<1x5xf16>"));
  ASSERT_TRUE(module);
  auto stage = findOp<StageOp>(*module);
  sharding::Mesh mesh = getMesh(stage);
  auto local = llvm::cantFail(localize(stage, mesh));
  // The first half of the products adds up to 8e5, the other to -8e5.
  interpreter::PerRank inputs(2);
  for (int64_t rank = 0; rank < 2; ++rank) {
    HostTensor x(DType::F16, {4, 4}), part(DType::F16, {4, 5}),
        ones(DType::F16, {4, 5});
    for (int64_t i = 0; i < 16; ++i)
      x.setDouble(i, 400);
    for (int64_t i = 0; i < 20; ++i) {
      part.setDouble(i, rank ? -500 : 501);
      ones.setDouble(i, 1);
    }
    inputs[rank] = {x, part, ones};
  }
  auto results = interpreter::interpretRanks(*local, mesh, inputs);
  ASSERT_TRUE(static_cast<bool>(results));
  for (const auto &ofRank : *results)
    for (int64_t i = 0; i < 5; ++i)
      EXPECT_EQ(ofRank[0].getDouble(i), -6400);
}

TEST(Localize, MLPWhoseHiddenSizeDoesNotDivide) { mlp("7"); }

TEST(Localize, UnevenMaximum) {
  std::string x = f32("3x5", "[{}, {col}]");
  std::string p = f32("3", "[{}], partial max {col}");
  expectSame("[col = 3]", {x},
             "%p = ax.reduce max %x0 dims [1] : " + x + " -> " + p +
                 "\n%r = ax.all_reduce %p over {col} : " + p + " -> " +
                 f32("3"),
             f32("3"));
}

TEST(Localize, VocabularyParallelGather) {
  std::string table = f32("11x3", "[{col}, {}]");
  std::string p = f32("2x4x3", "[{}, {}, {}], partial sum {col}");
  expectSame("[col = 4]", {table, i64("2x4")},
             "%p = ax.gather %x0[%x1] axis 0 : " + table + ", " + i64("2x4") +
                 " -> " + p + "\n%r = ax.all_reduce %p over {col} : " + p +
                 " -> " + f32("2x4x3"),
             f32("2x4x3"), 11);
}

static void collective(const std::string &mesh, const std::string &op,
                       const std::string &axes, const std::string &from,
                       const std::string &to) {
  expectSame(mesh, {from},
             "%r = ax." + op + " %x0 over " + axes + " : " + from + " -> " + to,
             to);
}

TEST(Localize, AllGather) {
  collective("[a = 2, b = 3]", "all_gather", "{b}",
             f32("4x6x5", "[{}, {b}, {}]"), f32("4x6x5"));
  collective("[a = 2, b = 3]", "all_gather", "{b}",
             f32("4x7x5", "[{a}, {b}, {}]"), f32("4x7x5", "[{a}, {}, {}]"));
  collective("[a = 2, b = 3]", "all_gather", "{b}", f32("12", "[{a, b}]"),
             f32("12", "[{a}]"));
  collective("[a = 2, b = 3]", "all_gather", "{a}", f32("12", "[{a, b}]"),
             f32("12", "[2 * 6{b}]"));
  collective("[col = 2]", "all_gather", "{col}",
             f32("3x24", "[{}, 3 * 4{col} * 2]"), f32("3x24"));
  collective("[a = 2, b = 2]", "all_gather", "{a, b}",
             f32("24", "[2{a} * 3 * 2{b} * 2]"), f32("24"));
}

TEST(Localize, AllSlice) {
  collective("[a = 2, b = 3]", "all_slice", "{b}", f32("4x7"),
             f32("4x7", "[{}, {b}]"));
  collective("[col = 2]", "all_slice", "{col}", f32("3x24"),
             f32("3x24", "[{}, 3 * 4{col} * 2]"));
  collective("[a = 2, b = 2]", "all_slice", "{b}", f32("8", "[{a}]"),
             f32("8", "[{a, b}]"));
  collective("[a = 2, b = 2]", "all_slice", "{a, b}", f32("24"),
             f32("24", "[2{a} * 3 * 2{b} * 2]"));
}

TEST(Localize, ReduceScatter) {
  collective("[a = 2]", "reduce_scatter", "{a}",
             f32("4x6", "[{}, {}], partial sum {a}"), f32("4x6", "[{}, {a}]"));
  collective("[a = 3]", "reduce_scatter", "{a}",
             f32("4x7", "[{}, {}], partial sum {a}"), f32("4x7", "[{}, {a}]"));
  collective("[a = 2]", "reduce_scatter", "{a}",
             f32("24", "[{}], partial sum {a}"), f32("24", "[3 * 4{a} * 2]"));
}

TEST(Localize, AllToAllAndPermute) {
  collective("[a = 2]", "all_to_all", "{a}", f32("4x6", "[{a}, {}]"),
             f32("4x6", "[{}, {a}]"));
  collective("[a = 2]", "all_to_all", "{a}", f32("5x7", "[{a}, {}]"),
             f32("5x7", "[{}, {a}]"));
  collective("[a = 2]", "all_to_all", "{a}", f32("4x24", "[{}, 3 * 4{a} * 2]"),
             f32("4x24", "[{a}, {}]"));
  collective("[a = 2, b = 3]", "collective_permute", "{a, b}",
             f32("12", "[{a, b}]"), f32("12", "[{b, a}]"));
}

TEST(Localize, ToPartial) {
  std::string p = f32("3x2", "[{}, {}], partial sum {a}");
  expectSame("[a = 2]", {f32("3x2")},
             "%p = ax.to_partial %x0 over {a} : " + f32("3x2") + " -> " + p +
                 "\n%r = ax.all_reduce %p over {a} : " + p + " -> " +
                 f32("3x2"),
             f32("3x2"));
}

TEST(Localize, IotaAndConstantOfParts) {
  std::string split = i64("2x7", "[{}, {a}]");
  expectSame("[a = 2]", {split},
             "%i = ax.iota dim 1 : " + split +
                 "\n%r = ax.binary add %x0, %i : " + split + ", " + split +
                 " -> " + split,
             split);
  std::string parts = i64("12", "[3 * 2{a} * 2]");
  expectSame("[a = 2]", {parts},
             "%i = ax.iota dim 0 : " + parts +
                 "\n%r = ax.binary add %x0, %i : " + parts + ", " + parts +
                 " -> " + parts,
             parts);
  std::string c = i64("5", "[{a}]");
  expectSame("[a = 2]", {c},
             "%c = ax.constant dense<[1, 2, 3, 4, 5]> : tensor<5xi64> -> " + c +
                 "\n%r = ax.binary add %x0, %c : " + c + ", " + c + " -> " + c,
             c);
}

TEST(Localize, SlicesOfAFusedProjection) {
  // [which, head, width]: each rank has half the heads of each of the three.
  std::string qkv = f32("2x24", "[{}, 3 * 4{col} * 2]");
  std::string k = f32("2x8", "[{}, {col}]");
  expectSame(
      "[col = 2]", {qkv},
      "%r = ax.slice %x0 starts [0, 8] steps [1, 1] : " + qkv + " -> " + k, k);
}

TEST(Localize, HeadsByReshapeAndAttention) {
  std::string rows = f32("1x3x8", "[{}, {}, {col}]");
  std::string heads = f32("1x3x4x2", "[{}, {}, {col}, {}]");
  std::string by = f32("1x4x3x2", "[{}, {col}, {}, {}]");
  std::string attend = "%q = ax.reshape %x0 : " + rows + " -> " + heads +
                       "\n%t = ax.transpose %q [0, 2, 1, 3] : " + heads +
                       " -> " + by;
  expectSame("[col = 2]", {rows},
             attend + "\n%r = ax.attention %t, %t, %t scale 0.5 {causal} : " +
                 by + ", " + by + ", " + by + " -> " + by,
             by);
}

TEST(Localize, CausalAttentionOfSplitQueries) {
  std::string q = f32("1x2x5x4", "[{}, {}, {a}, {}]"), k = f32("1x2x7x4");
  expectSame("[a = 2]", {q, k},
             "%r = ax.attention %x0, %x1, %x1 scale 0.5 {causal} : " + q +
                 ", " + k + ", " + k + " -> " + q,
             q);
}

TEST(Localize, GroupsOfAConvolution) {
  std::string x = f32("1x8x5", "[{}, {a}, {}]"),
              w = f32("8x2x3", "[{a}, {}, {}]");
  expectSame("[a = 2]", {x, w},
             "%r = ax.conv %x0, %x1 strides [1] pads [1, 1] dilations [1] "
             "{groups = 4 : i64} : " +
                 x + ", " + w + " -> " + x,
             x);
}

TEST(Localize, ConvolutionOfNoChannels) {
  std::string x = f32("2x0x5", "[{a}, {}, {}]"),
              w = f32("4x0x3", "[{}, {}, {}]"),
              y = f32("2x4x5", "[{a}, {}, {}]");
  expectSame("[a = 2]", {x, w},
             "%r = ax.conv %x0, %x1 strides [1] pads [1, 1] dilations [1] : " +
                 x + ", " + w + " -> " + y,
             y);
}

TEST(Localize, SliceAcrossPartsIsRefused) {
  std::string x = f32("8", "[{a}]"), y = f32("6", "[{a}]");
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      planText("[a = 2]", {x},
               "%r = ax.slice %x0 starts [1] steps [1] : " + x + " -> " + y, y),
      &testContext());
  if (!module) // The plan's own verifier may be the one that refuses it.
    return;
  auto local =
      localize(findOp<StageOp>(*module), getMesh(findOp<ProgramOp>(*module)));
  ASSERT_FALSE(local);
  auto error = describeError(local.takeError());
  EXPECT_EQ(error.code, ExitCode::BadPlan);
  EXPECT_NE(error.message.find("sliced across"), std::string::npos);
}
