//===- PeerModule.cpp - MPI's own collectives -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Cases.h"
#include "Peer.h"

#include <climits>
#include <mpi.h>

using ax::CaseKind;

int axMpiPeer(int32_t kind, const float *source, float *destination,
              int64_t count) {
  MPI_Comm comm = MPI_COMM_WORLD;
  int rank = 0, ranks = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  if (count > INT_MAX)
    return MPI_ERR_COUNT;
  auto all = static_cast<int>(count), part = all / ranks;
  switch (static_cast<CaseKind>(kind)) {
  case CaseKind::AllReduce:
    return MPI_Allreduce(source, destination, all, MPI_FLOAT, MPI_SUM, comm);
  case CaseKind::AllGather:
    return MPI_Allgather(source, all, MPI_FLOAT, destination, all, MPI_FLOAT,
                         comm);
  case CaseKind::ReduceScatter:
    return MPI_Reduce_scatter_block(source, destination, part, MPI_FLOAT,
                                    MPI_SUM, comm);
  case CaseKind::Broadcast:
    return MPI_Bcast(rank == 0 ? const_cast<float *>(source) : destination, all,
                     MPI_FLOAT, 0, comm);
  case CaseKind::AllToAll:
    return MPI_Alltoall(source, part, MPI_FLOAT, destination, part, MPI_FLOAT,
                        comm);
  case CaseKind::Permute:
  case CaseKind::SendReceive:
    return MPI_Sendrecv(source, all, MPI_FLOAT, (rank + 1) % ranks, 0,
                        destination, all, MPI_FLOAT, (rank + ranks - 1) % ranks,
                        0, comm, MPI_STATUS_IGNORE);
  }
  return MPI_ERR_OP;
}
