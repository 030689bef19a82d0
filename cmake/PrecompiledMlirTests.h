//===- PrecompiledMlirTests.h - And GoogleTest ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PrecompiledMlir.h"

#include <gtest/gtest.h>
