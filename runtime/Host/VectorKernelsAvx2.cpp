//===- VectorKernelsAvx2.cpp - The loops for AVX2 -------------------------===//

#define AX_VECTOR_NAME vectorKernelsAvx2
#include "VectorKernels.inc"
