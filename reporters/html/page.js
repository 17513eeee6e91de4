// Puts the page together: one report in full, or several, the first ones open.

function reportBody(doc) {
  const figures = [percentileFigure(doc), histogramFigure(doc), latencyOverTimeFigure(doc),
    sizeFigures(doc), bandwidthOverTimeFigure(doc)].flat().filter((one) => one);
  return [tiles(doc), gatesSection(doc), checksSection(doc), comparisonSection(doc), modesSection(doc),
    noticesSection(doc), changesSection(doc),
    section('Charts', h('div', {class: 'figures'}, figures).hasChildNodes()
      ? h('div', {class: 'figures'}, figures) : null),
    singleCommandSections(doc), resultsSection(doc), devicesSection(doc), sidesSection(doc), saveLink(doc)];
}

// The document as it lies in the page, for programs.
function saveLink(doc) {
  const button = h('button', {type: 'button', class: 'save'}, 'Save the JSON document');
  button.addEventListener('click', () => {
    const url = URL.createObjectURL(new Blob([doc.source], {type: 'application/json'}));
    const link = h('a', {download: `verbscope-${doc.json.command}-${doc.index + 1}.json`});
    link.href = url;
    link.click();
    URL.revokeObjectURL(url);
  });
  return h('p', {class: 'screen-only'}, button);
}

// Of several reports, those that are open from the start.
const kOpenAtFirst = 2;

function oneReport(doc) {
  return h('article', {'data-report': doc.index}, verdictHead(doc, 1), reportBody(doc));
}

function severalReports(docs) {
  return [
    severalHead(docs),
    overviewSection(docs),
    section('Report against report', overlayFigure(docs), figuresTable(docs)),
    docs.map((doc, i) => h('details', {class: 'report', open: i < kOpenAtFirst, id: `report-${i}`},
      h('summary', null, badge(doc.json.verdict), ' ', doc.name, ' ',
        h('small', null, startedText(doc.json.started_at))),
      lazyReport(doc, i < kOpenAtFirst)))];
}

// The worst of their verdicts gives the colour.
const kWorstFirst = ['error', 'fail', 'inconclusive', 'pass'];

function severalHead(docs) {
  const counts = kWorstFirst.map((verdict) =>
    [verdict, docs.filter((doc) => doc.json.verdict === verdict).length]).filter(([, count]) => count > 0);
  const said = counts.map(([verdict, count]) => `${exact(count)} ${verdict}`).join(', ');
  document.title = `${exact(docs.length)} verbscope reports: ${said}`;
  const worst = counts.length > 0 ? counts[0][0] : '';
  return h('header', {class: `verdict ${worst}`, 'data-verdict': worst},
    h('h1', null, `${exact(docs.length)} verbscope reports`), h('p', {class: 'reason'}, said));
}

// A report's body is made when it is opened: two hundred at once would keep the browser busy.
function lazyReport(doc, now) {
  const article = h('article', {'data-report': doc.index});
  doc.fill = () => {
    if (article.hasChildNodes()) return;
    append(article, [verdictHead(doc, 2), reportBody(doc)]);
  };
  if (now) doc.fill();
  return article;
}

function overviewSection(docs) {
  const [rows, note] = capRows(docs.map((doc, i) => [
    h('a', {href: `#report-${i}`}, doc.name), badge(doc.json.verdict), reason(doc),
    h('span', {class: 'range'}, startedText(doc.json.started_at)), doc.json.tool.version]));
  return section('Verdicts', table('All reports', ['report', 'verdict', 'why', 'started', 'tool version'],
    rows), note);
}

function figuresTable(docs) {
  const rows = [];
  let all = 0;
  for (const doc of docs) {
    for (const entry of doc.entries) {
      if (!metric(entry, 'latency') && !metric(entry, 'bandwidth')) continue;
      if (entry.result.side === 'responder' && !metric(entry, 'bandwidth')) continue;
      if (++all > kMostRows) continue;
      const value = (path, kind) => metricNumber(entry, path, kind);
      rows.push([doc.name, pointText(entry.result.point), entry.result.side, String(entry.result.run),
        value(['latency', 'percentiles_ns', '50'], 'ns'), value(['latency', 'percentiles_ns', '99'], 'ns'),
        value(['latency', 'percentiles_ns', '99.9'], 'ns'), value(['latency', 'max_ns'], 'ns'),
        value(['bandwidth', 'gbit_per_s'], 'gbit'), value(['bandwidth', 'msg_per_s'], 'perSecond')]);
    }
  }
  return [table('Results by report', ...usedColumns(['report', 'result', 'side', numeric('run'),
    numeric('p50'), numeric('p99'), numeric('p99.9'), numeric('max'), numeric('bandwidth'),
    numeric('messages per second')], rows)),
  all > kMostRows && h('p', {class: 'note'}, `The first ${exact(kMostRows)} of ${exact(all)} rows.`)];
}

function onOpen(docs, details) {
  const report = details.querySelector('article[data-report]');
  if (report) docs[Number(report.dataset.report)].fill();
  drawVisible();
}

// Paper has no details to open, is white whatever the screen is, and is about as wide as this.
const kPaperWidth = 680;

function goToPaper(docs) {
  paper = true;
  if (docs.length > 1) docs.slice(0, kMostOnPaper).forEach((doc) => doc.fill());
  for (const details of document.querySelectorAll('details:not([open])')) {
    if (details.classList.contains('report') && !details.querySelector('article').hasChildNodes()) continue;
    details.open = true;
    details.dataset.openedForPaper = '';
  }
  document.body.style.width = `${kPaperWidth}px`;
  redrawAll();
  drawVisible();
}

const kMostOnPaper = 20;

function leavePaper() {
  paper = false;
  document.body.style.width = '';
  for (const details of document.querySelectorAll('details[data-opened-for-paper]')) {
    details.open = false;
    delete details.dataset.openedForPaper;
  }
  redrawAll();
}

function start() {
  const docs = readDocuments();
  nameDocuments(docs);
  docs.forEach(nameResults);
  const page = document.querySelector('main');
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  append(page, docs.length === 1 ? [oneReport(docs[0])] : severalReports(docs));
  if (docs.length === 1) {
    document.title = clean(`${docs[0].json.verdict.toUpperCase()} ${docs[0].name} – verbscope`);
  }
  drawVisible();
  page.addEventListener('toggle', (event) => onOpen(docs, event.target), {capture: true});
  page.addEventListener('click', (event) => {
    const link = event.target.closest('a[href^="#report-"]');
    if (link) document.getElementById(link.getAttribute('href').slice(1)).open = true;
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redrawAll);
  addEventListener('beforeprint', () => goToPaper(docs));
  addEventListener('afterprint', leavePaper);
  document.documentElement.dataset.ready = '';
}

start();
