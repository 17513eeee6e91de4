// What the documents say about their results: names for people, and which of them a chart is about.

// The documents of the page, in order: {index, json, name}.
function readDocuments() {
  return [...document.querySelectorAll('script[type="application/json"]')].map((element, index) => ({
    index, json: JSON.parse(element.textContent), name: '', source: element.textContent}));
}

// Names that tell documents apart: command and host, and what else is needed.
function nameDocuments(docs) {
  const plain = docs.map(({json}) => `${json.command} ${json.local.host || ''}`.trim());
  docs.forEach((doc, i) => {
    const alike = plain.filter((name) => name === plain[i]).length;
    doc.name = clean(alike > 1 ? `${plain[i]} #${i + 1}` : plain[i]);
  });
}

const kPointTexts = {
  op: (v) => v,
  size_bytes: (v) => bytesText(v),
  qps: (v) => `${v} QP${v === 1 ? '' : 's'}`,
  cqs: (v) => `${v} CQ${v === 1 ? '' : 's'}`,
  threads: (v) => `${v} thread${v === 1 ? '' : 's'}`,
  cq_depth: (v) => `${exact(v)} entries`,
  wait: (v) => v,
  spin_ns: (v) => `spin ${kinds.ns.show(v)}`,
  rate_per_s: (v) => `${kinds.perSecond.show(v)} offered`,
  busy_share_percent: (v) => `${v} % of busy`,
  tx_depth: (v) => `${v} in flight`,
  timer_code: (v) => `timer code ${v}`,
  imm: (v) => (v ? 'with immediate' : 'without immediate'),
  bidirectional: (v) => (v ? 'both directions' : 'one direction'),
  post_list: (v) => `${v} per post`,
  inline: (v) => (v ? 'inline' : 'not inline'),
  signal_every: (v) => `one in ${v} signalled`,
};

function pointPart(key, value) {
  return key in kPointTexts ? kPointTexts[key](value)
    : typeof value === 'boolean' ? `${key} ${value ? 'yes' : 'no'}` : String(value);
}

// The point in words; `keys` limits it to some members.
function pointText(point, keys = null) {
  return clean(Object.entries(point)
    .filter(([key]) => !keys || keys.has(key))
    .map(([key, value]) => pointPart(key, value)).join(', '));
}

// The members of a point that are not the same in all of `points`.
function varyingKeys(points) {
  const keys = new Set(points.flatMap((point) => Object.keys(point)));
  return new Set([...keys].filter((key) => {
    const first = JSON.stringify(points[0][key]);
    return points.some((point) => JSON.stringify(point[key]) !== first);
  }));
}

// For each result, what sets it apart from the other ones of its document.
function nameResults(doc) {
  const results = doc.json.results;
  doc.entries = results.map((result, index) => ({doc, result, index, path: ['results', index]}));
  if (results.length === 0) return;
  const keys = varyingKeys(results.map((result) => result.point));
  const vary = (get) => results.some((result) => get(result) !== get(results[0]));
  const sides = vary((result) => result.side);
  const runs = vary((result) => result.run);
  for (const entry of doc.entries) {
    const {point, side, run, set} = entry.result;
    const parts = [pointText(point, keys)];
    if (set) parts.push(`set ${set}`);
    if (sides) parts.push(side);
    if (runs) parts.push(`run ${run}`);
    entry.name = clean(parts.filter((part) => part).join(', ')) || pointText(point);
  }
  // Said once, above the table: what they have in common.
  const common = new Set(Object.keys(results[0].point).filter((key) => !keys.has(key)));
  doc.common = pointText(results[0].point, common);
}

function metric(entry, group) {
  return entry.result.metrics[group] || null;
}

// At most `limit` of the entries: the requester's before all others, and then spread over the list.
function choose(entries, limit) {
  const sent = entries.filter((entry) => entry.result.side === 'requester');
  let pool = entries.length > limit && sent.length > 0 ? sent : entries;
  if (pool.length > limit) {
    const step = (pool.length - 1) / (limit - 1);
    pool = Array.from({length: limit}, (_, i) => pool[Math.round(i * step)]);
  }
  return pool;
}

function leftOutNote(shown, all) {
  return shown.length === all.length ? null
    : `${shown.length} of ${exact(all.length)} results are drawn; the table of results has `
      + `${all.length > kMostRows ? 'more' : 'all'}.`;
}

// A table longer than this takes a browser long to lay out, and nobody reads it.
const kMostRows = 500;

function capRows(rows) {
  return rows.length <= kMostRows ? [rows, null]
    : [rows.slice(0, kMostRows), h('p', {class: 'note'},
      `The first ${exact(kMostRows)} of ${exact(rows.length)} rows; the JSON document has all.`)];
}
