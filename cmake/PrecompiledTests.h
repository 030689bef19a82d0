//===- PrecompiledTests.h - Precompiled.h, and GoogleTest -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Precompiled.h"

#include <gtest/gtest.h>
