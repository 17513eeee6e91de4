// Two sets of reports against each other: ratios with their uncertainty, and where the distribution
// moved.

const kShapeOfVerdict = {worse: 'triangle', better: 'rectRot', same: 'circle', undecided: 'crossRot'};

function comparisonName(comparison, row) {
  const keys = varyingKeys(comparison.rows.map((other) => other.point));
  const sides = comparison.rows.some((other) => other.side !== row.side);
  return [row.metric, pointText(row.point, keys), sides ? row.side : ''].filter((part) => part)
    .map(clean).join(' · ');
}

// Per row: the band of the margin, the interval upon it, the ratio as a mark.
function ratioConfig(look, rows, names) {
  const verdictColour = (row) => look.verdicts[row.verdict] || look.ink;
  const marks = {type: 'line', label: 'ratio new / base', showLine: false, data: rows.map((row) => row.ratio),
    pointStyle: rows.map((row) => kShapeOfVerdict[row.verdict] || 'circle'), pointRadius: 7,
    pointBorderColor: rows.map(verdictColour), pointBackgroundColor: rows.map(verdictColour),
    pointBorderWidth: 2, order: 0};
  const interval = {label: '95 % interval', order: 1, barThickness: 5,
    data: rows.map((row) => (row.ratio_low === null || row.ratio_high === null ? null
      : [row.ratio_low, row.ratio_high])), backgroundColor: rows.map((row) =>
      faded(verdictColour(row), 0.7)), minBarLength: 2, grouped: false};
  const margin = {label: 'margin: smaller changes are none', order: 2, barThickness: 20, grouped: false,
    data: rows.map((row) => [1 / (1 + row.margin), 1 + row.margin]), backgroundColor: faded('#888888', 0.25)};
  return {type: 'bar', data: {labels: names, datasets: [marks, interval, margin]}, options: {
    indexAxis: 'y', interaction: {axis: 'y', mode: 'index'},
    scales: {x: ratioAxis(look, rows), y: labelAxis(look)},
    plugins: {legend: {labels: {generateLabels: () => ratioLegend(look)}, onClick: () => {}},
      tooltip: {callbacks: {label: (item) => `${item.dataset.label}: ${Array.isArray(item.raw)
        ? item.raw.map((value) => digits(value)).join(' … ') : digits(item.raw)}`}}},
  }};
}

// Linear around 1; logarithmic where something changed by more than a factor of kLinearReach.
function ratioAxis(look, rows) {
  const kLinearReach = 2;
  const values = rows.flatMap((row) => [1 / (1 + row.margin), 1 + row.margin, row.ratio,
    row.ratio_low ?? row.ratio, row.ratio_high ?? row.ratio]).filter((value) => value > 0);
  const low = Math.min(...values);
  const high = Math.max(...values);
  const title = 'new / base; 1 is no change';
  const grid = {color: (context) => (context.tick && Math.abs(context.tick.value - 1) < 1e-9
    ? look.faint : look.grid)};
  if (high > kLinearReach || low < 1 / kLinearReach) {
    return logAxis(look, `${title}; log scale`, (value) => digits(value, 3),
      {min: low / 1.2, max: high * 1.2, grid});
  }
  const reach = Math.max(0.02, high - 1, 1 - low) * 1.15;
  return axis(look, title, {min: 1 - reach, max: 1 + reach, grid,
    ticks: {includeBounds: false, callback: (value) => digits(value, 3)}});
}

function ratioLegend(look) {
  const marks = Object.entries(kShapeOfVerdict).map(([verdict, pointStyle]) => ({text: verdict,
    pointStyle, fillStyle: look.verdicts[verdict], strokeStyle: look.verdicts[verdict], lineWidth: 2,
    fontColor: look.ink}));
  return [...marks, {text: 'margin', pointStyle: 'rect', fillStyle: faded('#888888', 0.35),
    strokeStyle: 'transparent', fontColor: look.ink}];
}

function ratioFigure(doc, comparison) {
  const present = comparison.rows.filter((row) => typeof row.ratio === 'number');
  if (present.length === 0) return null;
  const shown = present.slice(0, kMostBars);
  const names = shown.map((row) => comparisonName(comparison, row));
  return figure(doc, {
    name: 'ratios', title: 'New against base', height: 110 + shown.length * 34,
    about: 'The mark is the ratio, the thin bar its 95 % interval, the grey band the margin. For times '
      + 'more is worse; for rates less is. An interval that reaches out of the band on the bad '
      + 'side without lying beyond it is undecided.',
    summary: shown.map((row, i) => `${names[i]}: ${row.verdict}, ${digits(row.ratio)}`).join('; '),
    notes: [shown.length < present.length ? `${shown.length} of ${present.length} rows are drawn.` : null],
    build: (look) => ratioConfig(look, shown, names)});
}

function comparisonTable(doc, comparison) {
  const columns = ['result', 'verdict', numeric('base'), numeric('new'), numeric('ratio'),
    numeric('95 % of the ratio'), numeric('margin'), numeric('p of "no worse"'), 'counts',
    numeric('runs'), numeric('runs needed'), 'why'];
  const cells = comparison.rows.map((row, i) => {
    const path = ['comparison', 'rows', i];
    const kind = kindOfUnit(row.unit);
    const value = (key, kindOfValue) => number(doc, [...path, key], kindOfValue);
    return [comparisonName(comparison, row), badge(row.verdict), value('base', kind),
      value('new', kind), value('ratio', 'ratio'),
      range(doc, [...path, 'ratio_low'], [...path, 'ratio_high'], 'ratio'), value('margin', 'share'),
      value('p_worse', 'probability'), row.gated ? 'yes' : 'no',
      [value('base_runs', 'count'), ' / ', value('new_runs', 'count')],
      value('runs_needed', 'count'), row.why];
  });
  const [shown, note] = capRows(cells);
  return [table('Each figure, new against base', ...usedColumns(columns, shown)), note];
}

// The shifts as one line per result, percent of change by percentile.
function shiftFigure(doc, shifts) {
  if (shifts.length === 0) return null;
  const keys = varyingKeys(shifts.map((row) => row.point));
  const groups = new Map();
  for (const row of shifts) {
    const name = [pointText(row.point, keys), row.side].filter((part) => part).join(', ');
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(row);
  }
  const percents = [...new Set(shifts.map((row) => row.percent))].sort((a, b) => a - b);
  const shown = [...groups].slice(0, kMostSeries);
  return figure(doc, {
    name: 'shifts', title: 'Where the distribution moved',
    about: 'Change of each percentile. A level line moved as a whole; one that rises at its end has '
      + 'grown a tail.',
    summary: shown.map(([name, rows]) => `${name}: ${rows.map((row) =>
      `p${row.percent} ${shiftText(row)}`).join(', ')}`).join('; '),
    notes: [shown.length < groups.size ? `${shown.length} of ${groups.size} results are drawn.` : null],
    build: (look) => ({type: 'line', data: {labels: percents.map((percent) => `p${percent}`),
      datasets: shown.map(([name, rows], i) => ({...seriesStyle(look, i, 4), label: clean(name),
        data: percents.map((percent) => shiftPercent(rows.find((row) => row.percent === percent)))}))},
    options: {scales: {x: axis(look, 'percentile'), y: axis(look, 'change, %',
      {ticks: {callback: (value) => `${value > 0 ? '+' : ''}${digits(value, 3)} %`}})},
    plugins: {tooltip: {callbacks: {label: (item) =>
      `${item.dataset.label}: ${item.raw > 0 ? '+' : ''}${digits(item.raw, 3)} %`}}}}})});
}

function shiftPercent(row) {
  return row && row.base_ns !== 0 ? (row.new_ns / row.base_ns - 1) * 100 : null;
}

function shiftText(row) {
  const change = shiftPercent(row);
  return change === null ? 'unknown' : `${change > 0 ? '+' : ''}${digits(change, 3)} %`;
}

function shiftTable(doc, shifts) {
  const keys = shifts.length > 0 ? varyingKeys(shifts.map((row) => row.point)) : new Set();
  const [rows, note] = capRows(shifts.map((row, i) => [`p${row.percent}`,
    [pointText(row.point, keys), row.side].filter((part) => part).join(', '),
    number(doc, ['comparison', 'shifts', i, 'base_ns'], 'ns'),
    number(doc, ['comparison', 'shifts', i, 'new_ns'], 'ns'), shiftText(row)]));
  return folded('Table of the shifts', table('Medians of the runs\u2019 percentiles',
    ['percentile', 'result', numeric('base'), numeric('new'), numeric('change')], rows), note);
}

function comparisonSection(doc) {
  const comparison = doc.json.comparison;
  if (!comparison) return null;
  const differing = (caption, rows) => table(caption, ['what', 'base', 'new'],
    rows.map((row) => [row.field, row.base, row.new]));
  return section('Comparison',
    facts([['base', comparison.base], ['new', comparison.new]]),
    comparison.environment.length > 0 && h('p', {class: 'warning'},
      'The sets differ in more than what was measured:'),
    differing('What differs around the measurement', comparison.environment),
    differing('Parameters that were allowed to differ', comparison.parameters),
    ratioFigure(doc, comparison),
    comparisonTable(doc, comparison),
    comparison.causes.length > 0 && [h('h3', null, 'Possible causes'), list(comparison.causes)],
    shiftFigure(doc, comparison.shifts), shiftTable(doc, comparison.shifts),
    comparison.unmatched.length > 0 && [h('h3', null, 'In one set only'), list(comparison.unmatched)]);
}
