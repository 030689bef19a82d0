//===- TcpMesh.h - Connections between all processes ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What communicator `tcp` exchanges by: one connection between any two
// processes of a job, made when it begins. So ranks that are processes need no
// MPI.
//
// Nothing is encrypted. Each process makes a random key, which the others have
// from the control channel, and lets nobody in who does not show it.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_TCPMESH_H
#define AX_RUNTIME_TCPMESH_H

#include "ax/Runtime/Communicator.h"
#include "ax/Runtime/World.h"

namespace ax::rt {

namespace tcp {
class Carrier;
} // namespace tcp

class TcpMesh {
public:
  /// All processes of the world make the call, which returns the same error in
  /// all of them: Usage where one cannot listen, RunFailed where one cannot
  /// reach another within `timeout`. `address`: where this one listens, as
  /// ControlOptions::address.
  static llvm::Expected<std::unique_ptr<TcpMesh>>
  connect(World &world, llvm::StringRef address,
          std::chrono::milliseconds timeout = std::chrono::seconds(60));
  ~TcpMesh();

  const ProcessPlace &getPlace() const { return place; }

  /// Makes the communicator of this process's rank among the processes
  /// 0 .. numRanks - 1, of which each makes the call. A Usage error where this
  /// is none of them. The mesh has to live longer.
  llvm::Expected<std::unique_ptr<Communicator>>
  createCommunicator(int32_t numRanks, const CommunicatorOptions &options);

private:
  TcpMesh(ProcessPlace place, std::unique_ptr<tcp::Carrier> carrier);

  ProcessPlace place;
  std::unique_ptr<tcp::Carrier> carrier;
};

/// Makes the mesh that this process has as long as it lives, by which the
/// backend `tcp` is found. As TcpMesh::connect, once.
llvm::Error openTcp(World &world, llvm::StringRef address);
/// Returns it, or null where there is none.
TcpMesh *getTcp();

} // namespace ax::rt

#endif // AX_RUNTIME_TCPMESH_H
