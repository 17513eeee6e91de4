#!/bin/bash
# In the lab: send-lat over the kernel's RDMA device, server and client as two processes.
# Standard output is the client's, and so is the exit status.
set -euo pipefail

verbscope serve --once > /dev/null &  # its own view of the same run: not wanted here
server=$!
for ((i = 0; i < 100; ++i)); do  # 10 s for the control port to open
  if ss -Hltn 'sport = :18600' | grep -q .; then break; fi
  kill -0 "$server" || break
  sleep 0.1
done
status=0
verbscope send-lat 10.9.0.1 "$@" || status=$?
exit "$status"
