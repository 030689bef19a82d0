//===- VectorKernelsAvx512.cpp
//---------------------------------------------===//

#define AX_VECTOR_NAME vectorKernelsAvx512
#include "VectorKernels.inc"
