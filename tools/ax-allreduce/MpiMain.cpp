//===- MpiMain.cpp - All-reduce between processes, by MPI -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Measure.h"

// Not the C++ bindings, which want a library of their own.
#define OMPI_SKIP_MPICXX
#include <mpi.h>

using namespace ax::rt;

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MeasureOptions options = MeasureOptions::parse(argc, argv);
  MPI_Comm_size(MPI_COMM_WORLD, &options.ranks);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<float> source(static_cast<size_t>(options.bytes / 4));
  std::vector<float> result(source.size());
  TimeSummary summary = measure(options, [&] {
    MPI_Allreduce(source.data(), result.data(), static_cast<int>(source.size()),
                  MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  });
  if (rank == 0)
    report("mpi", options, summary);
  MPI_Finalize();
  return 0;
}
