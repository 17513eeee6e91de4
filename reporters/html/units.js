// Numbers for people: a unit that fits the size, four digits at most that mean something. The exact
// number stands beside it, in the title and in data-value.

function digits(value, significant = 4) {
  if (value === 0) return '0';
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  const decimals = Math.min(Math.max(significant - 1 - magnitude, 0), 6);
  const text = value.toLocaleString('en-US', {maximumFractionDigits: decimals});
  return text.replace('-', '\u2212');
}

function scaled(value, steps) {
  const size = Math.abs(value);
  for (const [least, unit] of steps) {
    if (size >= least) return `${digits(value / (least || 1))} ${unit}`;
  }
  const [least, unit] = steps[steps.length - 1];
  return `${digits(value / (least || 1))} ${unit}`;
}

const exact = (value) => Number(value).toLocaleString('en-US', {maximumFractionDigits: 12});

const kTimeSteps = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];

// Each kind of number: how it is shown, and its unit in the document.
const kinds = {
  ns: {unit: 'ns', show: (v) => (v === 0 ? '0 ns' : Math.abs(v) < 1 ? `${digits(v, 3)} ns`
    : scaled(v, kTimeSteps))},
  us: {unit: 'µs', show: (v) => kinds.ns.show(v * 1000)},
  s: {unit: 's', show: (v) => kinds.ns.show(v * 1e9)},
  hz: {unit: 'Hz', show: (v) => scaled(v, [[1e9, 'GHz'], [1e6, 'MHz'], [1e3, 'kHz'], [1, 'Hz']])},
  bytes: {unit: 'bytes', show: bytesText},
  amount: {unit: 'bytes', show: (v) => scaled(v, [[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [0, 'B']])},
  gbit: {unit: 'Gb/s', show: (v) => `${digits(v)} Gb/s`},
  perSecond: {unit: 'per second', show: (v) => (Math.abs(v) >= 1e6 ? `${digits(v / 1e6)} M/s`
    : `${Math.abs(v) >= 1000 ? exact(Math.round(v)) : digits(v)}/s`)},
  share: {unit: 'of 1', show: (v) => `${digits(v * 100, 3)} %`},
  percent: {unit: '%', show: (v) => `${digits(v, 3)} %`},
  ppm: {unit: 'ppm', show: (v) => `${digits(v, 3)} ppm`},
  ratio: {unit: '×', show: (v) => `${digits(v)} ×`},
  probability: {unit: 'probability', show: (v) => (v < 0.0001 ? '< 0.0001' : digits(v, 2))},
  count: {unit: '', show: (v) => exact(v)},
  plain: {unit: '', show: (v) => digits(v)},
};

// A size that somebody chose: never rounded.
function bytesText(value) {
  for (const [size, unit] of [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']]) {
    if (value >= size && value % size === 0) return `${exact(value / size)} ${unit}`;
  }
  return `${exact(value)} B`;
}

// The kind that a unit of a gate or of a comparison means.
function kindOfUnit(unit) {
  return {ns: 'ns', 'Gb/s': 'gbit', '/s': 'perSecond', '%': 'percent'}[unit] || 'plain';
}

// The number at `path` of document `doc`, or null where it has none. data-path says where the
// document has it.
function number(doc, path, kind) {
  const value = at(doc.json, path);
  if (typeof value !== 'number') return null;
  const {show, unit} = kinds[kind];
  return h('span', {class: 'value', 'data-value': String(value), 'data-document': doc.index,
    'data-path': JSON.stringify(path), title: `${exact(value)} ${unit}`.trim()}, show(value));
}

function at(json, path) {
  let value = json;
  for (const key of path) {
    if (value === null || value === undefined) return undefined;
    value = value[key];
  }
  return value;
}

// "12.3 µs … 13.0 µs" of two numbers that the document has.
function range(doc, lowPath, highPath, kind) {
  const low = number(doc, lowPath, kind);
  const high = number(doc, highPath, kind);
  return low && high ? h('span', {class: 'range'}, low, ' … ', high) : null;
}
