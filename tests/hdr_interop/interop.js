// Compares verbscope's histogram text with hdr-histogram-js, both ways. Arguments: the folder that
// holds node_modules, the path of hdr_vectors. Prints `ok NAME` or `FAIL NAME: why`; exit 1 on any
// failure.
'use strict';
const assert = require('assert');
const path = require('path');
const { spawnSync } = require('child_process');

const [modules, helper] = process.argv.slice(2);
const hdr = require(path.join(modules, 'node_modules', 'hdr-histogram-js'));
const CONFIG = {
  lowestDiscernibleValue: 1,
  highestTrackableValue: 1e11,
  numberOfSignificantValueDigits: 3,
};

let failures = 0;

function check(name, test) {
  try {
    test();
    console.log(`ok ${name}`);
  } catch (error) {
    failures++;
    console.log(`FAIL ${name}: ${String(error.message).split('\n').filter(Boolean).join(' ')}`);
  }
}

// Runs the helper; answers its lines as objects.
function vectors(mode, input) {
  const run = spawnSync(helper, [mode], { input, encoding: 'utf8', maxBuffer: 1 << 28 });
  if (run.error) throw run.error;
  return run.stdout.trim().split('\n').map((line) => JSON.parse(line));
}

// Every non-empty counter as [lowest value, highest value, count].
function buckets(histogram) {
  const found = [];
  const iterator = histogram.recordedValuesIterator;
  iterator.reset();
  while (iterator.hasNext()) {
    const { valueIteratedTo, countAddedInThisIterationStep } = iterator.next();
    found.push([
      histogram.lowestEquivalentValue(valueIteratedTo),
      histogram.highestEquivalentValue(valueIteratedTo),
      countAddedInThisIterationStep,
    ]);
  }
  return found;
}

function compare(histogram, ours) {
  assert.strictEqual(ours.error, undefined);
  assert.strictEqual(histogram.totalCount, ours.count, 'count');
  if (ours.count === 0) return;
  const { minNonZeroValue, maxValue } = histogram;
  assert.strictEqual(histogram.lowestEquivalentValue(minNonZeroValue), ours.min_ns, 'min');
  assert.strictEqual(histogram.highestEquivalentValue(maxValue), ours.max_ns, 'max');
  for (const [percent, value] of Object.entries(ours.percentiles_ns)) {
    assert.strictEqual(histogram.getValueAtPercentile(Number(percent)), value, `p${percent}`);
  }
  assert.deepStrictEqual(buckets(histogram), ours.buckets);
}

// Histograms of theirs: name, and a function that records into one.
const THEIRS = {
  'empty': () => {},
  'one value': (h) => h.recordValueWithCount(1234, 10000),
  '1 to 1000 us': (h) => {
    for (let us = 1; us <= 1000; us++) h.recordValueWithCount(us * 1000, 10);
  },
  'edges of the range': (h) => {
    for (const ns of [1, 2047, 2048, 1e11]) h.recordValueWithCount(ns, 2500);
  },
  'wide': (h) => {
    let state = 1;
    for (let i = 0; i < 200000; i++) {
      state = (state * 48271) % 2147483647;
      h.recordValue(Math.floor(Math.exp((state / 2147483647) * 25)) + 1);
    }
  },
  'ten million million samples': (h) => {
    h.recordValueWithCount(2000, 9e12);
    h.recordValueWithCount(9e7, 1e12);
  },
};

async function main() {
  await hdr.initWebAssembly();
  for (const ours of vectors('write', '')) {
    check(`ours read by hdr-histogram-js, ${ours.name}`, () =>
      compare(hdr.decodeFromCompressedBase64(ours.text, 64), ours));
  }
  for (const [name, record] of Object.entries(THEIRS)) {
    for (const useWebAssembly of [false, true]) {
      check(`hdr-histogram-js read by ours, ${name}${useWebAssembly ? ' (wasm)' : ''}`, () => {
        const encoder = hdr.build({ ...CONFIG, bitBucketSize: 64, useWebAssembly });
        record(encoder);
        const text = hdr.encodeIntoCompressedBase64(encoder);
        const reference = hdr.build({ ...CONFIG, bitBucketSize: 64 });
        record(reference);
        compare(reference, vectors('read', `${name} ${text}\n`)[0]);
      });
    }
  }
  check('damaged text is refused by ours', () => {
    const [answer] = vectors('read', 'damaged HISTFAAAAB542pNpmSzMwMDAxgABMJoRQgIADR4=\n');
    assert.match(String(answer.error), /DecodeHdrV2 failed/);
  });
}

main().then(
  () => process.exit(failures ? 1 : 0),
  (error) => {
    console.log(`FAIL hdr_interop: ${error.message}`);
    process.exit(1);
  }
);
