//===- SelectionTest.cpp - Known answers of what chooses results ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "InterpreterTestSupport.h"

using namespace ax;
using namespace ax::interpreter;

TEST(Selection, NonMaxSuppression) {
  // The second overlaps with the first by 1 / 3, the third with none; corners
  // are in any order.
  HostTensor boxes =
      f32({1, 4, 4}, {0, 0, 2, 2, 2, 3, 0, 1, 5, 5, 4, 4, 0, 0, 2, 2});
  HostTensor scores = f32({1, 2, 4}, {0.5, 0.9, 0.1, 0.5, //
                                      0.8, -INFINITY, NAN, 0.7});
  auto taken = [&](const std::string &iou, const std::string &more) {
    return run("%r = ax.non_max_suppression %x0, %x1 limit 3 iou_threshold " +
                   iou + more +
                   " : tensor<1x4x4xf32>, tensor<1x2x4xf32> -> "
                   "tensor<1x2x3xi64>",
               {boxes, scores}, "tensor<1x2x3xi64>");
  };
  expectValues(taken("0.3", ""), {1, 2, -1, 0, -1, -1});
  expectValues(taken("0.4", ""), {1, 0, 2, 0, 1, -1});
  expectValues(taken("0.4", " {score_threshold = 0.5 : f64}"),
               {1, -1, -1, 0, -1, -1});
}

TEST(Selection, AtMost) {
  std::string body = "%r = ax.at_most %x0 limit 5 : tensor<2xi64> -> "
                     "tensor<2xi64>";
  expectValues(run(body, {i64({2}, {5, 0})}, "tensor<2xi64>"), {5, 0});
  for (int64_t number : {6, -1}) {
    HostTensor odd = i64({2}, {1, number});
    auto module = parseProgram(body, {odd}, "tensor<2xi64>");
    auto results = interpretProgram(
        programOf(*module), {odd}, [](LoadOp) -> llvm::Expected<HostTensor> {
          return makeError(ExitCode::Internal, "no states");
        });
    ASSERT_FALSE(static_cast<bool>(results));
    EXPECT_NE(describeError(results.takeError())
                  .message.find(std::to_string(number) + " is not 0 to 5"),
              std::string::npos);
  }
}
