//===- NcclSeatsTest.cpp - Where the ranks of NCCL compute ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "NcclSeats.h"

#include "ax/Support/Error.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace ax;
using namespace ax::rt::nccl;

namespace {

Seat seatOn(const char *host, int32_t version) {
  Seat seat;
  std::strcpy(seat.host, host);
  seat.version = version;
  return seat;
}

std::string faultOf(const std::vector<Seat> &seats) {
  llvm::Error error = checkVersions(seats);
  if (!error)
    return "";
  ErrorDescription said = describeError(std::move(error));
  EXPECT_EQ(said.code, ExitCode::Usage);
  return said.message;
}

TEST(NcclSeatsTest, HostsHaveOneVersion) {
  EXPECT_EQ(faultOf({seatOn("a", 22809), seatOn("b", 22809)}), "");
  // Also where one has a fix more.
  EXPECT_EQ(
      faultOf({seatOn("a", 22809), seatOn("a", 22809), seatOn("b", 22807)}),
      "--comm=nccl: NCCL is 2.28.7 on 'b', 2.28.9 on 'a', and wants to "
      "be the same everywhere: install one version, or name its folder "
      "in AXRUN_CUDA_PATH");
}

TEST(NcclSeatsTest, FewHostsAreNamed) {
  std::vector<Seat> seats = {seatOn("old", 22809)};
  for (const char *host : {"a", "b", "c", "d", "e"})
    for (int i = 0; i < 8; ++i)
      seats.push_back(seatOn(host, 23003));
  EXPECT_EQ(faultOf(seats),
            "--comm=nccl: NCCL is 2.28.9 on 'old', 2.30.3 on 'a', 'b', 'c' and "
            "2 more, and wants to be the same everywhere: install one version, "
            "or name its folder in AXRUN_CUDA_PATH");
}

} // namespace
