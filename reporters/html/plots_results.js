// Charts over several results: by size, by call, by number of queues; and over several documents.

// Results that differ by size only, in groups: [{name, entries ascending by size}].
function bySize(doc, has) {
  const groups = new Map();
  for (const entry of doc.entries.filter(has)) {
    const {point, side, run, set} = entry.result;
    const rest = Object.fromEntries(Object.entries(point).filter(([key]) => key !== 'size_bytes'));
    const key = JSON.stringify([rest, side, run, set]);
    if (!groups.has(key)) groups.set(key, {rest, side, run, set, entries: []});
    groups.get(key).entries.push(entry);
  }
  const sweeps = [...groups.values()].filter((group) =>
    new Set(group.entries.map((entry) => entry.result.point.size_bytes)).size > 1);
  if (sweeps.length === 0) return [];
  const keys = varyingKeys(sweeps.map((group) => group.rest));
  for (const group of sweeps) {
    group.entries.sort((a, b) => a.result.point.size_bytes - b.result.point.size_bytes);
    const parts = [pointText(group.rest, keys)];
    if (sweeps.some((other) => other.side !== group.side)) parts.push(group.side);
    if (sweeps.some((other) => other.run !== group.run)) parts.push(`run ${group.run}`);
    if (group.set) parts.push(`set ${group.set}`);
    group.name = parts.filter((part) => part).join(', ');
  }
  return sweeps;
}

// Sizes on a scale by powers of two; size 0 stands left of 1 byte.
const sizePlace = (bytes) => (bytes === 0 ? -1 : Math.log2(bytes));

function sizeAxis(look, sizes) {
  const whole = [...new Set(sizes.filter((size) => Number.isInteger(sizePlace(size))))];
  const named = whole.length > 0 ? whole : [...new Set(sizes)];
  return axis(look, 'message size, log scale', {type: 'linear',
    min: sizePlace(Math.min(...sizes)), max: sizePlace(Math.max(...sizes)),
    ticks: {callback: (value) => bytesText(value === -1 ? 0 : Math.round(2 ** value))},
    afterBuildTicks: (scale) => {
      scale.ticks = spaced(scale, named.sort((a, b) => a - b).map((size) =>
        ({value: sizePlace(size), place: sizePlace(size)})), 60);
    }});
}

function sweepConfig(look, groups, members, valueAxis, show) {
  const sets = groups.flatMap((group, i) => members.map(([get, label], j) => ({
    ...seriesStyle(look, i * members.length + j, 3.5),
    label: [group.name, label].filter((part) => part).join(', '), spanGaps: false,
    data: group.entries.map((entry) => ({x: sizePlace(entry.result.point.size_bytes),
      y: get(entry), bytes: entry.result.point.size_bytes}))})));
  const sizes = groups.flatMap((group) => group.entries.map((entry) => entry.result.point.size_bytes));
  return {type: 'line', data: {datasets: sets}, options: {
    scales: {x: sizeAxis(look, sizes), y: valueAxis(look)},
    plugins: {tooltip: {callbacks: {
      title: (items) => (items.length ? bytesText(items[0].raw.bytes) : ''),
      label: (item) => `${item.dataset.label}: ${show(item.raw.y)}`}}},
  }};
}

function sweepFigure(doc, has, members, chart, valueAxis, show) {
  const all = bySize(doc, has);
  if (all.length === 0) return null;
  const shown = all.slice(0, Math.floor(kMostSeries / members.length));
  const sizes = shown[0].entries.map((entry) => entry.result.point.size_bytes);
  return figure(doc, {...chart,
    summary: `${sizes.length} sizes from ${bytesText(sizes[0])} to ${bytesText(sizes[sizes.length - 1])}`,
    notes: [shown.length < all.length
      ? `${shown.length} of ${all.length} series are drawn; the table of results has all.` : null],
    build: (look) => sweepConfig(look, shown, members, valueAxis, show)});
}

function sizeFigures(doc) {
  const percentile = (percent) => (entry) => metric(entry, 'latency').percentiles_ns[percent];
  return [
    sweepFigure(doc, (entry) => metric(entry, 'latency') !== null && !metric(entry, 'cost'),
      [[percentile('50'), 'p50'], [percentile('99'), 'p99']],
      {name: 'latency-by-size', title: 'Latency by message size',
        about: 'Where the line steps up, a limit was passed: inline data, the MTU, a cache.'},
      (look) => timeAxis(look, 'latency, log scale'), kinds.ns.show),
    sweepFigure(doc, (entry) => metric(entry, 'bandwidth') !== null,
      [[(entry) => metric(entry, 'bandwidth').gbit_per_s, '']],
      {name: 'bandwidth-by-size', title: 'Bandwidth by message size',
        about: 'Small messages are limited by their rate, large ones by the link or by memory.'},
      (look) => axis(look, 'Gb/s', {min: 0}), kinds.gbit.show),
  ];
}

const kMostBars = 40;

// Horizontal bars, one per entry.
function barsFigure(doc, entries, get, chart, title, show) {
  const present = entries.filter((entry) => typeof get(entry) === 'number');
  if (present.length < 2) return null;
  const shown = present.slice(0, kMostBars);
  return figure(doc, {...chart, height: 90 + shown.length * 22,
    summary: shown.map((entry) => `${entry.name} ${show(get(entry))}`).join('; '),
    notes: [leftOutNote(shown, present)],
    build: (look) => ({type: 'bar', data: {labels: shown.map((entry) => entry.name),
      datasets: [{label: title, data: shown.map(get),
        backgroundColor: faded(look.colours[0], 0.8), barPercentage: 0.8}]},
    options: {indexAxis: 'y', interaction: {axis: 'y'},
      scales: {x: axis(look, title, {min: 0}), y: labelAxis(look)},
      plugins: {legend: {display: false},
        tooltip: {callbacks: {label: (item) => show(item.raw)}}}}})});
}

// An axis of names, cut where they would take the room of the bars.
function labelAxis(look) {
  return {grid: {display: false}, ticks: {color: look.ink, autoSkip: false,
    callback(value) {
      return shorten(this.getLabelForValue(value), this.chart.width / 16);
    }}};
}

function costFigure(doc) {
  return barsFigure(doc, doc.entries.filter((entry) => metric(entry, 'cost')),
    (entry) => metric(entry, 'cost').ns_per_request,
    {name: 'cost', title: 'Cost of verb calls',
      about: 'Median time of a call, over the requests, completions or events it is for.'},
    'ns per request', kinds.ns.show);
}

function scaleFigure(doc) {
  return barsFigure(doc, doc.entries.filter((entry) => metric(entry, 'scale')),
    (entry) => (metric(entry, 'bandwidth') || {}).msg_per_s,
    {name: 'scale', title: 'Message rate by queues and threads', about: 'Longer is better.'},
    'messages per second', kinds.perSecond.show);
}

// Several documents: which of their results are about the same, by the text of point and side.
function pointsOfDocuments(docs) {
  const points = new Map();
  for (const doc of docs) {
    for (const entry of withLatency(doc)) {
      const name = `${pointText(entry.result.point)}, ${entry.result.side}`;
      if (!points.has(name)) points.set(name, new Map());
      const first = points.get(name);
      if (!first.has(doc.index)) first.set(doc.index, entry);
    }
  }
  // What most documents have stands first.
  return [...points].map(([name, entries]) => ({name, entries: [...entries.values()]}))
    .sort((a, b) => b.entries.length - a.entries.length).slice(0, kMostChoices);
}

function overlayFigure(docs) {
  const points = pointsOfDocuments(docs);
  if (points.length === 0 || points[0].entries.length < 2) return null;
  const cut = points.some((point) => point.entries.length > kMostSeries);
  return figure(null, {
    name: 'percentiles-overlay', title: 'Latency by percentile, report against report', height: 360,
    about: 'The same result of each report, its first run. Curves that differ in one run each prove '
      + 'nothing yet: runs differ by chance. verbscope compare judges that.',
    summary: points[0].entries.slice(0, kMostSeries).map((entry) =>
      `${entry.doc.name}: ${latencySummary(entry)}`).join('; '),
    choices: points.map((point) => point.name),
    notes: [cut ? `Only the first ${kMostSeries} reports are drawn; the table has all.` : null],
    build: (look, choice) => percentileConfig(look, points[choice].entries.slice(0, kMostSeries)
      .map((entry, i) => percentileSeries(look, i, entry.doc.name, metric(entry, 'latency')))),
  });
}
