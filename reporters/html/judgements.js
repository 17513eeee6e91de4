// Gates and checks: what was asked, what was seen, what came of it.

function gateRow(doc, path, outcome, name, kind, className) {
  const value = (key, kindOfValue) => number(doc, [...path, key], kindOfValue);
  return {class: className, cells: [name, badge(outcome.status), value('observed', kind),
    value('bound', kind), value('limit', kind), value('samples', 'count'),
    value('effective_samples', 'count'), value('samples_needed', 'count'), outcome.why]};
}

function gatesSection(doc) {
  const gates = doc.json.gates || [];
  const rows = gates.flatMap((gate, i) => {
    const kind = kindOfUnit(gate.unit);
    const results = gate.results || [];
    const keys = results.length > 0 ? varyingKeys(results.map((result) => result.point)) : new Set();
    return [gateRow(doc, ['gates', i], gate, h('code', null, gate.expression), kind, 'whole'),
      ...(results.length < 2 ? [] : results.map((result, j) => gateRow(doc,
        ['gates', i, 'results', j], result, [pointText(result.point, keys), result.side,
          `run ${result.run}`].filter((part) => part).join(', '), kind, 'part')))];
  });
  const [shown, note] = capRows(rows);
  const columns = ['gate', 'status', numeric('observed'), numeric('bound'), numeric('limit'),
    numeric('samples'), numeric('effective'), numeric('needed'), 'why'];
  return section('Gates', table('Assertions, each with the worst of its results first',
    ...usedColumns(columns, shown)), note, gates.length > 0 && h('p', {class: 'note'},
    'Bound: the one-sided 95 % bound that decides. Effective: as many independent samples would '
    + 'be as certain. Needed: samples in all until it is decided.'));
}

// Those that need a look come first.
const kCheckOrder = {fail: 0, deviation: 1, skip: 2, pass: 3};

function checksSection(doc) {
  const checks = [...(doc.json.checks || [])].sort((a, b) =>
    (kCheckOrder[a.status] ?? 0) - (kCheckOrder[b.status] ?? 0));
  const [rows, note] = capRows(checks.map((check) => [check.name, badge(check.status),
    check.expected, check.observed, check.why, check.source]));
  return section('Checks', table('What was checked, failures first', ...usedColumns(
    ['check', 'status', 'expected', 'observed', 'why', 'source'], rows)), note);
}
