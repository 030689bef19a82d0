//===- PartsTest.cpp - Parts of tensors, checks of programs ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "HeldParts.h"
#include "ProgramBuilder.h"

#include "ax/Runtime/LocalCommunicator.h"
#include "ax/Support/Error.h"

#include "gtest/gtest.h"

#include <random>

using namespace ax;
using namespace ax::rt;
using namespace ax::sharding;

namespace {

/// Every element of every part is where sharding::globalIndex says.
void check(const Layout &layout, const Mesh &mesh) {
  Shape shape = layout.globalShape(), local = layout.localShape();
  HostTensor global(DType::I64, shape);
  for (int64_t i = 0; i < global.numElements(); ++i)
    global.setInt(i, i + 1);
  std::vector<int64_t> strides = rowMajorStrides(shape);
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank)
    for (int64_t slice = 0; slice < mesh.numTimeSlices(); ++slice) {
      std::vector<int64_t> coordinates = mesh.coordinates(rank, slice);
      Part part = makePart(layout, DType::I64, mesh, coordinates);
      HostTensor got(DType::I64, local);
      ASSERT_EQ(part.localBytes, got.numBytes());
      part.box.copy(global.data(), got.mutableData());
      bool full = true;
      std::vector<int64_t> index(local.size(), 0);
      for (int64_t i = 0; i < got.numElements(); ++i) {
        int64_t want = 0;
        if (auto at = globalIndex(layout, mesh, coordinates, index)) {
          want = 1;
          for (size_t d = 0; d < at->size(); ++d)
            want += (*at)[d] * strides[d];
        } else {
          full = false;
        }
        ASSERT_EQ(got.getInt(i), want) << toString(layout, mesh);
        for (size_t d = local.size(); d-- > 0;) {
          if (++index[d] < local[d])
            break;
          index[d] = 0;
        }
      }
      EXPECT_EQ(part.isFull, full) << toString(layout, mesh);
      if (part.isContiguous()) {
        EXPECT_EQ(std::memcmp(global.data() + part.contiguousOffset, got.data(),
                              static_cast<size_t>(got.numBytes())),
                  0);
      }
      // And back again.
      HostTensor back(DType::I64, shape);
      part.box.copyBack(back.mutableData(), got.data());
      for (int64_t i = 0; i < back.numElements(); ++i)
        ASSERT_TRUE(back.getInt(i) == 0 || back.getInt(i) == i + 1);
    }
}

TEST(PartsTest, EveryLayoutOfASmallMesh) {
  Mesh mesh({{"a", 2, false}, {"b", 4, false}, {"t", 3, true}});
  SubAxis a = mesh.whole("a"), b = mesh.whole("b"), t = mesh.whole("t");
  SubAxis major{"b", 1, 2}, minor{"b", 2, 2};
  std::vector<SubAxes> choices{
      {},       {a},     {b},     {t},    {a, b},
      {b, a},   {major}, {minor}, {t, a}, {minor, major},
      {a, t, b}};
  std::mt19937 random(3);
  auto choose = [&](size_t count) {
    return std::uniform_int_distribution<size_t>(0, count - 1)(random);
  };
  int checked = 0;
  while (checked < 600) {
    Layout layout;
    SubAxes used;
    for (size_t d = 0, rank = 1 + choose(3); d < rank; ++d) {
      DimLayout dim;
      // Factors of compound dimensions divide evenly.
      size_t factors = choose(3) == 0 ? 2 + choose(2) : 1;
      for (size_t f = 0; f < factors; ++f) {
        SubAxes axes = choices[choose(choices.size())];
        int64_t size =
            factors > 1 ? numParts(axes) * static_cast<int64_t>(1 + choose(2))
                        : static_cast<int64_t>(1 + choose(13));
        dim.factors.push_back({size, axes});
        used.insert(used.end(), axes.begin(), axes.end());
      }
      layout.dims.push_back(canonicalize(dim));
    }
    bool legal = true;
    for (size_t i = 0; i < used.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        legal &= !overlap(used[i], used[j]);
    if (!legal)
      continue;
    ++checked;
    check(layout, mesh);
    if (testing::Test::HasFatalFailure())
      return;
  }
}

TEST(PartsTest, WholeRowsAreContiguous) {
  Mesh mesh({{"a", 2, false}});
  auto makeLayout = [](DimLayout rows, DimLayout columns) {
    Layout layout;
    layout.dims = {std::move(rows), std::move(columns)};
    return layout;
  };
  SubAxes a{mesh.whole("a")};
  Layout rows = makeLayout(DimLayout::split(6, a), DimLayout::whole(4));
  Part part = makePart(rows, DType::F16, mesh, {1});
  EXPECT_EQ(part.contiguousOffset, 24);
  EXPECT_EQ(part.number, 1);
  Layout columns = makeLayout(DimLayout::whole(6), DimLayout::split(4, a));
  EXPECT_FALSE(makePart(columns, DType::F16, mesh, {1}).isContiguous());
  Layout uneven = makeLayout(DimLayout::split(5, a), DimLayout::whole(4));
  EXPECT_TRUE(makePart(uneven, DType::F16, mesh, {0}).isContiguous());
  EXPECT_FALSE(makePart(uneven, DType::F16, mesh, {1}).isContiguous());
}

/// The state's parts as pieces, of all ranks that hold it.
PiecedTensor piecesOf(const ProgramBuilder &b, const HostTensor &whole) {
  PiecedTensor result{whole.getType(), whole.getShape(), {}};
  for (const HeldPart &held :
       findHeldParts(*b.program, UsedValues(*b.program), 0)) {
    TensorPiece &piece = result.pieces.emplace_back();
    piece.box = {held.offset, held.sizes, held.strides,
                 *checkedNumElements(held.sizes)};
    piece.tensor = HostTensor(whole.getType(), held.sizes);
    piece.box.forEachRun([&](int64_t at, int64_t count, int64_t from) {
      for (int64_t i = 0; i < count; ++i)
        piece.tensor.setDouble(from + i, whole.getDouble(at + i));
      return true;
    });
  }
  return result;
}

// A part is made of the pieces of any layout, also of narrower ones, and only
// of those that it meets.
TEST(PartsTest, PiecesOfAnyLayoutMakePartsOfAnyOther) {
  Shape shape{5, 6};
  HostTensor whole = countingTensor(shape, 1);
  auto make = [&](int layout) {
    ProgramBuilder b({{"a", 2, false}, {"b", 2, false}});
    std::vector<std::vector<SubAxes>> splits{
        {},
        {b.over("a")},
        {{}, b.over("b")},
        {b.over("b"), b.over("a")},
        {{}, {b.over("a")[0], b.over("b")[0]}}};
    int32_t w = b.state("w", whole, b.split(shape, splits[layout]));
    b.stages(1);
    int32_t from = b.buffer(0, Space::State, w, 4);
    b.kernel(0, "use", doublePlusOne, {from, b.buffer(0, Space::Arena, 0, 4)},
             1);
    return b;
  };
  const DType types[] = {DType::F32, DType::BF16, DType::F16};
  for (int first = 0; first < 5; ++first) {
    ProgramBuilder before = make(first);
    PiecedTensor pieces = piecesOf(before, whole.cast(types[first % 3]));
    pieces.type = DType::F32;
    EXPECT_TRUE(llvm::cantFail(pieces.assemble()).isIdentical(whole));
    for (int second = 0; second < 5; ++second) {
      ProgramBuilder now = make(second);
      for (int32_t rank = 0; rank < 4; ++rank) {
        Part part = partOf(*now.program, now.program->states[0], rank);
        auto needs = findNeededElements(*now.program, {rank});
        std::vector<uint8_t> wanted(static_cast<size_t>(part.localBytes)),
            got(wanted);
        part.box.copy(whole.data(), wanted.data());
        for (const TensorPiece &piece : pieces.pieces) {
          std::vector<uint8_t> old = got;
          copyPiece(pieces, piece, part, got.data());
          EXPECT_EQ(needs("w", piece.box), old != got);
        }
        EXPECT_EQ(got, wanted);
        EXPECT_FALSE(needs("v", pieces.pieces[0].box));
      }
    }
  }
}

// What is given is in the model's order, or in that of who wrote it; what a
// rank has is in its own.
TEST(PartsTest, PiecesOfAnyOrderMakePartsOfAnyOther) {
  HostTensor whole = countingTensor({4, 8}, 1);
  auto inOrder = [&](std::optional<Dealt> given, std::optional<Dealt> wanted) {
    PiecedTensor tensor = PiecedTensor::of(whole);
    tensor.given = std::move(given);
    tensor.wanted = std::move(wanted);
    return tensor;
  };
  const std::optional<Dealt> orders[] = {std::nullopt, Dealt{1, {4, 2, 2}, 2},
                                         Dealt{0, {2, 2}, 2}};
  for (const std::optional<Dealt> &given : orders)
    for (const std::optional<Dealt> &wanted : orders) {
      ProgramBuilder b({{"a", 2, false}});
      int32_t w = b.state("w", whole, b.split({4, 8}, {{}, b.over("a")}));
      b.program->states[0].dealt = wanted;
      b.stages(1);
      b.kernel(
          0, "use", doublePlusOne,
          {b.buffer(0, Space::State, w, 4), b.buffer(0, Space::Arena, 0, 4)},
          1);
      PiecedTensor tensor = inOrder(given, wanted);
      HostTensor dealt = llvm::cantFail(tensor.assemble());
      for (int32_t rank = 0; rank < 2; ++rank) {
        Part part = partOf(*b.program, b.program->states[0], rank);
        std::vector<uint8_t> hopedFor(static_cast<size_t>(part.localBytes)),
            got(hopedFor);
        part.box.copy(dealt.data(), hopedFor.data());
        copyPiece(tensor, tensor.pieces[0], part, got.data());
        EXPECT_EQ(got, hopedFor);
        // Which elements of the model the rank has.
        auto needs = findNeededElements(*b.program, {rank});
        HostTensor model =
            llvm::cantFail(inOrder(std::nullopt, wanted).assemble());
        part.box.copy(model.data(), hopedFor.data());
        int64_t count = 0;
        for (int64_t i = 0; i < 32; ++i)
          count += needs("w", {i, {1}, {1}, 1});
        EXPECT_EQ(count, 16);
        float first;
        std::memcpy(&first, hopedFor.data(), sizeof(first));
        for (int64_t i = 0; i < 32; ++i)
          if (whole.getDouble(i) == first)
            EXPECT_TRUE(needs("w", {i, {1}, {1}, 1}));
      }
    }
}

/// A program with every kind of command.
ProgramBuilder makeProgram() {
  ProgramBuilder b({{"pipe", 2, false}, {"col", 2, false}, {"micro", 2, true}});
  sharding::Layout layout = b.split({4, 6}, {b.over("micro"), b.over("col")});
  int32_t in = b.input("x", {4, 6}, layout);
  int32_t out = b.output("y", {4, 6}, layout);
  int32_t w = b.state("w", HostTensor(DType::F32, {3, 3}), b.split({3, 3}, {}));
  b.stages(2);
  b.transfer(0, 24, 2);
  int32_t x = b.buffer(0, Space::Input, in, 24);
  int32_t sum = b.buffer(0, Space::Arena, 0, 24);
  int32_t group = b.group(0, "col");
  b.allReduce(0, group, x, sum, {2, 3}, 5);
  b.add(0, WaitCommand{5}, "wait");
  b.add(0, SendCommand{0, {sum, 0}}, "send");
  int32_t received = b.buffer(1, Space::Received, 0, 24);
  int32_t weights = b.buffer(1, Space::State, w, 36);
  int32_t product = b.buffer(1, Space::Arena, 0, 24);
  int32_t y = b.buffer(1, Space::Output, out, 24);
  b.add(1, RecvCommand{0}, "recv");
  MatmulDesc desc;
  desc.a = desc.c = TensorDesc::dense(DType::F32, {2, 3});
  desc.b = TensorDesc::dense(DType::F32, {3, 3});
  desc.constantB = true;
  LibraryCommand matmul;
  matmul.desc = desc;
  matmul.arguments = {{received, 0}, {weights, 0}, {product, 0}};
  b.add(1, matmul, "linear");
  b.kernel(1, "double", doublePlusOne, {product, y}, 6);
  CopyCommand copy;
  copy.source = copy.destination = {product, 0};
  copy.sizes = {2, 3};
  copy.sourceStrides = copy.destinationStrides = {3, 1};
  b.add(1, copy, "copy");
  return b;
}

template <typename C>
C &command(Program &program, size_t stage, size_t index) {
  return std::get<C>(program.stages[stage].lists[0].commands[index].body);
}

TEST(CheckProgramTest, AGoodProgramPasses) {
  ProgramBuilder b = makeProgram();
  llvm::Error error = checkProgram(*b.program);
  EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
}

TEST(CheckProgramTest, EveryFaultIsFound) {
  using Edit = void (*)(Program &);
  const Edit edits[] = {
      [](Program &p) { p.states[0].dealt = Dealt{0, {2}, 2}; },
      [](Program &p) { p.states[0].dealt = Dealt{2, {2, 4}, 2}; },
      [](Program &p) { p.stages.pop_back(); },
      [](Program &p) { p.stages[0].ranks = {0}; },
      [](Program &p) { p.stages[0].ranks = {0, 2}; },
      [](Program &p) { p.stages[1].ranks = {2, 7}; },
      [](Program &p) { p.stages[0].buffers[0].index = 9; },
      [](Program &p) { p.stages[0].buffers[0].bytes = 28; },
      [](Program &p) { p.stages[0].buffers[1].offset = 4; },
      [](Program &p) { p.stages[0].buffers[1].offset = -64; },
      [](Program &p) { p.stages[0].buffers[1].offset = 64; },
      [](Program &p) { p.stages[0].arenaBytes = 16; },
      [](Program &p) { p.stages[1].buffers[0].index = 1; },
      [](Program &p) { p.stages[0].groups[0].groups = {{0}, {1}, {0}}; },
      [](Program &p) { p.stages[0].groups[0].groups = {{0, 2}}; },
      [](Program &p) { p.stages[0].groups[0].groups = {{0}}; },
      [](Program &p) {
        p.stages[0].lists[0].commands.erase(
            p.stages[0].lists[0].commands.begin());
      },
      [](Program &p) {
        p.stages[0].lists[0].commands.erase(
            p.stages[0].lists[0].commands.begin() + 1);
      },
      [](Program &p) { p.stages[0].lists[0].commands.pop_back(); },
      [](Program &p) {
        p.stages[1].lists[0].commands.erase(
            p.stages[1].lists[0].commands.begin());
      },
      [](Program &p) {
        p.stages[0].lists[0].commands.push_back(
            p.stages[0].lists[0].commands.back());
      },
      [](Program &p) { command<CollectiveCommand>(p, 0, 0).groupSet = 1; },
      [](Program &p) {
        command<CollectiveCommand>(p, 0, 0).parts[0].shape = {3, 3};
      },
      [](Program &p) {
        command<CollectiveCommand>(p, 0, 0).parts[0].shape = {-2, 3};
      },
      [](Program &p) {
        command<CollectiveCommand>(p, 0, 0).parts[0].gatherDim = 0;
      },
      [](Program &p) {
        command<CollectiveCommand>(p, 0, 0).parts[0].source.buffer = 7;
      },
      [](Program &p) { command<WaitCommand>(p, 0, 1).request = 4; },
      [](Program &p) { command<SendCommand>(p, 0, 2).transfer = 1; },
      [](Program &p) { command<SendCommand>(p, 0, 2).source.byteOffset = 4; },
      [](Program &p) { command<RecvCommand>(p, 1, 0).transfer = -1; },
      [](Program &p) { command<LibraryCommand>(p, 1, 1).arguments.pop_back(); },
      [](Program &p) {
        command<LibraryCommand>(p, 1, 1).arguments[1].buffer = 0;
      },
      [](Program &p) {
        std::get<MatmulDesc>(command<LibraryCommand>(p, 1, 1).desc).a.sizes = {
            9, 9};
      },
      [](Program &p) {
        std::get<MatmulDesc>(command<LibraryCommand>(p, 1, 1).desc)
            .a.strides = {1};
      },
      [](Program &p) { command<KernelCommand>(p, 1, 2).kernel = 1; },
      [](Program &p) { p.kernels[0].image.clear(); },
      [](Program &p) {
        command<KernelCommand>(p, 1, 2).buffers[0].buffer = -1;
      },
      [](Program &p) { command<CopyCommand>(p, 1, 3).sizes = {2, 4}; },
      [](Program &p) { command<CopyCommand>(p, 1, 3).sourceStrides = {4, 1}; },
      [](Program &p) { command<CopyCommand>(p, 1, 3).elementBytes = 0; },
      [](Program &p) { p.stages[1].schedule.pop_back(); },
      [](Program &p) { p.stages[1].schedule[0].microBatch = 1; },
      [](Program &p) { p.stages[1].schedule[0].microBatch = 2; },
      [](Program &p) {
        std::swap(p.stages[1].schedule[0], p.stages[1].schedule[1]);
      },
      [](Program &p) { p.transfers[0].slots = 0; },
      [](Program &p) { p.transfers[0].slots = mostReceivesAhead + 1; },
      [](Program &p) { p.inputs[0].shape = {4, 7}; },
      [](Program &p) { p.outputs[0].layout.dims.pop_back(); },
      [](Program &p) { p.outputs[0].layout.partial = {{"row", 1, 2}}; },
      [](Program &p) { p.states[0].layout.dims[0].factors[0].size = 4; },
      [](Program &p) { p.transfers[0].bytes = 28; },
      [](Program &p) {
        std::swap(p.transfers[0].fromStage, p.transfers[0].toStage);
      },
      [](Program &p) { p.transfers.push_back(p.transfers[0]); },
  };
  int number = 0;
  for (Edit edit : edits) {
    ProgramBuilder b = makeProgram();
    edit(*b.program);
    ErrorDescription text = describeError(checkProgram(*b.program));
    EXPECT_EQ(text.code, ExitCode::BadPlan) << "edit " << number;
    EXPECT_FALSE(text.message.empty());
    ++number;
  }
}

TEST(GroupSetTest, GroupsFollowTheMesh) {
  Mesh mesh({{"pipe", 2, false}, {"row", 2, false}, {"col", 2, false}});
  GroupSet rows = makeGroupSet(mesh, {mesh.whole("row")}, {4, 5, 6, 7});
  EXPECT_EQ(rows.name, "{row}");
  EXPECT_EQ(rows.groups, (std::vector<std::vector<int32_t>>{{4, 6}, {5, 7}}));
  GroupSet both =
      makeGroupSet(mesh, {mesh.whole("col"), mesh.whole("row")}, {0, 1, 2, 3});
  EXPECT_EQ(both.groups, (std::vector<std::vector<int32_t>>{{0, 2, 1, 3}}));
}

} // namespace
