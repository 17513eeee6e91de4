// The checks that run.sh starts: node html_suite.js CACHE PROGRAM RECORDS [FOLDER]
'use strict';

const fs = require('fs');
const os = require('os');
const path = require('path');
const {execFileSync} = require('child_process');
const made = require('./documents.js');
const {expectedCharts, requiredPaths} = require('./expected.js');

const [cache, program, records, folder] = process.argv.slice(2);
const puppeteer = require(path.join(cache, 'node_modules', 'puppeteer-core'));
const kDesktop = {width: 1280, height: 900};
const kMostRows = 500;  // of a table of the page
const kPhone = {width: 375, height: 800, deviceScaleFactor: 2};

let failures = 0;

function report(name, problems) {
  if (problems.length === 0) return console.log(`ok ${name}`);
  ++failures;
  return console.log(`FAIL ${name}: ${problems.slice(0, 4).join('; ')}`);
}

// Documents by name: the stored ones, those made from them, and what the program measures now.
function collect(work) {
  const documents = new Map();
  for (const file of fs.readdirSync(records).filter((one) => one.endsWith('.json')).sort()) {
    documents.set(file.replace('.json', ''), JSON.parse(fs.readFileSync(path.join(records, file))));
  }
  const base = documents.get('send-lat');
  for (const name of ['comparison', 'gates', 'hostile']) documents.set(name, made[name](base));
  documents.set('many', made.many(base, 2000));
  const soft = ['--loopback', '--device', 'soft', '--json'];
  for (const [name, args] of Object.entries({
    'soft-latency': ['send-lat', '-D', '400ms', ...soft],
    'soft-sweep': ['send-lat', '-s', '64:16384', '-D', '50ms', ...soft],
    'soft-bandwidth': ['send-bw', '-s', '1K:64K', '-D', '200ms', ...soft],
    'soft-cq-scale': ['cq-scale', '--quick', ...soft],
    'soft-cq-overrun': ['cq-overrun', '--quick', ...soft],
    'soft-verb-cost': ['verb-cost', '--quick', '--device', 'soft', '--json'],
    'soft-rnr': ['rnr-test', '--quick', ...soft],
    'soft-modes': ['event-vs-poll', '--quick', ...soft],
  })) documents.set(name, measured(name, args));
  for (const [name, document] of documents) {
    fs.writeFileSync(path.join(work, `${name}.json`), JSON.stringify(document));
  }
  return documents;
}

// A verdict other than pass is no concern here; a run without a document is.
function measured(name, args) {
  const options = {encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'ignore'], timeout: 120000};
  try {
    return JSON.parse(execFileSync(program, args, options));
  } catch (error) {
    if (error.stdout) return JSON.parse(error.stdout);
    throw new Error(`${name}: ${error.message}`);
  }
}

function makePage(work, name, names) {
  const page = path.join(work, `${name}.html`);
  execFileSync(program, ['report', ...names.map((one) => path.join(work, `${one}.json`)), '--html', page],
    {stdio: ['ignore', 'ignore', 'inherit']});
  return page;
}

async function open(browser, file, viewport, scheme) {
  const page = await browser.newPage();
  page.problems = [];
  page.on('console', (message) => {
    if (['error', 'warning', 'warn'].includes(message.type())) page.problems.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => page.problems.push(`script: ${error.message}`));
  page.on('request', (request) => {
    const url = request.url();
    if (url !== `file://${file}` && !url.startsWith('data:')) page.problems.push(`request: ${url}`);
  });
  await page.setViewport(viewport);
  await page.emulateMediaFeatures([{name: 'prefers-color-scheme', value: scheme}]);
  await page.goto(`file://${file}`, {waitUntil: 'load', timeout: 120000});
  const ready = await page.evaluate(() => 'ready' in document.documentElement.dataset);
  if (!ready) page.problems.push('the page did not come up');
  if (await page.evaluate(() => 'broken' in window || document.querySelector('main img, main script'))) {
    page.problems.push('a text of the document became markup');
  }
  return page;
}

// Every number that says where it comes from, against the document as it was given.
async function valueProblems(page, documents) {
  const values = await page.$$eval('[data-path]', (elements) => elements.map((element) => [
    Number(element.dataset.document), element.dataset.path, element.dataset.value, element.textContent]));
  const problems = [];
  for (const [index, where, value, shown] of values) {
    const wanted = JSON.parse(where).reduce((object, key) => object && object[key], documents[index]);
    if (typeof wanted !== 'number' || Number(value) !== wanted) problems.push(`${where} is ${value}, not ${wanted}`);
    if (!/\d/.test(shown)) problems.push(`${where} shows "${shown}"`);
  }
  const there = new Set(values.map(([index, where]) => `${index} ${where}`));
  documents.forEach((document, index) => {
    if (document.results.length > kMostRows) return;
    for (const where of requiredPaths(document)) {
      if (!there.has(`${index} ${where}`)) problems.push(`${where} is not shown`);
    }
  });
  return [values.length, problems];
}

function embeddedDocument(page) {
  return page.$eval('script[type="application/json"]', (one) => JSON.parse(one.textContent));
}

async function embeddedProblems(page, documents) {
  const texts = await page.$$eval('script[type="application/json"]', (all) => all.map((one) => one.textContent));
  if (texts.length !== documents.length) return [`${texts.length} documents in the page`];
  return texts.map((text, i) => [JSON.parse(text), documents[i]])
    .filter(([inside, given]) => inside.results.length !== given.results.length
      || JSON.stringify(inside.results.map((one) => one.metrics.latency && one.metrics.latency.histogram))
      !== JSON.stringify(given.results.map((one) => one.metrics.latency && one.metrics.latency.histogram)))
    .map(() => 'a document in the page is not the one given');
}

async function chartProblems(page, document) {
  const wanted = expectedCharts(document);
  const shown = await page.$$eval('canvas[data-chart]', (all) => all.map((canvas) => {
    const chart = Chart.getChart(canvas);
    return {name: canvas.dataset.chart, label: canvas.getAttribute('aria-label') || '',
      sets: chart ? chart.data.datasets.map((set) => ({data: set.data})) : null,
      wide: canvas.clientWidth, high: canvas.clientHeight};
  }));
  const problems = [];
  for (const [name, judge] of wanted) {
    const chart = shown.find((one) => one.name === name);
    const wrong = !chart ? 'is missing' : !chart.sets ? 'is not drawn' : judge(chart.sets);
    if (wrong) problems.push(`chart ${name} ${wrong}`);
  }
  for (const chart of shown) {
    if (!wanted.has(chart.name)) problems.push(`chart ${chart.name} is not expected`);
    if (chart.label.length < 10) problems.push(`chart ${chart.name} has no words for who cannot see it`);
    if (chart.wide < 200 || chart.high < 100) problems.push(`chart ${chart.name} is ${chart.wide} x ${chart.high}`);
  }
  return [wanted.size, problems];
}

// Nothing but tables, within their own frame, may be wider than the window.
async function widthProblems(page) {
  return page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth > width) {
      const wide = [...document.querySelectorAll('body *')].find((element) =>
        !element.closest('.scroll') && element.getBoundingClientRect().right > width + 1);
      return [`page is ${document.documentElement.scrollWidth} px wide in ${width}, by ${wide
        ? wide.outerHTML.slice(0, 80) : '?'}`];
    }
    return [];
  });
}

async function structureProblems(page, document) {
  return page.evaluate((verdict) => {
    const problems = [];
    const head = document.querySelector('.verdict');
    if (head.dataset.verdict !== verdict) problems.push(`the verdict shown is ${head.dataset.verdict}`);
    if (document.querySelectorAll('h1').length !== 1) problems.push('not one h1');
    if (document.querySelector('table:not(:has(caption))')) problems.push('a table without caption');
    if (document.querySelector('section:not(:has(h2))')) problems.push('a section without heading');
    for (const section of document.querySelectorAll('section')) {
      if (section.children.length < 2) problems.push(`nothing under ${section.textContent.slice(0, 40)}`);
    }
    // Values of the script that no reader should see.
    const leak = document.querySelector('main').innerText
      .match(/.{0,30}(undefined|NaN|\[object|null|[a-z]false).{0,20}/);
    if (leak) problems.push(`shows "${leak[0]}"`);
    return problems;
  }, document.verdict);
}

// A window as high as the page, and a moment for the charts: a screenshot of the full page would
// change the size while they are painted.
async function shoot(page, name) {
  if (!folder) return;
  const viewport = page.viewport();
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  await page.setViewport({...viewport, height: Math.min(height, 12000)});
  await new Promise((resolve) => { setTimeout(resolve, 300); });
  await page.screenshot({path: path.join(folder, `${name}.png`)});
  await page.setViewport(viewport);
}

async function checkSingle(browser, work, name, document) {
  const file = makePage(work, name, [name]);
  let page = await open(browser, file, kDesktop, 'light');
  // Hostile names of counters come out printable, so that the page's own document has to do.
  const given = name === 'hostile' ? await embeddedDocument(page) : document;
  const [values, wrong] = await valueProblems(page, [given]);
  report(`${name}: ${values} values are those of the document`, wrong);
  report(`${name}: the document is in the page`, await embeddedProblems(page, [document]));
  const [charts, missing] = await chartProblems(page, document);
  report(`${name}: ${charts} charts hold the data`, missing);
  report(`${name}: structure`, await structureProblems(page, document));
  const narrow = [...await widthProblems(page)];
  await shoot(page, `${name}-desktop-light`);
  const before = await chartColours(page);
  await page.emulateMediaFeatures([{name: 'prefers-color-scheme', value: 'dark'}]);
  const after = await changedColours(page, before);
  report(`${name}: charts change with the colour scheme`,
    before.length > 0 && before.join() === after.join() ? ['they keep their colours'] : []);
  await shoot(page, `${name}-desktop-dark`);
  if (folder) await page.pdf({path: path.join(folder, `${name}.pdf`), format: 'A4', timeout: 120000});
  const quiet = [...page.problems];
  await page.close();
  page = await open(browser, file, kPhone, 'dark');
  narrow.push(...await widthProblems(page));
  await shoot(page, `${name}-phone-dark`);
  report(`${name}: no page is wider than its window`, narrow);
  report(`${name}: no errors, no requests`, [...quiet, ...page.problems]);
  await page.close();
}

function chartColours(page) {
  return page.$$eval('canvas[data-chart]', (all) => all.map((canvas) =>
    Chart.getChart(canvas) && Chart.getChart(canvas).options.color));
}

// The page hears of a change of scheme a moment later.
async function changedColours(page, before) {
  for (let i = 0; i < 50; ++i) {
    const now = await chartColours(page);
    if (now.join() !== before.join() || before.length === 0) return now;
    await new Promise((resolve) => { setTimeout(resolve, 40); });
  }
  return before;
}

async function checkSeveral(browser, work, name, names, documents) {
  const file = makePage(work, name, names);
  const page = await open(browser, file, kDesktop, 'light');
  await page.$$eval('details.report', (all) => all.forEach((one) => { one.open = true; }));
  await page.waitForFunction(() => [...document.querySelectorAll('article[data-report]')]
    .every((article) => article.hasChildNodes()));
  const [values, wrong] = await valueProblems(page, names.map((one) => documents.get(one)));
  report(`${name}: ${values} values are those of the documents`, wrong);
  const overlay = await page.$eval('canvas[data-chart="percentiles-overlay"]', (canvas) =>
    Chart.getChart(canvas).data.datasets.map((set) => set.data.length));
  report(`${name}: the overlay has a curve per report`, overlay.length >= 2
    && overlay.every((points) => points > 10) ? [] : [`its curves have ${overlay.join()} points`]);
  const narrow = await widthProblems(page);
  await shoot(page, `${name}-desktop-light`);
  await page.setViewport(kPhone);
  narrow.push(...await widthProblems(page));
  await shoot(page, `${name}-phone-light`);
  report(`${name}: no page is wider than its window`, narrow);
  report(`${name}: no errors, no requests`, page.problems);
  await page.close();
}

// On paper everything is open, in light colours, and no chart is wider than the sheet.
async function checkPaper(browser, work) {
  const page = await open(browser, makePage(work, 'paper', ['gates']), kDesktop, 'dark');
  await page.emulateMediaType('print');
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  const problems = await page.evaluate(() => [
    document.querySelector('details:not([open])') && 'a part is closed',
    getComputedStyle(document.body).backgroundColor !== 'rgb(255, 255, 255)' && 'the page is not white',
    [...document.querySelectorAll('canvas')].some((canvas) => canvas.clientWidth > 700) && 'a chart is too wide',
    [...document.querySelectorAll('canvas')].some((canvas) =>
      Chart.getChart(canvas).options.color !== '#27313d') && 'a chart is not in light colours',
  ].filter((problem) => problem));
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
  if (!await page.$('details:not([open])')) problems.push('the parts stay open afterwards');
  report('paper', problems);
  await page.close();
}

async function main() {
  const work = fs.mkdtempSync(path.join(os.tmpdir(), 'verbscope-report-'));
  if (folder) fs.mkdirSync(folder, {recursive: true});
  const browser = await puppeteer.launch({executablePath: '/usr/bin/chromium', headless: true,
    protocolTimeout: 180000, args: ['--no-sandbox', '--disable-gpu']});
  try {
    const documents = collect(work);
    for (const [name, document] of documents) await checkSingle(browser, work, name, document);
    await checkSeveral(browser, work, 'several', ['send-lat', 'soft-latency', 'gates', 'few-samples', 'write-bw'],
      documents);
    await checkPaper(browser, work);
  } finally {
    await browser.close();
    fs.rmSync(work, {recursive: true, force: true});
  }
  process.exitCode = failures > 0 ? 1 : 0;
}

main().catch((error) => {
  console.log(`FAIL report: ${error.message}`);
  process.exitCode = 1;
});
