//===- CardTest.h - What a card must do -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_CARDTEST_H
#define AX_TEST_CARDTEST_H

#include <string>

namespace ax::rt {

/// What the device says where there is no card; else nothing.
std::string whyNoCard();

} // namespace ax::rt

#endif // AX_TEST_CARDTEST_H
