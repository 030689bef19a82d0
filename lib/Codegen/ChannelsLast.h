//===- ChannelsLast.h - Images with their channels innermost ----*- C++ -*-===//
#ifndef AX_LIB_CODEGEN_CHANNELSLAST_H
#define AX_LIB_CODEGEN_CHANNELSLAST_H

#include "ax/Dialect/Ax.h"

namespace ax::codegen {

/// Convolutions and pools read and write [batch, spatial..., channels] in
/// memory, which libraries do fastest without reordering. Between them the
/// transposes move down through what works on elements, and vanish where they
/// meet their inverse.
void putChannelsLast(mlir::Block &block);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_CHANNELSLAST_H
