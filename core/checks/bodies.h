// The functions of all checks, by file; catalog.cc says what each is for. For this folder only.
#ifndef VERBSCOPE_CORE_CHECKS_BODIES_H_
#define VERBSCOPE_CORE_CHECKS_BODIES_H_

#include "core/checks/trial.h"

namespace verbscope {

// states.cc
void QpStates(Trial& trial);
void Teardown(Trial& trial);
void Limits(Trial& trial);
// posting.cc
void PostVsComplete(Trial& trial);
void Inline(Trial& trial);
void BadWr(Trial& trial);
void SelectiveSignal(Trial& trial);
// moving.cc
void Recv(Trial& trial);
void DataPlacement(Trial& trial);
void ScatterGather(Trial& trial);
void MtuSizes(Trial& trial);
void WriteImm(Trial& trial);
void ImmOrder(Trial& trial);
void Ordering(Trial& trial);
void WcFields(Trial& trial);
// failing.cc
void Errors(Trial& trial);
void FlushCheck(Trial& trial);
void AsyncCheck(Trial& trial);
void NotReady(Trial& trial);
// rights.cc
void Access(Trial& trial);
void Bounds(Trial& trial);
void ProtectionDomains(Trial& trial);
void Atomics(Trial& trial);
// queues.cc
void SharedCq(Trial& trial);
void SharedReceiveQueue(Trial& trial);
// events.cc
void CompletionChannel(Trial& trial);
void EventRace(Trial& trial);
void Solicited(Trial& trial);
// retransmission.cc
void Ownership(Trial& trial);
void Fence(Trial& trial);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CHECKS_BODIES_H_
