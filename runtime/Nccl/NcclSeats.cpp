//===- NcclSeats.cpp - Where the ranks of NCCL compute --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "NcclSeats.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cstdlib>
#include <map>
#include <unistd.h>

namespace ax::rt::nccl {

llvm::Expected<Seat> seatOf(const Device &device, const Nccl &library) {
  Seat seat;
  gethostname(seat.host, sizeof(seat.host) - 1);
  seat.card = device.getCard();
  if (llvm::Error error = library.call(&Nccl::ncclGetVersion,
                                       static_cast<int *>(&seat.version)))
    return error;
  auto identity = cuda::getIdentity(device);
  if (!identity)
    return identity.takeError();
  seat.identity = *identity;
  return seat;
}

/// `'a', 'b', 'c' and 5 more`.
static std::string nameHosts(llvm::ArrayRef<std::string> hosts) {
  constexpr size_t shown = 3;
  auto quoted = llvm::map_range(hosts.take_front(shown),
                                [](auto &host) { return "'" + host + "'"; });
  std::string text = llvm::join(quoted, ", ");
  if (hosts.size() > shown)
    text += " and " + std::to_string(hosts.size() - shown) + " more";
  return text;
}

llvm::Error checkVersions(llvm::ArrayRef<Seat> seats) {
  std::map<int32_t, std::vector<std::string>> hosts;
  for (const Seat &seat : seats)
    if (auto &those = hosts[seat.version];
        !llvm::is_contained(those, seat.host))
      those.emplace_back(seat.host);
  if (hosts.size() == 1)
    return llvm::Error::success();
  std::vector<std::string> found;
  for (const auto &[version, those] : hosts)
    found.push_back(nameVersion(version) + " on " + nameHosts(those));
  return makeErrorf(ExitCode::Usage,
                    "--comm=nccl: NCCL is {0}, and wants to be the same "
                    "everywhere: install one version, or name its folder in "
                    "AXRUN_CUDA_PATH",
                    llvm::join(found, ", "));
}

llvm::Expected<bool> findSharing(llvm::ArrayRef<Seat> seats) {
  const char *shares = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  bool mayShare = shares && llvm::StringRef(shares) == "1";
  std::map<cuda::CardIdentity, size_t> users;
  for (size_t rank = 0; rank < seats.size(); ++rank) {
    const Seat &seat = seats[rank];
    auto [other, isNew] = users.try_emplace(seat.identity, rank);
    if (isNew)
      continue;
    if (mayShare)
      return true;
    return makeErrorf(ExitCode::Usage,
                      "--comm=nccl: ranks {0} and {1} are both on card {2} "
                      "of host '{3}', and NCCL wants a card for each: give "
                      "other --devices, or leave --comm out",
                      other->second, rank, seat.card, seat.host);
  }
  return false;
}

} // namespace ax::rt::nccl
