"use strict";
// Draws what evmperf.publish.pages.plots and the site of trends put into a page, by uPlot.
const evmperf = (() => {
  const DASHES = [[], [8, 3], [3, 3], [12, 3, 3, 3], [1, 3], [5, 5]];
  const DAY = 86400;
  const shown = [];
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (index) => css(`--s${index % DASHES.length}`);
  const font = "12px system-ui, sans-serif";
  const number = (value) => (value === null || value === undefined ? "–" : String(Number(value.toPrecision(6))));

  function size(bytes) {
    for (const [power, suffix] of [[30, "G"], [20, "M"], [10, "k"]])
      if (bytes >= 2 ** power) return Number((bytes / 2 ** power).toPrecision(3)) + suffix;
    return String(bytes);
  }

  const axis = (label, more) => ({
    label, font, labelFont: font, labelSize: 20, labelGap: 2,
    stroke: () => css("--ink"),
    grid: { stroke: () => css("--grid"), width: 1 },
    ticks: { stroke: () => css("--grid"), width: 1, size: 5 },
    ...more,
  });
  // Numbers as wide as they are, in pixels.
  const wide = (_, values) => 14 + 7 * Math.max(0, ...(values || []).map((v) => String(v ?? "").length));
  const measured = (unit) => axis(unit, { size: wide, values: (_, splits) => splits.map((v) => (v === null ? "" : number(v))) });

  // An element is as wide as its place allows, which is known once it can be seen.
  function place(element, height, make) {
    let plot = null;
    new ResizeObserver(() => {
      const width = element.clientWidth;
      if (!width) return;
      if (plot) { if (plot.width !== width) plot.setSize({ width, height }); return; }
      plot = make(width);
      shown.push(plot);
    }).observe(element);
  }

  function curves(element, spec) {
    const logarithmic = spec.kind === "histogram";
    const xs = [...new Set(spec.series.flatMap((s) => s.points.map((p) => p[0])))].sort((a, b) => a - b);
    const at = new Map(xs.map((x, index) => [x, index]));
    const data = [xs, ...spec.series.map((series) => {
      const row = new Array(xs.length).fill(null);
      for (const [x, y] of series.points) row[at.get(x)] = y;
      return row;
    })];
    const step = Math.ceil(xs.length / 8);
    const across = spec.sizes
      ? axis(spec.axes[0], { splits: () => xs.filter((_, index) => index % step === 0), values: (_, s) => s.map(size), filter: (_, s) => s })
      : axis(spec.axes[0], { values: (_, splits) => splits.map((v) => (Number.isInteger(v) || xs.some((x) => !Number.isInteger(x)) ? number(v) : "")) });
    const up = logarithmic ? { distr: 3 }
      : spec.zero === false ? {} : { range: (_, low, high) => [Math.min(0, low), high * 1.08 || 1] };
    const broken = spec.zero === false && spec.series.every((s) => s.points.every((p) => p[1] > 0));
    const height = element.closest(".multiples") ? 200 : 280;
    place(element, height, (width) => new uPlot({
      width, height,
      scales: { x: spec.sizes ? { time: false, distr: 3, log: 2 } : { time: false }, y: up },
      axes: [across, measured(broken ? `${spec.axes[1]}, not from 0` : spec.axes[1])],
      legend: { markers: { dash: (u, index) => (u.series[index].dash?.length ? "dashed" : "solid") } },
      series: [{ label: spec.axes[0], value: (_, v) => (v === null ? "–" : spec.sizes ? size(v) : number(v)) }, ...spec.series.map((series, index) => ({
        label: series.name, spanGaps: true, width: series.of === undefined ? 2 : 1,
        stroke: () => colour(series.of ?? index), dash: series.of === undefined ? DASHES[index % DASHES.length] : [2, 2],
        points: { show: !logarithmic && series.of === undefined, size: 7, fill: () => colour(index) },
        paths: logarithmic ? uPlot.paths.stepped({ align: 1 }) : undefined,
        value: (_, v) => (v === null ? "–" : `${number(v)} ${spec.axes[1]}`),
      }))],
    }, data, element));
  }

  function spark(element, values) {
    const xs = values.map((_, index) => index);
    place(element, 28, (width) => new uPlot({
      width, height: 28, pxAlign: false, cursor: { show: false }, legend: { show: false },
      scales: { x: { time: false } }, axes: [{ show: false }, { show: false }],
      series: [{}, { stroke: () => colour(0), width: 1.5, spanGaps: true, points: { show: values.length < 3, size: 4 } }],
    }, [xs, values], element));
  }

  // One metric over the nights: `points` are { x (seconds), figure, values, other, ... } in the order of
  // time, `levels` have { from, to (indices), level, spread }, `marks` { x, text, kind }.
  function trend(element, spec, picked) {
    const { points, levels, marks } = spec;
    const xs = points.map((p) => p.x);
    const all = points.flatMap((p) => p.values);
    for (const l of levels) all.push(l.level - 2 * l.spread, l.level + 2 * l.spread);
    const low = all.reduce((a, b) => Math.min(a, b), Infinity), high = all.reduce((a, b) => Math.max(a, b), -Infinity);
    const margin = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
    let chosen = -1;
    const height = 300;
    const hooks = {
      drawClear: [(u) => clipped(u, (c) => {
        for (const l of levels) {
          const x0 = u.valToPos(xs[l.from] - DAY / 2, "x", true), x1 = u.valToPos(xs[l.to] + DAY / 2, "x", true);
          const y = (v) => u.valToPos(v, "y", true);
          c.fillStyle = css("--band");
          c.fillRect(x0, y(l.level + 2 * l.spread), x1 - x0, y(l.level - 2 * l.spread) - y(l.level + 2 * l.spread));
          stroke(c, css("--ink"), 1, [], [[x0, y(l.level)], [x1, y(l.level)]]);
        }
      })],
      draw: [(u) => clipped(u, (c) => {
        const radius = 2 * devicePixelRatio;
        points.forEach((p, index) => {
          const x = u.valToPos(p.x, "x", true);
          c.fillStyle = c.strokeStyle = p.other ? css("--line") : colour(0);
          for (const v of p.values) {
            c.globalAlpha = p.values.length > 1 ? 0.45 : 1;
            c.beginPath();
            c.arc(x, u.valToPos(v, "y", true), radius, 0, 7);
            if (p.other) c.stroke(); else c.fill();
          }
          c.globalAlpha = 1;
          if (index === chosen) {
            c.strokeStyle = css("--ink");
            c.lineWidth = 2 * devicePixelRatio;
            c.beginPath();
            c.arc(x, u.valToPos(p.figure, "y", true), 3.5 * radius, 0, 7);
            c.stroke();
          }
        });
        let free = -Infinity;
        c.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
        c.textBaseline = "top";
        c.textAlign = "left";
        for (const mark of marks) {
          const x = u.valToPos(mark.x, "x", true), paint = css(`--mark-${mark.kind}`);
          stroke(c, paint, mark.kind === "release" ? 1 : 1.5, mark.kind === "release" ? [2, 4] : mark.kind === "accepted" ? [8, 4] : [], [[x, u.bbox.top], [x, u.bbox.top + u.bbox.height]]);
          const wide = c.measureText(mark.text).width;
          if (x > free && x >= u.bbox.left && x + wide < u.bbox.left + u.bbox.width) {
            c.fillStyle = paint;
            c.fillText(mark.text, x + 3 * devicePixelRatio, u.bbox.top + 2);
            free = x + wide + 8 * devicePixelRatio;
          }
        }
      })],
      ready: [(u) => u.over.addEventListener("click", () => { if (u.cursor.idx !== null) choose(u.cursor.idx); })],
    };
    let plot = null;
    function choose(index) {
      chosen = Math.max(0, Math.min(points.length - 1, index));
      if (plot) plot.redraw(false);
      picked(points[chosen], chosen);
    }
    place(element, height, (width) => (plot = new uPlot({
      width, height, hooks,
      tzDate: (time) => uPlot.tzDate(new Date(time * 1000), "Etc/UTC"),
      scales: { x: { range: (_, from, to) => [Math.max(from, xs[0]) - DAY, Math.min(to, xs[xs.length - 1]) + DAY] }, y: { range: [low - margin, high + margin] } },
      axes: [axis(null, { space: 64, incrs: [1, 2, 3, 5, 7, 10, 15, 30, 60, 90, 180, 365, 730].map((days) => days * DAY), values: (_, splits, __, ___, step) => splits.map((time) => new Date(time * 1000).toISOString().slice(...(step < 28 * DAY ? [5, 10] : [0, 7]))) }), measured(low - margin > 0 ? `${spec.unit}, not from 0` : spec.unit)],
      cursor: { y: false, drag: { x: true, y: false } },
      series: [{ value: (_, v) => (v === null ? "–" : new Date(v * 1000).toISOString().slice(0, 10)), label: "night" }, {
        label: spec.count ? "mean" : spec.metric, stroke: () => colour(0), width: 1, spanGaps: true, points: { show: false },
        value: (_, v) => (v === null ? "–" : `${number(v)} ${spec.unit}`),
      }],
    }, [xs, points.map((p) => (p.other ? null : p.figure))], element)));
    return {
      choose,
      step: (by) => choose(chosen < 0 ? points.length - 1 : chosen + by),
      last: (nights) => plot.setScale("x", { min: nights ? xs[Math.max(0, xs.length - nights)] : xs[0], max: xs[xs.length - 1] }),
    };
  }

  function clipped(u, work) {
    const { left, top, width, height } = u.bbox;
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(left, top, width, height);
    u.ctx.clip();
    work(u.ctx);
    u.ctx.restore();
  }

  function stroke(c, paint, width, dash, path) {
    c.strokeStyle = paint;
    c.lineWidth = width * devicePixelRatio;
    c.setLineDash(dash.map((d) => d * devicePixelRatio));
    c.beginPath();
    path.forEach(([x, y], index) => (index ? c.lineTo(x, y) : c.moveTo(x, y)));
    c.stroke();
    c.setLineDash([]);
  }

  document.querySelectorAll("[data-plot]").forEach((e) => curves(e, JSON.parse(e.dataset.plot)));
  document.querySelectorAll("[data-spark]").forEach((e) => spark(e, JSON.parse(e.dataset.spark)));
  // Colours are the style sheet's: another scheme, or paper, needs another drawing.
  for (const query of ["(prefers-color-scheme: dark)", "print"])
    matchMedia(query).addEventListener("change", () => shown.forEach((plot) => plot.redraw(false)));
  return { trend, number };
})();
