// event-vs-poll: what the ways of waiting cost in latency and in CPU, by offered rate.

function modeNames(rows) {
  return [...new Set(rows.map((row) => row.mode))];
}

function modesConfig(look, rows, key, valueAxis, show) {
  const sets = modeNames(rows).slice(0, kMostSeries).map((mode, i) => ({
    ...seriesStyle(look, i, 4), label: clean(mode),
    data: rows.filter((row) => row.mode === mode && typeof row[key] === 'number')
      .sort((a, b) => a.offered_per_s - b.offered_per_s)
      .map((row) => ({x: row.offered_per_s, y: row[key]}))}));
  const rates = [...new Set(rows.map((row) => row.offered_per_s))].sort((a, b) => a - b);
  return {type: 'line', data: {datasets: sets.filter((set) => set.data.length > 0)}, options: {
    scales: {
      x: axis(look, 'offered messages per second, log scale', {type: 'logarithmic',
        min: rates[0] / 1.15, max: rates[rates.length - 1] * 1.15,
        ticks: {callback: (value) => kinds.perSecond.show(value)},
        afterBuildTicks: (scale) => { scale.ticks = spaced(scale,
          rates.map((value) => ({value, place: Math.log(value)})), 80); }}),
      y: valueAxis(look)},
    plugins: {tooltip: {callbacks: {
      title: (items) => (items.length ? `${kinds.perSecond.show(items[0].raw.x)} offered` : ''),
      label: (item) => `${item.dataset.label}: ${show(item.raw.y)}`}}},
  }};
}

function modeFigures(doc, all) {
  const rows = all.filter((row) => typeof row.offered_per_s === 'number');
  const names = modeNames(rows);
  const timed = (look) => timeAxis(look, 'latency, log scale');
  const cpu = (look) => axis(look, 'share of one CPU', {min: 0,
    ticks: {callback: (value) => kinds.share.show(value)}});
  return [
    ['p50_ns', 'modes-p50', 'Median latency by offered rate', 'Lower is better.', timed, kinds.ns.show],
    ['p99_ns', 'modes-p99', 'p99 latency by offered rate', 'Lower is better. Where a line turns up '
      + 'steeply, the way of waiting no longer keeps up.', timed, kinds.ns.show],
    ['utilization', 'modes-cpu', 'CPU by offered rate', "The responder's measuring thread. Busy "
      + 'polling takes a whole CPU whatever the rate.', cpu, kinds.share.show],
  ].filter(([key]) => rows.some((row) => typeof row[key] === 'number'))
    .map(([key, name, title, about, valueAxis, show]) => figure(doc, {name, title, about,
      summary: `${names.length} ways of waiting: ${names.join(', ')}`,
      notes: [names.length > kMostSeries
        ? `${kMostSeries} of ${names.length} ways are drawn; the table has all.` : null],
      build: (look) => modesConfig(look, rows, key, valueAxis, show)}));
}

function difference(doc, path, kind) {
  const middle = number(doc, [...path, 'value'], kind);
  const around = range(doc, [...path, 'low95'], [...path, 'high95'], kind);
  return middle && [middle, around && h('small', null, ' (', around, ')')];
}

function modesTable(doc, rows) {
  const columns = ['load', 'mode', numeric('p50'), numeric('p99'), numeric('p99.9'), numeric('max'),
    numeric('CPU'), numeric('CPU per message'), numeric('p50 more than busy (95 %)'),
    numeric('CPU saved (95 %)'), numeric('completions per event'), numeric('lost wake-ups'),
    numeric('achieved'), numeric('samples')];
  const cells = rows.map((row, i) => {
    const value = (key, kind) => number(doc, ['modes', 'rows', i, key], kind);
    return [row.load, row.mode, value('p50_ns', 'ns'), value('p99_ns', 'ns'),
      value('p99_9_ns', 'ns'), value('max_ns', 'ns'), value('utilization', 'share'),
      value('us_per_message', 'us'), difference(doc, ['modes', 'rows', i, 'p50_more_ns'], 'ns'),
      difference(doc, ['modes', 'rows', i, 'cpu_saved_percent'], 'percent'),
      value('completions_per_event', 'plain'), value('lost_wakeups', 'count'),
      value('achieved_per_s', 'perSecond'), value('samples', 'count')];
  });
  const [shown, note] = capRows(cells);
  return [table('Ways of waiting under each load', ...usedColumns(columns, shown)), note];
}

function modesSection(doc) {
  const modes = doc.json.modes;
  if (!modes) return null;
  const sustains = number(doc, ['modes', 'busy_sustains_per_s'], 'perSecond');
  return section('Ways of waiting',
    modes.advice.length > 0 && h('div', {class: 'advice'}, h('h3', null, 'Advice'), list(modes.advice)),
    list(modes.sentences),
    sustains && h('p', null, 'Busy polling sustains ', sustains, '.'),
    h('div', {class: 'figures'}, modeFigures(doc, modes.rows)),
    modesTable(doc, modes.rows),
    modes.unsuited.length > 0 && [h('h3', null, 'Not measured'), list(modes.unsuited)]);
}
