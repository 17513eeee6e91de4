// Documents for the suite that no command makes on demand: comparisons, gates, hostile names, very
// many results. Made from one of testdata/records, so that they are whole.
'use strict';

const clone = (value) => JSON.parse(JSON.stringify(value));

// Everything that could end an element, an attribute or a line, or turn the text around. The comment
// comes last: it would hide what follows.
const kHostile = '</script><script>window.broken=1</script><img src=x onerror="window.broken=1"> ]]> '
  + '"\' & , ; \n\t\u0007\u001b[31m \u202Egnp.exe https://example.invalid/x <!-- ';

function point(size, more = {}) {
  return {op: 'send', size_bytes: size, qps: 1, wait: 'busy', ...more};
}

function row(metric, verdict, ratio, low, high, more = {}) {
  return {point: point(64), side: 'requester', metric, unit: metric === 'bw' ? 'Gb/s' : 'ns',
    gated: true, base_runs: 10, new_runs: 10, base: 1033, new: ratio && 1033 * ratio, ratio,
    ratio_low: low, ratio_high: high, margin: 0.03, p_worse: 0.012, verdict,
    runs_needed: verdict === 'undecided' ? 24 : null, why: null, ...more};
}

function comparison(base) {
  const document = clone(base);
  document.command = 'compare';
  document.argv = ['verbscope', 'compare', 'old/*.json', '--new', 'new/*.json'];
  document.verdict = 'fail';
  document.exit_code = 3;
  document.results = [];
  const shifts = ['10', '50', '90', '99', '99.9'].flatMap((percent, i) => [64, 4096].map((size) => ({
    point: point(size), side: 'requester', percent, base_ns: 1000 + 400 * i + size,
    new_ns: Math.round((1000 + 400 * i + size) * (1 + 0.012 * i * i))})));
  document.comparison = {
    base: 'old/1.json … old/10.json', new: 'new/1.json … new/10.json',
    environment: [{field: 'local.device.firmware', base: '20.39.3004', new: '20.41.1000'},
      {field: 'local.kernel', base: '6.1.0-28-amd64', new: '6.1.0-31-amd64'}],
    parameters: [],
    rows: [row('p50', 'same', 1.004, 0.998, 1.011), row('p99', 'worse', 1.182, 1.09, 1.27),
      row('p99.9', 'undecided', 1.05, 0.93, 1.21),
      row('max', 'undecided', null, null, null, {gated: false, why: 'a maximum has no interval'}),
      row('p50', 'better', 0.91, 0.885, 0.94, {point: point(4096)}),
      row('p99', 'same', 1.0, 0.99, 1.01, {point: point(4096)}),
      row('bw', 'same', 0.998, 0.992, 1.003, {point: point(4096), base: 93.1, new: 92.9})],
    shifts,
    causes: ['out_of_sequence moved from 0 to 812 per run: packets were lost or reordered.'],
    unmatched: ['send 128 bytes, requester: in the base only.'],
  };
  return document;
}

function outcome(status, observed, bound, limit, more = {}) {
  return {status, observed, bound, limit, samples: 20000, effective_samples: 7421,
    samples_needed: null, why: null, ...more};
}

function gates(base) {
  const document = clone(base);
  document.verdict = 'fail';
  document.exit_code = 3;
  document.argv = ['verbscope', 'send-lat', 'node-b', '--assert', 'p99<1us', '--assert', 'p50<2us'];
  const results = [0, 1].map((run) => ({point: point(64), side: 'requester', run,
    ...outcome(run ? 'fail' : 'pass', 900 + run * 200, 950 + run * 200, 1000)}));
  document.gates = [
    {expression: 'p99<1us', unit: 'ns', ...outcome('fail', 1076, 1074, 1000), results},
    {expression: 'p99.99<8us', unit: 'ns', ...outcome('inconclusive', 6611, null, 8000,
      {samples_needed: 80700}), results: []},
    {expression: 'p50<2us', unit: 'ns', ...outcome('pass', 1033, 1034, 2000), results: []},
    {expression: 'bw>=baseline*0.97', unit: 'Gb/s', ...outcome('inconclusive', 93.1, 93.1, null,
      {samples: null, effective_samples: null, why: 'the baseline has no such result'}), results: []}];
  document.plan.changes = [{field: 'mtu_bytes', asked: '4096', used: '1024', why: 'the other port has no more'}];
  document.notices = ['The CPU governor is powersave on node-b.'];
  document.results[0].metrics.counters = {out_of_sequence: 812, rnr_nak_retry_err: 0};
  document.remote.device.firmware = '20.41.1000';
  document.local.jitter_floor = {seconds: 1, max_gap_ns: 48211, gaps_over_1us_per_s: 312.5,
    gaps_over_10us_per_s: 4, gaps_over_100us_per_s: 0, lost_share: 0.00071};
  return document;
}

function hostile(base) {
  const document = gates(base);
  document.command = kHostile;
  document.argv = ['verbscope', kHostile, ''];
  document.notices = [kHostile];
  for (const side of [document.local, document.remote]) {
    for (const key of ['host', 'os', 'kernel', 'cpu']) side[key] = kHostile;
    side.device.name = kHostile;
    side.device.firmware = kHostile;
    side.device.gid.netdev = kHostile;
  }
  document.gates[0].expression = kHostile;
  document.results[0].point.variant = kHostile;
  document.results[0].metrics.counters[kHostile] = 3;
  document.results.push(clone(document.results[0]));
  document.results[1].side = 'responder';
  document.checks = [{name: kHostile, status: 'fail', expected: kHostile, observed: kHostile,
    why: kHostile, source: kHostile}];
  return document;
}

function many(base, count) {
  const document = clone(base);
  document.results = Array.from({length: count}, (_, i) => {
    const result = clone(base.results[0]);
    result.point = point(2 ** (i % 16), {qps: 1 + Math.floor(i / 16)});
    return result;
  });
  return document;
}

module.exports = {clone, comparison, gates, hostile, many};
