// The top of a report: the verdict, why in one sentence, and what was run.

function reason(doc) {
  const {json} = doc;
  if (json.error) return errorSentence(json.error);
  const sentences = [judged(json.gates, 'gate', gateText),
    judged(json.checks, 'check', (check) => check.name), comparedSentence(json.comparison)];
  const said = sentences.filter((sentence) => sentence);
  if (said.length > 0) return said.join(' ');
  if (json.results.some((result) => !result.complete)) {
    return 'The run broke off; what is here was measured until then.';
  }
  return {pass: 'The run completed.', fail: 'A verification failed.',
    inconclusive: 'The samples do not suffice for a verdict.'}[json.verdict] || '';
}

function gateText(gate) {
  const {show} = kinds[kindOfUnit(gate.unit)];
  const limit = typeof gate.limit === 'number' ? `, limit ${show(gate.limit)}` : '';
  return typeof gate.observed === 'number' ? `${gate.expression} (observed ${show(gate.observed)}${limit})`
    : gate.expression;
}

// A text of the document as a sentence of its own.
function sentence(text) {
  const whole = clean(text);
  const begun = /^[a-z]+[ ,]/.test(whole) ? whole[0].toUpperCase() + whole.slice(1) : whole;
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

function errorSentence(error) {
  const side = error.side === 'peer' ? 'On the other side' : 'On this side';
  const message = clean(error.message);
  const parts = [`${side}: ${/[.!?]$/.test(message) ? message : `${message}.`}`];
  if (error.cause) parts.push(sentence(error.cause));
  if (error.status) parts.push(`Completion status ${clean(error.status)}.`);
  return parts.join(' ');
}

function judged(rows, noun, name) {
  if (!rows || rows.length === 0) return null;
  const bad = rows.filter((row) => row.status === 'fail');
  const unsure = rows.filter((row) => row.status === 'inconclusive');
  const names = (some) => some.slice(0, 3).map((row) => clean(name(row))).join(', ')
    + (some.length > 3 ? ` and ${some.length - 3} more` : '');
  const all = `${exact(rows.length)} ${noun}${rows.length === 1 ? '' : 's'}`;
  if (bad.length > 0) return `${bad.length} of ${all} failed: ${names(bad)}.`;
  if (unsure.length > 0) return `${unsure.length} of ${all} could not be decided: ${names(unsure)}.`;
  const passed = rows.filter((row) => row.status === 'pass').length;
  if (passed === rows.length) return `${all} passed.`;
  const others = [...new Set(rows.map((row) => row.status))].filter((status) => status !== 'pass')
    .map((status) => `${rows.filter((row) => row.status === status).length} `
      + `${{skip: 'skipped', deviation: 'deviating'}[status] || clean(status)}`);
  return `${passed} of ${all} passed, ${others.join(', ')}.`;
}

function comparedSentence(comparison) {
  if (!comparison) return null;
  const counted = comparison.rows.filter((row) => row.gated);
  const count = (verdict) => counted.filter((row) => row.verdict === verdict).length;
  const parts = ['worse', 'undecided', 'better', 'same'].filter((verdict) => count(verdict) > 0)
    .map((verdict) => `${count(verdict)} ${verdict}`);
  return parts.length === 0 ? 'No figure that counts could be compared.'
    : `Of ${counted.length} figure${counted.length === 1 ? '' : 's'} that count: ${parts.join(', ')}.`;
}

// As a shell would take it back. Lines break between arguments, not at their hyphens.
function commandLine(argv) {
  return argv.flatMap((word) => {
    const text = clean(word);
    const quoted = /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
    return [h('span', {class: 'argument'}, quoted), ' '];
  });
}

function startedText(startedAt) {
  const time = new Date(startedAt);
  return Number.isNaN(time.getTime()) ? startedAt
    : `${time.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

// Nothing proven worse is no proof that nothing is: a comparison without a decision does not look
// like one that passed.
function undecided(json) {
  return json.verdict === 'pass' && json.comparison
    && json.comparison.rows.some((row) => row.gated && row.verdict === 'undecided');
}

function verdictHead(doc, level) {
  const {json} = doc;
  const open = undecided(json);
  const look = open ? 'inconclusive' : json.verdict;
  const sign = {pass: '✓', fail: '✗', error: '✗', inconclusive: '?'}[look];
  const facing = json.remote && !json.loopback
    ? `${json.local.host || '?'} and ${json.remote.host || '?'}` : json.local.host;
  return h('header', {class: `verdict ${look}`, 'data-verdict': json.verdict},
    h(`h${level}`, null, h('span', {class: 'sign', 'aria-hidden': 'true'}, sign), ' ',
      h('span', {class: 'word'}, open ? 'UNDECIDED' : json.verdict.toUpperCase()), ' ', h('span', {class: 'of'}, json.command)),
    h('p', {class: 'reason'}, reason(doc)),
    json.error && json.error.next_step && h('p', {class: 'next'}, h('b', null, 'Next: '),
      sentence(json.error.next_step)),
    h('p', {class: 'command'}, h('code', null, commandLine(json.argv))),
    facts([['started', startedText(json.started_at)], ['took', number(doc, ['wall_s'], 's')],
      ['hosts', json.loopback ? `${facing} (loopback)` : facing],
      ['exit code', number(doc, ['exit_code'], 'count')],
      ['tool', `${json.tool.name} ${json.tool.version}${json.tool.build ? ` (${json.tool.build})` : ''}`]]));
}

// The numbers that somebody looks for first, of the first result that has them.
function tiles(doc) {
  if (doc.json.modes || doc.json.comparison) return null;
  const entry = doc.entries.find((one) => metric(one, 'latency') && !metric(one, 'cost'))
    || doc.entries.find((one) => metric(one, 'bandwidth'));
  if (!entry || metric(entry, 'scale')) return null;
  const value = (path, kind) => number(doc, [...entry.path, 'metrics', ...path], kind);
  const shown = [['p50', value(['latency', 'percentiles_ns', '50'], 'ns')],
    ['p99', value(['latency', 'percentiles_ns', '99'], 'ns')],
    ['p99.9', value(['latency', 'percentiles_ns', '99.9'], 'ns')],
    ['maximum', value(['latency', 'max_ns'], 'ns')],
    ['bandwidth', value(['bandwidth', 'gbit_per_s'], 'gbit')],
    ['messages', value(['bandwidth', 'msg_per_s'], 'perSecond')],
    ['samples', value(['latency', 'samples'], 'count')],
    ['CPU', value(['cpu', 'utilization'], 'share')]].filter(([, number]) => number);
  if (shown.length === 0) return null;
  const of = doc.entries.length > 1 ? `of ${pointText(entry.result.point)}, ${entry.result.side}`
    : `of ${pointText(entry.result.point)}`;
  return h('div', {class: 'headline'},
    h('dl', {class: 'tiles'}, shown.map(([name, number]) =>
      h('div', null, h('dt', null, name), h('dd', null, number)))),
    h('p', {class: 'note'}, definitionText(entry), of));
}

const kDefinitions = {
  half_round_trip: 'Latency is half of a round trip, ', round_trip: 'Latency is a whole round trip, ',
  response_time: 'Latency is counted from the intended send time, ', call: 'Latency is the time of a call, ',
  after_receive: 'Latency is the time after the receive, '};

function definitionText(entry) {
  const latency = metric(entry, 'latency');
  return latency ? kDefinitions[latency.definition] || `Latency is ${latency.definition}, ` : 'Figures ';
}
