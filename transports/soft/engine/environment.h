// What all QPs of one device share inside the engine, and how the engine tells its owner of events.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_ENVIRONMENT_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_ENVIRONMENT_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "transports/soft/engine/completion_queue.h"
#include "transports/soft/engine/counters.h"
#include "transports/soft/engine/defects.h"
#include "transports/soft/engine/hook_verdicts.h"
#include "transports/soft/engine/memory_table.h"
#include "transports/soft/engine/packet_io.h"
#include "transports/soft/engine/profile.h"
#include "transports/soft/engine/receive_queue.h"

namespace verbscope::soft {

class QueuePair;

// Called with the device's lock held, in the middle of the engine's work: note it, do not act on
// it.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void OnCompletionEvent(CompletionQueue& cq) = 0;
  virtual void OnQpEvent(ibv_event_type type, QueuePair& qp) = 0;
  virtual void OnCqError(CompletionQueue& cq) = 0;
  virtual void OnSrqEvent(ibv_event_type type, ReceiveQueue& srq) = 0;
};

// Changes completions before they are stored, or keeps them back; for tests of programs (a chosen
// status, garbage in fields that verbs leaves undefined). Null in normal use.
class CompletionFilter {
 public:
  virtual ~CompletionFilter() = default;
  virtual CompletionFate Apply(CompletionKind kind, ibv_wc& wc) = 0;
};

// Spoils the data that messages leave in the program's memory; for tests of programs. Null in
// normal use. A message is a SEND or WRITE that comes, or a READ that is answered, with data.
class DataFilter {
 public:
  virtual ~DataFilter() = default;
  // The last packet of a message is about to be stored.
  virtual DataVerdict NextMessage() = 0;
};

struct EngineOptions {
  Profile profile = Profile::kIbta;
  Defects defects;
  uint32_t max_regions = 4096;
  uint32_t max_message_bytes = 1U << 30;
  // Of each region; what lies behind is refused to peers.
  uint64_t max_access_bytes = UINT64_MAX;
  // QP numbers are taken from [first_qpn, last_qpn], at least kMaxQps numbers. 0, 1 and 0xffffff
  // are special; devices that share an address have ranges of their own.
  uint32_t first_qpn = 17;
  uint32_t last_qpn = 0xfffffe;
  // Request packets in flight per QP. rxe as a peer takes 128.
  uint32_t window_packets = 128;
};

struct Environment {
  Environment(const EngineOptions& engine_options, PacketSink& packet_sink, EventSink& event_sink)
      : options(engine_options),
        sink(&packet_sink),
        events(&event_sink),
        memory(engine_options.max_regions, engine_options.max_access_bytes,
               engine_options.defects) {}

  bool rxe() const { return options.profile == Profile::kRxe61; }
  bool Has(Defect defect) const { return options.defects.Has(defect); }

  EngineOptions options;
  PacketSink* sink;
  EventSink* events;
  CompletionFilter* filter = nullptr;
  DataFilter* data_filter = nullptr;
  MemoryTable memory;
  Counters counters;
  // Some timer has to start from the time of now and not of the next occasional Tick.
  bool timer_urgent = false;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_ENVIRONMENT_H_
