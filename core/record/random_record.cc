#include "core/record/random_record.h"

#include <cmath>
#include <string>

#include "core/histogram/hdr_codec.h"
#include "core/histogram/histogram.h"

namespace verbscope {
namespace {

class Maker {
 public:
  Maker(std::mt19937_64& random, bool hostile) : random_(random), hostile_(hostile) {}

  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }
  bool Coin() { return Below(2) == 1; }
  double Real() { return static_cast<double>(Below(1'000'000'000)) / 997.0; }
  std::string Text() {
    constexpr const char* kFine[] = {"mlx5_0", "a \"quoted\" \\ text", "caf\xC3\xA9",
                                     "\xE6\xBC\xA2", "x"};
    constexpr const char* kHostile[] = {"\x1b[31mred", "line\nend\r", "\xFF\xC0\x80",
                                        "\xE2\x80\xAE", "\x07\x7F"};
    std::string text = kFine[Below(5)];
    if (hostile_) text += kHostile[Below(5)];
    return text + std::to_string(Below(100));
  }
  template <class Make>
  auto Maybe(Make make) -> std::optional<decltype(make())> {
    if (Coin()) return make();
    return std::nullopt;
  }
  auto MaybeReal() {
    return Maybe([this] { return Real(); });
  }
  template <class T>
  auto MaybeInt() {
    return Maybe([this] { return static_cast<T>(Below(1'000'000)); });
  }

  Point MakePoint() {
    Point point;
    point.op = Coin() ? "send" : "read";
    point.size_bytes = Below(1 << 23);
    point.qps = 1 + Below(64);
    point.cqs = MaybeInt<uint32_t>();
    point.threads = MaybeInt<uint32_t>();
    point.cq_depth = MaybeInt<uint32_t>();
    point.wait = Coin() ? "busy" : "event";
    point.spin_ns = MaybeInt<int64_t>();
    point.rate_per_s = MaybeReal();
    point.busy_share_percent = MaybeReal();
    point.moderation = Maybe([this] { return Text(); });
    point.tx_depth = MaybeInt<uint32_t>();
    point.timer_code = MaybeInt<uint32_t>();
    point.imm = Maybe([this] { return Coin(); });
    point.atomic_op = Maybe([this] { return std::string(Coin() ? "fetch-add" : "compare-swap"); });
    point.bidirectional = Maybe([this] { return Coin(); });
    point.inline_data = Maybe([this] { return Coin(); });
    point.signal_every = MaybeInt<uint32_t>();
    point.variant = Maybe([this] { return "receive " + Text(); });
    return point;
  }

  RnrMetrics MakeRnr() {
    RnrMetrics rnr{.nominal_ns = 1 + static_cast<int64_t>(Below(655'360'000))};
    rnr.measured_ns = MaybeInt<int64_t>();
    if (rnr.measured_ns) {
      rnr.ratio = static_cast<double>(*rnr.measured_ns) / static_cast<double>(rnr.nominal_ns);
    }
    for (uint32_t i = 0, n = Below(4); i < n; ++i) {
      rnr.attempts.push_back({i, rnr.nominal_ns * i, MaybeInt<int64_t>(), MaybeInt<uint64_t>()});
    }
    return rnr;
  }

  OverrunMetrics MakeOverrun() {
    OverrunMetrics overrun{.cqe = 1 + Below(64)};
    overrun.delivered = Below(99);
    overrun.flushed = Below(99);
    overrun.lost = Below(99);
    overrun.outstanding = overrun.delivered + overrun.flushed + overrun.lost;
    overrun.most_unpolled = Below(99);
    overrun.event = Coin() ? "CQ_ERR on " + Text() : "";
    overrun.qp_state = Coin() ? "RTS" : "";
    overrun.cq_usable = Maybe([this] { return Coin(); });
    return overrun;
  }

  GateOutcome MakeOutcome() {
    GateOutcome outcome;
    outcome.status = Coin() ? "inconclusive" : Coin() ? "pass" : "fail";
    outcome.observed = MaybeReal();
    outcome.bound = MaybeReal();
    outcome.limit = MaybeReal();
    outcome.samples = MaybeInt<uint64_t>();
    outcome.effective_samples = MaybeInt<uint64_t>();
    outcome.samples_needed = MaybeInt<uint64_t>();
    outcome.why = Coin() ? Text() : "";
    return outcome;
  }

  GateRow MakeGate() {
    GateRow gate{.expression = Text(), .unit = Coin() ? "ns" : "", .outcome = MakeOutcome()};
    for (uint32_t i = 0, n = Below(3); i < n; ++i) {
      gate.results.push_back({MakePoint(), Coin() ? "requester" : Text(), Below(9), MakeOutcome()});
    }
    return gate;
  }

  Comparison MakeComparison() {
    Comparison comparison{.base_name = Text(), .new_name = Text()};
    for (uint32_t i = 0, n = Below(4); i < n; ++i) {
      ComparisonRow row{.point = MakePoint(), .side = "requester", .metric = "p99", .unit = "ns"};
      row.gated = Coin();
      row.base_runs = Below(20);
      row.new_runs = Below(20);
      for (std::optional<double>* value :
           {&row.base, &row.fresh, &row.ratio, &row.ratio_low, &row.ratio_high, &row.p_worse}) {
        *value = MaybeReal();
      }
      row.margin = Real();
      row.verdict = Coin() ? "worse" : "same";
      row.runs_needed = MaybeInt<uint64_t>();
      row.why = Coin() ? Text() : "";
      comparison.rows.push_back(std::move(row));
      comparison.shifts.push_back({MakePoint(), "requester", "99.9", Below(1000), Below(1000)});
      comparison.environment.push_back({Text(), Text(), Text()});
      comparison.parameters.push_back({Text(), Text(), Text()});
      comparison.causes.push_back(Text());
      comparison.unmatched.push_back(Text());
    }
    return comparison;
  }

  Result MakeResult() {
    Result result;
    result.point = MakePoint();
    result.side = Coin() ? "requester" : "responder";
    result.run = Below(3);
    result.set = Maybe([this] { return std::string(Coin() ? "a" : "b"); });
    result.complete = Coin();
    Metrics& metrics = result.metrics;
    if (Coin()) metrics.latency = RandomLatency(random_, Below(3'000), 1 + Below(1'000'000));
    if (Coin()) metrics.warmup = RandomLatency(random_, Below(20), 1'000);
    if (Coin()) {
      metrics.bandwidth = {random_() >> 12, random_() >> 12, Real(), MaybeReal(), MaybeReal()};
    }
    if (Coin()) metrics.load = {MaybeReal(), MaybeReal(), MaybeInt<uint64_t>()};
    if (Coin()) {
      metrics.cpu = {Real(),    MaybeReal(), MaybeReal(), Below(99),  Below(99),
                     Below(99), Below(99),   Below(2),    MaybeReal()};
      metrics.cpu->process_cpu_s = MaybeReal();
      metrics.cpu->run_delay_s = MaybeReal();
      metrics.cpu->core = MaybeInt<int>();
      metrics.cpu->vector_core = MaybeInt<int>();
    }
    if (Coin()) metrics.rnr = MakeRnr();
    if (Coin()) {
      metrics.cost = {
          Below(5'000),         1 + Below(64),        MaybeReal(), Maybe([this] { return Coin(); }),
          MaybeInt<uint64_t>(), MaybeInt<uint64_t>(), MaybeReal()};
    }
    if (Coin()) {
      metrics.scale = {1 + Below(9), 1 + Below(999), 1 + Below(9),
                       MaybeReal(),  MaybeReal(),    MaybeReal()};
    }
    if (Coin()) metrics.overrun = MakeOverrun();
    for (uint32_t i = 0, n = Below(4); i < n; ++i) metrics.counters[Text()] = Below(1000) - 500;
    for (uint32_t i = 0, n = Below(4); i < n; ++i) {
      result.intervals.push_back({Real(), Real(), Below(1000), MaybeInt<int64_t>(),
                                  MaybeInt<int64_t>(), MaybeInt<int64_t>(), MaybeReal()});
    }
    return result;
  }

  DeviceRecord MakeDevice() {
    DeviceRecord device;
    device.name = Text();
    device.kind = Coin() ? "hardware" : "software";
    device.provider = Text();
    device.firmware = Coin() ? Text() : "";
    device.link_layer = Coin() ? "Ethernet" : "InfiniBand";
    device.port = 1 + static_cast<int>(Below(2));
    device.state = "ACTIVE";
    device.active_mtu_bytes = 4096;
    device.gid = Maybe([this] {
      return GidRecord{static_cast<int>(Below(9)), Text(), Coin() ? "RoCE v2" : "", Text()};
    });
    device.numa_node = MaybeInt<int>();
    device.link = Maybe([this] { return Text(); });
    device.icrc = Maybe([this] { return Text(); });
    device.inline_bytes = MaybeInt<uint32_t>();
    return device;
  }

  SideRecord MakeSide(std::string role) {
    SideRecord side;
    side.role = std::move(role);
    side.host = Coin() ? Text() : "";
    side.os = Text();
    side.kernel = Text();
    side.governor = Coin() ? Text() : "";
    side.cpu = Text();
    for (uint32_t i = 0, n = Below(3); i < n; ++i) side.pinned_cpus.push_back(static_cast<int>(i));
    side.device = Maybe([this] { return MakeDevice(); });
    side.clock = Maybe([this] {
      return ClockRecord{"tsc", Coin(), MaybeReal(), MaybeReal(), MaybeReal(), MaybeReal()};
    });
    side.jitter_floor = Maybe(
        [this] { return JitterFloor{Real(), Below(9'000'000), Real(), Real(), Real(), Real()}; });
    if (Coin()) side.counters = {{"out_of_sequence", Below(900)}, {"sent_pkts", Below(900)}};
    return side;
  }

  ModeRow MakeModeRow() {
    ModeRow row;
    row.load = Text();
    row.mode = Text();
    row.offered_per_s = MaybeReal();
    row.achieved_per_s = MaybeReal();
    row.samples = Below(1'000);
    for (std::optional<int64_t>* ns : {&row.p50_ns, &row.p99_ns, &row.p99_9_ns, &row.max_ns}) {
      *ns = MaybeInt<int64_t>();
    }
    row.utilization = MaybeReal();
    row.us_per_message = MaybeReal();
    row.completions_per_event = MaybeReal();
    row.lost_wakeups = Below(3);
    for (std::optional<Difference>* difference : {&row.p50_more_ns, &row.cpu_saved_percent}) {
      *difference = Maybe([this] { return Difference{Real(), MaybeReal(), MaybeReal()}; });
    }
    return row;
  }

  ModeSummary MakeModes() {
    ModeSummary modes;
    modes.busy_sustains_per_s = MaybeReal();
    for (uint32_t i = 0, n = Below(3); i < n; ++i) modes.rows.push_back(MakeModeRow());
    for (std::vector<std::string>* texts : {&modes.unsuited, &modes.sentences, &modes.advice}) {
      for (uint32_t i = 0, n = Below(3); i < n; ++i) texts->push_back(Text());
    }
    return modes;
  }

  PreflightRow MakePreflight() {
    return {Text(), Coin() ? "warn" : "skip", Text(), Text(), Coin() ? Text() : "", Text(), "", ""};
  }

  DeviceResources MakeResources() {
    DeviceResources resources{.device = Text(), .unknown = {Coin() ? "srq" : "context"}};
    for (uint32_t i = 0, n = Below(3); i < n; ++i) {
      ResourceRow& row = resources.rows.emplace_back();
      row = {.kind = Coin() ? "qp" : "cq", .owner = Coin() ? "user" : "", .name = Text()};
      row.users = row.length_bytes = MaybeInt<uint64_t>();
      row.type = row.state = row.poll_context = Coin() ? Text() : "";
      for (auto number : {&row.id, &row.pid, &row.context, &row.pd, &row.port, &row.rqpn,
                          &row.rq_psn, &row.sq_psn, &row.cqe, &row.rkey, &row.lkey}) {
        *number = MaybeInt<uint32_t>();
      }
    }
    return resources;
  }

  Error MakeError() {
    Error error;
    error.error_class = ErrorClass::kRun;
    error.side = Coin() ? Side::kLocal : Side::kPeer;
    error.message = Text();
    if (Coin()) error.cause = Text();
    if (Coin()) error.next_step = Text();
    if (Coin()) error.status = "RETRY_EXC_ERR";
    if (Coin()) error.errno_value = static_cast<int>(1 + Below(100));
    return error;
  }

  DeviceSummary MakeSummary() {
    DeviceSummary summary;
    summary.name = Text();
    if (Coin()) {
      summary.error = MakeError();
      return summary;
    }
    DeviceInfo& info = summary.info.emplace();
    info.name = summary.name;
    info.kind = Coin() ? DeviceKind::kHardware : DeviceKind::kSoftware;
    info.provider = Text();
    info.numa_node = static_cast<int>(Below(3)) - 1;
    info.vendor_id = Below(1 << 24);
    info.limits.max_qp_wr = Below(1 << 20);
    info.limits.max_mr_bytes = random_();
    info.limits.max_rd_atomic_responder = static_cast<uint8_t>(Below(256));
    info.limits.atomics = Coin();
    for (uint32_t i = 0, n = Below(3); i < n; ++i) {
      PortInfo& port = info.ports.emplace_back();
      port.number = static_cast<int>(i) + 1;
      port.state = Coin() ? "ACTIVE" : "DOWN";
      port.active = port.state == "ACTIVE";
      port.link_layer = static_cast<LinkLayer>(Below(3));
      port.max_message_bytes = uint64_t{1} << Below(32);
      port.gbit_per_s = Coin() ? Real() : 0;
      if (Coin()) port.gids.push_back({static_cast<int>(Below(9)), Text(), "RoCE v2", Text(), {}});
    }
    return summary;
  }

 private:
  std::mt19937_64& random_;
  bool hostile_;
};

std::optional<int64_t> AtPercent(const Histogram& histogram, double percent) {
  const double exact = percent / 100 * static_cast<double>(histogram.count());
  if (static_cast<double>(histogram.count()) * (1 - percent / 100) < 1) return std::nullopt;
  return histogram.ValueAtRank(static_cast<uint64_t>(std::ceil(exact))).highest_ns;
}

}  // namespace

LatencyMetrics RandomLatency(std::mt19937_64& random, uint64_t samples, int64_t typical_ns) {
  std::lognormal_distribution<double> body(std::log(static_cast<double>(typical_ns)), 0.05);
  Histogram histogram;
  for (uint64_t i = 0; i < samples; ++i) {
    const double tail = random() % 500 == 0 ? static_cast<double>(1 + random() % 50) : 1.0;
    histogram.Record(static_cast<int64_t>(body(random) * tail));
  }
  LatencyMetrics latency;
  latency.definition = "half_round_trip";
  latency.ended_by = "recv_completion";
  latency.samples = samples;
  if (samples > 0) {
    latency.min_ns = histogram.min();
    latency.mean_ns = histogram.mean();
    latency.stdev_ns = histogram.stdev();
    latency.max_ns = histogram.max();
  }
  for (const auto& [key, percent] :
       {std::pair("50", 50.0), {"90", 90.0}, {"99", 99.0}, {"99.9", 99.9}, {"99.99", 99.99}}) {
    PercentileRow row;
    row.percent = key;
    row.value_ns = AtPercent(histogram, percent);
    if (row.value_ns && samples > 500) {
      row.interval = Interval95{*row.value_ns - *row.value_ns / 100, *row.value_ns + 1};
      row.effective_samples = samples / 2;
    }
    latency.percentiles.push_back(row);
  }
  histogram.ForEachBucket([&latency](int64_t from_ns, int64_t to_ns, uint64_t count) {
    latency.buckets.push_back({from_ns, to_ns, count});
  });
  latency.hdr_v2 = EncodeHdrV2(histogram);
  if (samples > 1000) latency.blocks.push_back({0.5, 1, latency.hdr_v2});
  return latency;
}

Record RandomRecord(std::mt19937_64& random, bool hostile) {
  Maker make(random, hostile);
  constexpr const char* kVerdicts[] = {"pass", "fail", "inconclusive", "error"};
  Record record;
  record.tool_version = "0.1.0";
  record.tool_build = make.Text();
  record.command = make.Coin() ? "devices" : make.Coin() ? "doctor" : "send-lat";
  for (uint32_t i = 0, n = make.Below(4); i < n; ++i) record.argv.push_back(make.Text());
  record.started_at = "2026-11-29T12:00:00Z";
  record.wall_s = make.Real();
  record.verdict = kVerdicts[make.Below(4)];
  record.exit_code = static_cast<int>(make.Below(7));
  if (make.Coin()) {
    Plan& plan = record.plan.emplace();
    plan.qps = 1 + make.Below(16);
    if (make.Coin()) plan.changes.push_back({"tx_depth", "128", "64", make.Text()});
  }
  record.local = make.MakeSide("requester");
  record.remote = make.Maybe([&make] { return make.MakeSide("responder"); });
  for (uint32_t i = 0, n = make.Below(4); i < n; ++i) record.results.push_back(make.MakeResult());
  for (uint32_t i = 0, n = make.Below(3); i < n; ++i) {
    record.checks.push_back({make.Text(), "deviation", make.Text(), "", make.Text(), ""});
    if (make.Bool()) {
      record.checks.back().parts.push_back({make.Text(), "fail", "", make.Text(), make.Text()});
    }
    record.gates.push_back(make.MakeGate());
    record.notices.push_back(make.Text());
  }
  if (make.Bool()) record.catalog.push_back({make.Text(), make.Text(), make.Text(), make.Text()});
  if (make.Bool()) record.behaviours.push_back({make.Text(), make.Text(), {make.Text()}});
  record.comparison = make.Maybe([&make] { return make.MakeComparison(); });
  record.modes = make.Maybe([&make] { return make.MakeModes(); });
  record.error = make.Maybe([&make] { return make.MakeError(); });
  for (uint32_t i = 0, n = make.Below(4); i < n; ++i) {
    record.causes.push_back({make.Text(), make.Coin() ? make.Text() : "", make.Text(), "both"});
    record.counter_notes.push_back({"responder", make.Text(), make.Below(900), make.Text()});
  }
  if (record.command == "devices") {
    for (uint32_t i = 0, n = make.Below(3); i < n; ++i) {
      record.devices.push_back(make.MakeSummary());
    }
    if (make.Coin()) record.resources.emplace().push_back(make.MakeResources());
  }
  if (record.command == "doctor") {
    for (uint32_t i = 0, n = make.Below(4); i < n; ++i) {
      record.preflight.push_back(make.MakePreflight());
    }
  }
  record.path_mtu_bytes = make.Coin() ? 4096 : 0;
  record.loopback = make.Coin();
  return record;
}

}  // namespace verbscope
