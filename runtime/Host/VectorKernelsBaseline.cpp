//===- VectorKernelsBaseline.cpp - The loops for all ----------------------===//

#define AX_VECTOR_NAME vectorKernelsBaseline
#include "VectorKernels.inc"
