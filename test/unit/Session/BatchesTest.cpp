//===- BatchesTest.cpp - Places in the data that cannot be ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../../../lib/Session/Batches.h"

#include "ax/Runtime/Npy.h"
#include "ax/Support/Error.h"

#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

using namespace ax;
namespace json = llvm::json;

namespace {

class BatchesTest : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("batches", folder));
    HostTensor x(DType::F32, {10, 1});
    for (int64_t i = 0; i < 10; ++i)
      x.setDouble(i, static_cast<double>(i));
    llvm::cantFail(rt::writeNpz((folder + "/x.npz").str(), {{"x", x}}));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  Batches make(int64_t batch) {
    rt::Port port;
    port.name = "x";
    port.shape = {batch, 1};
    inputs = {HostTensor(DType::F32, {batch, 1})};
    auto samples = llvm::cantFail(
        Samples::open({port}, (folder + "/x.npz").str(), Tokens::No, "data"));
    return llvm::cantFail(Batches::create(std::move(samples), /*shuffle=*/true,
                                          /*seed=*/3, LastBatch::Drop));
  }
  std::vector<double> next(Batches &batches) {
    llvm::cantFail(batches.next(inputs));
    std::vector<double> values;
    for (int64_t i = 0; i < inputs[0].numElements(); ++i)
      values.push_back(inputs[0].getDouble(i));
    return values;
  }
  std::string fault(json::Object position, int64_t step) {
    Batches batches = make(3);
    return describeError(batches.setPosition(position, step)).message;
  }

  llvm::SmallString<128> folder;
  std::vector<HostTensor> inputs;
};

TEST_F(BatchesTest, GoesOnWhereItWas) {
  Batches all = make(3);
  for (int64_t step = 0; step < 12; ++step) {
    json::Object position = all.getPosition(all.getPlace());
    Batches other = make(3);
    ASSERT_FALSE(bool(other.setPosition(position, step))) << step;
    std::vector<double> wanted = next(all);
    EXPECT_EQ(next(other), wanted) << step;
  }
}

TEST_F(BatchesTest, BatchesOfAnotherSizeGoOn) {
  Batches first = make(3);
  for (int i = 0; i < 5; ++i)
    next(first);
  Batches second = make(2);
  ASSERT_FALSE(
      bool(second.setPosition(first.getPosition(first.getPlace()), 5)));
  for (int64_t step = 5; step < 15; ++step) {
    ASSERT_EQ(describeError(make(2).setPosition(
                                second.getPosition(second.getPlace()), step))
                  .message,
              "");
    next(second);
  }
  EXPECT_NE(fault(second.getPosition(second.getPlace()), 14), "");
}

TEST_F(BatchesTest, PlacesThatCannotBe) {
  auto place = [](int64_t epoch, int64_t position) {
    return json::Object{
        {"samples", 10}, {"epoch", epoch}, {"position", position}};
  };
  EXPECT_EQ(fault(place(0, 6), 2), "");
  EXPECT_EQ(fault(place(2, 3), 7), "");
  const std::tuple<int64_t, int64_t, int64_t> wrong[] = {
      {0, -1, 0}, {0, 5, 2},  {0, 6, 3},  {1, 6, 2},
      {-1, 9, 0}, {0, 12, 4}, {0, 10, 3}, {int64_t(1) << 60, 0, 9}};
  for (auto [epoch, position, step] : wrong) {
    std::string text = fault(place(epoch, position), step);
    EXPECT_NE(text.find("the checkpoint's place in the data, sample " +
                        std::to_string(position) + " of epoch " +
                        std::to_string(epoch) + ", is not where step " +
                        std::to_string(step) + " ends"),
              std::string::npos)
        << text;
  }
  json::Object none = place(0, 6);
  none["batch"] = 0;
  EXPECT_NE(fault(std::move(none), 2), "");
}

/// Batches of another size before do not excuse any place.
TEST_F(BatchesTest, EarlierBatchesEndWhereLaterOnesBegin) {
  auto stretch = [](int64_t step, int64_t epoch, int64_t position,
                    int64_t batch) {
    return json::Object{{"step", step},
                        {"epoch", epoch},
                        {"position", position},
                        {"batch", batch}};
  };
  auto place = [&](std::initializer_list<json::Value> earlier,
                   int64_t position) {
    json::Object made = stretch(0, 0, position, 3);
    made["samples"] = 10;
    made["earlier"] = json::Array(earlier);
    return made;
  };
  EXPECT_EQ(fault(place({stretch(2, 0, 4, 2)}, 7), 3), "");
  EXPECT_EQ(fault(place({stretch(1, 0, 1, 1), stretch(2, 0, 3, 2)}, 9), 4), "");
  for (json::Object &bad : std::vector<json::Object>{
           // At an arbitrary place after an arbitrary step.
           place({stretch(5, 0, 7, 3)}, 7), place({stretch(2, 0, 5, 3)}, 8),
           place({stretch(3, 0, 0, 3)}, 6), place({stretch(-1, 0, 0, 3)}, 6),
           place({stretch(2, 0, 4, 0)}, 7), place({stretch(2, 0, 4, 2)}, 8),
           place({stretch(2, 0, 3, 2), stretch(1, 0, 1, 1)}, 9),
           place({json::Value(7)}, 6)})
    for (int64_t step = 0; step < 6; ++step)
      EXPECT_NE(fault(json::Object(bad), step), "") << step;
}

} // namespace
