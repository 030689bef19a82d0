//===- Backends.h - Devices and communicators by name -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A backend is a folder of runtime/ that says ax_add_backend(NAME ...) in its
// CMakeLists.txt and defines
//
//   void ax::rt::registerNAME(Backends &backends);
//
// which adds what it has. Nothing else names it: allBackends() calls them all.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_BACKENDS_H
#define AX_RUNTIME_BACKENDS_H

#include "ax/Runtime/Communicator.h"
#include "ax/Runtime/Device.h"
#include "ax/Support/Target.h"

#include "llvm/ADT/StringRef.h"

#include <cassert>
#include <map>

namespace ax::rt {

/// What one process may have; more would starve each other.
constexpr int64_t mostThreads = 4096;
/// A Usage error when they are too many, or none.
llvm::Error checkThreads(int64_t numRanks, int64_t threadsPerRank);

/// The Usage error of a name that is not among `known`.
llvm::Error noBackend(llvm::StringRef kind, llvm::StringRef name,
                      const std::vector<std::string> &known);

/// A kind of device, of which a machine has cards that are numbered from 0.
/// Several ranks may share one.
struct DeviceKind {
  /// Makes one for each rank of this process: `cards` has the number of each
  /// rank's, which is there.
  llvm::Expected<std::vector<std::unique_ptr<Device>>> (*create)(
      llvm::ArrayRef<int32_t> cards, const DeviceOptions &options);
  /// Returns how many cards there are, at least one.
  llvm::Expected<int32_t> (*countCards)();
  /// Returns what code for a card that is there is made for, without making a
  /// device of it.
  llvm::Expected<Target> (*findTarget)(int32_t card);
  /// Says why that target is one without a library for attention; empty where
  /// there is one. Null: the kind knows none.
  std::string (*whyNoAttention)() = nullptr;
};

/// Makes one for each rank of this process, of `numRanks` in all.
using CreateCommunicators =
    llvm::Expected<std::vector<std::unique_ptr<Communicator>>> (*)(
        int32_t numRanks, const CommunicatorOptions &options);

/// Reads numbers of cards: `0,0,1,1`. A Usage error for what is none; whether
/// there are such cards is not looked at.
llvm::Expected<std::vector<int32_t>> parseCards(llvm::StringRef text);

/// Backends of one sort, by name.
template <typename Backend>
class BackendTable {
public:
  /// `kind`, as messages have it: `device`.
  explicit BackendTable(std::string kind) : kind(std::move(kind)) {}
  void add(llvm::StringRef name, Backend backend) {
    [[maybe_unused]] bool isNew = table.emplace(name, backend).second;
    assert(isNew && "two backends of one name");
  }
  /// A Usage error that lists the names when there is no such one.
  llvm::Expected<Backend> find(llvm::StringRef name) const {
    auto found = table.find(name.str());
    if (found != table.end())
      return found->second;
    std::vector<std::string> known;
    for (const auto &[other, backend] : table)
      known.push_back(other);
    return noBackend(kind, name, known);
  }

private:
  std::string kind;
  std::map<std::string, Backend> table;
};

/// What the ranks of this process work with, and how.
struct BackendOptions {
  /// The ranks of this process, ascending; none: all of them.
  std::vector<int32_t> ranks = {};
  std::string device = "cpu";
  /// The card of each rank, of all processes: on its host. Empty: of n ranks on
  /// a host, rank i is on card i where there are n, else neighbours share one,
  /// and all have about as many.
  std::vector<int32_t> cards = {};
  std::string communicator = "local";
  /// The device that does what `device` lacks, on the host's memory; empty:
  /// what it lacks is an error.
  std::string host = "cpu";
  DeviceOptions devices;
  /// How long an operation waits for other ranks; 0: for ever.
  std::chrono::milliseconds timeout{0};
  /// How many processes of the job are on this one's host, and its number among
  /// them.
  int32_t processesOnHost = 1;
  int32_t indexOnHost = 0;
};

/// One of each for every rank of this process, in their order.
struct RankBackends {
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<Communicator>> communicators;
  /// None where devices work on the host's memory themselves, or nothing is to
  /// be done in their place.
  std::vector<std::unique_ptr<Device>> hosts = {};
};

/// Returns how many threads a rank computes with where nobody says: what
/// OMP_NUM_THREADS says; else its share of the processors, where all `numRanks`
/// are threads of this process, and 1 where there are several processes, of
/// which each sees the same processors.
int32_t findThreadsPerRank(int64_t numRanks, const BackendOptions &options);

struct Backends {
  BackendTable<DeviceKind> devices{"device"};
  BackendTable<CreateCommunicators> communicators{"communicator"};

  /// A Usage error for names that there are not.
  llvm::Error check(const BackendOptions &options) const;
  /// A Usage error for too many threads in this process, or where `options`
  /// have cards of another number of ranks. No device is asked.
  llvm::Error checkRanks(int64_t numRanks, const BackendOptions &options) const;
  /// Returns what code for the cards of this process's ranks is made for: for
  /// the one that runs least. Errors of names and cards that there are not, and
  /// of devices.
  llvm::Expected<Target> findTarget(int64_t numRanks,
                                    const BackendOptions &options) const;
  /// All of these errors. `numRanks`: of all processes.
  llvm::Expected<RankBackends> create(int64_t numRanks,
                                      const BackendOptions &options) const;

private:
  /// Returns the card of each rank of this process.
  llvm::Expected<std::vector<int32_t>>
  placeRanks(int64_t numRanks, const BackendOptions &options) const;
};

} // namespace ax::rt

#endif // AX_RUNTIME_BACKENDS_H
