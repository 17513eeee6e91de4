// Elements of the page. Text enters it as text nodes and attributes only, never as markup, so that
// no name in a document can become part of the page's structure.

// What a reader sees of a text: no control characters, and none that reorder what stands around it.
function clean(text) {
  return String(text)
    .replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ')
    .replace(/[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, '');
}

// An element: h('p', {class: 'why'}, 'text', child, [more children], null).
function h(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    const text = value === true ? '' : String(value);
    element.setAttribute(key, key.startsWith('data-') ? text : clean(text));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === '') continue;
    element.append(child instanceof Node ? child : clean(child));
  }
}

let lastId = 0;

// A section with its heading, or nothing where there is nothing to put under it.
function section(title, ...children) {
  const present = children.flat(Infinity).filter((child) => child);
  if (present.length === 0) return null;
  const id = `section-${++lastId}`;
  return h('section', {'aria-labelledby': id}, h('h2', {id}, title), present);
}

// A table that scrolls within itself. `columns` are the heads: texts, or {text, number: true}.
// `rows` are lists of cells; a cell is a text, an element or null: of a number, "no value".
function table(caption, columns, rows) {
  if (rows.length === 0) return null;
  const heads = columns.map((column) => (typeof column === 'string' ? {text: column} : column));
  const body = rows.map((row) => tableRow(heads, row.cells || row, row.class));
  const classes = ['scroll', rows.length <= 12 && 'brief', heads.length > 8 && 'wide'];
  return h('div', {class: classes.filter((one) => one).join(' '), tabindex: '0', role: 'region',
    'aria-label': caption},
    h('table', null,
      h('caption', null, caption),
      h('thead', null, h('tr', null, heads.map((head) =>
        h('th', {scope: 'col', class: head.number ? 'number' : null}, head.text)))),
      h('tbody', null, body)));
}

function tableRow(heads, cells, className) {
  return h('tr', {class: className}, cells.map((cell, i) => {
    const isNumber = heads[i] && heads[i].number;
    const length = typeof cell === 'string' ? cell.length : 20;
    const attributes = {class: isNumber ? 'number' : length > 24 ? 'long' : length < 15 ? 'short' : null};
    if (i === 0) attributes.scope = 'row';
    return h(i === 0 ? 'th' : 'td', attributes, cell ?? (isNumber ? none() : null));
  }));
}

// A column of numbers.
function numeric(text) {
  return {text, number: true};
}

// The columns in which some row has something, so that a table has none that is empty throughout.
function usedColumns(columns, rows) {
  const used = columns.map((_, i) => rows.some((row) => {
    const cell = (row.cells || row)[i];
    return cell !== null && cell !== undefined && cell !== '';
  }));
  const pick = (cells) => cells.filter((_, i) => used[i]);
  return [pick(columns), rows.map((row) =>
    (row.cells ? {cells: pick(row.cells), class: row.class} : pick(row)))];
}

function none() {
  return h('span', {class: 'none', title: 'no value: not known, or too few samples to state it'},
    h('span', {'aria-hidden': 'true'}, '–'), h('span', {class: 'unseen'}, 'no value'));
}

// A status in its colour, with a sign for who does not see colours.
function badge(status) {
  const signs = {pass: '✓', fail: '✗', error: '✗', inconclusive: '?', skip: '–', deviation: '≠',
    worse: '▲', better: '▼', same: '=', undecided: '?'};
  return h('span', {class: `badge ${status in signs ? status : 'other'}`},
    h('span', {'aria-hidden': 'true'}, signs[status] || '•', ' '), status);
}

function list(texts) {
  return texts.length === 0 ? null : h('ul', null, texts.map((text) => h('li', null, text)));
}

// A list of names with their values; pairs without a value are left out.
function facts(pairs) {
  const present = pairs.filter(([, value]) => value !== null && value !== undefined && value !== '');
  return present.length === 0 ? null : h('dl', {class: 'facts'}, present.map(([name, value]) =>
    h('div', null, h('dt', null, name), h('dd', null, value))));
}

// Closed on the screen, open on paper.
function folded(title, ...children) {
  const present = children.flat(Infinity).filter((child) => child);
  return present.length === 0 ? null
    : h('details', {class: 'folded'}, h('summary', null, title), present);
}
