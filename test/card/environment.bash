# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# What run and bench share: where libraries of CUDA are, and what axrun is told by
# the environment. $here is the archive's folder.

# hasCard: whether this machine has one that can be seen.
hasCard() {
  [[ -d $here/simgpu ]] || compgen -G '/dev/nvidia[0-9]*' >/dev/null ||
    nvidia-smi -L >/dev/null 2>&1
}

# findLibraries: folders that have libraries of CUDA where the loader does not look.
# Newer versions come first.
findLibraries() {
  timeout 30 find /usr/local /usr/lib /opt /root /home -xdev \
    \( -name libcublasLt.so.1[23] -o -name libcudnn_graph.so.9 -o \
    -name libnvrtc.so.1[23] -o -name libnccl.so.2 \) -printf '%f %h\n' 2>/dev/null | sort -r |
    awk '!seen[$2]++ { print $2 }' | paste -s -d :
}

# setEnvironment CACHE: a folder for kernels, and for which algorithms were fast.
setEnvironment() {
  local found
  if [[ -d $here/simgpu ]]; then
    export AXRUN_CUDA_PATH=$here/simgpu SIMGPU_CARDS=8
    # Times mean nothing there.
    export AXRUN_CUDA_ALGORITHMS=1
  else
    found=$(findLibraries)
    export AXRUN_CUDA_PATH=${AXRUN_CUDA_PATH-}${AXRUN_CUDA_PATH:+${found:+:}}$found
  fi
  export AXRUN_DEVICE=cuda AXOPT_CACHE=$1
  # Of NCCL, from 2.30 on: ranks may share card 0. Their streams are not to share
  # queues of the card: who is behind another there would wait for it.
  export NCCL_MULTI_RANK_GPU_ENABLE=1 CUDA_DEVICE_MAX_CONNECTIONS=32
  PATH=$PATH:/sbin:/usr/sbin
}
