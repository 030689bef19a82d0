//===- CardTest.cpp - What device cuda must do on a card ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nothing in this program knows whether the card is a real one. Where there is
// none, there are no tests but those that are skipped, and say why.
//
//===----------------------------------------------------------------------===//

#include "CardTest.h"
#include "AttentionSuite.h"
#include "ConvolutionSuite.h"
#include "ProductSuite.h"

using namespace ax;
using namespace ax::rt;

// A card's context takes seconds to make, so this one is kept for all tests.
std::string ax::rt::whyNoCard() {
  using Devices = std::vector<std::unique_ptr<Device>>;
  static std::string why;
  static const Devices *kept = [] {
    auto devices = llvm::cantFail(allBackends().devices.find("cuda"))
                       .create({0}, DeviceOptions());
    if (!devices)
      why = llvm::toString(devices.takeError());
    return devices ? new Devices(std::move(*devices)) : nullptr;
  }();
  return kept ? "" : why;
}

namespace ax::rt {
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AttentionSuite);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ConvolutionSuite);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceSuite);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ProductSuite);
} // namespace ax::rt

namespace {

TEST(CardTest, ThereIsACard) {
  if (std::string why = whyNoCard(); !why.empty())
    GTEST_SKIP() << why;
}

DeviceBackend card("Card", "cuda");

/// Those where there is a card, and else none.
template <typename T>
std::vector<T> where(std::vector<T> params) {
  return whyNoCard().empty() ? std::move(params) : std::vector<T>();
}

INSTANTIATE_TEST_SUITE_P(Card, DeviceSuite,
                         ::testing::ValuesIn(where<DeviceBackend *>({&card})),
                         [](const auto &info) {
                           return info.param->getName();
                         });

// Where there is no cuDNN, which a run does without, they fail, and say so.
INSTANTIATE_TEST_SUITE_P(
    Card, AttentionSuite,
    ::testing::ValuesIn(where<AttentionParam>({{&card, 1, 12}})),
    [](const auto &info) { return "Seed" + std::to_string(info.param.seed); });

INSTANTIATE_TEST_SUITE_P(
    Card, ConvolutionSuite,
    ::testing::ValuesIn(where<ConvolutionParam>({{&card, 1, 60}})),
    [](const auto &info) { return "Seed" + std::to_string(info.param.seed); });

INSTANTIATE_TEST_SUITE_P(Card, ProductSuite,
                         ::testing::ValuesIn(where<ProductParam>(
                             {{&card, 1}, {&card, 2}, {&card, 3}})),
                         [](const auto &info) {
                           return "Seed" + std::to_string(info.param.seed);
                         });

} // namespace
