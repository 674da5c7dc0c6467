// Looking into a run: every trial, what its parameters are worth, and runs side by side.

/** A choice: label and select. */
function choice(id, name, values, chosen, change) {
  return h('label', null, name, h('select', { id, change: (event) => change(event.target.value) },
    values.map((value) => {
      const [key, text] = Array.isArray(value) ? value : [value, value];
      return h('option', { value: key, selected: key === chosen ? '' : null }, text);
    })));
}

const MODES = [['quantile', 'all but outliers'], ['zero', 'from zero'], ['log', 'logarithmic'], ['cut', 'near the best']];

/** Asks before something is done that cannot be taken back. */
function confirmed(question, word) {
  return new Promise((resolve) => {
    const answer = (yes) => { dialog.close(); dialog.remove(); resolve(yes); };
    const dialog = h('dialog', { 'aria-label': question, cancel: () => answer(false) }, h('p', null, question),
      h('div', { class: 'filters' }, h('button', { type: 'button', id: 'confirm', click: () => answer(true) }, word),
        h('button', { type: 'button', click: () => answer(false) }, 'Cancel')));
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Saves a text as SVG, or an address of a picture: as a blob, for browsers limit the length of addresses. */
async function saveAs(name, made) {
  if (name.endsWith('.svg')) { download(name, made, 'image/svg+xml'); return; }
  const bytes = Uint8Array.from(atob(made.split(',')[1]), (character) => character.charCodeAt(0));
  download(name, bytes, 'image/png');
}

/** Hands a text, or bytes, to the browser as a file. */
function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = h('a', { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** A cell of CSV, on one line; one that a spreadsheet would compute begins with an apostrophe. */
function csvCell(value) {
  let text = value === null || value === undefined ? '' : String(value);
  text = text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u206f\ufeff]/g, ' ');
  if (/^\s*[=+\-@＝＋－＠]/.test(text) && !Number.isFinite(Number(text))) text = "'" + text;
  return /[",]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}

function csvOf(trials, parameters, timing) {
  const rows = [['result', 'verdict', 'time_us', 'timing', ...parameters, 'candidate', 'detail'],
    ...trials.map((trial) => [trial.sequence + 1, trial.verdict, trial.time_us, trial.time_us === null ? null : timing, ...parameters.map((name) => trial.config[name]), trial.candidate, trial.detail])];
  return rows.map((row) => row.map(csvCell).join(',')).join('\r\n') + '\r\n';
}

/** Parameters that take more than one value among the trials. */
function variedOf(trials) {
  const names = Object.keys(trials[0]?.config || {});
  return names.filter((name) => new Set(trials.map((trial) => JSON.stringify(trial.config[name]))).size > 1);
}

/** A table of trials that sorts by any column and filters by words and verdict. */
function trialTable(trials, varied, timing) {
  const columns = [['result', (trial) => trial.sequence + 1], ['verdict', (trial) => trial.verdict],
    [timing === 'predicted' ? 'predicted µs' : 'time µs', (trial) => trial.time_us],
    ...varied.map((name) => [name, (trial) => trial.config[name]])];
  const order = { column: 2, down: false, shown: 100, words: '', verdict: '' };
  const place = h('div', { id: 'trials' }), tally = h('p', { class: 'note', role: 'status' });
  const compare = (a, b) => {
    if ((a ?? null) === null || (b ?? null) === null) return ((a ?? null) === null) - ((b ?? null) === null);
    const step = typeof a === 'number' && typeof b === 'number' ? a - b : String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;
    return order.down ? -step : step;
  };
  const draw = () => {
    const words = order.words.trim().split(/\s+/).filter(Boolean);
    const fits = (trial) => (!order.verdict || trial.verdict === order.verdict) && words.every((word) => Object.entries(trial.config)
      .some(([name, value]) => word.includes('=') ? name + '=' + value === word : (name + '=' + value).includes(word)));
    const rows = trials.filter(fits).sort((a, b) => compare(columns[order.column][1](a), columns[order.column][1](b)));
    const head = columns.map(([name], number) => h('th', { scope: 'col', class: number === 1 ? null : 'num',
      'aria-sort': number === order.column ? (order.down ? 'descending' : 'ascending') : 'none' },
    h('button', { type: 'button', class: 'sort', click: () => {
      order.down = number === order.column && !order.down;
      order.column = number;
      draw();
    } }, name, number === order.column ? (order.down ? ' ↓' : ' ↑') : '')));
    const body = rows.slice(0, order.shown).map((trial) => h('tr', { tabindex: 0, role: 'link', 'data-href': '#/candidate/' + trial.candidate,
      'aria-label': 'result ' + (trial.sequence + 1), click: () => { location.hash = '#/candidate/' + trial.candidate; },
      keydown: (event) => { if (event.key === 'Enter') location.hash = '#/candidate/' + trial.candidate; } },
    columns.map(([, value], number) => {
      const cell = value(trial);
      if (number === 1) return h('td', null, h('span', { class: 'state ' + (cell === 'ok' ? 'ok' : 'bad') }, cell));
      return h('td', { class: 'num' }, number === 2 ? digits(cell) : cell ?? '–');
    })));
    place.replaceChildren(h('div', { class: 'scroll' }, h('table', null, h('thead', null, h('tr', null, head)), h('tbody', null, body))),
      ...(rows.length > order.shown ? [h('p', null, h('button', { type: 'button', click: () => { order.shown += 500; draw(); } }, 'More rows'))] : []));
    tally.textContent = count(rows.length) + ' of ' + count(trials.length) + ' trials';
  };
  const verdicts = [...new Set(trials.map((trial) => trial.verdict))].sort();
  const filters = h('form', { class: 'filters', submit: (event) => event.preventDefault() },
    h('label', null, 'configuration', h('input', { id: 'filter', type: 'search', placeholder: 'BM=64 STAGES=2', input: (event) => { order.words = event.target.value; draw(); } })),
    choice('choose-verdict', 'verdict', [['', 'all'], ...verdicts], '', (value) => { order.verdict = value; draw(); }));
  draw();
  return [filters, tally, place];
}

/** Buttons that save a drawing as SVG and PNG; `files` gives both when it is asked. */
function saveButtons(title, files) {
  const save = (kind) => h('button', { type: 'button', class: 'save', 'aria-label': 'Save ' + title + ' as ' + kind.toUpperCase(), click: async () => {
    const made = (await files())?.[kind];
    const name = title.replace(/[^A-Za-z0-9._-]+/g, '_').slice(0, 120) + '.' + kind;
    if (made) await saveAs(name, await made());
  } }, kind.toUpperCase());
  return h('span', { class: 'saves' }, save('svg'), save('png'));
}

/** A plot of the library as files: drawn again at its size, on the page's background. */
async function chartFiles(canvas) {
  const echarts = await echartsLibrary();
  const chart = echarts.getInstanceByDom(canvas);
  if (!chart) return null;
  const again = () => {
    const copy = echarts.init(null, null, { renderer: 'svg', ssr: true, width: canvas.clientWidth, height: canvas.clientHeight });
    copy.setOption({ ...chart.getOption(), animation: false, backgroundColor: colour('--panel') });
    const text = copy.renderToSVGString();
    copy.dispose();
    return text;
  };
  return { svg: again, png: () => chart.getDataURL({ type: 'png', pixelRatio: 2, backgroundColor: colour('--panel') }) };
}

function svgUrl(text) {
  return 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(text);
}

/** A drawing of this page as files: with its style, which the page's style sheet gives it here. */
function drawingFiles(drawing) {
  const [, , width, height] = drawing.getAttribute('viewBox').split(' ').map(Number);
  const text = () => {
    const copy = drawing.cloneNode(true);
    const shown = drawing.querySelectorAll('*');
    copy.querySelectorAll('*').forEach((part, place) => {
      const style = getComputedStyle(shown[place]);
      for (const name of ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-opacity', 'stroke-dasharray', 'font-family', 'font-size']) part.setAttribute(name, style.getPropertyValue(name));
    });
    for (const [name, value] of [['xmlns', 'http://www.w3.org/2000/svg'], ['width', width], ['height', height]]) copy.setAttribute(name, value);
    copy.prepend(s('rect', { width, height, fill: colour('--panel') }));
    return new XMLSerializer().serializeToString(copy);
  };
  const png = () => new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => {
      const canvas = h('canvas', { width: 2 * width, height: 2 * height });
      canvas.getContext('2d').drawImage(image, 0, 0, 2 * width, 2 * height);
      resolve(canvas.toDataURL('image/png'));
    };
    image.onerror = () => reject(new Error('The drawing cannot be saved.'));
    image.src = svgUrl(text());
  });
  return { svg: text, png };
}

/** A plot with a heading and, beside it, what can be chosen. */
function figure(title, note, options, height) {
  const canvas = h('div', { class: 'plot', role: 'img', 'aria-label': title });
  canvas.style.height = height + 'px';
  return { canvas, section: h('section', { class: 'card' }, h('h3', null, title, saveButtons(title, () => chartFiles(canvas))), note ? h('p', { class: 'note' }, note) : null,
    options.length ? h('form', { class: 'filters', submit: (event) => event.preventDefault() }, options) : null, canvas) };
}

function goTo(item) {
  const trial = item.data?.trial;
  if (trial) location.hash = '#/candidate/' + trial.candidate;
}

/** All plots of one task's trials. */
function explore(run, task, trials) {
  const varied = variedOf(trials);
  const passed = trials.filter((trial) => trial.time_us !== null);
  const chosen = { mode: 'quantile', slice: varied[0], first: varied[0], second: varied[1] };
  const filter = '?' + new URLSearchParams({ kernel: task.kernel, problem: task.problem, device: run.device });
  const predicted = task.timing === 'predicted' || run.device_kind === 'vgpu';
  const sections = [], draws = [];
  const add = (title, note, options, height, draw) => {
    const made = figure(title, note, options, height);
    sections.push(made.section);
    draws.push(() => draw(made.canvas));
    return () => draw(made.canvas);
  };
  if (passed.length) {
    const scatter = add('Trials', (predicted ? 'Predicted time over' : 'Time over') + ' the order of results. Wheel: zoom; shift and wheel: zoom times; drag the bar below; a click opens the candidate.',
      [choice('choose-mode', 'times', MODES, chosen.mode, (value) => { chosen.mode = value; scatter(); slice(); front(); })], 380,
      (canvas) => plot(canvas, scatterOption(trials, varied, chosen.mode), goTo));
    let slice = () => {}, front = () => {};
    if (varied.length) {
      add('Importance', 'Functional analysis of variance over a random forest of log time (Hutter et al. 2014), of everything stored for this kernel, problem and device. “together”: what no parameter explains alone.', [], importanceHeight(varied),
        async (canvas) => {
          const effects = await api('/api/v1/effects' + filter).catch(() => null);
          if (!effects || effects.together === null) canvas.replaceChildren(h('p', { class: 'note' }, 'Too few results, or all times are equal.'));
          else await plot(canvas, importanceOption(effects));
        });
      add('Parallel coordinates', 'One line a trial that passed (the fastest 2,000). Drag along an axis to pick values.', [], 360, (canvas) => plot(canvas, parallelOption(trials, varied, canvas.clientWidth)));
      slice = add('One parameter', null, [choice('choose-slice', 'parameter', varied, chosen.slice, (value) => { chosen.slice = value; slice(); })], 300,
        (canvas) => plot(canvas, sliceOption(trials, varied, chosen.slice, chosen.mode), goTo));
    }
    if (varied.length > 1) {
      const pair = add('Two parameters', 'The best time for each pair of values; contours at ' + CONTOURS.join(', ') + ' times the best. Empty: nothing there was tried and passed.',
        [choice('choose-first', 'across', varied, chosen.first, (value) => { chosen.first = value; pair(); }),
          choice('choose-second', 'up', varied, chosen.second, (value) => { chosen.second = value; pair(); })], 320,
        (canvas) => plot(canvas, pairOption(trials, varied, chosen.first, chosen.second), goTo));
    }
    const objectives = objectivesOf(passed);
    if (objectives.length) {
      chosen.objective = objectives[0];
      front = add('Two objectives', 'Time against a second objective. The line joins the Pareto-optimal trials.',
        [choice('choose-objective', 'second objective', objectives, chosen.objective, (value) => { chosen.objective = value; front(); })], 320,
        (canvas) => plot(canvas, frontOption(trials, varied, chosen.objective, chosen.mode), goTo));
    }
  }
  const parameters = Object.keys(trials[0]?.config || {});
  const name = (task.kernel + '-' + task.problem).replace(/[^A-Za-z0-9._-]+/g, '_').slice(0, 120) + (predicted ? '-predicted' : '');
  const buttons = h('p', { class: 'filters' },
    h('button', { type: 'button', id: 'csv', click: () => download(name + '.csv', csvOf(trials, parameters, predicted ? 'predicted' : task.timing), 'text/csv') }, 'Download CSV'),
    passed.length ? h('button', { type: 'button', id: 'header', click: async (event) => {
      const button = event.currentTarget;
      if (predicted && !await confirmed('These times are predicted, not measured. Download the header anyway?', 'Download')) return;
      try {
        const response = await fetch('/api/v1/header' + filter + (predicted ? '&allow_predicted=true' : ''), { headers: headers() });
        if (!response.ok) throw new Error((await response.json()).detail);
        download(name + '.h', await response.text(), 'text/plain');
      } catch (error) { button.after(h('p', { class: 'problem', role: 'alert' }, error.message)); }
    } }, 'Download header') : null);
  const page = h('div', null, buttons, sections.slice(0, 1), h('div', { class: 'grid two' }, sections.slice(1)),
    h('h2', null, 'All trials'), trials.length ? trialTable(trials, varied, predicted ? 'predicted' : task.timing) : h('p', { class: 'note' }, 'No results yet.'));
  return { page, draw: () => draws.forEach((draw) => Promise.resolve(draw()).catch((error) => page.prepend(h('p', { class: 'problem', role: 'alert' }, error.message)))) };
}

views.explore = async ([id]) => {
  const epoch = state.epoch, here = () => epoch === state.epoch;
  try {
    const run = await api('/api/v1/runs/' + encodeURIComponent(id));
    const all = await api('/api/v1/runs/' + encodeURIComponent(id) + '/trials?limit=20000');
    if (!here()) return;
    const trials = all.filter((trial) => trial.sequence !== null).sort((a, b) => a.sequence - b.sequence);
    const tasks = run.tasks.length ? run.tasks : [];
    const place = h('div');
    const open = (number) => {
      const task = tasks[number];
      const made = explore(run, task, trials.filter((trial) => trial.kernel === task.kernel && trial.problem === task.problem));
      place.replaceChildren(made.page);
      made.draw();
    };
    show(h('h1', null, 'Trials of ', h('a', { href: '#/run/' + run.id }, kernelsOf(run))),
      h('p', { class: 'note' }, shortDevice(run.device) + ', ' + (run.strategy || '') + ', ' + run.state + (all.length >= 20000 ? '; the latest 20,000 results' : ''),
        ['queued', 'running'].includes(run.state) ? [' ', h('button', { type: 'button', click: () => route() }, 'Refresh')] : null),
      tasks.length > 1 ? h('form', { class: 'filters', submit: (event) => event.preventDefault() },
        choice('choose-task', 'kernel and problem', tasks.map((task, number) => [String(number), task.kernel + ' ' + task.problem]), '0', (value) => open(Number(value)))) : null,
      place);
    if (tasks.length) open(0); else place.append(h('p', { class: 'note' }, 'Not started yet.'));
  } catch (error) {
    if (here() && error.status !== 401) noSuchRun(id, error);
  }
};

/** What is shown where a run is not there. */
function noSuchRun(id, error) {
  show(h('h1', null, error.status === 404 ? 'No run ' + id : 'Cannot show the run'),
    h('p', { class: 'problem', role: 'alert' }, error.message), h('p', null, h('a', { href: '#/' }, 'All runs')));
}

views.compare = () => {
  const chosen = new Set((query().get('runs') || '').split(',').filter(Boolean));
  const list = h('div'), place = h('div');
  let mode = 'quantile';
  const draw = async () => {
    const runs = [];
    for (const id of chosen) {
      try { runs.push(await api('/api/v1/runs/' + encodeURIComponent(id))); } catch (error) {
        if (error.status === 404) place.prepend(h('p', { class: 'problem', role: 'alert' }, 'No run ' + id + '.'));
      }
    }
    const groups = new Map();
    for (const run of runs) {
      for (const task of run.tasks) {
        const key = task.kernel + ' ' + task.problem;
        groups.set(key, [...(groups.get(key) || []), { run, task }]);
      }
    }
    // Final comparisons have another protocol than the searches of other runs.
    const searched = (task) => task.search_us || task.best_us || 0;
    const sections = [...groups].map(([key, members]) => {
      const made = figure(key, null, [], 320);
      const curves = members.map(({ run, task }) => ({ name: run.id + ' ' + (run.strategy || '') + ' ' + shortDevice(run.device), points: task.curve, evals: task.evals }));
      made.section.append(table([{ name: 'run' }, { name: 'device' }, { name: 'strategy' }, { name: 'seed', class: 'num' }, { name: 'judged', class: 'num' }, { name: 'passed', class: 'num' },
        { name: 'best', class: 'num' }, { name: '× the slowest of these', class: 'num wide' }, { name: 'best configuration', class: 'wrap mono wide' }],
      members.map(({ run, task }) => ({ href: '#/run/' + run.id, label: 'run ' + run.id, cells: [run.id, shortDevice(run.device), run.strategy, run.seed, count(task.evals), count(task.verdicts.ok || 0),
        timed(task.best_us, task.timing), ratio(Math.max(...members.map((member) => searched(member.task))), searched(task)), configText(task.best_config)] })), ''));
      return { made, curves };
    });
    place.replaceChildren(...[...place.querySelectorAll('.problem')], ...sections.map(({ made }) => made.section),
      ...(sections.length ? [] : [h('p', { class: 'note' }, 'Pick runs above.')]));
    for (const { made, curves } of sections) {
      if (curves.some((curve) => curve.points.length)) plot(made.canvas, comparisonOption(curves, mode)); else made.canvas.replaceChildren(h('p', { class: 'note' }, 'No candidate has passed yet.'));
    }
  };
  const epoch = state.epoch;
  show(h('h1', null, 'Compare runs'), list, h('form', { class: 'filters', submit: (event) => event.preventDefault() },
    choice('choose-mode', 'times', MODES, mode, (value) => { mode = value; draw(); })), place);
  api('/api/v1/runs?limit=50').then((page) => {
    if (epoch !== state.epoch) return;
    list.append(h('fieldset', { class: 'picks' }, h('legend', null, 'Runs'), page.runs.map((run) => h('label', null,
      h('input', { type: 'checkbox', value: run.id, checked: chosen.has(run.id) ? '' : null, change: (event) => {
        if (event.target.checked) chosen.add(run.id); else chosen.delete(run.id);
        setQuery('/compare', { runs: [...chosen].join(',') });
        draw();
      } }), ' ', h('span', { class: 'mono' }, run.id), ' ', kernelsOf(run), ' ', h('span', { class: 'dim' }, shortDevice(run.device) + ' ' + (run.strategy || '') + ' ' + done(run))))));
    if (page.runs.length === 0) list.append(h('p', { class: 'note' }, 'No runs yet.'));
  }).catch((error) => { if (epoch === state.epoch && error.status !== 401) list.append(h('p', { class: 'problem', role: 'alert' }, error.message)); });
  draw();
};

views.start = async () => {
  const epoch = state.epoch;
  let strategies, choices;
  try {
    strategies = (await api('/openapi.json')).components.schemas.StrategyName.enum;
    choices = await api('/api/v1/choices');
  } catch (error) {
    if (epoch === state.epoch && error.status !== 401) show(h('p', { class: 'problem', role: 'alert' }, error.message));
    return;
  }
  if (epoch !== state.epoch) return;
  const field = (id, name, attributes) => h('label', null, name, h('input', { id, autocomplete: 'off', ...attributes }));
  /** A field with what there is: several words, of which the last is completed. */
  const offered = (id, name, attributes, values) => {
    const list = h('datalist', { id: id + '-choices' });
    const fillList = (event) => {
      const before = event ? event.target.value.replace(/[^\s,]*$/, '') : '';
      list.replaceChildren(...values().map((value) => h('option', { value: before + value })));
    };
    fillList();
    return [field(id, name, { ...attributes, list: id + '-choices', input: fillList, focus: fillList }), list];
  };
  const kernels = () => choices.kernels.map((kernel) => kernel.name);
  const problems = () => {
    const asked = value('kernels').split(/[\s,]+/).filter(Boolean);
    return [...new Set(choices.kernels.filter((kernel) => asked.length === 0 || asked.includes(kernel.name)).flatMap((kernel) => kernel.problems))];
  };
  const answer = h('p', { role: 'status' });
  const value = (id) => (document.getElementById(id)?.value || '').trim();
  const form = h('form', { class: 'filters start', submit: async (event) => {
    event.preventDefault();
    const request = { kernels: value('kernels').split(/[\s,]+/).filter(Boolean), device: value('device') || 'auto',
      problems: value('problems').split(/[\s,]+/).filter(Boolean), budget: value('budget') || null, evals: value('evals') ? Number(value('evals')) : null,
      strategy: value('strategy') || null, seed: value('seed') ? Number(value('seed')) : 1 };
    const what = (request.kernels.join(', ') || 'all kernels') + ' on ' + request.device;
    const limits = [request.evals ? count(request.evals) + ' trials' : null, request.budget].filter(Boolean).join(', ') || choices.default_budget + ', the default';
    if (!await confirmed('Start a run of ' + what + ' (' + limits + ')?', 'Start')) return;
    try {
      const started = await send('POST', '/api/v1/runs', request);
      location.hash = '#/run/' + started.id;
    } catch (error) {
      answer.className = 'problem';
      answer.textContent = error.message;
    }
  } }, offered('kernels', 'kernels (empty: all)', { placeholder: 'gemm_f32' }, kernels), offered('device', 'device', { placeholder: 'auto, vgpu:l4, replay:FILE' }, () => choices.devices),
  offered('problems', 'problems (empty: all)', {}, problems), field('budget', 'budget (without trials: ' + choices.default_budget + ')', { placeholder: '2h' }), field('evals', 'trials', { type: 'number', min: 1 }),
  choice('strategy', 'strategy', [['', strategies[0] + ' (the default)'], ...strategies.slice(1)], '', () => {}), field('seed', 'seed', { type: 'number', min: 0, placeholder: '1' }),
  h('button', { type: 'submit', id: 'start' }, 'Start…'));
  show(h('h1', null, 'Start a run'), h('p', { class: 'note' }, 'Kernels and recordings in the folders of the daemon (--kernels): ' +
    (choices.kernels.length ? kernels().join(', ') + '.' : 'none.')), form, answer);
};

/** Sends JSON; gives the answer. */
async function send(method, path, body) {
  const response = await fetch(path, { method, headers: { ...headers(), 'content-type': 'application/json' }, body: JSON.stringify(body) });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new ApiError(response.status, answer.detail || response.statusText);
  return answer;
}

/** What people wrote beside a run, to be changed in place. */
function noteSection(id) {
  const text = h('textarea', { id: 'note', rows: 2, maxlength: 10000, 'aria-label': 'Note', placeholder: 'A note on this run' });
  const said = h('span', { class: 'dim', role: 'status' });
  const save = h('button', { type: 'button', id: 'save-note', click: async () => {
    try {
      const kept = await send('PUT', '/api/v1/runs/' + encodeURIComponent(id) + '/note', { text: text.value });
      said.textContent = kept.changed_at ? 'saved ' + when(kept.changed_at) : 'removed';
    } catch (error) { said.textContent = error.message; }
  } }, 'Save note');
  api('/api/v1/runs/' + encodeURIComponent(id) + '/note').then((note) => {
    // What was typed meanwhile stays.
    text.value ||= note.text;
    said.textContent = note.changed_at ? 'saved ' + when(note.changed_at) : '';
  }).catch(() => {});
  return h('section', { class: 'note-box' }, text, h('div', { class: 'filters' }, save, said));
}
