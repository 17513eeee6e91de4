// What a page must show of a document, worked out here from the document alone: the charts by name,
// each with a function that judges the data in it. Knows nothing of the page's own code.
'use strict';

const kMostSeries = 8;
const kMostPoints = 4000;

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const fail = (text) => text;

function withBuckets(document) {
  return document.results.filter((result) => result.metrics.latency
    && result.metrics.latency.histogram.buckets.length > 0);
}

// Judges a percentile chart: a point per bucket, the last one the maximum, ascending.
function judgePercentiles(results) {
  const sent = results.filter((result) => result.side === 'requester');
  const pool = results.length > kMostSeries && sent.length > 0 ? sent : results;
  return (datasets) => {
    if (datasets.length !== Math.min(pool.length, kMostSeries)) {
      return fail(`${datasets.length} series for ${pool.length} results`);
    }
    if (pool.length > kMostSeries) return null;
    for (let i = 0; i < datasets.length; ++i) {
      const {histogram: {buckets}, max_ns: max} = pool[i].metrics.latency;
      const {data} = datasets[i];
      if (buckets.length <= kMostPoints && data.length !== buckets.length) {
        return fail(`series ${i} has ${data.length} points for ${buckets.length} buckets`);
      }
      const last = data[data.length - 1];
      if (last.y !== max) return fail(`series ${i} ends at ${last.y}, not at the maximum ${max}`);
      if (data.some((point, j) => j > 0 && (point.x <= data[j - 1].x || point.y < data[j - 1].y))) {
        return fail(`series ${i} does not ascend`);
      }
      const half = data.find((point) => point.x >= -Math.log10(0.5));
      const median = pool[i].metrics.latency.percentiles_ns['50'];
      if (median !== null && Math.abs(half.y - median) > median * 0.002 + 1) {
        return fail(`series ${i} is ${half.y} at p50, the document has ${median}`);
      }
    }
    return null;
  };
}

function judgeHistogram(result) {
  return ([{data}]) => {
    const shown = sum(data.map((bin) => bin.y || 0));
    const {samples} = result.metrics.latency;
    return shown === samples ? null : fail(`bars hold ${shown} of ${samples} samples`);
  };
}

function judgeIntervals(results, keys) {
  const result = results.find(({intervals}) => intervals.some((row) =>
    keys.some((key) => typeof row[key] === 'number')));
  if (!result) return null;
  return (datasets) => {
    const present = keys.filter((key) => result.intervals.some((row) => typeof row[key] === 'number'));
    const shown = datasets.map((set) => set.data.map((point) => point.y));
    const wanted = present.map((key) => result.intervals.map((row) => row[key]));
    return JSON.stringify(shown) === JSON.stringify(wanted) ? null : fail('does not hold the intervals');
  };
}

function sizes(results) {
  const groups = new Map();
  for (const {point, side, run, set} of results) {
    const key = JSON.stringify([{...point, size_bytes: 0}, side, run, set]);
    groups.set(key, (groups.get(key) || new Set()).add(point.size_bytes));
  }
  return [...groups.values()].filter((group) => group.size > 1);
}

function judgeSizes(results, perGroup) {
  const groups = sizes(results);
  if (groups.length === 0) return null;
  return (datasets) => {
    const shown = groups.slice(0, Math.floor(kMostSeries / perGroup));
    const wanted = sum(shown.map((group) => group.size)) * perGroup;
    const points = sum(datasets.map((set) => set.data.length));
    return points === wanted ? null : fail(`${points} points, ${wanted} results`);
  };
}

function judgeModes(modes, key) {
  const rows = modes.rows.filter((row) => row.offered_per_s !== null && row[key] !== null);
  if (rows.length === 0) return null;
  const names = [...new Set(modes.rows.filter((row) => row.offered_per_s !== null)
    .map((row) => row.mode))].slice(0, kMostSeries);
  const wanted = rows.filter((row) => names.includes(row.mode)).map((row) => row[key]).sort();
  return (datasets) => {
    const shown = datasets.flatMap((set) => set.data.map((point) => point.y)).sort();
    return JSON.stringify(shown) === JSON.stringify(wanted) ? null : fail('does not hold the rows');
  };
}

function judgeRatios(comparison) {
  const rows = comparison.rows.filter((row) => row.ratio !== null);
  return ([marks, intervals, margins]) => {
    const same = rows.every((row, i) => marks.data[i] === row.ratio
      && (row.ratio_low === null || (intervals.data[i][0] === row.ratio_low
        && intervals.data[i][1] === row.ratio_high))
      && Math.abs(margins.data[i][1] - 1 - row.margin) < 1e-9);
    return same && marks.data.length === rows.length ? null : fail('does not hold the rows');
  };
}

// Charts of a single document: name -> judge(datasets), which gives null or what is wrong.
function expectedCharts(document) {
  const charts = new Map();
  const put = (name, judge) => { if (judge) charts.set(name, judge); };
  const latency = withBuckets(document);
  if (latency.length > 0) {
    put('percentiles', judgePercentiles(latency));
    put('histogram', judgeHistogram(latency[0]));
  }
  put('latency-over-time', judgeIntervals(document.results, ['p50_ns', 'p99_ns', 'max_ns']));
  put('bandwidth-over-time', judgeIntervals(document.results, ['gbit_per_s']));
  put('latency-by-size', judgeSizes(document.results.filter((result) => result.metrics.latency
    && !result.metrics.cost), 2));
  put('bandwidth-by-size', judgeSizes(document.results.filter((result) => result.metrics.bandwidth), 1));
  if (document.modes) {
    put('modes-p50', judgeModes(document.modes, 'p50_ns'));
    put('modes-p99', judgeModes(document.modes, 'p99_ns'));
    put('modes-cpu', judgeModes(document.modes, 'utilization'));
  }
  if (document.comparison) {
    put('ratios', judgeRatios(document.comparison));
    const {shifts} = document.comparison;
    put('shifts', (datasets) => (sum(datasets.map((set) =>
      set.data.filter((value) => value !== null).length)) === shifts.length ? null : fail('loses shifts')));
  }
  const bars = (group, get) => {
    const values = document.results.filter((result) => result.metrics[group]).map(get)
      .filter((value) => typeof value === 'number');
    return values.length < 2 ? null : ([{data}]) => (data.length === Math.min(values.length, 40)
      && data.every((value) => values.includes(value)) ? null : fail(`${data.length} bars for ${values.length}`));
  };
  put('cost', bars('cost', (result) => result.metrics.cost.ns_per_request));
  put('scale', bars('scale', (result) => (result.metrics.bandwidth || {}).msg_per_s));
  return charts;
}

// Paths of numbers that the page must show somewhere. Absent ones are left out.
function requiredPaths(document) {
  const paths = [['exit_code'], ['wall_s']];
  document.results.forEach(({metrics}, i) => {
    const put = (...path) => paths.push(['results', i, 'metrics', ...path]);
    if (metrics.latency) {
      for (const percent of Object.keys(metrics.latency.percentiles_ns)) put('latency', 'percentiles_ns', percent);
      for (const key of ['max_ns', 'min_ns', 'mean_ns', 'samples']) put('latency', key);
    }
    for (const [group, keys] of Object.entries({bandwidth: ['gbit_per_s', 'msg_per_s'],
      cpu: ['utilization', 'us_per_message'], rnr: ['nominal_ns', 'measured_ns'], cost: ['ns_per_request'],
      scale: ['speedup'], overrun: ['delivered', 'lost']})) {
      if (metrics[group]) keys.forEach((key) => put(group, key));
    }
    // Those that did not move are a list of names.
    Object.entries(metrics.counters || {}).filter(([, change]) => change !== 0)
      .forEach(([name]) => put('counters', name));
  });
  document.gates.forEach((gate, i) => ['observed', 'bound', 'limit', 'samples_needed'].forEach((key) =>
    paths.push(['gates', i, key])));
  (document.modes ? document.modes.rows : []).forEach((_, i) =>
    ['p50_ns', 'p99_ns', 'max_ns', 'utilization'].forEach((key) => paths.push(['modes', 'rows', i, key])));
  (document.comparison ? document.comparison.rows : []).forEach((_, i) =>
    ['base', 'new', 'ratio', 'ratio_low', 'margin'].forEach((key) =>
      paths.push(['comparison', 'rows', i, key])));
  return paths.filter((path) => typeof path.reduce((value, key) =>
    (value === null || value === undefined ? value : value[key]), document) === 'number')
    .map((path) => JSON.stringify(path));
}

module.exports = {expectedCharts, requiredPaths};
