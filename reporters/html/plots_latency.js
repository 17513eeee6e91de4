// Charts of one distribution of latency: by percentile, as a histogram, over time.

const withLatency = (doc) => doc.entries.filter((entry) => metric(entry, 'latency')
  && metric(entry, 'latency').histogram.buckets.length > 0);

// How many nines a share of samples has: 0.9 is 1, 0.99 is 2. Equal distances for equal factors of
// what lies beyond, which is how tails are read.
const nines = (share) => -Math.log10(1 - share);
const kNineTicks = [[0, '0'], [50, '50'], [90, '90'], [99, '99'], [99.9, '99.9'], [99.99, '99.99'],
  [99.999, '99.999'], [99.9999, '99.9999'], [99.99999, '99.99999']]
  .map(([percent, text]) => ({value: nines(percent / 100), label: text}));

// The right edge of each bucket's step: up to this share of the samples are at most its value. The
// last one has no edge (nothing lies beyond); it is drawn to half a sample from the end.
function percentilePoints(latency) {
  const buckets = latency.histogram.buckets;
  const total = buckets.reduce((sum, [, , count]) => sum + count, 0);
  let below = 0;
  return buckets.map(([, to, count], i) => {
    below += count;
    const last = i === buckets.length - 1;
    const value = last && latency.max_ns !== null ? latency.max_ns : to;
    return {x: nines((last ? total - 0.5 : below) / total), y: Math.max(value, 1),
      beyond: total - below};
  });
}

// Beyond this many samples a part of the curve is more than an accident of the run.
const kFewBeyond = 10;

function percentileSeries(look, i, label, latency) {
  const style = seriesStyle(look, i, 0);
  const thinFrom = (context) => context.p1.raw && context.p1.raw.beyond < kFewBeyond;
  return {...style, label, data: thin(percentilePoints(latency)), stepped: 'after',
    segment: {borderColor: (context) =>
      (thinFrom(context) ? faded(style.borderColor, 0.45) : undefined)}};
}

function percentileConfig(look, series) {
  const widest = Math.max(...series.map((set) => set.data[set.data.length - 1].x), nines(0.999));
  return {type: 'line', data: {datasets: series}, options: {
    scales: {
      x: axis(look, 'percentile of the samples (distances by nines)', {type: 'linear', min: 0,
        max: widest + 0.1, ticks: {autoSkip: false, callback: nineLabel},
        afterBuildTicks: (scale) => {
          scale.ticks = narrowTicks(scale, kNineTicks.filter((tick) => tick.value <= scale.max));
        }}),
      y: timeAxis(look, 'latency, log scale'),
    },
    plugins: {tooltip: {callbacks: {
      title: (items) => (items.length ? percentText(items[0].raw) : ''),
      label: (item) => `${item.dataset.label}: ${kinds.ns.show(item.raw.y)}`}}},
  }};
}

function nineLabel(value) {
  const tick = kNineTicks.find((one) => Math.abs(one.value - value) < 1e-6);
  return tick ? tick.label : null;
}

// Labels of a narrow plot would run into each other: leave out every second one from the left.
function narrowTicks(scale, ticks) {
  const width = scale.chart.width || 800;
  const wide = ticks.length * 62 < width;
  return wide ? ticks : ticks.filter((tick) => tick.label !== '0' && tick.label !== '99.99999'
    && tick.label !== '99.999');
}

function percentText(point) {
  const beyond = 10 ** -point.x;
  return `p${((1 - beyond) * 100).toFixed(Math.min(6, Math.max(1, Math.ceil(point.x) - 1)))}, `
    + `${exact(point.beyond)} samples beyond`;
}

function percentileFigure(doc) {
  const all = withLatency(doc);
  if (all.length === 0) return null;
  const shown = choose(all, kMostSeries);
  return figure(doc, {
    name: 'percentiles', title: 'Latency by percentile', height: 300 + 20 * shown.length,
    about: 'How long all but a few took: at 99, one in a hundred took longer. '
      + `Faint where fewer than ${kFewBeyond} samples lie beyond: another run will differ there.`,
    summary: shown.map((entry) => latencySummary(entry)).join('; '),
    notes: [leftOutNote(shown, all), shown.some((entry) =>
      metric(entry, 'latency').histogram.buckets.length > kMostPoints)
      ? `Curves have at most ${exact(kMostPoints)} points.` : null],
    build: (look) => percentileConfig(look, shown.map((entry, i) =>
      percentileSeries(look, i, entry.name, metric(entry, 'latency')))),
  });
}

function latencySummary(entry) {
  const {samples, percentiles_ns: percentiles, max_ns: max} = metric(entry, 'latency');
  const stated = Object.entries(percentiles).filter(([, value]) => value !== null)
    .map(([percent, value]) => `p${percent} ${kinds.ns.show(value)}`);
  if (max !== null) stated.push(`maximum ${kinds.ns.show(max)}`);
  return `${entry.name}: ${stated.join(', ')} of ${exact(samples)} samples`;
}

const kBins = 72;

// The buckets in bins of equal width on a log scale: {x: geometric middle, y: count, from, to}.
// Never narrower than a bucket of 1 ns, which would leave gaps that are none.
function histogramBins(latency) {
  const buckets = latency.histogram.buckets;
  const low = Math.max(buckets[0][0], 1);
  const high = Math.max(buckets[buckets.length - 1][1] + 1, low + 1);
  const finest = Math.log((low + 1) / low);
  const count = Math.max(1, Math.min(kBins, Math.floor(Math.log(high / low) / finest)));
  const width = Math.log(high / low) / count;
  const bins = Array.from({length: count}, (_, i) => ({
    x: low * Math.exp((i + 0.5) * width), y: null,
    from: low * Math.exp(i * width), to: low * Math.exp((i + 1) * width)}));
  for (const [from, to, samples] of buckets) {
    const middle = Math.max((from + to + 1) / 2, low);
    const bin = bins[Math.min(count - 1, Math.floor(Math.log(middle / low) / width))];
    bin.y = (bin.y || 0) + samples;
  }
  return bins;
}

function histogramConfig(look, entry) {
  const bins = histogramBins(metric(entry, 'latency'));
  const colour = look.colours[0];
  return {type: 'bar', data: {datasets: [{label: 'samples', data: bins,
    backgroundColor: faded(colour, 0.75), borderColor: colour, borderWidth: 0,
    barPercentage: 1, categoryPercentage: 0.96, minBarLength: 2}]}, options: {
    scales: {
      x: timeAxis(look, 'latency, log scale', {min: bins[0].from, max: bins[bins.length - 1].to,
        offset: false, grid: {offset: false}}),
      y: logAxis(look, 'samples, log scale', (value) => (value < 1 ? null : exact(value)), {min: 0.5}),
    },
    plugins: {legend: {display: false}, tooltip: {callbacks: {
      title: (items) => (items.length
        ? `${kinds.ns.show(items[0].raw.from)} … ${kinds.ns.show(items[0].raw.to)}` : ''),
      label: (item) => `${exact(item.raw.y)} samples`}}},
  }};
}

function histogramFigure(doc) {
  const entries = withLatency(doc).slice(0, kMostChoices);
  if (entries.length === 0) return null;
  return figure(doc, {
    name: 'histogram', title: 'Histogram of latency',
    about: 'How often each latency came. Several hills mean several paths: caches, interrupts, '
      + 'retries. Both scales are logarithmic: a low bar is very rare.',
    summary: latencySummary(entries[0]),
    choices: entries.map((entry) => entry.name),
    build: (look, choice) => histogramConfig(look, entries[choice]),
  });
}

// A list to choose from that is longer than this is none.
const kMostChoices = 100;

function timeConfig(look, entry, members, valueAxis, show) {
  const rows = entry.result.intervals;
  const radius = rows.length > 60 ? 0 : 2.5;
  const sets = members.map(([key, label], i) => ({...seriesStyle(look, i, radius), label,
    data: rows.map((row) => ({x: (row.from_s + row.to_s) / 2, y: row[key]})), spanGaps: false}));
  return {type: 'line', data: {datasets: sets}, options: {
    scales: {x: axis(look, 'time since the first sample, seconds', {type: 'linear', min: 0}),
      y: valueAxis(look)},
    plugins: {tooltip: {callbacks: {
      title: (items) => (items.length ? `at ${digits(items[0].raw.x)} s` : ''),
      label: (item) => `${item.dataset.label}: ${show(item.raw.y)}`}}},
  }};
}

// A chart of members of the intervals, over those results that have them.
function overTime(doc, members, chart, valueAxis, show) {
  const entries = doc.entries.filter((entry) => entry.result.intervals.some((row) =>
    members.some(([key]) => typeof row[key] === 'number'))).slice(0, kMostChoices);
  if (entries.length === 0) return null;
  return figure(doc, {...chart,
    summary: `${entries[0].name}: ${exact(entries[0].result.intervals.length)} intervals`,
    choices: entries.map((entry) => entry.name),
    build: (look, choice) => timeConfig(look, entries[choice],
      members.filter(([key]) => entries[choice].result.intervals.some((row) =>
        typeof row[key] === 'number')), valueAxis, show)});
}

function latencyOverTimeFigure(doc) {
  return overTime(doc, [['p50_ns', 'p50'], ['p99_ns', 'p99'], ['max_ns', 'maximum']], {
    name: 'latency-over-time', title: 'Latency over time',
    about: 'Each point is one interval. A step or a slope means that the whole-run percentiles mix '
      + 'different states.',
  }, (look) => timeAxis(look, 'latency, log scale'), kinds.ns.show);
}

function bandwidthOverTimeFigure(doc) {
  return overTime(doc, [['gbit_per_s', 'bandwidth']], {
    name: 'bandwidth-over-time', title: 'Bandwidth over time',
    about: 'Each point is one interval; the axis begins at 0.',
  }, (look) => axis(look, 'Gb/s', {min: 0}), kinds.gbit.show);
}
