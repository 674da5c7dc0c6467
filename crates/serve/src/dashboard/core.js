'use strict';
// The dashboard of `tuner serve`. Everything shown comes from the API and is set as text, never as
// markup: kernels, configurations and compiler messages are other people's words.

const state = { runs: new Map(), view: null, cleanup: [], epoch: 0, classes: null };

/** An element: h('a', {href: '#/'}, 'text', child). Attributes that are functions are listeners. */
function h(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for SVG. */
function s(name, attributes, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

// Words and figures

/** Five significant digits: a time is not known better. */
function digits(us) {
  if (us === null || us === undefined) return '–';
  const whole = Math.max(0, Math.floor(Math.log10(Math.abs(us))));
  return us.toFixed(Math.max(0, 4 - whole));
}

function time(us) {
  if (us === null || us === undefined) return '–';
  if (us >= 1e6) return digits(us / 1e6) + ' s';
  if (us >= 1e3) return digits(us / 1e3) + ' ms';
  return digits(us) + ' µs';
}

/** A time, and that it is predicted where it is. */
function timed(us, timing) {
  return time(us) + (us && timing === 'predicted' ? ' predicted' : '');
}

function seconds(value) {
  if (value === null || value === undefined) return '–';
  if (value < 10) return value.toFixed(1) + ' s';
  if (value < 90) return Math.round(value) + ' s';
  if (value < 5400) return Math.round(value / 60) + ' min';
  return (value / 3600).toFixed(1) + ' h';
}

function bytes(value) {
  if (value === null || value === undefined) return '–';
  if (value < 4096) return value + ' B';
  return value < 4 * 1048576 ? (value / 1024).toFixed(1) + ' KiB' : (value / 1048576).toFixed(1) + ' MiB';
}

function ratio(slow, fast) {
  return slow && fast ? (slow / fast).toFixed(2) + '×' : '–';
}

function count(value) {
  return value === null || value === undefined ? '–' : Number(value).toLocaleString('en');
}

function when(text) {
  return text ? text.slice(0, 19).replace('T', ' ') : '–';
}

function configText(config, fixed) {
  return Object.entries(config || {})
    .filter(([name]) => !fixed || !fixed.has(name))
    .map(([name, value]) => name + '=' + value)
    .join(' ');
}

// The API

function token() {
  return sessionStorage.getItem('tuner-token');
}

function headers() {
  const shown = token();
  return shown ? { authorization: 'Bearer ' + shown } : {};
}

class ApiError extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

async function api(path, options) {
  const response = await fetch(path, { ...options, headers: headers() });
  if (response.status === 401) {
    showTokenForm();
    throw new ApiError(401, 'This daemon requires a token.');
  }
  if (!response.ok) {
    const problem = await response.json().catch(() => ({}));
    throw new ApiError(response.status, problem.detail || response.statusText);
  }
  return response.json();
}

/** Reads server-sent events with fetch, because EventSource cannot send a token. */
async function listen(path, signal, take) {
  const response = await fetch(path, { headers: headers(), signal });
  if (!response.ok) throw new ApiError(response.status, response.statusText);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    let end;
    while ((end = text.indexOf('\n\n')) >= 0) {
      const block = text.slice(0, end).split('\n');
      text = text.slice(end + 2);
      const field = (name) => block.find((line) => line.startsWith(name + ': '))?.slice(name.length + 2);
      const event = field('event');
      if (event) take(event, JSON.parse(field('data')));
    }
  }
}

function showTokenForm() {
  const input = h('input', { type: 'password', 'aria-label': 'Token', autocomplete: 'off', size: 40 });
  const form = h('form', { class: 'filters', submit: (event) => {
    event.preventDefault();
    sessionStorage.setItem('tuner-token', input.value.trim());
    route();
    follow();
  } }, h('label', null, 'Token', input), h('button', { type: 'submit' }, 'Open'));
  show(h('h1', null, 'Token required'),
    h('p', { class: 'note' }, 'Token of the daemon: TUNER_TOKEN or --token-file. Kept until this tab is closed.'),
    form);
  input.focus();
}

// The page

const main = document.getElementById('main');

function show(...children) {
  main.replaceChildren(...children.flat(3).filter((child) => child instanceof Node));
}

/** A table. Rows are {cells, href}; a cell is a text, a node, or null. */
function table(columns, rows, empty) {
  if (rows.length === 0) return h('p', { class: 'note' }, empty);
  const head = h('tr', null, columns.map((column) => h('th', { class: column.class, scope: 'col' }, column.name)));
  const body = rows.map(({ cells, href, label }) => {
    const open = () => { location.hash = href; };
    const row = h('tr', href ? {
      tabindex: 0, role: 'link', 'aria-label': label, 'data-href': href,
      click: (event) => { if (!event.target.closest('a,button')) open(); },
      keydown: (event) => { if (event.key === 'Enter' && event.target === row) open(); },
    } : {}, cells.map((cell, place) => h('td', { class: columns[place].class }, cell ?? '–')));
    return row;
  });
  return h('div', { class: 'scroll' }, h('table', null, h('thead', null, head), h('tbody', null, body)));
}

function facts(pairs) {
  return h('dl', { class: 'facts' }, pairs
    .filter(([, value]) => value !== null && value !== undefined && value !== '')
    .map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value))));
}

/** Has the focus stay on the same row when a table is drawn anew. */
function keepFocus(draw) {
  const href = document.activeElement?.getAttribute?.('data-href');
  const id = document.activeElement?.id;
  draw();
  const again = href ? document.querySelector('tr[data-href="' + CSS.escape(href) + '"]')
    : id ? document.getElementById(id) : null;
  if (again && again !== document.activeElement) again.focus({ preventScroll: true });
}

/** Calls `work` now and every `ms` until the view is left. */
function repeat(ms, work) {
  const epoch = state.epoch;
  const step = async () => {
    if (epoch !== state.epoch) return;
    try {
      await work(() => epoch === state.epoch);
    } catch (error) {
      if (epoch === state.epoch && error.status !== 401) {
        if (!main.querySelector('.problem')) main.prepend(h('p', { class: 'problem', role: 'alert' }, error.message));
      }
    }
    if (epoch === state.epoch) setTimeout(step, ms);
  };
  step();
}

/** Parameters behind the `?` of the hash. */
function query() {
  return new URLSearchParams(location.hash.split('?')[1] || '');
}

function setQuery(path, values) {
  const pairs = new URLSearchParams(Object.entries(values).filter(([, value]) => value));
  const text = pairs.toString();
  history.replaceState(null, '', '#' + path + (text ? '?' + text : ''));
}

const views = {};

async function route() {
  state.epoch += 1;
  for (const undo of state.cleanup.splice(0)) undo();
  const [name, ...rest] = location.hash.replace(/^#\/?/, '').split('?')[0].split('/');
  const known = views[name || 'runs'] ? name || 'runs' : 'runs';
  for (const link of document.querySelectorAll('#nav a')) {
    const here = link.dataset.view === ({ run: 'runs', explore: 'runs', start: 'runs', candidate: 'leaderboard' }[known] || known);
    if (here) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current');
  }
  state.view = known;
  show(h('p', { class: 'note' }, 'Loading…'));
  const epoch = state.epoch;
  try {
    state.classes ||= new Map((await api('/api/v1/verdicts')).map((verdict) => [verdict.verdict, verdict.class]));
  } catch (error) {
    if (epoch === state.epoch && error.status !== 401) show(h('p', { class: 'problem', role: 'alert' }, error.message));
    return;
  }
  if (epoch === state.epoch) views[known](rest.map(decodeURIComponent));
}

addEventListener('hashchange', () => { route(); main.focus({ preventScroll: true }); });

addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input,select,textarea')) return;
  const link = document.querySelector('#nav a[accesskey="' + CSS.escape(event.key) + '"]');
  if (link) { location.hash = link.getAttribute('href'); return; }
  if (event.key === '/') {
    const field = document.getElementById('filter');
    if (field) { event.preventDefault(); field.focus(); }
  }
  if (event.key === 'j' || event.key === 'k') {
    const rows = [...document.querySelectorAll('tr[tabindex]')].filter((row) => row.offsetParent);
    const at = rows.indexOf(document.activeElement);
    rows[Math.max(0, Math.min(rows.length - 1, at + (event.key === 'j' ? 1 : -1)))]?.focus();
  }
});

// What happens, live

const liveListeners = new Set();

let following = null;

async function follow() {
  following?.abort();
  const mine = following = new AbortController();
  const label = document.getElementById('link');
  while (following === mine) {
    try {
      await listen('/api/v1/events', mine.signal, (event, data) => {
        label.textContent = 'live';
        label.className = 'on';
        if (event === 'runs') {
          state.runs = new Map(data.map((run) => [run.id, run]));
          for (const listener of liveListeners) listener();
        }
      });
    } catch (error) {
      if (error.status === 401) { label.textContent = 'token wanted'; label.className = 'off'; return; }
    }
    if (following !== mine) return;
    label.textContent = 'disconnected, reconnecting';
    label.className = 'off';
    await new Promise((resolve) => setTimeout(resolve, 1500));
  }
}

/** Calls `draw` now and whenever a run under way changes, until the view is left. */
function onLive(draw) {
  liveListeners.add(draw);
  state.cleanup.push(() => liveListeners.delete(draw));
}
