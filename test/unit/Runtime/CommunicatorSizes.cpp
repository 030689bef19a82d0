//===- CommunicatorSizes.cpp - Any size, and many at a time ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CommunicatorSuite.h"

namespace ax::rt {
namespace {

/// Element `index` of what `rank` has.
int32_t valueAt(int64_t rank, int64_t index) {
  return static_cast<int32_t>(index * 31 + rank * 1000003);
}

std::vector<int32_t> makeValues(int64_t rank, int64_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = valueAt(rank, i);
  return values;
}

/// The places of a tensor in row-major order.
template <typename Fn>
void forEachPlace(const Shape &shape, Fn &&fn) {
  std::vector<int64_t> place(shape.size());
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  for (int64_t i = 0; i < count; ++i) {
    fn(i, place);
    for (size_t d = shape.size(); d-- > 0 && ++place[d] == shape[d];)
      place[d] = 0;
  }
}

TEST_P(CommunicatorSuite, AnySizeUpTo64MB) {
  for (int32_t ranks : {2, 4})
    run(ranks, [&](Communicator &comm) {
      std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
      const int64_t most = 16 << 20;
      for (int64_t count : {int64_t(0), int64_t(1), int64_t(1000),
                            int64_t(1023 * 65), (int64_t(1) << 20) + 1, most}) {
        CollectiveSpec spec = allReduce(DType::I32, {count});
        std::vector<int32_t> source = makeValues(comm.getRank(), count);
        std::vector<int32_t> result(source.size());
        llvm::cantFail(
            prepare(comm, group, spec)->run(source.data(), result.data()));
        int64_t wrong = 0;
        for (int64_t i = 0; i < count; ++i) {
          uint32_t sum = 0;
          for (int32_t rank = 0; rank < ranks; ++rank)
            sum += static_cast<uint32_t>(valueAt(rank, i));
          wrong += static_cast<uint32_t>(result[static_cast<size_t>(i)]) != sum;
        }
        EXPECT_EQ(wrong, 0) << count;

        CollectiveSpec permute;
        permute.kind = CollectiveKind::Permute;
        permute.dtype = DType::I32;
        permute.shape = {count};
        for (int32_t rank = 0; rank < ranks; ++rank)
          permute.permutation.push_back((rank + 1) % ranks);
        llvm::cantFail(
            prepare(comm, group, permute)->run(source.data(), result.data()));
        EXPECT_TRUE(result == makeValues((comm.getRank() + 1) % ranks, count));
      }
    });
}

// Gathered along one dimension and scattered along another, of every two.
TEST_P(CommunicatorSuite, UnevenPartsOfEveryDimension) {
  for (int32_t ranks : {2, 3, 4})
    run(ranks, [&](Communicator &comm) {
      std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
      const Shape whole = {5, 7, 6, 9};
      for (size_t gather = 0; gather < whole.size(); ++gather)
        for (size_t scatter = 0; scatter < whole.size(); ++scatter) {
          CollectiveSpec spec;
          spec.dtype = DType::I32;
          spec.shape = whole;
          int64_t gatherPart = (whole[gather] + ranks - 1) / ranks;
          int64_t scatterPart = (whole[scatter] + ranks - 1) / ranks;
          spec.shape[gather] = gatherPart;
          spec.gatherDim = static_cast<int32_t>(gather);
          spec.gatherSize = whole[gather];
          spec.kind = CollectiveKind::AllGather;
          if (gather != scatter) {
            spec.kind = CollectiveKind::AllToAll;
            spec.scatterDim = static_cast<int32_t>(scatter);
            spec.scatterPart = scatterPart;
          }
          std::vector<int64_t> strides = rowMajorStrides(whole);
          // Each element is its place in the whole.
          auto placeOf = [&](std::vector<int64_t> place, size_t dim,
                             int64_t begin) -> int32_t {
            place[dim] += begin;
            int64_t at = 0;
            for (size_t d = 0; d < whole.size(); ++d) {
              if (place[d] >= whole[d])
                return 0;
              at += place[d] * strides[d];
            }
            return static_cast<int32_t>(at + 1);
          };
          std::vector<int32_t> source(
              static_cast<size_t>(sourceBytes(spec) / 4));
          forEachPlace(spec.shape, [&](int64_t i, const auto &place) {
            source[static_cast<size_t>(i)] =
                placeOf(place, gather, comm.getRank() * gatherPart);
          });
          std::vector<int32_t> want(
              static_cast<size_t>(destinationBytes(spec) / 4));
          forEachPlace(destinationShape(spec), [&](int64_t i,
                                                   const auto &place) {
            want[static_cast<size_t>(i)] =
                placeOf(place, scatter,
                        gather == scatter ? 0 : comm.getRank() * scatterPart);
          });
          std::vector<int32_t> result(want.size(), -1);
          llvm::cantFail(
              prepare(comm, group, spec)->run(source.data(), result.data()));
          EXPECT_TRUE(result == want) << toString({spec});
        }
    });
}

// Every other rank, at the same time.
TEST_P(CommunicatorSuite, StridedGroups) {
  run(8, [](Communicator &comm) {
    for (int32_t stride : {1, 2, 4}) {
      std::vector<int32_t> ranks;
      int32_t first = comm.getRank() % stride;
      for (int32_t rank = first; rank < comm.getSize(); rank += stride)
        ranks.push_back(rank);
      std::shared_ptr<Group> group = makeGroup(comm, ranks);
      for (int64_t count : {5, 50000}) {
        std::vector<int64_t> source(static_cast<size_t>(count),
                                    comm.getRank() + 1);
        std::vector<int64_t> result(source.size());
        llvm::cantFail(prepare(comm, group, allReduce(DType::I64, {count}))
                           ->run(source.data(), result.data()));
        int64_t sum = 0;
        for (int32_t rank : ranks)
          sum += rank + 1;
        EXPECT_EQ(result, std::vector<int64_t>(source.size(), sum));
      }
    }
  });
}

// The addresses are others each time, and the computing goes on meanwhile.
TEST_P(CommunicatorSuite, ManyAreUnderWay) {
  for (int32_t ranks : {2, 4})
    run(ranks, [&](Communicator &comm) {
      std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
      constexpr size_t numOperations = 64;
      std::vector<std::unique_ptr<Operation>> operations;
      for (size_t i = 0; i < numOperations; ++i)
        operations.push_back(prepare(
            comm, group,
            allReduce(DType::I32, {i % 2 ? int64_t(100) : int64_t(20000)})));
      for (int repeat = 0; repeat < 3; ++repeat) {
        std::vector<std::vector<int32_t>> sources, results;
        for (size_t i = 0; i < numOperations; ++i) {
          sources.emplace_back(i % 2 ? 100 : 20000,
                               comm.getRank() + static_cast<int32_t>(i));
          results.emplace_back(sources.back().size());
        }
        for (size_t i = 0; i < numOperations; ++i)
          llvm::cantFail(
              operations[i]->start(sources[i].data(), results[i].data()));
        for (size_t i = 0; i < numOperations; ++i)
          llvm::cantFail(operations[i]->wait());
        for (size_t i = 0; i < numOperations; ++i) {
          int32_t sum =
              ranks * (ranks - 1) / 2 + ranks * static_cast<int32_t>(i);
          EXPECT_EQ(results[i], std::vector<int32_t>(sources[i].size(), sum));
        }
      }
    });
}

} // namespace
} // namespace ax::rt
