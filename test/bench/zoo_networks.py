# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All networks of the zoo, by name: functions that make a small or a large
one."""
import zoo_bits
import zoo_diffusion
import zoo_images
import zoo_sequences

NETWORKS = (zoo_images.NETWORKS | zoo_diffusion.NETWORKS
            | zoo_sequences.NETWORKS | zoo_bits.NETWORKS)
