#!/bin/bash
# The soft device keeps every promise that `check` asks for, without deviations.
set -euo pipefail
verbscope=$1
out=$("$verbscope" check --loopback --device soft --quick --no-color)
printf '%s\n' "$out"
! grep -qE '^ +(FAIL|deviation|skip)' <<<"$out"
