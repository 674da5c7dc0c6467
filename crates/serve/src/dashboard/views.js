// The views. Each draws into the page and keeps itself up to date until it is left.

function stateOf(run) {
  return h('span', { class: 'state ' + run.state }, run.state);
}

function done(run) {
  return run.evals_limit ? count(run.evals) + ' / ' + count(run.evals_limit) : count(run.evals);
}

function kernelsOf(run) {
  const names = [...new Set((run.tasks || []).map((task) => task.kernel))];
  if (names.length > 0) return names.join(', ');
  const asked = (run.request?.kernels || []).map((path) => path.split('/').pop().replace(/\.ya?ml$/, ''));
  return asked.join(', ') || run.device.split('/').pop();
}

function shortDevice(name) {
  return name.startsWith('replay:') ? 'replay ' + name.split('/').pop() : name;
}

function stopButton(run) {
  if (!run.request || !['queued', 'running'].includes(run.state)) return null;
  return h('button', { type: 'button', 'aria-label': 'Stop run ' + run.id, click: async (event) => {
    const button = event.currentTarget;
    if (!await confirmed('Stop run ' + run.id + '? Its results are kept.', 'Stop')) return;
    button.disabled = true;
    try {
      await api('/api/v1/runs/' + encodeURIComponent(run.id) + '/stop', { method: 'POST' });
      button.textContent = 'stopping';
    } catch (error) {
      button.textContent = error.message;
    }
  } }, 'Stop');
}

/** Current work on a run: stage, candidate and seconds. */
function activityList(run) {
  const all = run.activities || [];
  if (all.length === 0) return null;
  return h('ul', { class: 'activities mono' }, all.slice(0, 8).map((one) => h('li', null, one.stage + ' ' + one.candidate + ' ', h('span', { class: 'dim' }, seconds(one.seconds)))),
    all.length > 8 ? h('li', { class: 'dim' }, all.length - 8 + ' more') : null);
}

function deleteButton(run) {
  if (['queued', 'running'].includes(run.state)) return null;
  return h('button', { type: 'button', id: 'delete', 'aria-label': 'Delete run ' + run.id, click: async (event) => {
    const button = event.currentTarget;
    if (!await confirmed('Delete run ' + run.id + ' and its ' + count(run.evals) + ' results? This cannot be undone.', 'Delete')) return;
    const response = await fetch('/api/v1/runs/' + encodeURIComponent(run.id), { method: 'DELETE', headers: headers() });
    if (response.ok) { location.hash = '#/'; return; }
    const problem = await response.json().catch(() => ({}));
    button.after(h('span', { class: 'problem', role: 'alert' }, problem.detail || response.statusText));
  } }, 'Delete');
}

function liveCard(run) {
  const best = run.tasks.filter((task) => task.best_us);
  return h('section', { class: 'card' },
    h('h3', null, h('a', { href: '#/run/' + run.id }, kernelsOf(run)), h('span', { class: 'dim' }, shortDevice(run.device)), stateOf(run)),
    h('p', { class: 'note mono' }, done(run) + (run.rate ? ', ' + run.rate.toFixed(1) + '/s' : '') +
      (run.elapsed_s ? ', ' + seconds(run.elapsed_s) : '')),
    activityList(run),
    best.slice(0, 3).map((task) => h('div', null,
      h('div', { class: 'mono' }, h('span', { class: 'dim' }, task.problem + ' '), timed(task.best_us, task.timing),
        task.default_us ? ' (' + ratio(task.default_us, task.search_us || task.best_us) + ' the default)' : ''),
      curveChart(task, { width: 400, height: 130 }))),
    best.length > 3 ? h('p', { class: 'note' }, best.length - 3 + ' more problems') : null,
    best.length === 0 ? h('p', { class: 'note' }, 'No candidate has passed yet.') : null,
    stopButton(run));
}

views.runs = () => {
  const live = h('div', { class: 'grid', id: 'live' });
  const list = h('div', { id: 'runs' });
  const more = h('p');
  let shown = [], next = null, older = [], words = '';
  const search = h('input', { id: 'filter', type: 'search', placeholder: 'gemm_f16 h100 failed', input: () => { words = search.value.toLowerCase(); drawList(); } });
  const fits = (run) => {
    const text = [run.id, run.state, kernelsOf(run), (run.tasks || []).map((task) => task.problem).join(' '), run.device, run.strategy, run.message].join(' ').toLowerCase();
    return words.split(/\s+/).every((word) => text.includes(word));
  };
  const drawLive = () => {
    const runs = [...state.runs.values()];
    live.replaceChildren(...(runs.length ? runs.map(liveCard)
      : [h('p', { class: 'note' }, 'No run is active. Submit one: ', h('code', null, 'tuner submit gemm_f32 --budget 2h'))]));
  };
  const drawList = () => keepFocus(() => {
    const rows = [...shown, ...older].filter(fits).map((run) => ({
      href: '#/run/' + run.id,
      label: 'run ' + run.id,
      cells: [stateOf(run), [kernelsOf(run), run.message ? h('div', { class: 'narrow note' }, run.message) : null], shortDevice(run.device), done(run), run.message,
        when(run.submitted_at || run.started_at), h('span', { class: 'mono' }, run.id)],
    }));
    list.replaceChildren(table([{ name: 'state' }, { name: 'kernels', class: 'clip' }, { name: 'device', class: 'wide' },
      { name: 'judged', class: 'num' }, { name: 'outcome', class: 'wrap wide' }, { name: 'asked for', class: 'wide' },
      { name: 'run', class: 'wide' }], rows, words.trim() ? 'No run matches; older runs are searched once they are loaded.' : 'No runs yet.'));
    more.replaceChildren(...(next ? [h('button', { type: 'button', click: async () => {
      const page = await api('/api/v1/runs?limit=50&before=' + encodeURIComponent(next));
      older = older.concat(page.runs);
      next = page.next;
      drawList();
    } }, 'Older runs')] : []));
  });
  show(h('h1', null, 'Under way'), live, h('h2', null, 'Runs'), h('p', null, h('a', { href: '#/start' }, 'Start a run'), ' · ', h('a', { href: '#/compare' }, 'Compare runs')), h('form', { class: 'filters', submit: (event) => event.preventDefault() }, h('label', null, 'search', search)), list, more);
  drawLive();
  onLive(drawLive);
  repeat(2000, async (here) => {
    const page = await api('/api/v1/runs?limit=50');
    if (!here()) return;
    shown = page.runs;
    if (older.length === 0) next = page.next;
    drawList();
  });
};

function taskSection(run, task, wide) {
  const filter = '?kernel=' + encodeURIComponent(task.kernel) + '&problem=' + encodeURIComponent(task.problem) +
    '&device=' + encodeURIComponent(run.device);
  return h('section', { class: 'card' },
    h('h3', null, task.kernel + ' ', h('span', { class: 'dim' }, task.problem)),
    h('p', { class: 'note mono' }, timed(task.best_us, task.timing), task.best_compared ? ' (compared: ' + comparedText(task.best_compared) + ')' : '',
      task.default_us ? ', default ' + timed(task.default_us, task.timing) + ' (' + ratio(task.default_us, task.search_us || task.best_us) + ')' : '',
      ', ' + count(task.evals) + ' judged', task.valid ? ' of ' + count(task.valid) : ''),
    curveChart(task, wide ? { width: 820, height: 260 } : {}),
    verdictBar(task.verdicts),
    task.best_config ? h('pre', null, configText(task.best_config)) : null,
    h('p', null, h('a', { href: '#/leaderboard' + filter }, 'Leaderboard'), ' · ',
      h('a', { href: '#/effects' + filter }, 'Parameters')));
}

/** The latest candidates that did not pass, each a way to its page. */
function failureTable(trials) {
  return table([{ name: 'result', class: 'num' }, { name: 'verdict' }, { name: 'problem', class: 'wide' }, { name: 'why', class: 'wrap' },
    { name: 'configuration', class: 'wrap mono wide' }], trials.map((trial) => ({
    href: '#/candidate/' + trial.candidate,
    label: trial.verdict + ', ' + configText(trial.config),
    cells: [trial.sequence === null ? null : trial.sequence + 1, h('span', { class: 'state bad' }, trial.verdict), trial.problem,
      trial.detail.split('\n')[0], configText(trial.config)],
  })), 'None so far.');
}

views.run = ([id]) => {
  let failures = [];
  // Drawn once: what is being typed must not be drawn anew.
  const note = noteSection(id);
  const draw = (run) => keepFocus(() => show(
    h('h1', null, kernelsOf(run)),
    facts([['state', stateOf(run)], ['run', run.id], ['device', shortDevice(run.device)], ['strategy', run.strategy], ['seed', run.seed],
      ['judged', done(run)], ['rate', run.rate ? run.rate.toFixed(1) + '/s' : null], ['at work', run.elapsed_s ? seconds(run.elapsed_s) : null],
      ['recorded clock', run.clock_s ? seconds(run.clock_s) : null], ['budget', run.budget_s ? seconds(run.budget_s) : null],
      ['asked for', when(run.submitted_at)], ['began', when(run.started_at)], ['ended', run.ended_at ? when(run.ended_at) : null]]),
    run.message ? h('p', { class: run.state === 'failed' ? 'problem' : 'note' }, run.message) : null,
    run.notes.map((note) => h('p', { class: 'note' }, note)),
    h('p', null, h('a', { href: '#/explore/' + run.id }, 'All trials and plots'), ' · ',
      h('a', { href: '#/compare?runs=' + encodeURIComponent(run.id) }, 'Compare'), ' ', stopButton(run), deleteButton(run)),
    run.activities?.length ? [h('h2', null, 'At work'), activityList(run)] : null,
    note,
    h('h2', null, 'Best time so far'),
    run.tasks.length ? h('div', { class: run.tasks.length === 1 ? 'single' : 'grid' },
      run.tasks.map((task) => taskSection(run, task, run.tasks.length === 1 && innerWidth > 640)))
      : h('p', { class: 'note' }, 'Not started yet.'),
    h('h2', null, 'Latest failures'), failureTable(failures)));
  let over = false;
  onLive(() => { const run = state.runs.get(id); if (run) draw(run); });
  repeat(2000, async (here) => {
    if (over) return;
    try {
      failures = await api('/api/v1/runs/' + encodeURIComponent(id) + '/trials?failed=true&limit=20');
    } catch (error) {
      if (error.status !== 404) throw error;
      over = true;
      if (here()) noSuchRun(id, error);
      return;
    }
    if (state.runs.has(id)) return;
    const run = await api('/api/v1/runs/' + encodeURIComponent(id));
    over = !['queued', 'running'].includes(run.state);
    if (here()) draw(run);
  });
};

/** Choices of kernel, problem, device and kind of time, made of what the leaderboard holds. */
function chooser(path, rows, chosen, change) {
  const select = (key, name) => {
    const others = rows.filter((row) => ['kernel', 'problem', 'device', 'timing']
      .every((other) => other === key || !chosen[other] || row[other] === chosen[other]));
    const values = [...new Set(others.map((row) => row[key]))].sort();
    if (chosen[key] && !values.includes(chosen[key])) values.push(chosen[key]);
    return h('label', null, name, h('select', { id: 'choose-' + key, change: (event) => {
      chosen[key] = event.target.value;
      setQuery(path, chosen);
      change();
    } }, h('option', { value: '' }, 'all'),
    values.map((value) => h('option', { value, selected: value === chosen[key] ? '' : null }, value))));
  };
  return [select('kernel', 'kernel'), select('problem', 'problem'), select('device', 'device'), select('timing', 'time')];
}

function chosenFrom(parameters, extra) {
  const chosen = {};
  for (const key of ['kernel', 'problem', 'device', 'timing', ...extra]) chosen[key] = parameters.get(key) || '';
  return chosen;
}

function apiQuery(chosen, top) {
  const pairs = ['kernel', 'problem', 'device', 'timing'].filter((key) => chosen[key]).map((key) => [key, chosen[key]]);
  return '?' + new URLSearchParams([...pairs, ...(top ? [['top', top]] : [])]);
}

/** Parameters with one value in all rows of a group tell nothing apart. */
function fixedOf(rows) {
  const values = new Map();
  for (const row of rows) {
    for (const [name, value] of Object.entries(row.config)) {
      values.set(name, (values.get(name) || new Set()).add(JSON.stringify(value)));
    }
  }
  return rows.length > 1 ? new Set([...values].filter(([, set]) => set.size === 1).map(([name]) => name)) : new Set();
}

/** The most rows that the API gives: all of a space that anybody tuned so far. */
const ALL = '100000';

views.leaderboard = () => {
  const chosen = chosenFrom(query(), ['words', 'top']);
  const filters = h('form', { class: 'filters', submit: (event) => event.preventDefault() });
  const boards = h('div');
  let rows = [], groups = [], drawn = '';
  const change = () => { setQuery('/leaderboard', chosen); load(() => true); };
  const words = h('input', { id: 'filter', type: 'search', value: chosen.words, placeholder: 'BM=64 STAGES=2', input: () => {
    const began = !chosen.words;
    chosen.words = words.value;
    // A filter looks at many more rows than are shown.
    if (began || !chosen.words) change(); else { setQuery('/leaderboard', chosen); draw(); }
  } });
  const top = h('select', { id: 'choose-top', change: () => { chosen.top = top.value; change(); } },
    ['10', '50', '200', ALL].map((value) => h('option', { value, selected: value === (chosen.top || '10') ? '' : null }, value === ALL ? 'all' : value)));
  const drawFilters = () => {
    const key = JSON.stringify([groups.map(groupName), chosen.kernel, chosen.problem, chosen.device, chosen.timing]);
    // A list that is open and a word that is half typed must not be drawn anew.
    if (key === drawn) return;
    drawn = key;
    filters.replaceChildren(...chooser('/leaderboard', groups, chosen, () => load(() => true)),
      h('label', null, 'configuration', words), h('label', null, 'rows each', top));
  };
  const draw = () => keepFocus(() => {
    drawFilters();
    const wanted = chosen.words.trim().split(/\s+/).filter(Boolean);
    const matches = rows.filter((row) => {
      const parts = Object.entries(row.config).map(([name, value]) => name + '=' + value);
      return wanted.every((word) => parts.some((part) => word.includes('=') ? part === word : part.includes(word)));
    });
    const shown = [...groupBy(matches)].map(([name, group]) => board(name, group.slice(0, Number(chosen.top || 10))));
    boards.replaceChildren(...(shown.length ? shown
      : [h('p', { class: 'note' }, rows.length ? 'No row matches the filter.' : 'No results yet.')]));
  });
  const load = async (here) => {
    const answer = await api('/api/v1/leaderboard' + apiQuery(chosen, String(Math.max(chosen.words ? 1000 : 0, Number(chosen.top || 10)))));
    if (!here()) return;
    rows = answer;
    draw();
  };
  show(h('h1', null, 'Leaderboard'), filters, boards);
  repeat(3000, async (here) => {
    groups = await api('/api/v1/leaderboard?top=1');
    if (here()) await load(here);
  });
};

function groupName(row) {
  return row.kernel + '  ' + row.problem + '  on ' + row.device + ', ' + row.timing;
}

function groupBy(rows) {
  const groups = new Map();
  for (const row of rows) groups.set(groupName(row), [...(groups.get(groupName(row)) || []), row]);
  return groups;
}

/** How results were compared at the timed size; null for recorded ones. */
function comparedText(compared) {
  return compared ? compared.replace('_', ' ') : null;
}

/** Columns of the leaderboard: name, class, cell; those that say nothing in any row are left out. */
function boardColumns(rows, fixed) {
  const tied = rows.filter((row) => row.tied_with_best).length > 1;
  const several = (row, text) => row.samples > 1 ? text : null;
  const columns = [
    ['rank', 'num', (row) => row.rank + (tied && row.tied_with_best ? '=' : '')],
    ['p50 µs', 'num', (row) => digits(row.time_us_p50)],
    ['p90 µs', 'num wide', (row) => several(row, digits(row.time_us_p90))],
    ['95 % interval', 'num wide', (row) => row.ci95_us && several(row, digits(row.ci95_us[0]) + ' .. ' + digits(row.ci95_us[1]))],
    ['× default', 'num', (row) => row.speedup_vs_default?.toFixed(2)],
    ['× baseline', 'num', (row) => row.speedup_vs_baseline?.toFixed(2)],
    ['compared', '', (row) => comparedText(row.compared)],
    ['regs', 'num wide', (row) => row.registers],
    ['spill', 'num wide', (row) => row.spill_bytes],
    ['shared', 'num wide', (row) => row.shared_bytes === null ? null : bytes(row.shared_bytes)],
    ['configuration', 'wrap mono', (row) => configText(row.config, fixed)],
    ['commit', 'wide mono', (row) => row.commit ? row.commit.slice(0, 10) + (row.dirty ? '+' : '') : null],
    ['date', 'wide', (row) => when(row.measured_at).slice(0, 10)],
  ];
  return columns.filter(([, , cell]) => rows.some((row) => (cell(row) ?? null) !== null));
}

function board(name, rows) {
  const fixed = fixedOf(rows);
  const columns = boardColumns(rows, fixed);
  const lines = rows.map((row) => ({
    href: '#/candidate/' + row.candidate,
    label: 'rank ' + row.rank + ', ' + timed(row.time_us_p50, row.timing),
    cells: columns.map(([, , cell]) => cell(row)),
  }));
  const same = Object.entries(rows[0].config).filter(([key]) => fixed.has(key));
  return h('section', null, h('h2', null, name),
    table(columns.map(([heading, look]) => ({ name: heading, class: look })), lines, ''),
    same.length ? h('p', { class: 'note' }, 'The same in all rows: ' + configText(Object.fromEntries(same))) : null);
}

function hazardSection(hazard) {
  const place = [hazard.file ? hazard.file + (hazard.line ? ':' + hazard.line : '') : null,
    hazard.block ? 'block ' + hazard.block.join(',') : null, hazard.thread ? 'thread ' + hazard.thread.join(',') : null,
    hazard.address].filter(Boolean).join(' · ');
  return h('div', { class: 'card' }, h('h3', null, h('span', { class: 'state bad' }, hazard.kind)), h('div', null, hazard.detail),
    place ? h('div', { class: 'dim mono' }, place) : null, hazard.source ? h('pre', null, hazard.source) : null);
}

function attemptSection(attempt) {
  const measured = attempt.measurement;
  return h('section', { class: 'card' },
    h('h3', null, h('span', { class: 'state ' + (attempt.verdict === 'ok' ? 'ok' : 'bad') }, attempt.verdict),
      h('a', { href: '#/run/' + attempt.run }, attempt.run), h('span', { class: 'dim' }, attempt.device)),
    measured ? facts([['p50', timed(measured.p50, measured.kind)], ['p90', timed(measured.p90, measured.kind)],
      [measured.kind === 'predicted' ? 'interval of the model' : '95 % interval',
        measured.ci95[0] < measured.ci95[1] ? digits(measured.ci95[0]) + ' .. ' + digits(measured.ci95[1]) + ' µs' : null],
      ['samples', measured.samples.length], ['time', measured.kind + (measured.reused ? ', reused' : '')], ['protocol', measured.protocol],
      ['error / tolerance', attempt.max_error === null ? null : attempt.max_error.toPrecision(3)], ['compared', comparedText(attempt.compared)], ['found by', attempt.origin],
      ['result', attempt.sequence + 1], ['commit', attempt.commit ? attempt.commit.slice(0, 12) + (attempt.dirty ? ' (dirty)' : '') : null],
      ['driver', attempt.driver], ['judged', when(attempt.judged_at)]])
      : facts([['found by', attempt.origin], ['result', attempt.sequence + 1], ['judged', when(attempt.judged_at)]]),
    measured ? samplesChart(measured) : null,
    attempt.detail ? h('pre', null, attempt.detail) : null,
    attempt.hazards.map(hazardSection));
}

views.candidate = ([hash]) => repeat(15000, async (here) => {
  const page = await api('/api/v1/candidates/' + encodeURIComponent(hash));
  if (!here()) return;
  const code = page.compilation;
  show(h('h1', null, page.kernel + ' ', h('span', { class: 'dim' }, page.problem)),
    facts([...Object.entries(page.sizes), ['candidate', page.candidate.slice(0, 12)],
      ['template', page.template_hash ? page.template_hash.slice(0, 12) : null]]),
    h('h2', null, 'Configuration'), facts(Object.entries(page.config).map(([name, value]) => [name, String(value)])),
    code ? [h('h2', null, 'Resources'), facts([['registers', code.registers], ['spills', bytes(code.spill_bytes)], ['stack', bytes(code.stack_bytes)],
      ['shared', bytes(code.shared_bytes)], ['PTX', code.ptx_bytes ? bytes(code.ptx_bytes) : null],
      ['SASS', code.sass_bytes ? bytes(code.sass_bytes) : null], ['target', code.arch], ['NVRTC', code.nvrtc_version],
      ['compile', code.compile_us ? seconds(code.compile_us / 1e6) : 'cached'], ['cubin', code.cubin_hash.slice(0, 12)]])] : null,
    h('h2', null, 'Verdicts'), h('div', { class: 'grid' }, page.attempts.map(attemptSection)));
});

function effectSection(effects) {
  return [h('h2', null, effects.kernel + '  ' + effects.problem + '  on ' + effects.device + ', ' + effects.timing),
    h('p', { class: 'note' }, 'Each value of a parameter: the fastest candidate with it (dot) and their median (ring), in µs. The search looks where it is fast, so medians are of what it tried.'),
    h('div', { class: 'grid' }, effects.parameters.map((effect) => h('section', { class: 'card' },
      h('h3', { class: 'mono' }, effect.parameter), effectChart(effect))))];
}

views.effects = () => {
  const chosen = chosenFrom(query(), []);
  const filters = h('form', { class: 'filters', submit: (event) => event.preventDefault() });
  const charts = h('div');
  let groups = [], turn = 0;
  const epoch = state.epoch, alive = () => epoch === state.epoch;
  const load = async (here) => {
    const mine = turn += 1;
    filters.replaceChildren(...chooser('/effects', groups, chosen, () => load(alive)));
    if (groups.length === 0) { charts.replaceChildren(h('p', { class: 'note' }, 'No results yet.')); return; }
    const wanted = groups.filter((row) => ['kernel', 'problem', 'device', 'timing'].every((key) => !chosen[key] || row[key] === chosen[key]));
    const sections = [];
    for (const row of wanted) {
      sections.push(effectSection(await api('/api/v1/effects' + apiQuery(row))));
      if (!here() || mine !== turn) return;
      // The first ones are shown while the others are computed.
      if (sections.length === 1 || sections.length === wanted.length) charts.replaceChildren(...sections.flat());
    }
  };
  show(h('h1', null, 'Parameters'), filters, charts);
  repeat(5000, async (here) => {
    const fresh = await api('/api/v1/leaderboard?top=1');
    if (!here()) return;
    // A list that is open must not be drawn anew.
    if (filters.contains(document.activeElement) && groups.length) return;
    // Effects of many groups take long: they are computed anew where a best one has changed.
    if (fresh.length > 1 && JSON.stringify(fresh) === JSON.stringify(groups)) return;
    groups = fresh;
    await load(here);
  });
};

/** The family tree of an evolution: each change below its parent, with its diff. */
function familyTree(evolution) {
  // The page's rules refuse a style attribute, not a property of the style.
  const indented = (one) => {
    const name = h('span', { class: 'mono' }, (one.depth > 1 ? '└ ' : '') + one.change);
    name.style.paddingLeft = (one.depth - 1) * 1.4 + 'em';
    return name;
  };
  const rows = evolution.changes.map((one) => ({ cells: [
    indented(one),
    h('span', { class: 'state ' + (one.better ? 'ok' : one.outcome.startsWith('failed') ? 'bad' : '') }, one.outcome),
    one.found, [one.note, one.diff ? h('details', { 'data-change': one.change }, h('summary', null, 'diff'), h('pre', null, one.diff)) : null]] }));
  return h('section', { class: 'card family' },
    h('h3', null, evolution.title, stateOf(evolution)),
    table([{ name: 'change' }, { name: 'outcome' }, { name: 'found', class: 'wrap' }, { name: 'note', class: 'wrap' }], rows, 'No change yet.'),
    facts(evolution.figures.map((figure) => [figure.name, figure.value])));
}

views.changes = () => {
  const list = h('div');
  let drawn = '';
  show(h('h1', null, 'Changes of the code'), h('p', { class: 'note' }, 'Each change is below its parent; gains are relative to the shipped template.'), list);
  repeat(3000, async (here) => {
    const evolutions = await api('/api/v1/evolutions');
    const text = JSON.stringify(evolutions);
    // An open diff must not be drawn anew.
    if (!here() || text === drawn) return;
    drawn = text;
    list.replaceChildren(...(evolutions.length ? evolutions.map(familyTree)
      : [h('p', { class: 'note' }, 'No evolution yet. Start one: ', h('code', null, 'tuner evolve softmax --mutator scripted'))]));
  });
};

views.devices = () => {
  const list = h('div');
  show(h('h1', null, 'Devices'), list);
  repeat(2000, async (here) => {
    const devices = await api('/api/v1/devices');
    if (!here()) return;
    keepFocus(() => list.replaceChildren(table([{ name: 'device' }, { name: 'kind' }, { name: 'model', class: 'wide' }, { name: 'target', class: 'wide' },
      { name: 'SMs', class: 'num' }, { name: 'SM clock MHz', class: 'num' }, { name: 'memory', class: 'num wide' }, { name: 'runs', class: 'num' },
      { name: 'engine' }, { name: 'last run', class: 'wide' }],
    devices.map((device) => ({ cells: [device.name, device.kind, device.full_name, device.arch, device.sm_count,
      device.sm_mhz ? device.sm_mhz + ' of ' + (device.boost_mhz || '?') : device.boost_mhz ? device.boost_mhz + ' boost' : null,
      device.memory_mhz ? device.memory_mhz + ' MHz' : device.dram_gb_s ? device.dram_gb_s + ' GB/s' : null, device.runs,
      device.running ? h('a', { href: '#/run/' + device.running }, 'at work') : 'idle', when(device.last_run_at)] })),
    'No device has results yet.')));
  });
};

views.fleet = () => {
  const page = h('div');
  show(h('h1', null, 'Fleet'), page);
  repeat(2000, async (here) => {
    const fleet = await api('/api/v1/fleet').catch((error) => {
      if (error.status === 404) return null;
      throw error;
    });
    if (!here()) return;
    if (!fleet) {
      page.replaceChildren(h('p', { class: 'note' }, 'This daemon uses only its own machine. Start it with --fleet nats://HOST:4222 to use workers.'));
      return;
    }
    const share = (part, whole) => whole > 0 ? Math.round(100 * Math.min(part / whole, 1)) + ' %' : null;
    page.replaceChildren(
      facts([['fleet', fleet.fleet], ['server', fleet.server], ['connection', fleet.connected ? 'up' : 'down'],
        ['results not yet stored', count(fleet.results_waiting)], ['files and code', bytes(fleet.object_bytes)],
        ['duplicate answers', count(fleet.duplicates)], ['rejected answers', count(fleet.refused)], ['invalid messages', count(fleet.malformed)]]),
      h('h2', null, 'Workers'),
      table([{ name: 'worker' }, { name: 'device' }, { name: 'state' }, { name: 'busy', class: 'num' }, { name: 'judged', class: 'num' },
        { name: 'a second', class: 'num' }, { name: 'compiled', class: 'num' }, { name: 'given back', class: 'num wide' }, { name: 'NVRTC', class: 'wide' },
        { name: 'driver', class: 'wide' }, { name: 'version', class: 'wide' }],
      fleet.workers.map((worker) => ({ cells: [worker.name, worker.device || 'compiles only', worker.protocol === fleet.protocol ? worker.state : 'incompatible protocol ' + worker.protocol,
        share(worker.busy_s, worker.up_s), count(worker.judged), worker.up_s > 0 ? (worker.judged / worker.up_s).toFixed(1) : null,
        count(worker.compiled), count(worker.returned), worker.nvrtc, worker.driver, worker.version] })),
      'No worker is connected. Start one: tuner worker --fleet ' + fleet.server),
      h('h2', null, 'Runs'),
      table([{ name: 'run' }, { name: 'hub' }, { name: 'queue', class: 'wide' }, { name: 'in flight', class: 'num' }, { name: 'stored', class: 'num' }],
        fleet.hubs.map((hub) => ({ cells: [hub.run, hub.host + ' ' + hub.pid, hub.class, count(hub.waiting), count(hub.stored)] })), 'No run is active.'),
      h('h2', null, 'Queues'),
      table([{ name: 'queue' }, { name: 'waiting', class: 'num' }, { name: 'in flight', class: 'num' }, { name: 'redelivered', class: 'num' }],
        fleet.queues.map((queue) => ({ cells: [queue.name, count(queue.waiting), count(queue.in_hand), count(queue.redelivered)] })), 'No queue yet.'));
  });
};

fetch('/healthz').then((response) => response.json()).then((health) => {
  document.getElementById('version').textContent = '· tuner ' + health.version;
}).catch(() => {});
route();
follow();
