// Plots of many trials, drawn by Apache ECharts on a canvas: no text of a plot is ever markup.

let library = null;

/** Loads the plotting library, once, when the first plot is wanted. */
function echartsLibrary() {
  library ||= new Promise((resolve, reject) => {
    document.head.append(h('script', { src: '/echarts.js', load: () => resolve(window.echarts),
      error: () => { library = null; reject(new Error('The plotting library did not load; reload the page.')); } }));
  });
  return library;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** One colour for each class of verdicts, the same in every plot and in both colour schemes. */
function verdictColour(verdict) {
  const colours = { passed: '--good', wrong: '--bad', limit: '--warn', not_run: '--dim' };
  return colour(colours[state.classes.get(verdict)] || '--bad');
}

/** A tooltip in the page's colours, without markup. */
function tooltip(extra) {
  return { renderMode: 'richText', confine: true, backgroundColor: colour('--panel'), borderColor: colour('--line'),
    textStyle: { color: colour('--text'), fontSize: 12 }, ...extra };
}

/** Draws into an element and redraws on resizes; the option's clicks go to `click`. */
async function plot(element, option, click) {
  const echarts = await echartsLibrary();
  if (!element.isConnected) return null;
  const old = echarts.getInstanceByDom(element);
  const chart = old || echarts.init(element, null, { renderer: 'canvas' });
  const text = colour('--dim');
  chart.setOption({ animation: false, aria: { enabled: true }, backgroundColor: 'transparent',
    textStyle: { color: text, fontFamily: 'ui-monospace, monospace', fontSize: 11 },
    tooltip: tooltip(), ...option }, { notMerge: true });
  if (!old) {
    const watcher = new ResizeObserver(() => chart.resize());
    watcher.observe(element);
    state.cleanup.push(() => { watcher.disconnect(); chart.dispose(); });
  }
  chart.off('click');
  if (click) chart.on('click', click);
  return chart;
}

/** Lines and words of an axis in the page's colours. */
function axis(extra) {
  const line = { lineStyle: { color: colour('--line') } };
  return { axisLine: line, splitLine: line, axisTick: line, nameTextStyle: { color: colour('--dim') },
    axisLabel: { color: colour('--dim'), hideOverlap: true }, nameLocation: 'middle', nameGap: 28, ...extra };
}

/** The least value that at least that share of the values does not exceed. */
function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

/** Times of which fewer have no 90 % quantile that leaves outliers out. */
const FEW = 20;

/** An axis of times: to a quantile, so that an outlier flattens nothing, from zero, on a logarithmic scale, or cut to what is
 * near the best, and named so. */
function timeAxis(mode, values) {
  const best = Math.min(...values), worst = Math.max(...values);
  const few = values.length < FEW;
  // Of few times one outlier is more than a tenth: at least half of them are shown, and what is near the best.
  const near = few ? Math.max(best * 4, quantile(values, 0.5)) : worst;
  const most = Math.max(Math.min(quantile(values, 0.9), near), best * 1.05);
  const cut = most < worst;
  const extra = { quantile: { min: Math.max(0, best - 0.05 * (most - best)), max: cut ? most : worst + 0.02 * (worst - best) || best * 1.05,
    name: !cut ? 'time, µs' : few ? 'time, µs (axis ends before outliers)' : 'time, µs (axis ends at the 90 % quantile)', axisLabel: { color: colour('--dim'), hideOverlap: true, formatter: digits } },
   zero: { min: 0, name: 'time, µs' }, log: { type: 'log', min: 'dataMin', name: 'time, µs (logarithmic)' },
    cut: { min: best * 0.98, max: best * 2, name: 'time, µs (axis cut: best to twice the best)' } }[mode];
  return axis({ type: 'value', nameGap: 48, ...extra });
}

function trialText(trial, varied) {
  const values = Object.entries(trial.config).filter(([name]) => varied.includes(name)).map(([name, value]) => name + '=' + value);
  const lines = [];
  for (let at = 0; at < values.length; at += 4) lines.push(values.slice(at, at + 4).join('  '));
  return 'result ' + (trial.sequence + 1) + ': ' + (trial.verdict === 'ok' ? time(trial.time_us) : trial.verdict) + '\n' + lines.join('\n');
}

/** All trials in the order of their results: times above, what did not pass in a strip below. */
function scatterOption(trials, varied, mode) {
  const passed = trials.filter((trial) => trial.time_us !== null), failed = trials.filter((trial) => trial.time_us === null);
  const verdicts = [...new Set(failed.map((trial) => trial.verdict))].sort();
  const strip = verdicts.length ? 16 * verdicts.length + 8 : 0;
  let best = Infinity;
  const steps = passed.filter((trial) => trial.time_us < best && (best = trial.time_us)).map((trial) => [trial.sequence + 1, trial.time_us]);
  if (steps.length) steps.push([trials.length, best]);
  const point = (trial, y) => ({ value: [trial.sequence + 1, y], trial });
  const shown = tooltip({ trigger: 'item', formatter: (item) => item.data.trial ? trialText(item.data.trial, varied) : '' });
  return {
    tooltip: shown,
    legend: { top: 0, textStyle: { color: colour('--dim') }, data: ['ok', 'best so far', ...verdicts] },
    grid: [{ left: 78, right: 16, top: 30, bottom: 70 + strip }, { left: 78, right: 16, height: Math.max(0, strip - 8), bottom: 62 }],
    xAxis: [axis({ type: 'value', min: 0, max: trials.length, gridIndex: 0, axisLabel: { show: strip === 0, color: colour('--dim') } }),
      axis({ type: 'value', min: 0, max: trials.length, gridIndex: 1, name: 'result', show: strip > 0 })],
    yAxis: [timeAxis(mode, passed.map((trial) => trial.time_us)),
      axis({ type: 'category', gridIndex: 1, data: verdicts, show: strip > 0, axisLabel: { color: colour('--dim'), fontSize: 10, width: 70, overflow: 'truncate', interval: 0 } })],
    dataZoom: [{ type: 'inside', xAxisIndex: [0, 1] }, { type: 'inside', yAxisIndex: 0, filterMode: 'none', zoomOnMouseWheel: 'shift', moveOnMouseMove: false },
      { type: 'slider', xAxisIndex: [0, 1], bottom: 8, height: 22, textStyle: { color: colour('--dim') } }],
    series: [{ name: 'ok', type: 'scatter', symbolSize: 6, itemStyle: { color: verdictColour('ok'), opacity: 0.75 }, large: false,
      data: passed.map((trial) => point(trial, trial.time_us)) },
    { name: 'best so far', type: 'line', step: 'end', symbol: 'none', lineStyle: { color: colour('--accent'), width: 1.5 }, itemStyle: { color: colour('--accent') }, data: steps },
    ...verdicts.map((verdict) => ({ name: verdict, type: 'scatter', xAxisIndex: 1, yAxisIndex: 1, symbol: 'rect', symbolSize: [3, 11],
      itemStyle: { color: verdictColour(verdict) }, data: failed.filter((trial) => trial.verdict === verdict).map((trial) => point(trial, verdict)) }))],
  };
}

/** Characters of a parameter's name in a line of a label, and the distance of such lines. */
const LABEL_CHARACTERS = 25, LABEL_LINE = 11;

/** Height of the plot of importances: room for the lines of the longest name in each row. */
function importanceHeight(names) {
  const lines = Math.ceil(Math.max(...names.map((name) => name.length)) / LABEL_CHARACTERS);
  return 40 + Math.max(22, LABEL_LINE * lines + 4) * (names.length + 1);
}

/** What each parameter explains of the variance of log time. */
function importanceOption(effects) {
  const rows = effects.parameters.filter((effect) => effect.importance !== null).sort((a, b) => a.importance - b.importance);
  const names = rows.map((effect) => effect.parameter), shares = rows.map((effect) => 100 * effect.importance);
  return {
    grid: { left: 20 + 6.1 * Math.min(LABEL_CHARACTERS, Math.max(8, ...names.map((name) => name.length))), right: 48, top: 6, bottom: 34 },
    xAxis: axis({ type: 'value', min: 0, max: 100, name: '% of the variance of log time' }),
    yAxis: axis({ type: 'category', data: ['together', ...names], axisLabel: { color: colour('--dim'), fontSize: 10, lineHeight: LABEL_LINE, width: 6.1 * LABEL_CHARACTERS, overflow: 'breakAll', interval: 0 } }),
    tooltip: { show: false },
    series: [{ type: 'bar', data: [{ value: 100 * effects.together, itemStyle: { color: colour('--dim') } }, ...shares], itemStyle: { color: colour('--accent') },
      barMaxWidth: 16, label: { show: true, position: 'right', color: colour('--text'), formatter: (item) => item.value.toFixed(1) } }],
  };
}

/** Values of a parameter, numbers by size. */
function levelsOf(trials, name) {
  const values = [...new Set(trials.map((trial) => trial.config[name]))];
  return values.sort((a, b) => typeof a === 'number' && typeof b === 'number' ? a - b : String(a) < String(b) ? -1 : 1).map(String);
}

/** One line a trial across all parameters, coloured by its time. */
function parallelOption(trials, varied, width) {
  const passed = trials.filter((trial) => trial.time_us !== null).sort((a, b) => b.time_us - a.time_us);
  const best = passed.length ? passed[passed.length - 1].time_us : 1;
  const slow = passed.length ? passed[Math.floor(passed.length / 10)].time_us : 1;
  const word = { color: colour('--dim'), fontSize: 10 };
  // Names that would run into one another are slanted.
  const room = (width - 116) / varied.length - 6;
  const slanted = varied.some((name) => 6 * name.length > room);
  const names = slanted ? { nameRotate: 35, nameLocation: 'end', nameGap: 8, nameTextStyle: { ...word, align: 'left' } } : {};
  const longest = Math.max(...varied.map((name) => name.length));
  const right = Math.max(60, ...varied.map((name, at) => 5 * name.length - (varied.length - 1 - at) * (room + 6)));
  return {
    tooltip: { show: false },
    parallelAxis: [...varied.map((name, dim) => ({ dim, name, type: 'category', data: levelsOf(trials, name), axisLabel: word, nameTextStyle: word, ...names,
      nameTruncate: { maxWidth: 7 * longest } })),
      { dim: varied.length, name: 'µs', type: 'log', axisLabel: word, nameTextStyle: word, inverse: true }],
    parallel: { left: 56, right: slanted ? Math.min(right, width / 2) : 60, top: slanted ? 24 + 3.6 * longest : 40, bottom: 40, parallelAxisDefault: { axisLine: { lineStyle: { color: colour('--line') } } } },
    visualMap: { type: 'continuous', dimension: varied.length, min: best, max: Math.max(slow, best * 1.01), left: 'center', bottom: 0, orient: 'horizontal', calculable: true,
      itemHeight: 160, itemWidth: 12, text: ['slow', 'fast'], textStyle: { color: colour('--dim') }, inRange: { color: [colour('--accent'), colour('--dim')], opacity: [0.95, 0.12] }, formatter: (value) => digits(value) },
    series: [{ type: 'parallel', lineStyle: { width: 1, opacity: 0.35 }, data: passed.slice(-2000).map((trial) => [...varied.map((name) => String(trial.config[name])), trial.time_us]) }],
  };
}

/** Times over the values of one parameter. */
function sliceOption(trials, varied, name, mode) {
  const passed = trials.filter((trial) => trial.time_us !== null);
  return {
    tooltip: tooltip({ trigger: 'item', formatter: (item) => trialText(item.data.trial, varied) }),
    grid: { left: 78, right: 16, top: 12, bottom: 44 },
    xAxis: axis({ type: 'category', data: levelsOf(trials, name), name }),
    yAxis: timeAxis(mode, passed.map((trial) => trial.time_us)),
    series: [{ type: 'scatter', symbolSize: 6, itemStyle: { color: colour('--accent'), opacity: 0.45 },
      data: passed.map((trial) => ({ value: [String(trial.config[name]), trial.time_us], trial })) }],
  };
}

/** What one may want small beside the time, as `tuner run --objective` names it. */
const OBJECTIVES = {
  registers: { name: 'registers per thread', of: (trial) => trial.registers },
  p90: { name: 'p90, µs', of: (trial) => trial.time_us_p90 },
  code_size: { name: 'code size, bytes', of: (trial) => trial.code_bytes },
  energy: { name: 'energy per launch, mJ', of: (trial) => trial.energy_mj },
};

/** Those of which something is known, and that differ among the trials by more than the time does. */
function objectivesOf(passed) {
  return Object.keys(OBJECTIVES).filter((name) => {
    const values = passed.map((trial) => OBJECTIVES[name].of(trial)).filter((value) => value > 0);
    return new Set(values).size > 1 && passed.some((trial) => OBJECTIVES[name].of(trial) !== trial.time_us);
  });
}

/** The trials that no other beats: not larger in both and smaller in one; by time. */
function frontOf(trials, of) {
  const known = trials.filter((trial) => of(trial) > 0).sort((a, b) => a.time_us - b.time_us || of(a) - of(b));
  let least = Infinity;
  return known.filter((trial) => of(trial) < least && (least = of(trial)));
}

/** The time over another objective, and the front of both. */
function frontOption(trials, varied, objective, mode) {
  const { name, of } = OBJECTIVES[objective];
  const passed = trials.filter((trial) => trial.time_us !== null && of(trial) > 0);
  const point = (trial) => ({ value: [of(trial), trial.time_us], trial });
  // One that passed the gate's first look alone may be wrong.
  const front = frontOf(passed.filter((trial) => trial.gate !== 'first'), of).map(point);
  return {
    tooltip: tooltip({ trigger: 'item', formatter: (item) => trialText(item.data.trial, varied) + '\n' + name + ': ' + of(item.data.trial) }),
    legend: { top: 0, textStyle: { color: colour('--dim') } },
    grid: { left: 78, right: 16, top: 30, bottom: 44 },
    xAxis: axis({ type: 'value', name, min: 'dataMin', max: 'dataMax' }),
    yAxis: timeAxis(mode, passed.map((trial) => trial.time_us)),
    series: [{ name: 'ok', type: 'scatter', symbolSize: 6, itemStyle: { color: verdictColour('ok'), opacity: 0.45 }, data: passed.map(point) },
      { name: 'front', type: 'line', step: 'start', symbolSize: 8, lineStyle: { color: colour('--accent'), width: 1.5 }, itemStyle: { color: colour('--accent') }, data: front }],
  };
}

/** Times for which a contour is drawn, as multiples of the best. */
const CONTOURS = [1.1, 1.25, 1.5, 2, 4];

/** The ends of the contour of `level` in a square of four cells, clockwise from the lower left, each a place and a
 * logarithm of time: where it crosses a side, by linear interpolation (marching squares). */
function contourIn(corners, level) {
  const ends = [];
  corners.forEach((from, side) => {
    const to = corners[(side + 1) % 4];
    if (from.log < level === to.log < level) return;
    const share = (level - from.log) / (to.log - from.log);
    ends.push([0, 1].map((axis) => from.at[axis] + share * (to.at[axis] - from.at[axis])));
  });
  // Four ends: low corners lie across from each other, and either way of joining the ends is one of two that fit.
  return ends.length === 4 ? [ends.slice(0, 2), ends.slice(2)] : ends.length === 2 ? [ends] : [];
}

/** Contours between the cells that have a time, in squares of four neighbours. */
function contourSeries(levels, times, best) {
  const at = (i, j) => times.get(JSON.stringify([levels[0][i], levels[1][j]]))?.time_us;
  const squares = [];
  for (let i = 0; i + 1 < levels[0].length; i++) {
    for (let j = 0; j + 1 < levels[1].length; j++) {
      const cells = [[i, j], [i, j + 1], [i + 1, j + 1], [i + 1, j]].map(([x, y]) => ({ x, y, log: Math.log(at(x, y) / best) }));
      if (cells.every((cell) => Number.isFinite(cell.log))) squares.push(cells);
    }
  }
  const renderItem = (params, api) => {
    const corners = squares[params.dataIndex].map((cell) => ({ at: api.coord([cell.x, cell.y]), log: cell.log }));
    const lines = CONTOURS.flatMap((multiple) => contourIn(corners, Math.log(multiple)));
    return { type: 'group', children: lines.map(([from, to]) => ({ type: 'line', silent: true,
      shape: { x1: from[0], y1: from[1], x2: to[0], y2: to[1] }, style: { stroke: colour('--text'), lineWidth: 1.25, opacity: 0.75 } })) };
  };
  return { type: 'custom', renderItem, silent: true, z: 3, tooltip: { show: false }, data: squares.map(([cell]) => [cell.x, cell.y]) };
}

/** The best time for each pair of values of two parameters, with contours. */
function pairOption(trials, varied, first, second) {
  const cells = new Map();
  for (const trial of trials.filter((trial) => trial.time_us !== null)) {
    const key = JSON.stringify([String(trial.config[first]), String(trial.config[second])]);
    const there = cells.get(key);
    if (!there || trial.time_us < there.time_us) cells.set(key, trial);
  }
  const data = [...cells].map(([key, trial]) => ({ value: [...JSON.parse(key), trial.time_us], trial }));
  const times = data.map((cell) => cell.value[2]);
  const best = Math.min(...times);
  return {
    tooltip: tooltip({ trigger: 'item', formatter: (item) => trialText(item.data.trial, varied) }),
    grid: { left: 78, right: 90, top: 12, bottom: 44 },
    xAxis: axis({ type: 'category', data: levelsOf(trials, first), name: first, splitArea: { show: true, areaStyle: { color: ['transparent'] } } }),
    yAxis: axis({ type: 'category', data: levelsOf(trials, second), name: second, nameGap: 48 }),
    visualMap: { type: 'continuous', seriesIndex: 0, min: best, max: Math.max(best * 1.01, Math.min(Math.max(...times), best * 4)), right: 0, top: 'center', calculable: true, itemHeight: 120, itemWidth: 12,
      inRange: { color: [colour('--accent'), colour('--accent-soft')] }, textStyle: { color: colour('--dim') }, formatter: (value) => digits(value) },
    series: [{ type: 'heatmap', data, itemStyle: { borderColor: colour('--panel'), borderWidth: 1 } },
      contourSeries([levelsOf(trials, first), levelsOf(trials, second)], cells, best)],
  };
}

/** Best time so far of several runs. */
function comparisonOption(curves, mode) {
  const all = curves.flatMap((curve) => curve.points.map((point) => point.us));
  const shades = ['--accent', '--bad', '--good', '--warn', '--dim', '--text'];
  return {
    tooltip: tooltip({ trigger: 'axis', valueFormatter: (value) => time(value) }),
    legend: { top: 0, type: 'scroll', textStyle: { color: colour('--dim') } },
    grid: { left: 78, right: 16, top: 34, bottom: 70 },
    xAxis: axis({ type: 'value', min: 0, name: 'results' }),
    yAxis: timeAxis(mode, all),
    dataZoom: [{ type: 'inside' }, { type: 'slider', bottom: 6, height: 20, textStyle: { color: colour('--dim') } }],
    series: curves.map((curve, place) => ({ name: curve.name, type: 'line', step: 'end', symbolSize: 5, itemStyle: { color: colour(shades[place % shades.length]) },
      lineStyle: { width: 1.75, type: place < shades.length ? 'solid' : 'dashed' },
      data: [...curve.points.map((point) => [point.evals, point.us]), ...(curve.points.length ? [[curve.evals, curve.points[curve.points.length - 1].us]] : [])] })),
  };
}
