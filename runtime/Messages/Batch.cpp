//===- Batch.cpp - Messages that are started together ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "MessageLink.h"

#include "ax/Runtime/MessageCommunicator.h"
#include "ax/Support/Error.h"

namespace ax::rt::messages {

void BatchBuilder::addSend(int32_t peer, int32_t tag, size_t buffer,
                           const StridedBox &box) {
  add(true, peer, tag, buffer, box);
}

void BatchBuilder::addReceive(int32_t peer, int32_t tag, size_t buffer,
                              const StridedBox &box) {
  add(false, peer, tag, buffer, box);
}

void BatchBuilder::add(bool isSend, int32_t peer, int32_t tag, size_t buffer,
                       const StridedBox &box) {
  if (box.isEmpty())
    return;
  std::vector<AxMessageDim> &around = dims.emplace_back();
  for (const StridedBox::Dim &dim : box.getDims())
    around.push_back(
        {dim.size, isSend ? dim.sourceStride : dim.destinationStride});
  // The addresses of `around` are filled in when there are no more to come.
  transfers.push_back(
      {isSend,
       peer,
       tag,
       static_cast<int32_t>(buffer),
       {isSend ? box.sourceOffset : box.destinationOffset, box.getRunBytes(),
        nullptr, static_cast<int32_t>(around.size())}});
}

void BatchBuilder::addSend(int32_t peer, int32_t tag, size_t buffer,
                           int64_t offset, int64_t bytes) {
  dims.emplace_back();
  transfers.push_back({true,
                       peer,
                       tag,
                       static_cast<int32_t>(buffer),
                       {offset, bytes, nullptr, 0}});
}

void BatchBuilder::addReceive(int32_t peer, int32_t tag, size_t buffer,
                              int64_t offset, int64_t bytes) {
  dims.emplace_back();
  transfers.push_back({false,
                       peer,
                       tag,
                       static_cast<int32_t>(buffer),
                       {offset, bytes, nullptr, 0}});
}

llvm::Expected<Batch> Batch::create(const AxMessageTable &carrier,
                                    AxMessageGroup *group,
                                    BatchBuilder builder) {
  int32_t mostTag = 0;
  if (llvm::Error error =
          check(carrier, carrier.getMostTag(&mostTag), "tags of messages"))
    return error;
  for (size_t i = 0; i < builder.transfers.size(); ++i) {
    AxMessageTransfer &transfer = builder.transfers[i];
    if (transfer.tag > mostTag)
      return makeErrorf(ExitCode::Unsupported,
                        "the plan exchanges more than this {2} can tell apart: "
                        "a message needs the tag {0}, and there are those up "
                        "to {1}",
                        transfer.tag, mostTag, carrier.name);
    transfer.box.dims = builder.dims[i].data();
  }
  AxMessageBatch *made = nullptr;
  if (llvm::Error error =
          check(carrier,
                carrier.createBatch(
                    group, builder.transfers.data(),
                    static_cast<int32_t>(builder.transfers.size()), &made),
                "types of messages"))
    return error;
  Batch batch;
  batch.batch = {made, carrier.destroyBatch};
  return batch;
}

} // namespace ax::rt::messages
