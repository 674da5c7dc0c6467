// Charts, as SVG with text for those who cannot see it.

/** Round values for an axis. */
function ticks(low, high, most) {
  const span = high - low || Math.abs(high) || 1;
  const raw = span / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
  const values = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step) values.push(value);
  return { values, step };
}

function tickText(value, step) {
  const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return Math.abs(value) >= 10000 ? Number(value.toPrecision(6)).toLocaleString('en') : value.toFixed(Math.min(places, 6));
}

/** A frame with axes; gives scales. */
function frame(width, height, [x0, x1], [y0, y1], label, unit) {
  const left = 62, right = 12, top = 12, bottom = 24;
  const svg = s('svg', { viewBox: '0 0 ' + width + ' ' + height, role: 'img', 'aria-label': label });
  const x = (value) => left + (width - left - right) * (x1 === x0 ? 0.5 : (value - x0) / (x1 - x0));
  const y = (value) => height - bottom - (height - top - bottom) * (y1 === y0 ? 0.5 : (value - y0) / (y1 - y0));
  const axis = ticks(y0, y1, 4);
  for (const value of axis.values) {
    svg.append(s('line', { class: 'axis', x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      s('text', { x: left - 6, y: y(value) + 4, 'text-anchor': 'end' }, tickText(value, axis.step)));
  }
  svg.append(s('text', { x: 0, y: top - 1 }, unit));
  return { svg, x, y, left, right, top, bottom, width, height };
}

/** A drawing with the buttons that save it. */
function saved(title, drawing) {
  return h('div', { class: 'drawing' }, drawing, saveButtons(title, () => drawingFiles(drawing)));
}

/** Best time so far over the number of results. Steps, because nothing is known in between. */
function curveChart(task, options = {}) {
  const points = task.curve;
  if (!points || points.length === 0) return h('p', { class: 'note' }, 'No candidate has passed yet.');
  const last = Math.max(task.evals, points[points.length - 1].evals);
  const values = points.map((point) => point.us);
  // The first candidate may be a hundred times slower: what matters is near the best.
  const best = Math.min(...values);
  const high = Math.min(Math.max(...values, task.default_us || 0), best * 4);
  const pad = (high - best || best * 0.1) * 0.08;
  const scale = best >= 1e6 ? [1e6, 's'] : best >= 1e3 ? [1e3, 'ms'] : [1, 'µs'];
  const label = 'Best time so far: ' + points.length + ' improvements in ' + last + ' results, now ' + time(best);
  const chart = frame(options.width || 440, options.height || 180, [Math.min(1, last), last],
    [(best - pad) / scale[0], (high + pad) / scale[0]], label, scale[1]);
  const { svg, x, y } = chart;
  const cut = (us) => y(Math.min(us, high + pad) / scale[0]);
  let path = 'M' + x(points[0].evals) + ' ' + cut(points[0].us);
  for (const point of points.slice(1)) path += 'H' + x(point.evals) + 'V' + cut(point.us);
  path += 'H' + x(last);
  const floor = chart.height - chart.bottom;
  svg.append(s('path', { class: 'fill', d: path + 'V' + floor + 'H' + x(points[0].evals) + 'Z' }));
  if (task.default_us && task.default_us <= high + pad) {
    const level = y(task.default_us / scale[0]);
    svg.append(s('line', { class: 'mark', x1: chart.left, x2: chart.width - chart.right, y1: level, y2: level }),
      s('text', { x: chart.width - chart.right, y: level - 4, 'text-anchor': 'end' }, 'default'));
  }
  svg.append(s('path', { class: 'curve', d: path }));
  for (const point of points) {
    svg.append(s('circle', { class: 'dot', cx: x(point.evals), cy: cut(point.us), r: 2.5 },
      s('title', null, 'result ' + point.evals + ': ' + time(point.us))));
  }
  if (Math.max(...values) > high) svg.append(s('text', { x: chart.left + 4, y: chart.top - 1 }, 'cut at four times the best'));
  const axis = ticks(0, last, 5);
  for (const value of axis.values.filter((value) => value >= 1)) {
    svg.append(s('text', { x: x(value), y: chart.height - 6, 'text-anchor': 'middle' }, tickText(value, axis.step)));
  }
  return saved('best ' + task.kernel + ' ' + task.problem, svg);
}

/** Raw samples in the order taken, with median, p90 and the interval of the median. */
function samplesChart(measurement) {
  const samples = measurement.samples;
  if (samples.length < 2) return h('p', { class: 'note' }, samples.length ? 'One sample: no spread.' : 'No samples are stored.');
  const low = Math.min(...samples, measurement.ci95[0]), high = Math.max(...samples, measurement.p90);
  const pad = (high - low || high * 0.01) * 0.1;
  const label = samples.length + ' samples from ' + time(Math.min(...samples)) + ' to ' + time(Math.max(...samples)) +
    ', median ' + time(measurement.p50) + ', 90th percentile ' + time(measurement.p90);
  const chart = frame(440, 170, [0, Math.max(1, samples.length - 1)], [low - pad, high + pad], label, 'µs');
  const { svg, x, y } = chart;
  const [ciLow, ciHigh] = measurement.ci95;
  const right = chart.width - chart.right;
  svg.append(s('rect', { class: 'band', x: chart.left, width: right - chart.left, y: y(ciHigh), height: Math.max(0.5, y(ciLow) - y(ciHigh)) }),
    s('line', { class: 'curve', x1: chart.left, x2: right, y1: y(measurement.p50), y2: y(measurement.p50) }),
    s('line', { class: 'mark', x1: chart.left, x2: right, y1: y(measurement.p90), y2: y(measurement.p90) }));
  samples.forEach((sample, place) => svg.append(
    s('circle', { class: 'ring', cx: x(place), cy: y(sample), r: samples.length > 200 ? 1.5 : 2.5 },
      s('title', null, 'sample ' + (place + 1) + ': ' + digits(sample) + ' µs'))));
  svg.append(s('text', { x: chart.left, y: chart.height - 6 }, 'sample 1'),
    s('text', { x: right, y: chart.height - 6, 'text-anchor': 'end' }, String(samples.length)));
  return saved('samples', svg);
}

/** What a parameter's values are worth: best (dot) and median (ring) of the candidates with each. */
function effectChart(effect) {
  const values = effect.values;
  const best = Math.min(...values.map((value) => value.best_us));
  const high = Math.max(...values.map((value) => Math.min(value.median_us, best * 8)));
  const pad = (high - best || best * 0.05) * 0.08;
  const label = effect.parameter + ': fastest with ' + values.find((value) => value.best_us === best).value;
  const chart = frame(400, 170, [-0.5, values.length - 0.5], [best - pad, high + pad], label, 'µs');
  const { svg, x, y } = chart;
  const cut = (us) => y(Math.min(us, high + pad));
  const every = Math.ceil(values.length / 8);
  values.forEach((value, place) => {
    const text = effect.parameter + '=' + value.value + ': best ' + time(value.best_us) + ', median ' +
      time(value.median_us) + ', ' + count(value.count) + ' candidates';
    svg.append(s('g', null, s('title', null, text),
      s('line', { class: 'link', x1: x(place), x2: x(place), y1: cut(value.best_us), y2: cut(value.median_us) }),
      s('circle', { class: 'ring', cx: x(place), cy: cut(value.median_us), r: 3.5 }),
      s('circle', { class: 'dot', cx: x(place), cy: cut(value.best_us), r: 3.5 })));
    if (place % every === 0) {
      const name = String(value.value);
      svg.append(s('text', { x: x(place), y: chart.height - 6, 'text-anchor': 'middle' },
        name.length > 9 ? name.slice(0, 8) + '…' : name));
    }
  });
  return saved(effect.parameter, svg);
}

/** Verdicts as a bar: right ones green, the rest red. */
function verdictBar(verdicts) {
  const all = Object.entries(verdicts);
  const total = all.reduce((sum, [, number]) => sum + number, 0);
  if (total === 0) return null;
  const ok = verdicts.ok || 0;
  const good = h('i', { class: 'ok' }), bad = h('i');
  good.style.width = 100 * ok / total + '%';
  bad.style.width = 100 - 100 * ok / total + '%';
  const words = all.map(([name, number]) => name + ' ' + count(number)).join(', ');
  return h('div', null, h('div', { class: 'bar', role: 'img', 'aria-label': words }, good, bad),
    h('div', { class: 'dim mono' }, words));
}
