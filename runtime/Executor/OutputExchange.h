//===- OutputExchange.h - Outputs that go to other processes ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a rank hands over goes by messages of its communicator, which are
// prepared once: what everybody is to have from the rank that has it to each
// process, all in one message, and every other output to process 0. Who
// receives has begun to before it computes, so that who sends waits for nobody
// that waits for it.
//
//   rank 0 (process 0)   receive 1, 2 .. compute .. send .. complete
//   rank 1               receive 0, 2 .. compute .. send .. complete
//
// A stage of a pipeline without a way back goes on with the next request while
// the stages behind it are at this one: it completes a request later.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_OUTPUTEXCHANGE_H
#define AX_RUNTIME_OUTPUTEXCHANGE_H

#include "FlightExchange.h"
#include "GlobalPorts.h"
#include "HeldParts.h"
#include "Parts.h"

#include "ax/Runtime/HostMemory.h"
#include "ax/Runtime/World.h"

#include <memory>

namespace ax::rt {

class PreparedExchanges;

/// Whether all processes get the output: a scalar, or what training decides by.
bool isEverywhere(const Port &port);

/// Outputs of one rank that go in one message, part behind part.
struct OutputBundle {
  struct Item {
    int32_t output = 0;
    /// By micro-batch.
    std::vector<Part> parts;
    /// Where each is in the message; -1: the rank does not hand it over.
    std::vector<int64_t> offsets;

    /// Puts what the message has into the global tensor.
    void unpack(const uint8_t *message, uint8_t *global) const;
  };
  std::vector<Item> items;
  int64_t tag = 0;
  std::string name;
  int64_t bytes = 0;
  bool isEverywhere = false;

  /// Where in the only global tensor's bytes the message is as it is; -1 where
  /// it is no one run of them.
  int64_t contiguousOffset() const;
};

/// What one rank sends, and receives for its process. Used by its thread only.
class OutputExchange {
public:
  /// `maxInFlight`: how many requests there are at a time. The log is told of
  /// what goes to and fro.
  OutputExchange(const RankContext &context, const World &world,
                 int32_t maxInFlight, FlightLog &log)
      : context(context), world(world), maxInFlight(maxInFlight), log(log),
        used(context.program), owners(context.program) {}

  /// All ranks do so at the same time.
  llvm::Error prepare();

  /// Where a part goes that the rank hands over to others; null where it goes
  /// into the global output here, or nowhere.
  const OutputBundle::Item *find(int32_t output, uint8_t *&message) const;

  /// Adds what the rank sends and receives.
  void list(PreparedExchanges &to) const;

  /// How many requests later the rank completes one.
  uint64_t getLag() const { return lag; }
  /// Before request `number` is computed, and its outputs.
  llvm::Error receive(uint64_t number, const RunData &data);
  /// When it is computed: the rank's own have gone when this returns.
  llvm::Error send(const RunData &data);
  /// Returns when what others hand over is in the request's outputs.
  llvm::Error complete(uint64_t number, const RunData &data);

private:
  /// A prepared operation, of which the log is told.
  struct Message {
    std::unique_ptr<Operation> operation;
    std::unique_ptr<FlightExchange> flight;

    llvm::Error start(llvm::ArrayRef<const void *> sources,
                      llvm::ArrayRef<void *> destinations);
    llvm::Error wait();
  };
  struct Outgoing {
    OutputBundle bundle;
    HostMemory message;
    std::vector<Message> sends;

    uint8_t *data() const { return static_cast<uint8_t *>(message.getData()); }
  };
  struct Incoming {
    int32_t rank = 0;
    OutputBundle bundle;
    /// One for each request that is not complete; no memory where it comes into
    /// the output itself.
    std::vector<HostMemory> messages;
    std::vector<Message> receives;
  };

  bool isFirstOfProcess(int32_t rank) const;
  llvm::Error prepareSends();
  llvm::Error prepareReceives();
  llvm::Expected<Message>
  makeMessage(llvm::Expected<std::unique_ptr<Operation>> operation,
              const OutputBundle &bundle, const char *kind,
              const std::vector<int32_t> &ranks) const;

  RankContext context;
  const World &world;
  int32_t maxInFlight;
  FlightLog &log;
  UsedValues used;
  OutputOwners owners;
  uint64_t lag = 0;
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
};

} // namespace ax::rt

#endif // AX_RUNTIME_OUTPUTEXCHANGE_H
