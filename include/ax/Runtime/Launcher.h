//===- Launcher.h - Who has started this process ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What launchers say in the environment. mpirun's processes know each other by
// MPI; torchrun's and srun's by variables alone:
//
//                    torchrun                         srun
//   number           RANK                             SLURM_PROCID
//   processes        WORLD_SIZE                       SLURM_STEP_NUM_TASKS
//   among its host's LOCAL_RANK, LOCAL_WORLD_SIZE     SLURM_LOCALID
//   process 0's host MASTER_ADDR                      SLURM_STEP_NODELIST
//   port             MASTER_PORT + 1                  of the job's number
//   key              TORCHELASTIC_RUN_ID              SLURM_JOB_ID,
//   SLURM_STEP_ID
//
// MASTER_ADDR, MASTER_PORT, LOCAL_RANK, LOCAL_WORLD_SIZE and AXRUN_KEY count
// for both. torchrun's three, with MASTER_ADDR, have to be there together: a
// RANK that is left over starts nothing.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_LAUNCHER_H
#define AX_RUNTIME_LAUNCHER_H

#include "ax/Runtime/World.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace ax::rt {

/// Returns a variable's value, or null: std::getenv, but for tests.
using Environment = llvm::function_ref<const char *(const char *)>;
const char *readVariable(const char *name);

enum class Launcher {
  /// Nobody, or one that has started this process alone.
  None,
  /// mpirun, or srun with a PMI.
  Mpi,
  /// torchrun, or srun without one.
  Variables
};

/// mpirun's variables win; torchrun's over those of the srun that it may run
/// under.
Launcher findLauncher(Environment variable = readVariable);
/// How many processes the launcher says that it has started, where it does.
std::optional<int64_t> countStarted(Environment variable = readVariable);
/// Whether a launcher has started this process, be it alone.
bool isLaunched(Environment variable = readVariable);
/// The number that Launcher::Mpi calls this process by.
std::string rankOfMpiLauncher(Environment variable = readVariable);
/// Whether a launcher calls this process number 0, or none has started it, or
/// it is one of none: so that of an error that all have, before they have met,
/// one speaks.
bool isFirstOfLauncher(Environment variable = readVariable);

/// Where processes of Launcher::Variables meet.
struct Meeting {
  /// `numOnHost` is 0 where only the hosts of all tell it, and `indexOnHost` -1
  /// then where that is not said either.
  ProcessPlace place;
  /// Process 0's, a name or an address, and where it listens there.
  std::string host;
  uint16_t port = 0;
  /// Where process 0 listens: at all addresses, unless all are on one host.
  std::string address;
  /// 32 hexadecimal digits, of AXRUN_KEY. Without it they are of the job's name
  /// or number, which keep out processes of other jobs, but not who guesses
  /// them.
  std::string key;
  /// What says so, for people: `RANK=1 and WORLD_SIZE=4`.
  std::string source;
};

/// `control` is HOST:PORT, of which either wins over what the environment says.
/// A Usage error that names the variable which is wrong, or has to be set.
llvm::Expected<Meeting> readMeeting(llvm::StringRef control,
                                    Environment variable = readVariable);

/// HOST:PORT, either of which may be missing; an IPv6 address is in brackets.
std::pair<llvm::StringRef, llvm::StringRef>
splitAddress(llvm::StringRef address);

/// Returns the first host of a list of Slurm's: `node3` of `node[3-5,8],other`.
std::string firstOfNodes(llvm::StringRef nodes);

/// Completes the place of a process on its host: `hosts` are those of all
/// processes.
void placeAmong(ProcessPlace &place, const std::vector<std::string> &hosts);

} // namespace ax::rt

#endif // AX_RUNTIME_LAUNCHER_H
