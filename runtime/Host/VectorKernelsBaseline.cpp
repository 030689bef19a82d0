//===- VectorKernelsBaseline.cpp
//-------------------------------------------===//

#define AX_VECTOR_NAME vectorKernelsBaseline
#include "VectorKernels.inc"
