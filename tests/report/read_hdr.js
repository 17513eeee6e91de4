// Reads an interval log with hdr-histogram-js. Arguments: the folder that holds node_modules, the log.
// Prints a JSON list with an object for each line: tag, start_s, length_s, max_ns, total, and the value at
// each rank asked for in the third argument, a JSON object {tag: [rank, …]}.
'use strict';
const fs = require('fs');
const path = require('path');

const [modules, log, asked] = process.argv.slice(2);
const hdr = require(path.join(modules, 'node_modules', 'hdr-histogram-js'));
const ranks = JSON.parse(asked || '{}');
const reader = new hdr.HistogramLogReader(fs.readFileSync(log, 'utf8'), 64);
const found = [];
for (let h = reader.nextIntervalHistogram(); h; h = reader.nextIntervalHistogram()) {
  const total = h.totalCount;
  found.push({
    tag: h.tag,
    start_ms: h.startTimeStampMsec,
    length_ms: h.endTimeStampMsec - h.startTimeStampMsec,
    max_ns: h.maxValue,
    total,
    values: (ranks[h.tag] || []).map((rank) => h.getValueAtPercentile((100 * rank) / total)),
  });
}
console.log(JSON.stringify(found));
