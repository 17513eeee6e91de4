// Charts: one look for all of them, light and dark, and a registry so that they can be drawn again
// when the colours change or the page goes to paper. Chart.js draws; everything here is about what.

// Okabe and Ito's colours, which stay apart for colour-blind readers, in two brightnesses. Dashes
// and point shapes differ too: a printout may have no colours.
const kColours = {
  light: ['#0072b2', '#d55e00', '#00795b', '#b0548a', '#8a6d00', '#2f7fb0', '#111111', '#777777'],
  dark: ['#56b4e9', '#ff8b3d', '#2fcf9f', '#e396c4', '#e6c84b', '#9fd5f5', '#f2f2f2', '#a5a5a5'],
};
const kDashes = [[], [7, 4], [2, 3], [10, 3, 2, 3], [5, 2], [12, 4], [1, 4], [8, 3, 2, 3, 2, 3]];
const kShapes = ['circle', 'rect', 'triangle', 'rectRot', 'crossRot', 'star', 'rectRounded', 'cross'];
const kMostSeries = 8;
const kMostPoints = 4000;  // of a series: more cannot be told apart, and costs memory
const kMostCharts = 60;    // of a page

const charts = [];  // {canvas, build, holder}
let paper = false;

function dark() {
  return !paper && matchMedia('(prefers-color-scheme: dark)').matches;
}

function theme() {
  const isDark = dark();
  return {
    colours: isDark ? kColours.dark : kColours.light,
    ink: isDark ? '#d7dde5' : '#27313d',
    faint: isDark ? '#98a4b3' : '#5b6775',
    grid: isDark ? 'rgba(255,255,255,0.10)' : 'rgba(0,0,0,0.09)',
    plane: isDark ? '#171c23' : '#ffffff',
    verdicts: isDark
      ? {worse: '#ff8b3d', better: '#56b4e9', same: '#a5a5a5', undecided: '#e6c84b'}
      : {worse: '#c44e00', better: '#0072b2', same: '#666666', undecided: '#8a6d00'},
  };
}

// `colour` with an opacity of 0 to 1.
function faded(colour, opacity) {
  return colour + Math.round(opacity * 255).toString(16).padStart(2, '0');
}

// How the series number i is drawn.
function seriesStyle(look, i, pointRadius) {
  const colour = look.colours[i % look.colours.length];
  return {borderColor: colour, backgroundColor: faded(colour, 0.5), borderWidth: 2,
    borderDash: kDashes[i % kDashes.length], pointStyle: kShapes[i % kShapes.length],
    pointRadius, pointHoverRadius: pointRadius + 3, pointBorderColor: colour, tension: 0};
}

// A figure with one chart. `chart` is {name, title, about, summary, notes, height, build}: build(look)
// gives Chart.js's configuration; with `choices`, build(look, choice) for the one that is selected.
function figure(doc, chart) {
  if (charts.length >= kMostCharts) return skippedChart(chart);
  const id = `chart-${doc ? doc.index : 'all'}-${chart.name}`;
  const canvas = h('canvas', {id, role: 'img', 'data-chart': chart.name,
    'data-document': doc ? doc.index : 'all', 'aria-label': `${chart.title}. ${chart.summary || ''}`});
  const entry = {canvas, build: chart.build, choice: 0, drawn: null};
  charts.push(entry);
  const choices = chart.choices || [];
  const select = choices.length < 2 ? null : h('label', {class: 'choice', for: `${id}-choice`},
    'Result ', h('select', {id: `${id}-choice`},
      choices.map((text, i) => h('option', {value: i}, text))));
  if (select) {
    select.querySelector('select').addEventListener('change', (event) => {
      entry.choice = Number(event.target.value);
      draw(entry);
    });
  }
  const notes = (chart.notes || []).filter((note) => note);
  return h('figure', null,
    h('figcaption', null, h('h3', null, chart.title), chart.about && h('p', null, chart.about)),
    select, h('div', {class: 'plot', style: `height:${chart.height || 300}px`}, canvas),
    notes.map((note) => h('p', {class: 'note'}, note)));
}

function skippedChart(chart) {
  return h('p', {class: 'note'}, `${chart.title}: not drawn, a page has at most ${kMostCharts} charts. `
    + 'The tables and the JSON documents have the numbers.');
}

function draw(entry) {
  if (entry.drawn) entry.drawn.destroy();
  const look = theme();
  const config = entry.build(look, entry.choice);
  config.options = withDefaults(config.options || {}, look);
  entry.drawn = new Chart(entry.canvas, config);
  entry.canvas.dataset.points = config.data.datasets
    .reduce((sum, set) => sum + set.data.filter((point) => point !== null).length, 0);
}

// Charts in closed parts of the page have no size yet; they are drawn when the part opens.
function drawVisible() {
  for (const entry of charts) {
    if (!entry.drawn && entry.canvas.closest('details:not([open])') === null) draw(entry);
  }
}

function redrawAll() {
  for (const entry of charts) if (entry.drawn) draw(entry);
}

function withDefaults(options, look) {
  const plugins = options.plugins || {};
  return {
    responsive: true, maintainAspectRatio: false, animation: false, normalized: false,
    color: look.ink, ...options,
    interaction: {mode: 'nearest', axis: 'x', intersect: false, ...options.interaction},
    plugins: {...plugins,
      legend: {position: 'top', align: 'start', ...plugins.legend, labels: {color: look.ink,
        usePointStyle: true, boxHeight: 7, padding: 10, generateLabels: (chart) => legendLabels(chart, look),
        ...(plugins.legend || {}).labels}},
      tooltip: {...plugins.tooltip}},
  };
}

// A series with points shows its point, one without shows its line.
function legendLabels(chart, look) {
  const lines = chart.data.datasets.every((set) => set.pointRadius === 0);
  chart.legend.options.labels.pointStyleWidth = lines ? 30 : undefined;
  return chart.data.datasets.map((set, datasetIndex) => ({text: shorten(set.label, chart.width / 7.5),
    datasetIndex, hidden: !chart.isDatasetVisible(datasetIndex), fontColor: look.ink,
    strokeStyle: set.borderColor, fillStyle: set.backgroundColor, lineWidth: 2,
    lineDash: lines ? set.borderDash : [], pointStyle: lines ? 'line' : set.pointStyle}));
}

function shorten(text, length) {
  const most = Math.max(12, Math.floor(length));
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

// Of ticks in ascending order those that leave each other room, on a scale of `place`.
function spaced(scale, ticks, pixels) {
  const least = pixels / Math.max(scale.chart.width, 1);
  const [low, high] = [ticks[0], ticks[ticks.length - 1]].map((tick) => tick.place);
  const kept = [];
  for (const tick of ticks) {
    const last = kept[kept.length - 1];
    if (!last || (tick.place - last.place) / (high - low || 1) >= least) kept.push(tick);
  }
  return kept;
}

// An axis: title with the unit, colours, and what else Chart.js takes.
function axis(look, title, more = {}) {
  return {...more, title: {display: true, text: title, color: look.faint},
    grid: {color: look.grid, borderColor: look.grid, ...more.grid},
    ticks: {color: look.faint, maxRotation: 0, autoSkipPadding: 12, ...more.ticks}};
}

// A logarithmic axis of times in ns.
function timeAxis(look, title, more = {}) {
  return logAxis(look, title, kinds.ns.show, more);
}

function logAxis(look, title, show, more = {}) {
  return axis(look, title, {type: 'logarithmic', afterBuildTicks: logTicks, ...more,
    ticks: {autoSkip: false, ...more.ticks, callback: (value) => show(value)}});
}

// Digits at which a logarithmic axis is labelled: the richest list that leaves labels their room.
const kLeads = [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]];

function logTicks(scale) {
  const {min, max, chart} = scale;
  const [pixels, room] = scale.isHorizontal() ? [chart.width * 0.8, 62] : [chart.height * 0.7, 20];
  const perDecade = pixels / Math.log10(max / min);
  const lead = (value) => Math.round(value / 10 ** Math.floor(Math.log10(value) + 1e-9) * 1e6) / 1e6;
  for (const leads of kLeads) {
    const ticks = scale.ticks.filter((tick) => tick.value >= min && leads.includes(lead(tick.value)));
    const tight = ticks.some((tick, i) => i > 0
      && Math.log10(tick.value / ticks[i - 1].value) * perDecade < room);
    if (ticks.length > 1 && !tight) {
      scale.ticks = ticks;
      return;
    }
  }
  // Less than one digit wide, or very many decades.
  const every = Math.ceil(Math.log10(max / min) * room / pixels);
  const decades = scale.ticks.filter((tick) => lead(tick.value) === 1);
  scale.ticks = decades.length > 1 ? decades.filter((_, i) => i % every === 0)
    : [{value: min}, {value: max}];
}

// Not more points than can be told apart: every n-th, and the last.
function thin(points) {
  if (points.length <= kMostPoints) return points;
  const step = Math.ceil(points.length / kMostPoints);
  return points.filter((_, i) => i % step === 0 || i === points.length - 1);
}
