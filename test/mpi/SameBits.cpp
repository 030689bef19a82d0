//===- SameBits.cpp - Processes and threads give the same -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random numbers, whose sums depend on the order in which they are added.
//
//===----------------------------------------------------------------------===//

#include "CommunicatorSuite.h"

#include "ax/Runtime/LocalCommunicator.h"

#include <algorithm>
#include <random>
#include <thread>

namespace ax::rt {
namespace {

// Each order of ranks is a group of its own.
TEST_P(CommunicatorSuite, TooManyGroupsOfTwoRanksAreAnError) {
  run(5, [](Communicator &comm) {
    std::vector<int32_t> ranks = allRanks(comm);
    for (int i = 0; i < 64; ++i) {
      llvm::cantFail(comm.createGroup(ranks).takeError());
      std::next_permutation(ranks.begin(), ranks.end());
    }
    auto more = comm.createGroup(ranks);
    ASSERT_FALSE(bool(more));
    EXPECT_NE(llvm::toString(more.takeError())
                  .find(" has more than 64 groups with rank "),
              std::string::npos);
  });
}

HostTensor makeRandom(const CollectiveSpec &spec, int32_t rank) {
  HostTensor tensor(spec.dtype, spec.shape);
  std::mt19937 random(static_cast<uint32_t>(rank));
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.setDouble(i, normal(random));
  return tensor;
}

HostTensor runOn(Communicator &comm, const CollectiveSpec &spec) {
  std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
  HostTensor source = makeRandom(spec, comm.getRank());
  HostTensor result(spec.dtype, destinationShape(spec));
  llvm::cantFail(
      prepare(comm, group, spec)->run(source.data(), result.mutableData()));
  return result;
}

/// What `rank` gets where all ranks are threads.
HostTensor runOnThreads(int32_t numRanks, int32_t rank,
                        const CollectiveSpec &spec) {
  auto communicators = createLocalCommunicators(numRanks);
  std::vector<HostTensor> results(communicators.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < communicators.size(); ++i)
    threads.emplace_back(
        [&, i] { results[i] = runOn(*communicators[i], spec); });
  for (std::thread &thread : threads)
    thread.join();
  return results[static_cast<size_t>(rank)];
}

std::vector<CollectiveSpec> makeSpecs(int32_t members) {
  std::vector<CollectiveSpec> specs;
  // Which of these go to everybody, and in how many slices others, depends on
  // the members.
  for (int64_t count : {1, 500, 1700, 20000})
    specs.push_back(allReduce(DType::F32, {count}));
  constexpr int32_t most = 8;
  if (members > most)
    return specs;
  for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (int64_t count : {1, 1000, 4097, 100003})
      specs.push_back(allReduce(type, {count}));
  for (DType type : {DType::F32, DType::BF16})
    for (int64_t inner : {1, 777})
      for (int32_t dim : {0, 1, 2}) {
        CollectiveSpec spec;
        spec.dtype = type;
        spec.shape = {5, 7, inner + 1};
        auto d = static_cast<size_t>(dim);
        spec.kind = CollectiveKind::ReduceScatter;
        spec.scatterDim = dim;
        spec.scatterPart = (spec.shape[d] + members - 1) / members;
        specs.push_back(spec);
        spec.kind = CollectiveKind::AllGather;
        spec.scatterDim = -1;
        spec.gatherDim = dim;
        spec.gatherSize = spec.shape[d] * members - (members > 1 ? 1 : 0);
        specs.push_back(spec);
      }
  return specs;
}

TEST_P(CommunicatorSuite, GivesTheBitsOfThreads) {
  for (int32_t ranks : {1, 2, 3, 4, 8, 11, 17})
    run(ranks, [&](Communicator &comm) {
      for (const CollectiveSpec &spec : makeSpecs(ranks))
        EXPECT_TRUE(runOn(comm, spec)
                        .isIdentical(runOnThreads(ranks, comm.getRank(), spec)))
            << toString({spec});
    });
}

} // namespace
} // namespace ax::rt
