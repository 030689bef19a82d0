//===- MachineRates.h - How fast ranks compute and exchange -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_MACHINERATES_H
#define AX_SUPPORT_MACHINERATES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ax {

/// What a rank has of the way to another one: seconds until a message of
/// nothing is there, and bytes in a second.
struct Link {
  double latency = 5e-6, bytesPerSecond = 5e9;

  double seconds(double bytes) const {
    return latency + bytes / bytesPerSecond;
  }
};

/// What one rank gets of its machine while all others use it, too. The numbers
/// here are of no machine that somebody has measured: `ax-collectives
/// --calibrate` writes files of those that are there.
struct MachineRates {
  std::string name = "generic CPU core";
  /// The GPU that ranks have, as `sm_90`, whose libraries and kernels are
  /// meant; empty: a processor.
  std::string target;
  /// Multiplications and additions in a second, of products; and of such whose
  /// factors are bf16 or f16.
  double flopsPerSecond = 5e10, narrowFlopsPerSecond = 5e10;
  /// Bytes in a second, read and written.
  double bytesPerSecond = 1e10;
  /// Seconds that a rank needs to begin a kernel, or a call of a library.
  double commandLatency = 0;
  /// 0: nobody said.
  int64_t memoryBytes = 0;
  /// To ranks of the same host, and to those of others, which is not faster.
  /// Ranks are numbered host by host; 0 of them on each: all are on one.
  Link link, hostLink;
  int64_t ranksPerHost = 0;
  /// What is started goes on while the rank computes. Threads of one process
  /// (`--comm=local`) do all of a collective themselves, where they wait for
  /// it; on a GPU streams do it.
  bool overlapsCollectives = false;

  /// Returns what the data sheet of such a GPU has, of which a rank has all;
  /// nothing for names of others.
  static std::optional<MachineRates> ofGpu(llvm::StringRef target);
  /// Reads what `toYAML` writes. What a file lacks is as its `target` has it,
  /// or as here; the way between hosts as that within. A Usage error, which
  /// names `fileName`, for all else.
  static llvm::Expected<MachineRates> fromYAML(llvm::StringRef text,
                                               llvm::StringRef fileName);
  /// Reads `--machine`: the name of a GPU, or of such a file.
  static llvm::Expected<MachineRates> parse(llvm::StringRef text);
  std::string toYAML() const;

  /// Returns what is wrong with the numbers, as the words behind the machine;
  /// empty: nothing.
  std::string findFault() const;

  /// Calls `fn` with the key and the place of each: strings, numbers of f64 and
  /// i64, and truths, as files and plans have them.
  template <typename Rates, typename Fn>
  static void forEach(Rates &rates, Fn &&fn) {
    fn("name", rates.name);
    fn("target", rates.target);
    fn("flops", rates.flopsPerSecond);
    fn("narrow-flops", rates.narrowFlopsPerSecond);
    fn("memory-bandwidth", rates.bytesPerSecond);
    fn("command-latency", rates.commandLatency);
    fn("memory", rates.memoryBytes);
    fn("latency", rates.link.latency);
    fn("bandwidth", rates.link.bytesPerSecond);
    fn("ranks-per-host", rates.ranksPerHost);
    fn("host-latency", rates.hostLink.latency);
    fn("host-bandwidth", rates.hostLink.bytesPerSecond);
    fn("overlap", rates.overlapsCollectives);
  }
};

} // namespace ax

#endif // AX_SUPPORT_MACHINERATES_H
