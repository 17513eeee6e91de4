// Around the results: notices, changes of the plan, both sides, devices.

function noticesSection(doc) {
  return section('Notices', list(doc.json.notices || []));
}

function changesSection(doc) {
  const changes = (doc.json.plan && doc.json.plan.changes) || [];
  return section('Not run as asked', table('Settings that were changed', ['setting', 'asked', 'used', 'why'],
    changes.map((change) => [change.field, change.asked, change.used, change.why])));
}

// Rows of what is known of a side: [name, cell of it].
function sideRows(doc, key) {
  const side = doc.json[key];
  const value = (path, kind) => number(doc, [key, ...path], kind);
  const device = side.device || {};
  const gid = device.gid;
  const clock = side.clock || {};
  const floor = side.jitter_floor;
  return [['role', side.role], ['host', side.host], ['system', side.os], ['kernel', side.kernel],
    ['processor', side.cpu], ['frequency governor', side.governor], ['pinned to CPUs', (side.pinned_cpus || []).join(', ')],
    ['device', [device.name, device.port !== undefined && `port ${device.port}`].filter((part) => part).join(' ')],
    ['kind', device.kind], ['provider', device.provider], ['firmware', device.firmware],
    ['link layer', device.link_layer], ['link', device.link], ['ICRC', device.icrc],
    ['port state', device.state], ['active MTU', value(['device', 'active_mtu_bytes'], 'bytes')],
    ['GID', gid && gidText(gid)],
    ['NUMA node', value(['device', 'numa_node'], 'count')],
    ['inline limit', value(['device', 'inline_bytes'], 'bytes')],
    ['clock', clock.source && `${clock.source}${clock.invariant ? ', invariant' : ''}`],
    ['clock rate', value(['clock', 'hz'], 'hz')], ['clock drift', value(['clock', 'drift_ppm'], 'ppm')],
    ['clock resolution', value(['clock', 'resolution_ns'], 'ns')],
    ['clock read takes', value(['clock', 'overhead_ns'], 'ns')],
    ['longest pause of the host alone', floor && value(['jitter_floor', 'max_gap_ns'], 'ns')],
    ['pauses over 1 µs', floor && value(['jitter_floor', 'gaps_over_1us_per_s'], 'perSecond')],
    ['pauses over 10 µs', floor && value(['jitter_floor', 'gaps_over_10us_per_s'], 'perSecond')],
    ['pauses over 100 µs', floor && value(['jitter_floor', 'gaps_over_100us_per_s'], 'perSecond')],
    ['time lost in pauses', floor && value(['jitter_floor', 'lost_share'], 'share')]];
}

// Rows that are never the same on two sides, and mean nothing by it.
const kDiffersAnyhow = /^(role|host|GID|clock (drift|rate|resolution|read takes)|.*pause.*)$/;

// May be broken after a colon: it is the longest word of the table.
function gidText(gid) {
  const value = String(gid.value).split(':').flatMap((part, i) =>
    (i === 0 ? [part] : [':', h('wbr'), part]));
  const about = [`index ${gid.index}`, gid.type, gid.netdev].filter((part) => part).join(', ');
  return [value, h('small', null, ` ${about}`)];
}

function text(cell) {
  return cell instanceof Node ? cell.textContent : Array.isArray(cell) ? cell.map(text).join('')
    : String(cell ?? '');
}

function sidesSection(doc) {
  const local = sideRows(doc, 'local');
  const remote = doc.json.remote ? sideRows(doc, 'remote') : null;
  const rows = local.map(([name, cell], i) => {
    const other = remote && remote[i][1];
    const differs = remote && text(cell) !== text(other) && !kDiffersAnyhow.test(name);
    return {class: differs ? 'moved' : null, cells: [name, blank(cell), ...(remote ? [blank(other)] : [])]};
  }).filter(({cells}) => cells.slice(1).some((cell) => cell !== null));
  const columns = remote ? ['', `this side (${doc.json.local.role})`, `other side (${doc.json.remote.role})`]
    : ['', 'this side'];
  return section('Environment', table(remote ? 'Both sides; what differs is marked' : 'This side', columns, rows),
    facts([['path MTU', number(doc, ['path_mtu_bytes'], 'bytes')],
      ['both ends on one host', doc.json.loopback ? 'yes' : null]]), planFacts(doc));
}

function blank(cell) {
  return cell === '' || cell === undefined || cell === false ? null : cell;
}

function planFacts(doc) {
  const {plan} = doc.json;
  if (!plan || !plan.command) return null;
  const members = Object.entries(plan).filter(([key, value]) => key !== 'changes' && value !== null
    && !(Array.isArray(value) && value.length === 0));
  return folded('The plan, with defaults filled in', facts(members.map(([key, value]) =>
    [key, Array.isArray(value) ? value.map((one) =>
      (typeof one === 'object' ? JSON.stringify(one) : one)).join(', ') : String(value)])));
}

// Command `devices`: one table of what the list says, and one of limits per device.
function devicesSection(doc) {
  const devices = doc.json.devices || [];
  if (devices.length === 0) return null;
  return section('Devices', devices.map((device) => h('div', {class: 'device'},
    h('h3', null, String(device.name)),
    device.error && h('p', {class: 'warning'}, errorSentence(device.error),
      device.error.next_step && ` Next: ${sentence(device.error.next_step)}`),
    facts(plainPairs(device)), nestedTables({...device, error: null}))));
}

function plainPairs(object) {
  return Object.entries(object).filter(([key, value]) => key !== 'name' && value !== null
    && typeof value !== 'object').map(([key, value]) => [key.replaceAll('_', ' '), String(value)]);
}

// The lists and groups within a device, each as a table of its members.
function nestedTables(device) {
  return Object.entries(device).filter(([, value]) => value && typeof value === 'object')
    .map(([key, value]) => {
      if (!Array.isArray(value)) {
        return folded(key.replaceAll('_', ' '), facts(plainPairs(value)), nestedTables(value));
      }
      const rows = value.filter((row) => row && typeof row === 'object');
      if (rows.length === 0) return value.length > 0 ? facts([[key, value.join(', ')]]) : null;
      const plain = [...new Set(rows.flatMap((row) => Object.keys(row)))]
        .filter((name) => rows.every((row) => row[name] === null || typeof row[name] !== 'object'));
      return [table(`${device.name}: ${key.replaceAll('_', ' ')}`, plain.map((name) => name.replaceAll('_', ' ')),
        rows.map((row) => plain.map((name) => (row[name] === null ? null : String(row[name]))))),
      rows.map((row) => nestedTables({...row, name: device.name}))];
    });
}
