//===- DeviceMessage.cpp - Messages between memories of devices -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As between threads (LocalCommunicator.cpp): the receiver posts where a
// message goes, and the sender's stream copies it there, behind the event with
// which the receiver has said from when on it may. Behind the copy it records
// another one, for which the receiver's stream waits. A receive has made both,
// and is posted again when its message has arrived: so nobody records one for
// which another has still to wait.
//
//===----------------------------------------------------------------------===//

#include "LocalWorld.h"
#include "ax/Runtime/Program.h"

#include "ax/Support/Error.h"

namespace ax::rt {

namespace {

class DeviceMessage : public StreamOperation {
public:
  DeviceMessage(std::shared_ptr<LocalWorld> world, int32_t rank, int32_t peer,
                std::shared_ptr<LocalChannel> channel, std::string name)
      : world(std::move(world)), rank(rank), peer(peer),
        channel(std::move(channel)), name(std::move(name)) {}

protected:
  llvm::Error waitFor(WaitWord &word, const char *what) {
    WaitResult result = word.waitFor(number + 1, world->getPolicy());
    if (result == WaitResult::Reached)
      return llvm::Error::success();
    return world->waitError(result, rank, peer,
                            std::string(what) + " '" + name + "'");
  }

  std::shared_ptr<LocalWorld> world;
  int32_t rank, peer;
  std::shared_ptr<LocalChannel> channel;
  std::string name;
  uint32_t number = 0;
};

class DeviceSend : public DeviceMessage {
public:
  DeviceSend(std::shared_ptr<LocalWorld> world, int32_t rank, int32_t peer,
             std::shared_ptr<LocalChannel> channelIn, std::string name)
      : DeviceMessage(std::move(world), rank, peer, std::move(channelIn),
                      std::move(name)) {
    whole.elementBytes = 1;
    whole.sizes = {channel->bytes};
    whole.sourceStrides = whole.destinationStrides = {1};
  }
  llvm::Error start(Stream &,
                    llvm::ArrayRef<DeviceAddress> addresses) override {
    source = addresses.front();
    number = channel->numSent++;
    return llvm::Error::success();
  }
  llvm::Error finish(Stream &stream) override {
    if (llvm::Error error = waitFor(channel->posted, "send"))
      return error;
    DeviceArrival &arrival =
        *channel->arrivals[number % LocalChannel::capacity];
    if (llvm::Error error = stream.wait(*arrival.isPosted))
      return error;
    if (channel->bytes)
      if (llvm::Error error =
              stream.copyStrided(whole, source, arrival.destination))
        return error;
    if (llvm::Error error = stream.record(*arrival.isDelivered))
      return error;
    channel->delivered.set(number + 1);
    return llvm::Error::success();
  }

private:
  CopyCommand whole;
  DeviceAddress source;
};

class DeviceReceive : public DeviceMessage {
public:
  using DeviceMessage::DeviceMessage;
  llvm::Error prepare() {
    for (std::unique_ptr<Event> *event :
         {&arrival->isPosted, &arrival->isDelivered}) {
      auto made = world->getDevice(rank).createEvent();
      if (!made)
        return made.takeError();
      *event = std::move(*made);
    }
    return llvm::Error::success();
  }
  llvm::Error start(Stream &stream,
                    llvm::ArrayRef<DeviceAddress> addresses) override {
    number = channel->numPosted++;
    if (llvm::Error error = channel->checkRoom(number, rank, name))
      return error;
    arrival->destination = addresses.back();
    if (llvm::Error error = stream.record(*arrival->isPosted))
      return error;
    channel->arrivals[number % LocalChannel::capacity] = arrival;
    channel->posted.set(number + 1);
    return llvm::Error::success();
  }
  llvm::Error finish(Stream &stream) override {
    if (llvm::Error error = waitFor(channel->delivered, "receive"))
      return error;
    return stream.wait(*arrival->isDelivered);
  }

private:
  std::shared_ptr<DeviceArrival> arrival = std::make_shared<DeviceArrival>();
};

} // namespace

std::unique_ptr<StreamOperation>
makeDeviceSend(std::shared_ptr<LocalWorld> world, int32_t rank, int32_t peer,
               std::shared_ptr<LocalChannel> channel, std::string name) {
  return std::make_unique<DeviceSend>(std::move(world), rank, peer,
                                      std::move(channel), std::move(name));
}

llvm::Expected<std::unique_ptr<StreamOperation>>
makeDeviceReceive(std::shared_ptr<LocalWorld> world, int32_t rank, int32_t peer,
                  std::shared_ptr<LocalChannel> channel, std::string name) {
  auto made = std::make_unique<DeviceReceive>(
      std::move(world), rank, peer, std::move(channel), std::move(name));
  if (llvm::Error error = made->prepare())
    return error;
  return made;
}

} // namespace ax::rt
