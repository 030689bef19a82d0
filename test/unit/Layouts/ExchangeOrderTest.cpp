//===- ExchangeOrderTest.cpp - Pipelines that exchange one at a time ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A small model is compiled for each schedule at many sizes; the order of its
// program's exchanges is played rank by rank, with all collectives.
//
//===----------------------------------------------------------------------===//

#include "PlanOnRanks.h"

#include "ax/Codegen/Codegen.h"
#include "ax/Compile/Compile.h"
#include "ax/Cost/Schedule.h"
#include "ax/Exchange/Order.h"
#include "ax/Runtime/ExchangeOrder.h"
#include "ax/Support/Error.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace mlir;

namespace ax::test {
namespace {

using exchange::Operation;

/// Eight blocks of two Linears with a residual, of which the first and the last
/// share a weight, and the last also takes what the second has made: values
/// skip stages, and updates exchange gradients.
std::string modelText() {
  std::string tensor = "tensor<840x4xf32>", weight = "tensor<4x4xf32>";
  std::string states, body, x = "%x";
  for (int block = 0; block < 8; ++block) {
    std::string n = std::to_string(block);
    for (std::string name : {"u" + n, "v" + n})
      states += "ax.state @" + name + " : " + weight +
                " from \"w\" offset 0 length 64 {trainable}\n";
    std::string shared = block == 7 ? "u0" : "u" + n;
    auto linear = [&](const std::string &to, const std::string &from,
                      const std::string &state) {
      body += to + "w = ax.load @" + state + " : " + weight + "\n" + to +
              " = ax.linear " + from + ", " + to + "w : " + tensor + ", " +
              weight + " -> " + tensor + "\n";
    };
    auto add = [&](const std::string &to, const std::string &a,
                   const std::string &b) {
      body += to + " = ax.binary add " + a + ", " + b + " : " + tensor + ", " +
              tensor + " -> " + tensor + "\n";
    };
    linear("%a" + n, x, shared);
    body += "%t" + n + " = ax.unary tanh %a" + n + " : " + tensor + " -> " +
            tensor + "\n";
    linear("%b" + n, "%t" + n, "v" + n);
    add("%y" + n, x, "%b" + n);
    x = "%y" + n;
  }
  body += "%z = ax.binary add %y7, %y1 : " + tensor + ", " + tensor + " -> " +
          tensor + "\n";
  return "ax.plan @p version " + std::to_string(PlanOp::currentVersion) +
         " {\n" + states + "ax.program @main(%x: " + tensor +
         " {ax.name = \"x\"}) -> (" + tensor + " {ax.name = \"y\"}) {\n" +
         body + "ax.return %z : " + tensor + "\n}\n}\n";
}

struct Case {
  std::string schedule;
  int64_t pipe = 2, tensor = 1, micro = 1;
  bool trains = true;

  std::string name() const {
    return schedule + " pp" + std::to_string(pipe) + " tp" +
           std::to_string(tensor) + " of " + std::to_string(micro);
  }
};

/// Nothing where the schedule has no such size.
std::optional<std::vector<rt::Program>> compileCase(const Case &asked) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<AxDialect>();
  auto module = parseSourceString<ModuleOp>(modelText(), &context);
  CompileOptions options;
  Strategy &strategy = options.strategy;
  strategy.tensor.col = asked.tensor;
  strategy.pipe = asked.pipe;
  strategy.micro = asked.micro;
  strategy.schedule = llvm::cantFail(ScheduleChoice::parse(asked.schedule));
  if (asked.trains) {
    strategy.training.emplace();
    strategy.training->loss = llvm::cantFail(Loss::parse("mse(y,target)"));
  }
  if (llvm::Error error = strategy.checkSchedule()) {
    llvm::consumeError(std::move(error));
    return std::nullopt;
  }
  std::vector<rt::Program> programs;
  if (llvm::Error error = compile(*module, options)) {
    ADD_FAILURE() << describeError(std::move(error)).message;
    return programs;
  }
  codegen::Options quick;
  quick.withoutKernels = true;
  module->walk([&](ProgramOp program) {
    auto made = codegen::generate(program, quick);
    if (made)
      programs.push_back(std::move(*made));
    else
      ADD_FAILURE() << describeError(made.takeError()).message;
  });
  return programs;
}

/// A program's exchanges as those of each rank.
class Ranks {
public:
  explicit Ranks(const rt::Program &program)
      : program(program), width(program.stages[0].ranks.size()),
        orders(program.mesh.numRanks()) {
    for (const rt::Transfer &transfer : program.transfers)
      for (size_t i = 0; i < width; ++i)
        network.transfers.push_back(
            {transfer.name, program.stages[transfer.fromStage].ranks[i],
             program.stages[transfer.toStage].ranks[i], transfer.slots});
  }

  void addGroup(size_t stage, const std::vector<rt::Exchange> &exchanges) {
    for (size_t i = 0; i < width; ++i) {
      exchange::Group group;
      for (const rt::Exchange &exchange : exchanges)
        group.push_back(operationOf(stage, i, exchange));
      orders[program.stages[stage].ranks[i]].push_back(std::move(group));
    }
  }
  std::string play() const { return play(orders); }
  /// Without groups, in their order.
  std::string playOneByOne() const {
    std::vector<exchange::Order> single;
    for (const exchange::Order &order : orders)
      single.push_back(exchange::ungroup(order));
    return play(single);
  }
  /// The messages from each rank to each other one, as both have them.
  using Lane = std::pair<int32_t, int32_t>;
  std::map<Lane, std::vector<std::pair<int32_t, int32_t>>>
  lanes(Operation::Kind kind) const {
    std::map<Lane, std::vector<std::pair<int32_t, int32_t>>> result;
    for (const exchange::Order &order : orders)
      for (const exchange::Group &group : order)
        for (const Operation &operation : group)
          if (operation.kind == kind) {
            const exchange::Transfer &transfer =
                network.transfers[operation.number];
            result[{transfer.from, transfer.to}].emplace_back(
                operation.number, operation.microBatch);
          }
    return result;
  }

private:
  std::string play(const std::vector<exchange::Order> &played) const {
    auto deadlock = exchange::findDeadlock(network, played);
    if (!deadlock)
      return "";
    return exchange::describe(
        *deadlock, network,
        [](int32_t rank) { return "rank " + std::to_string(rank); },
        [](int32_t, size_t) { return std::string(); });
  }

  Operation operationOf(size_t number, size_t position,
                        const rt::Exchange &exchange) {
    const rt::StageProgram &stage = program.stages[number];
    const rt::Action &action = stage.schedule[exchange.action];
    const rt::Command &command =
        stage.lists[action.list].commands[exchange.command];
    auto numberOf = [&](int32_t transfer) {
      return static_cast<int32_t>(transfer * width + position);
    };
    if (const auto *send = std::get_if<rt::SendCommand>(&command.body))
      return {Operation::Kind::Send, numberOf(send->transfer),
              action.microBatch};
    if (const auto *receive = std::get_if<rt::RecvCommand>(&command.body))
      return {Operation::Kind::Receive, numberOf(receive->transfer),
              action.microBatch};
    const auto &collective = std::get<rt::CollectiveCommand>(command.body);
    int32_t rank = stage.ranks[position];
    for (const auto &ranks : stage.groups[collective.groupSet].groups)
      if (llvm::is_contained(ranks, rank)) {
        auto [known, isNew] = collectives.try_emplace(
            {&command, ranks.front()}, network.collectives.size());
        if (isNew)
          network.collectives.push_back({command.name, ranks});
        return {Operation::Kind::Collective, known->second, action.microBatch};
      }
    ADD_FAILURE() << "rank " << rank << " is in no group";
    return {};
  }

  const rt::Program &program;
  const size_t width;
  exchange::Network network;
  std::vector<exchange::Order> orders;
  std::map<std::pair<const rt::Command *, int32_t>, int32_t> collectives;
};

bool sends(const rt::Program &program, size_t number,
           const rt::ExchangeGroup &group) {
  const rt::StageProgram &stage = program.stages[number];
  return llvm::any_of(group.exchanges, [&](const rt::Exchange &exchange) {
    return std::holds_alternative<rt::SendCommand>(
        stage.lists[stage.schedule[exchange.action].list]
            .commands[exchange.command]
            .body);
  });
}

/// Each command that exchanges, once for each entry of the schedule that has
/// it; receives no later than their entries, into slots that are free, and from
/// which nothing is sent at the same time.
void examine(const rt::Program &program, size_t number,
             const rt::ExchangeOrder &order) {
  const rt::StageProgram &stage = program.stages[number];
  std::set<std::pair<int32_t, int32_t>> done, wanted;
  for (auto [entry, action] : llvm::enumerate(stage.schedule))
    for (auto [c, command] : llvm::enumerate(stage.lists[action.list].commands))
      if (std::holds_alternative<rt::CollectiveCommand>(command.body) ||
          std::holds_alternative<rt::SendCommand>(command.body) ||
          std::holds_alternative<rt::RecvCommand>(command.body))
        wanted.emplace(entry, c);
  std::map<int32_t, std::vector<int32_t>> received;
  int32_t place = 0;
  for (const rt::ExchangeGroup &group : order) {
    EXPECT_LE(place, group.action);
    place = group.action;
    EXPECT_FALSE(group.exchanges.empty());
    EXPECT_TRUE(!group.isCollective || group.exchanges.size() == 1);
    for (const rt::Exchange &exchange : group.exchanges) {
      EXPECT_TRUE(done.emplace(exchange.action, exchange.command).second);
      const auto &body = stage.lists[stage.schedule[exchange.action].list]
                             .commands[exchange.command]
                             .body;
      EXPECT_EQ(std::holds_alternative<rt::CollectiveCommand>(body),
                group.isCollective);
      if (std::holds_alternative<rt::SendCommand>(body)) {
        EXPECT_EQ(exchange.action + 1, group.action);
      }
      const auto *receive = std::get_if<rt::RecvCommand>(&body);
      if (!receive)
        continue;
      EXPECT_GE(exchange.action, group.action);
      std::vector<int32_t> &entries = received[receive->transfer];
      entries.push_back(exchange.action);
      int32_t slots = program.transfers[receive->transfer].slots;
      if (entries.size() > size_t(slots)) {
        int32_t before = entries[entries.size() - 1 - slots];
        EXPECT_LT(before, group.action);
        EXPECT_TRUE(before + 1 < group.action || !sends(program, number, group))
            << "the slot may be sent from";
      }
    }
  }
  EXPECT_EQ(done, wanted);
}

/// What an entry receives, does with others, and sends, one by one.
void addWithoutGroups(const rt::Program &program, Ranks &ranks) {
  for (auto [number, stage] : llvm::enumerate(program.stages))
    for (auto [entry, action] : llvm::enumerate(stage.schedule))
      for (auto [c, command] :
           llvm::enumerate(stage.lists[action.list].commands))
        if (std::holds_alternative<rt::CollectiveCommand>(command.body) ||
            std::holds_alternative<rt::SendCommand>(command.body) ||
            std::holds_alternative<rt::RecvCommand>(command.body))
          ranks.addGroup(
              number, {{static_cast<int32_t>(entry), static_cast<int32_t>(c)}});
}

/// Something is received for a later entry.
bool receivesAhead(const rt::ExchangeOrder &order) {
  return llvm::any_of(order, [](const rt::ExchangeGroup &group) {
    return llvm::any_of(group.exchanges, [&](const rt::Exchange &exchange) {
      return exchange.action > group.action;
    });
  });
}

/// What is so of some size, by schedules.
struct Found {
  std::map<std::string, int> numExamined;
  /// It would wait for ever without groups; a group receives ahead.
  std::set<std::string> isLocked, isAhead;
};

void examine(const Case &asked, Found &found) {
  SCOPED_TRACE(asked.name());
  auto programs = compileCase(asked);
  if (!programs)
    return;
  ++found.numExamined[asked.schedule];
  for (const rt::Program &program : *programs) {
    auto orders = rt::orderExchanges(program);
    ASSERT_TRUE(bool(orders)) << describeError(orders.takeError()).message;
    Ranks ranks(program), single(program);
    for (auto [stage, order] : llvm::enumerate(*orders)) {
      examine(program, stage, order);
      for (const rt::ExchangeGroup &group : order)
        ranks.addGroup(stage, group.exchanges);
      if (receivesAhead(order))
        found.isAhead.insert(asked.schedule);
    }
    EXPECT_EQ(ranks.play(), "");
    EXPECT_EQ(ranks.playOneByOne(), "");
    EXPECT_EQ(ranks.lanes(Operation::Kind::Send),
              ranks.lanes(Operation::Kind::Receive));
    addWithoutGroups(program, single);
    if (!single.play().empty())
      found.isLocked.insert(asked.schedule);
  }
}

/// On 2 and 4 stages of 1 and 2 ranks.
void examineAll(bool trains, Found &found) {
  for (llvm::StringRef schedule : cost::PipelineSchedules::get().names())
    for (int64_t pipe : {2, 4})
      for (int64_t tensor : {1, 2})
        for (int64_t micro = 1; micro <= 8; ++micro)
          examine({schedule.str(), pipe, tensor, micro, trains}, found);
}

TEST(ExchangeOrder, EveryScheduleEnds) {
  Found found;
  examineAll(/*trains=*/true, found);
  // Interleaved schedules take multiples of the stages.
  EXPECT_EQ(found.numExamined,
            (std::map<std::string, int>{{"1f1b", 32},
                                        {"gpipe", 32},
                                        {"interleaved", 12},
                                        {"zb-v", 32},
                                        {"zero-bubble", 32}}));
  // Those of gpipe meet in the update.
  EXPECT_EQ(found.isLocked,
            (std::set<std::string>{"1f1b", "gpipe", "interleaved", "zb-v",
                                   "zero-bubble"}));
  EXPECT_EQ(found.isAhead, (std::set<std::string>{"interleaved", "zb-v"}));
}

TEST(ExchangeOrder, EveryPredictionEnds) {
  Found found;
  examineAll(/*trains=*/false, found);
  EXPECT_EQ(found.isLocked, std::set<std::string>());
  EXPECT_EQ(found.isAhead, std::set<std::string>());
}

TEST(ExchangeOrder, CircleIsReported) {
  auto programs = compileCase({"1f1b", 2, 2, 4, true});
  ASSERT_TRUE(programs && programs->size() == 1);
  rt::Program &program = programs->front();
  // B0 before F0.
  std::vector<rt::Action> &schedule = program.stages[0].schedule;
  std::swap(schedule[0], schedule[2]);
  auto orders = rt::orderExchanges(program);
  ASSERT_FALSE(bool(orders));
  ErrorDescription error = describeError(orders.takeError());
  EXPECT_EQ(error.code, ExitCode::BadPlan);
  EXPECT_EQ(error.message,
            "program 'main' never ends: stage 0 (ranks 0, 1), before "
            "'backward0' of micro-batch 0, waits to receive 'transfer3' of "
            "micro-batch 0 from stage 1 (ranks 2, 3); stage 1 (ranks 2, 3), "
            "before 'forward1' of micro-batch 0, waits to receive 'transfer0' "
            "of micro-batch 0 from stage 0 (ranks 0, 1)");
}

} // namespace
} // namespace ax::test
