#include "core/checks/trial.h"

#include <fmt/core.h>

#include <utility>

#include "core/causes/completion_status.h"
#include "core/scenario/expectations.h"

namespace verbscope {

std::string StatusOf(const std::optional<ibv_wc>& wc) {
  return wc ? NameOf(wc->status) : "no completion";
}

Ends Trial::Make(const FreshQpOptions& here, const FreshQpOptions& there) {
  if (!ok()) return {};
  Expected<FreshQp*> own = stage_.MakeQp(here);
  if (!own) {
    latch_.Keep(Fail(std::move(own.error())));
    return {};
  }
  const Answer made = latch_.Take(RemoteEnd::Make(stage_, there));
  if (ok() && made.text) {
    Error error;
    error.error_class = ErrorClass::kSetup;
    error.message = "on the other side: " + *made.text;
    latch_.Keep(Fail(std::move(error)));
  }
  if (!ok()) return {};
  here_.push_back(std::make_unique<LocalEnd>(stage_, latch_, events_, **own,
                                             static_cast<uint32_t>(made.value)));
  there_.push_back(std::make_unique<RemoteEnd>(stage_, latch_, there_.size()));
  return {.here = here_.back().get(), .there = there_.back().get()};
}

bool Trial::Join(const Ends& ends) {
  if (!ok()) return false;
  ends.there->BeginConnect();
  if (ok()) latch_.Keep(ends.here->fresh().Connect());
  ends.there->Answered();
  return ok();
}

bool Trial::Rejoin(const Ends& ends) {
  if (!ok()) return false;
  ends.there->BeginReset();
  if (ok()) latch_.Keep(ends.here->fresh().Reset());
  ends.there->Answered();
  return Join(ends);
}

Ends Trial::Connect(const FreshQpOptions& here, const FreshQpOptions& there) {
  const Ends ends = Make(here, there);
  return ends && Join(ends) ? ends : Ends{};
}

std::string Trial::Name(std::string_view part) const {
  return fmt::format("{}/{}", stage_.name(), part);
}

void Trial::Expect(std::string_view part, std::string expected, std::string observed,
                   std::string_view rule) {
  if (!ok()) return;
  CheckRow row{.name = Name(part),
               .expected = std::move(expected),
               .observed = std::move(observed)};
  if (rule.empty()) rule = row.name;
  const std::string asked(rule);
  Judge(stage_.responder_kind(), asked, row);
  if (row.status == "fail") Judge(stage_.requester_kind(), asked, row);
  stage_.Check(std::move(row));
}

void Trial::Skip(std::string_view part, std::string why) {
  if (!ok()) return;
  stage_.Check({.name = Name(part), .status = "skip", .why = std::move(why)});
}

std::string Trial::AwaitBoth(const Ends& ends) {
  const std::optional<ibv_wc> sent = ends.here->AwaitSend(limit());
  const std::optional<ibv_wc> received = ends.there->AwaitReceive(limit());
  return fmt::format("requester {}, responder {}", StatusOf(sent), StatusOf(received));
}

std::string Trial::AwaitSendOnly(const Ends& ends) {
  const std::optional<ibv_wc> sent = ends.here->AwaitSend(limit());
  const std::optional<ibv_wc> received = ends.there->AwaitReceive(kQuiet);
  return fmt::format("requester {}, responder {}", StatusOf(sent), StatusOf(received));
}

Status Trial::Finish() {
  Status status = latch_.TakeStatus();
  if (!status && status.error().error_class == ErrorClass::kSetup) {
    stage_.Check({.name = Name("setup"),
                  .status = "fail",
                  .expected = "the device makes what the check needs",
                  .observed = status.error().message,
                  .why = status.error().cause});
    status = {};
  }
  if (!status) return status;
  return stage_.Tell(ToJson(Ask{.call = Call::kDone}));
}

}  // namespace verbscope
