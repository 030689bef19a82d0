//===- VectorKernelsAvx512.cpp - The loops for AVX-512 --------------------===//

#define AX_VECTOR_NAME vectorKernelsAvx512
#include "VectorKernels.inc"
