# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products that are timed: m x k times k x n of GPT-2 small with 16384 tokens, of a
Llama layer of width 4096, and a large square."""
PRODUCTS = [(16384, 768, 2304), (16384, 768, 3072), (16384, 3072, 768),
            (8192, 4096, 4096), (8192, 4096, 14336), (8192, 14336, 4096),
            (8192, 8192, 8192)]
