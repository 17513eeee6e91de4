// The results as tables: all of them, and the groups that single commands have.

function metricNumber(entry, path, kind) {
  return number(entry.doc, [...entry.path, 'metrics', ...path], kind);
}

function resultTable(caption, entries, columns, cells) {
  const [rows, note] = capRows(entries.map((entry) => [
    [entry.name, !entry.result.complete && h('small', {class: 'warning'}, ' broke off')],
    ...cells(entry)]));
  return [table(caption, ...usedColumns(['result', ...columns], rows)), note];
}

const kPercents = ['50', '90', '99', '99.9', '99.99'];

function percentileCell(entry, percent) {
  const path = ['latency', 'percentiles_ns', percent];
  const value = metricNumber(entry, path, 'ns');
  const interval = [...entry.path, 'metrics', 'latency', 'interval95_ns', percent];
  if (value && at(entry.doc.json, interval)) {
    const [low, high] = at(entry.doc.json, interval);
    value.title += `, 95 % interval ${exact(low)} … ${exact(high)} ns`;
  }
  return value;
}

function latencyTable(entries) {
  const columns = [...kPercents.map((percent) => numeric(`p${percent}`)), numeric('max'),
    numeric('min'), numeric('mean'), numeric('deviation'), numeric('samples')];
  return resultTable('Latency', entries, columns, (entry) => [
    ...kPercents.map((percent) => percentileCell(entry, percent)),
    metricNumber(entry, ['latency', 'max_ns'], 'ns'), metricNumber(entry, ['latency', 'min_ns'], 'ns'),
    metricNumber(entry, ['latency', 'mean_ns'], 'ns'), metricNumber(entry, ['latency', 'stdev_ns'], 'ns'),
    metricNumber(entry, ['latency', 'samples'], 'count')]);
}

function bandwidthTable(entries) {
  return resultTable('Bandwidth', entries, [numeric('bandwidth'), numeric('messages per second'),
    numeric('messages'), numeric('bytes'), numeric('time')], (entry) => [
    metricNumber(entry, ['bandwidth', 'gbit_per_s'], 'gbit'),
    metricNumber(entry, ['bandwidth', 'msg_per_s'], 'perSecond'),
    metricNumber(entry, ['bandwidth', 'messages'], 'count'),
    metricNumber(entry, ['bandwidth', 'bytes'], 'amount'),
    metricNumber(entry, ['bandwidth', 'seconds'], 's')]);
}

const kCpuMembers = [['utilization', 'of one CPU', 'share'], ['us_per_message', 'per message', 'us'],
  ['cpu_s', 'CPU time', 's'], ['process_cpu_s', 'whole process', 's'], ['run_delay_s', 'waited for a CPU', 's'],
  ['voluntary_switches', 'voluntary switches', 'count'],
  ['involuntary_switches', 'involuntary switches', 'count'], ['events', 'events', 'count'],
  ['empty_wakeups', 'empty wake-ups', 'count'], ['lost_wakeups', 'lost wake-ups', 'count'],
  ['completions_per_event', 'completions per event', 'plain'], ['core', 'core', 'count'],
  ['vector_core', 'interrupt core', 'count']];

// A table of one group of metrics, a column per member: [key, head, kind].
function groupTable(caption, doc, group, members) {
  const entries = doc.entries.filter((entry) => metric(entry, group));
  if (entries.length === 0) return null;
  return resultTable(caption, entries, members.map(([, head]) => numeric(head)), (entry) =>
    members.map(([key, , kind]) => memberCell(entry, [group, key], kind)));
}

function memberCell(entry, path, kind) {
  const value = at(entry.result.metrics, path);
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return typeof value === 'string' ? value : metricNumber(entry, path, kind);
}

function resultsSection(doc) {
  const have = (group) => doc.entries.filter((entry) => metric(entry, group));
  return section('Results',
    doc.entries.length > 1 && doc.common && h('p', null, `All of: ${doc.common}.`),
    have('latency').length > 0 && latencyTable(have('latency')),
    have('latency').length > 0 && h('p', {class: 'note'},
      'The 95 % interval of a percentile is in its tooltip. – stands where the samples are too few.'),
    have('bandwidth').length > 0 && bandwidthTable(have('bandwidth')),
    folded('Load, CPU and wake-ups',
      groupTable('Load', doc, 'load', [['offered_per_s', 'offered', 'perSecond'],
        ['achieved_per_s', 'achieved', 'perSecond'], ['late_sends', 'late sends', 'count']]),
      groupTable('CPU and wake-ups of the measuring threads', doc, 'cpu', kCpuMembers)));
}

function singleCommandSections(doc) {
  return [
    section('Receiver not ready', rnrTables(doc)),
    section('Cost of calls', costFigure(doc), groupTable('Calls of verbs', doc, 'cost',
      [['ns_per_request', 'per request', 'ns'], ['calls', 'calls', 'count'],
        ['per_call_work', 'requests per call', 'count'], ['enters_kernel', 'enters kernel', ''],
        ['syscalls_per_call', 'system calls per call', 'count'],
        ['syscalls_at_most', 'at most', 'count'], ['overhead_ns', 'of that the clock', 'ns']])),
    section('Queues and threads', scaleFigure(doc), groupTable('Completion queues and threads', doc,
      'scale', [['threads', 'threads', 'count'], ['cqe', 'entries of the smallest CQ', 'count'],
        ['cores', 'CPUs', 'count'], ['speedup', 'speed-up over one thread', 'ratio'],
        ['cpu_us_per_message', 'CPU per message', 'us'],
        ['completions_per_poll', 'completions per poll', 'plain']])),
    section('Queue overrun', groupTable('More completions than the queue has room for', doc, 'overrun',
      [['cqe', 'entries', 'count'], ['outstanding', 'outstanding', 'count'],
        ['most_unpolled', 'most unpolled', 'count'], ['delivered', 'delivered', 'count'],
        ['flushed', 'flushed', 'count'], ['lost', 'lost', 'count'], ['event', 'event', ''],
        ['qp_state', 'QP state', ''], ['cq_usable', 'CQ usable after', '']])),
    countersSection(doc),
  ];
}

function rnrTables(doc) {
  const entries = doc.entries.filter((entry) => metric(entry, 'rnr'));
  if (entries.length === 0) return null;
  const attempts = entries.flatMap((entry) => metric(entry, 'rnr').attempts.map((_, i) => {
    const value = (key, kind) => metricNumber(entry, ['rnr', 'attempts', i, key], kind);
    return [entry.name, value('rnr_retry', 'count'), value('predicted_ns', 'ns'),
      value('time_to_error_ns', 'ns'), value('naks', 'count')];
  }));
  const [rows, note] = capRows(attempts);
  return [groupTable('Wait of one RNR timer', doc, 'rnr', [['nominal_ns', 'by the specification, at least', 'ns'],
    ['measured_ns', 'measured', 'ns'], ['ratio', 'ratio', 'ratio']]),
  table('Requests that met no receive until their retries were used up', ...usedColumns(['result',
    numeric('rnr_retry'), numeric('predicted, at least'), numeric('time to the error'),
    numeric('NAKs')], rows)), note];
}

function countersSection(doc) {
  const rows = doc.entries.flatMap((entry) => Object.keys(entry.result.metrics.counters || {})
    .map((name) => ({name, entry})));
  const moved = rows.filter(({name, entry}) => entry.result.metrics.counters[name] !== 0);
  const names = new Set(moved.map(({name}) => name));
  const still = [...new Set(rows.map(({name}) => name))].filter((name) => !names.has(name));
  return section('Device counters', counterTable('Counters that moved', moved),
    still.length > 0 && folded('Counters that did not move', h('p', null, still.map(clean).join(', '))));
}

function counterTable(caption, rows) {
  if (rows.length === 0) return null;
  const [shown, note] = capRows(rows.map(({name, entry}) =>
    [name, metricNumber(entry, ['counters', name], 'count'), entry.name]));
  return [table(`${caption}: change over the run`, ['counter', numeric('change'), 'result'], shown), note];
}
