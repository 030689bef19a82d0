//===- CommunicatorSuite.cpp - What every communicator must do ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CommunicatorSuite.h"

#include "ax/Support/Error.h"
#include "ax/Support/HostTensor.h"

#include <random>

namespace ax::rt {

using sharding::ReduceKind;

namespace {

/// Element `index` of the source of `rank`: small integers, so that sums of
/// every type are exact in any order.
int64_t sourceValue(int64_t rank, int64_t index) {
  return (index * 7 + rank * 3) % 5 - (index % 2);
}

HostTensor makeSource(DType type, const Shape &shape, int64_t rank) {
  HostTensor tensor(type, shape);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.setInt(i, type == DType::Bool ? sourceValue(rank, i) == 0
                     : isUnsigned(type)  ? sourceValue(rank, i) + 1
                                         : sourceValue(rank, i));
  return tensor;
}

HostTensor reduceAll(const std::vector<HostTensor> &tensors, ReduceKind kind) {
  HostTensor result = tensors.front();
  for (int64_t i = 0; i < result.numElements(); ++i) {
    int64_t value = result.getInt(i);
    for (size_t t = 1; t < tensors.size(); ++t) {
      int64_t other = tensors[t].getInt(i);
      value = kind == ReduceKind::Sum   ? value + other
              : kind == ReduceKind::Max ? std::max(value, other)
                                        : std::min(value, other);
    }
    result.setInt(i, value);
  }
  return result;
}

/// `tensor`'s elements of dimension `dim` from `begin` on, `size` of them;
/// zeros past its end.
HostTensor window(const HostTensor &tensor, int64_t dim, int64_t begin,
                  int64_t size) {
  Shape shape = tensor.getShape();
  auto d = static_cast<size_t>(dim);
  int64_t extent = shape[d];
  shape[d] = size;
  HostTensor result(tensor.getType(), shape);
  int64_t inner = rowMajorStrides(shape)[d];
  for (int64_t i = 0; i < result.numElements(); ++i) {
    int64_t at = begin + i / inner % size;
    int64_t outer = i / inner / size;
    if (at < extent)
      result.setInt(i,
                    tensor.getInt((outer * extent + at) * inner + i % inner));
  }
  return result;
}

/// The inverse: parts of `dim` one after another, cut to `size`.
HostTensor join(const std::vector<HostTensor> &parts, int64_t dim,
                int64_t size) {
  Shape shape = parts.front().getShape();
  auto d = static_cast<size_t>(dim);
  int64_t part = shape[d];
  shape[d] = size;
  HostTensor result(parts.front().getType(), shape);
  int64_t inner = rowMajorStrides(shape)[d];
  for (int64_t i = 0; i < result.numElements(); ++i) {
    int64_t at = i / inner % size;
    int64_t from = (i / inner / size * part + at % part) * inner + i % inner;
    result.setInt(i, parts[static_cast<size_t>(at / part)].getInt(from));
  }
  return result;
}

/// What member `me` gets.
HostTensor expected(const CollectiveSpec &spec,
                    const std::vector<HostTensor> &sources, int64_t me) {
  switch (spec.kind) {
  case CollectiveKind::AllReduce:
    return reduceAll(sources, spec.reduce);
  case CollectiveKind::ReduceScatter:
    return window(reduceAll(sources, spec.reduce), spec.scatterDim,
                  me * spec.scatterPart, spec.scatterPart);
  case CollectiveKind::AllGather:
    return join(sources, spec.gatherDim, spec.gatherSize);
  case CollectiveKind::AllToAll:
    return window(join(sources, spec.gatherDim, spec.gatherSize),
                  spec.scatterDim, me * spec.scatterPart, spec.scatterPart);
  case CollectiveKind::Permute: {
    int32_t from = spec.permutation[static_cast<size_t>(me)];
    return from < 0 ? HostTensor(spec.dtype, spec.shape)
                    : sources[static_cast<size_t>(from)];
  }
  }
  __builtin_unreachable();
}

/// Runs `spec` three times over all ranks and checks what this rank gets.
void check(Communicator &comm, const std::shared_ptr<Group> &group,
           const CollectiveSpec &spec, bool inPlace = false) {
  std::unique_ptr<Operation> operation = prepare(comm, group, spec);
  int32_t me = group->getIndex();
  std::vector<HostTensor> sources;
  for (int32_t i = 0; i < group->getSize(); ++i)
    sources.push_back(makeSource(spec.dtype, spec.shape, i));
  HostTensor want = expected(spec, sources, me);
  for (int repeat = 0; repeat < 3; ++repeat) {
    HostTensor source = makeSource(spec.dtype, spec.shape, me);
    HostTensor got(spec.dtype, destinationShape(spec));
    std::fill_n(got.mutableData(), got.numBytes(), uint8_t(1));
    void *to = inPlace ? source.mutableData() : got.mutableData();
    llvm::Error error = operation->run(source.data(), to);
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
    const HostTensor &result = inPlace ? source : got;
    ASSERT_TRUE(result.isIdentical(want))
        << toString({spec}) << ", member " << me << " of " << group->getSize();
    // Whoever is ahead may overwrite its source at once.
    if (!inPlace)
      std::fill_n(source.mutableData(), source.numBytes(), uint8_t(1));
  }
}

const DType allTypes[] = {
    DType::F32, DType::F64, DType::F16,  DType::BF16,     DType::I8,
    DType::I16, DType::I32, DType::I64,  DType::U8,       DType::U16,
    DType::U32, DType::U64, DType::Bool, DType::F8E4M3FN, DType::F8E5M2};

TEST_P(CommunicatorSuite, AllReduceOfEveryTypeAndKind) {
  for (int32_t ranks : {1, 2, 3})
    run(ranks, [](Communicator &comm) {
      std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
      for (DType type : allTypes)
        for (ReduceKind kind :
             {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min})
          if (type != DType::Bool || kind != ReduceKind::Sum)
            check(comm, group, allReduce(type, {3, 11}, kind));
    });
}

TEST_P(CommunicatorSuite, AllReduceOfEverySize) {
  for (int32_t ranks : {1, 2, 4, 5})
    run(ranks, [](Communicator &comm) {
      std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
      for (int64_t count : {0, 1, 63, 64, 65, 4096, 4097, 30000, 70001})
        for (bool inPlace : {false, true})
          check(comm, group, allReduce(DType::F32, {count}), inPlace);
      check(comm, group, allReduce(DType::BF16, {50001}));
    });
}

// Sums of random numbers depend on their order: it must be the same on every
// rank and in every run.
TEST_P(CommunicatorSuite, AllReduceGivesTheSameBits) {
  const int64_t count = 20011;
  const int32_t ranks = 4;
  std::vector<HostTensor> first(ranks), second(ranks);
  run(ranks, [&](Communicator &comm) {
    std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
    std::unique_ptr<Operation> operation =
        prepare(comm, group, allReduce(DType::F32, {count}));
    std::mt19937 random(static_cast<uint32_t>(comm.getRank()));
    std::normal_distribution<float> normal;
    HostTensor source(DType::F32, {count});
    for (float &value : source.mutableValues<float>())
      value = normal(random);
    for (std::vector<HostTensor> *results : {&first, &second}) {
      HostTensor result(DType::F32, {count});
      llvm::cantFail(operation->run(source.data(), result.mutableData()));
      (*results)[static_cast<size_t>(comm.getRank())] = result;
    }
    // Ranks in other processes compare through the communicator.
    for (ReduceKind kind : {ReduceKind::Max, ReduceKind::Min}) {
      HostTensor extreme(DType::F32, {count});
      llvm::cantFail(
          prepare(comm, group, allReduce(DType::F32, {count}, kind))
              ->run(first[static_cast<size_t>(comm.getRank())].data(),
                    extreme.mutableData()));
      EXPECT_TRUE(
          extreme.isIdentical(first[static_cast<size_t>(comm.getRank())]));
    }
    EXPECT_TRUE(second[static_cast<size_t>(comm.getRank())].isIdentical(
        first[static_cast<size_t>(comm.getRank())]));
  });
}

TEST_P(CommunicatorSuite, NarrowFloatsAreSummedInF32) {
  if (!GetParam()->roundsOnce())
    GTEST_SKIP() << "rounds at each step";
  run(3, [](Communicator &comm) {
    std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
    // 256 + 0.75 + 0.75: adding in bf16 would lose both.
    HostTensor source(DType::BF16, {1});
    source.setDouble(0, comm.getRank() == 0 ? 256 : 0.75);
    HostTensor result(DType::BF16, {1});
    llvm::cantFail(prepare(comm, group, allReduce(DType::BF16, {1}))
                       ->run(source.data(), result.mutableData()));
    EXPECT_EQ(result.getDouble(0), 258);
  });
}

// Small and large, even and uneven, down to members with nothing.
TEST_P(CommunicatorSuite, AllGather) {
  for (int32_t ranks : {1, 2, 3, 5})
    run(ranks, [&](Communicator &comm) {
      std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
      for (int64_t inner : {1, 3, 2000})
        for (int64_t part : {1, 4})
          for (int64_t missing = 0; missing < part * ranks; ++missing) {
            CollectiveSpec spec;
            spec.kind = CollectiveKind::AllGather;
            spec.shape = {2, part, inner};
            spec.gatherDim = 1;
            spec.gatherSize = part * ranks - missing;
            check(comm, group, spec);
          }
    });
}

TEST_P(CommunicatorSuite, ReduceScatter) {
  for (int32_t ranks : {1, 2, 3, 5})
    run(ranks, [&](Communicator &comm) {
      std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
      for (int64_t inner : {1, 3, 2000})
        for (int64_t part : {1, 4})
          for (int64_t missing = 0; missing < part * ranks; ++missing) {
            CollectiveSpec spec;
            spec.kind = CollectiveKind::ReduceScatter;
            spec.dtype = missing % 2 ? DType::F16 : DType::F32;
            spec.shape = {3, part * ranks - missing, inner};
            spec.scatterDim = 1;
            spec.scatterPart = part;
            check(comm, group, spec);
          }
    });
}

TEST_P(CommunicatorSuite, AllToAll) {
  for (int32_t ranks : {1, 2, 3})
    run(ranks, [&](Communicator &comm) {
      std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
      for (int64_t inner : {1, 700})
        for (int64_t missing : {0, 1, 2})
          for (bool gatherFirst : {false, true}) {
            CollectiveSpec spec;
            spec.kind = CollectiveKind::AllToAll;
            spec.dtype = DType::I16;
            spec.gatherDim = gatherFirst ? 1 : 3;
            spec.scatterDim = gatherFirst ? 3 : 1;
            spec.shape = {2, 0, 3, 0, inner};
            spec.shape[static_cast<size_t>(spec.gatherDim)] = 3;
            spec.gatherSize = 3 * ranks - missing;
            spec.shape[static_cast<size_t>(spec.scatterDim)] =
                2 * ranks - (missing ? 1 : 0);
            spec.scatterPart = 2;
            check(comm, group, spec);
          }
    });
}

TEST_P(CommunicatorSuite, Permute) {
  run(4, [](Communicator &comm) {
    std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
    for (int64_t count : {5, 20000}) {
      CollectiveSpec spec;
      spec.kind = CollectiveKind::Permute;
      spec.shape = {count};
      for (std::vector<int32_t> permutation :
           {std::vector<int32_t>{1, 2, 3, 0}, {0, 1, 2, 3}, {-1, 0, 0, -1}}) {
        spec.permutation = permutation;
        check(comm, group, spec);
      }
    }
  });
}

// Rows and columns of a 2 x 3 mesh at the same time, members in any order.
TEST_P(CommunicatorSuite, Groups) {
  run(6, [](Communicator &comm) {
    int32_t r = comm.getRank() / 3, c = comm.getRank() % 3;
    std::shared_ptr<Group> row = makeGroup(comm, {r * 3 + 2, r * 3, r * 3 + 1});
    std::shared_ptr<Group> column = makeGroup(comm, {c, c + 3});
    EXPECT_EQ(row->getIndex(), (c + 1) % 3);
    EXPECT_EQ(column->getIndex(), r);
    for (int64_t count : {10, 30000}) {
      check(comm, row, allReduce(DType::F32, {count}));
      check(comm, column, allReduce(DType::F64, {count}));
      CollectiveSpec gather;
      gather.kind = CollectiveKind::AllGather;
      gather.shape = {count};
      gather.gatherDim = 0;
      gather.gatherSize = 3 * count - 1;
      check(comm, row, gather);
    }
  });
}

// Several tensors in one operation, few or many bytes, also in place.
TEST_P(CommunicatorSuite, SharedByTensors) {
  run(3, [](Communicator &comm) {
    std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
    int32_t me = group->getIndex();
    for (CollectiveKind kind :
         {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter,
          CollectiveKind::AllGather})
      for (int64_t rows : {2, 5000}) {
        CollectiveSpecs specs;
        for (Shape shape :
             {Shape{rows, 5}, Shape{7}, Shape{0, 3}, Shape{4, 9}}) {
          CollectiveSpec &spec = specs.emplace_back();
          spec.kind = kind;
          auto dim = static_cast<int32_t>(shape.size()) - 1;
          int64_t size = shape.back();
          if (kind == CollectiveKind::AllGather) {
            spec.gatherDim = dim;
            spec.gatherSize = 3 * size;
          } else if (kind == CollectiveKind::ReduceScatter) {
            spec.scatterDim = dim;
            spec.scatterPart = (size + 2) / 3;
          }
          spec.shape = std::move(shape);
        }
        auto operation = llvm::cantFail(comm.prepare(specs, group, "op"));
        for (int repeat = 0; repeat < 3; ++repeat) {
          std::vector<HostTensor> sources, results;
          std::vector<const void *> from;
          std::vector<void *> to;
          for (const CollectiveSpec &spec : specs) {
            sources.push_back(makeSource(spec.dtype, spec.shape, me));
            results.emplace_back(spec.dtype, destinationShape(spec));
          }
          bool inPlace = repeat == 2 && kind == CollectiveKind::AllReduce;
          for (size_t i = 0; i < specs.size(); ++i) {
            from.push_back(sources[i].data());
            to.push_back((inPlace ? sources : results)[i].mutableData());
          }
          if (inPlace)
            from.assign(to.begin(), to.end());
          llvm::cantFail(operation->run(from, to));
          for (size_t i = 0; i < specs.size(); ++i) {
            std::vector<HostTensor> all;
            for (int32_t member = 0; member < 3; ++member)
              all.push_back(makeSource(specs[i].dtype, specs[i].shape, member));
            EXPECT_TRUE((inPlace ? sources : results)[i].isIdentical(
                expected(specs[i], all, me)));
          }
        }
      }
  });
}

// Two collectives under way at once; waiting in the order of starting.
TEST_P(CommunicatorSuite, StartsBeforeWaits) {
  run(3, [](Communicator &comm) {
    std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
    for (int64_t count : {16, 40000}) {
      CollectiveSpec spec = allReduce(DType::F32, {count});
      HostTensor source = makeSource(DType::F32, {count}, comm.getRank());
      std::vector<HostTensor> sources;
      for (int32_t i = 0; i < 3; ++i)
        sources.push_back(makeSource(DType::F32, {count}, i));
      HostTensor want = expected(spec, sources, 0);
      HostTensor a(DType::F32, {count}), b(DType::F32, {count});
      std::unique_ptr<Operation> first = prepare(comm, group, spec);
      std::unique_ptr<Operation> second = prepare(comm, group, spec);
      for (int repeat = 0; repeat < 10; ++repeat) {
        llvm::cantFail(first->start(source.data(), a.mutableData()));
        llvm::cantFail(second->start(source.data(), b.mutableData()));
        llvm::cantFail(first->wait());
        llvm::cantFail(second->wait());
        EXPECT_TRUE(a.isIdentical(want));
        EXPECT_TRUE(b.isIdentical(want));
      }
    }
  });
}

TEST_P(CommunicatorSuite, MessagesKeepTheirOrder) {
  if (!GetParam()->findsByTag())
    GTEST_SKIP() << "receives in the order of sends";
  run(3, [](Communicator &comm) {
    const int64_t bytes = 8000;
    const int32_t count = 40, ahead = 3;
    int32_t next = (comm.getRank() + 1) % 3, last = (comm.getRank() + 2) % 3;
    std::unique_ptr<Operation> send =
        llvm::cantFail(comm.prepareSend(next, 7, bytes, "m"));
    std::vector<std::unique_ptr<Operation>> receives;
    std::vector<std::vector<int64_t>> buffers(ahead,
                                              std::vector<int64_t>(bytes / 8));
    for (int32_t i = 0; i < ahead; ++i) {
      receives.push_back(
          llvm::cantFail(comm.prepareReceive(last, 7, bytes, "m")));
      llvm::cantFail(receives.back()->start(nullptr, buffers[i].data()));
    }
    for (int32_t i = 0; i < count; ++i) {
      std::vector<int64_t> out(bytes / 8, comm.getRank() * 1000 + i);
      llvm::cantFail(send->run(out.data(), nullptr));
      auto slot = static_cast<size_t>(i % ahead);
      llvm::cantFail(receives[slot]->wait());
      EXPECT_EQ(buffers[slot].front(), last * 1000 + i);
      EXPECT_EQ(buffers[slot].back(), last * 1000 + i);
      llvm::cantFail(receives[slot]->start(nullptr, buffers[slot].data()));
    }
    // The last receives stay started: flush them.
    std::vector<int64_t> flush(bytes / 8);
    for (int32_t i = 0; i < ahead; ++i)
      llvm::cantFail(send->run(flush.data(), nullptr));
    for (int32_t i = 0; i < ahead; ++i)
      llvm::cantFail(
          receives[static_cast<size_t>((count + i) % ahead)]->wait());
  });
}

TEST_P(CommunicatorSuite, TagsAreIndependent) {
  if (!GetParam()->findsByTag())
    GTEST_SKIP() << "receives in the order of sends";
  run(2, [](Communicator &comm) {
    int64_t values[2] = {10, 20}, got[2] = {};
    if (comm.getRank() == 0) {
      auto a = llvm::cantFail(comm.prepareSend(1, 1, 8, "a"));
      auto b = llvm::cantFail(comm.prepareSend(1, 2, 8, "b"));
      llvm::cantFail(a->start(&values[0], nullptr));
      llvm::cantFail(b->start(&values[1], nullptr));
      llvm::cantFail(b->wait());
      llvm::cantFail(a->wait());
      return;
    }
    auto b = llvm::cantFail(comm.prepareReceive(0, 2, 8, "b"));
    auto a = llvm::cantFail(comm.prepareReceive(0, 1, 8, "a"));
    llvm::cantFail(b->run(nullptr, &got[1]));
    llvm::cantFail(a->run(nullptr, &got[0]));
    EXPECT_EQ(got[0], 10);
    EXPECT_EQ(got[1], 20);
  });
}

TEST_P(CommunicatorSuite, BarrierWaitsForAll) {
  run(4, [](Communicator &comm) {
    std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
    for (int i = 0; i < 200; ++i)
      llvm::cantFail(comm.barrier(*group));
  });
}

// More ranks than any test machine has cores: they must let each other run.
TEST_P(CommunicatorSuite, ManyRanksShareFewCores) {
  auto begin = std::chrono::steady_clock::now();
  run(8, [](Communicator &comm) {
    std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
    const int64_t count = 8192;
    std::unique_ptr<Operation> large =
        prepare(comm, group, allReduce(DType::F32, {count}));
    std::unique_ptr<Operation> small =
        prepare(comm, group, allReduce(DType::F32, {16}));
    std::vector<float> source(count, 1), result(count);
    for (int i = 0; i < 100; ++i) {
      llvm::cantFail(large->run(source.data(), result.data()));
      EXPECT_EQ(result[count - 1], 8);
      llvm::cantFail(small->run(source.data(), result.data()));
      EXPECT_EQ(result[15], 8);
    }
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

} // namespace
} // namespace ax::rt
