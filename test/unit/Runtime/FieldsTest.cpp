//===- FieldsTest.cpp - No field is left out of compiled plans ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Fields.h"

#include <gtest/gtest.h>

namespace ax::rt {

/// Becomes whatever a member is initialised with.
struct Anything {
  template <typename T>
  operator T &() const &;
  template <typename T>
  operator T &&() const &&;
};

namespace {

template <typename T, size_t... index>
auto isMadeOf(std::index_sequence<index...>)
    -> decltype(T{(void(index), Anything{})...}, std::true_type{});
template <typename T, size_t... index>
std::false_type isMadeOf(...);

/// Of an aggregate: the largest number of initialisers that it takes.
template <typename T, size_t most = 24>
constexpr size_t numMembers() {
  if constexpr (most == 0)
    return 0;
  else if constexpr (decltype(isMadeOf<T>(
                         std::make_index_sequence<most>{}))::value)
    return most;
  else
    return numMembers<T, most - 1>();
}

/// A base counts as one member.
template <typename T>
constexpr size_t numFields() {
  if constexpr (std::is_same_v<T, CollectivePart>)
    return numMembers<T>() - 1 + numMembers<CollectiveSpec>();
  else if constexpr (std::is_same_v<T, State>)
    // State::openFile and State::pieces are no part of the file.
    return numMembers<T>() - 2;
  else
    return numMembers<T>();
}

struct Counter {
  template <typename T>
  void operator()(int64_t, T &) {
    ++count;
  }
  size_t count = 0;
};

template <typename T>
class FieldsTest : public ::testing::Test {};

using Messages = ::testing::Types<
    sharding::Axis, sharding::SubAxis, sharding::Factor, sharding::DimLayout,
    sharding::Layout, TensorDesc, MatmulDesc, ConvDesc, PoolDesc, AttentionDesc,
    AttentionGradientDesc, TopKDesc, NonMaxSuppressionDesc, IndexCheckDesc,
    LookUpDesc, GroupedMatmulDesc, BlockMatmulDesc, Labels, Port::Count, Port,
    State, Transfer, Kept, Buffer, BufferRef, Scalar, KernelArgument, Kernel,
    KernelCommand, LibraryCommand, CollectivePart, CollectiveCommand,
    WaitCommand, CopyCommand, SendCommand, RecvCommand, FaultCommand, Command,
    GroupSet, CommandList, Action, StageProgram, Program, PlanFiles,
    EmbeddedPiece, CodeTarget, TargetPrograms, CompiledPlan>;
TYPED_TEST_SUITE(FieldsTest, Messages);

TYPED_TEST(FieldsTest, AllAreVisited) {
  Counter counter;
  TypeParam message;
  fields::visit(counter, message);
  EXPECT_EQ(counter.count, numFields<TypeParam>());
}

} // namespace
} // namespace ax::rt
