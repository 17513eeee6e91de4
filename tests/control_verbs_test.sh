#!/bin/bash
# Only transports/ibverbs may call the exported control verbs of libibverbs: on an object of the soft
# device they end in SIGSEGV. Everything else goes through transports/device.h.
#
# This test reads the sources and names each call elsewhere. Before, it proves on planted files that
# it finds every one of the verbs, and nothing that is not a call.
#
# usage: control_verbs_test.sh [ROOT]    ROOT: top of the source tree, else where this script lies
set -euo pipefail

# Families by prefix, then single names. Free for all are the data path (ibv_post_*, ibv_poll_cq,
# ibv_req_notify_cq, ibv_wr_*, ibv_start_poll, …), ibv_create_cq_ex, which is inline too and answers
# EOPNOTSUPP on a context without it, and the pure text functions (ibv_wc_status_str, …).
verbs=(
  'create_(?!cq_ex\b)\w+' 'destroy_\w+' 'modify_\w+' 'query_\w+' 'reg_\w+' 'dereg_mr' 'rereg_mr'
  'alloc_pd' 'dealloc_pd' 'import_\w+' 'unimport_\w+' 'open_\w+' 'close_\w+'
  'get_device_list' 'free_device_list' 'get_device_guid' 'get_pkey_index'
  'get_cq_event' 'ack_cq_events' 'get_async_event' 'ack_async_event'
  'resize_cq' 'attach_mcast' 'detach_mcast' 'init_ah_from_wc'
  'qp_to_qp_ex' 'set_ece' 'resolve_eth_l2_from_gid' 'fork_init'
)
pattern="\\b_?ibv_($(IFS='|'; echo "${verbs[*]}"))\\s*\\("

# One verb of each kind by its full name, for the proof.
samples=(
  ibv_create_qp ibv_create_cq ibv_create_qp_ex ibv_create_comp_channel ibv_create_srq ibv_create_ah
  ibv_destroy_qp ibv_destroy_cq ibv_destroy_comp_channel ibv_destroy_ah ibv_modify_qp ibv_query_qp
  ibv_query_device ibv_query_port ibv_query_gid ibv_query_gid_table _ibv_query_gid_ex
  ibv_query_pkey ibv_reg_mr ibv_reg_mr_iova ibv_reg_mr_iova2 ibv_reg_dmabuf_mr ibv_dereg_mr
  ibv_rereg_mr ibv_alloc_pd ibv_dealloc_pd ibv_open_device ibv_close_device ibv_get_device_list
  ibv_free_device_list ibv_get_cq_event ibv_ack_cq_events ibv_get_async_event ibv_ack_async_event
  ibv_resize_cq ibv_attach_mcast ibv_qp_to_qp_ex ibv_fork_init
)
free=(
  ibv_post_send ibv_post_recv ibv_poll_cq ibv_req_notify_cq ibv_wr_start ibv_start_poll
  ibv_create_cq_ex ibv_wc_status_str ibv_event_type_str my_ibv_create_qp
)

# calls ROOT: prints FILE:LINE:CODE of each forbidden call; status 0 when there is none. Comments and
# the contents of strings are no calls.
calls() {
  local file found=0
  while IFS= read -r -d '' file; do
    if sed -E -e 's/"([^"\\]|\\.)*"/""/g' -e 's,//.*,,' "$1/$file" |
        grep -nP "$pattern" | sed "s|^|$file:|"; then
      found=1
    fi
  done < <(cd "$1" && grep -rslZP --include='*.h' --include='*.c' --include='*.cc' \
      --include='*.cpp' --include='*.inc' "$pattern" "${parts[@]}" | grep -zv '^transports/ibverbs/')
  return "$found"
}
parts=(cmd core reporters tests transports)

fail() {
  echo "FAIL: $*" >&2
  exit 1
}

planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
(cd "$planted" && mkdir -p "${parts[@]}" transports/ibverbs transports/soft)

# prove WANTED FILE CODE: plants CODE, alone, and wants it "found" or "free".
prove() {
  local wanted=$1 file=$planted/$2 code=$3 verdict=free
  printf '%s\n' "$code" > "$file"
  calls "$planted" > /dev/null || verdict=found
  rm "$file"
  [[ $verdict == "$wanted" ]] || fail "the check itself: '$code' in $2 is $verdict, not $wanted"
}

for name in "${samples[@]}"; do
  prove found core/planted.cc "  if ($name(a, b)) return;"
  prove free core/planted.cc "// $name is not called here"
done
for name in "${free[@]}"; do prove free core/planted.cc "  return $name(a, b);"; done
prove found core/planted.h 'inline int F() { return ::ibv_destroy_qp (qp); }'
prove found transports/soft/planted.cc '  Log("a \" quote"); ibv_alloc_pd(context);'
prove free core/planted.cc '  EXPECT_THAT(text, HasSubstr("ibv_create_qp(device="));'
prove free core/planted.cc '  Use(x);  // instead of ibv_create_qp(pd, &attributes)'
prove free transports/ibverbs/planted.cc '  ibv_create_qp(pd, &attributes);'
prove free core/planted.md 'ibv_create_qp(pd, &attributes)'

# Bazel runs this file through a link into the source tree.
root=${1:-$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd -P)}
[[ -e $root/transports/device.h ]] || fail "no source tree at $root"
# The room that may call them must be seen to do so, or the pattern fits nothing any more.
grep -qrP "$pattern" "$root/transports/ibverbs" || fail "transports/ibverbs calls no verb at all"

if ! calls "$root"; then
  fail "the calls above must go through transports/device.h"
fi
echo "no control verb is called outside transports/ibverbs"
