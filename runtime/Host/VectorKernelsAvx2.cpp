//===- VectorKernelsAvx2.cpp
//-----------------------------------------------===//

#define AX_VECTOR_NAME vectorKernelsAvx2
#include "VectorKernels.inc"
