"use strict";
// What a page of a case does: its plots, and a night's links.
(() => {
  const root = document.body.dataset.root;
  const make = (tag, text, attributes = {}) => {
    const element = document.createElement(tag);
    if (text) element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };

  const holder = document.getElementById("data");
  if (!holder) return;
  const runs = window.evmperf_runs;
  const percent = (change) => (change === null ? "" : ` ${change < 0 ? "−" : "+"}${Math.abs(change * 100).toFixed(1)} %`);
  const address = (report) => (report.includes("://") ? report : root + report);
  const date = (run) => new Date(run[0] * 1000).toISOString().slice(0, 16).replace("T", " ");

  // A run is [seconds, id as a shell word, release, kernel, report, CI job].
  function links(run) {
    const found = make("span");
    if (run[4]) found.append(make("a", "report", { href: address(run[4]) }), " ");
    if (run[5]) found.append(make("a", "CI job", { href: run[5] }), " ");
    return found;
  }

  JSON.parse(holder.textContent).forEach((series, number) => {
    const section = document.querySelector(`[data-number="${number}"]`);
    const night = section.dataset.night;
    const points = series.runs.map((run, at) => ({
      x: runs[run][0], run, figure: series.figures[at][0], count: series.figures[at][1], values: series.values[at], other: series.other[at] || "",
    }));
    const where = new Map(points.map((p, at) => [p.run, at]));
    // A level begins at a night that is there.
    const levels = series.levels.map(([from, to, level, spread]) => ({ from: where.get(from) ?? 0, to: where.get(to) ?? points.length - 1, level, spread }));
    const marks = [];
    let release = null;
    for (const { run, x } of points) {
      if (release !== null && runs[run][2] && runs[run][2] !== release) marks.push({ x, kind: "release", text: runs[run][2] });
      release = runs[run][2] || release;
    }
    for (const [run] of series.accepted) marks.push({ x: runs[run][0], kind: "accepted", text: "accepted" });
    for (const [run, outcome, change] of series.off ? [...series.moves, series.off] : series.moves)
      if (outcome !== "accepted") marks.push({ x: runs[run][0], kind: outcome === "worse" || outcome === "better" ? outcome : "release", text: `${outcome === "not judged" ? "changed" : outcome}${percent(change)}` });
    marks.sort((a, b) => a.x - b.x);

    const card = section.querySelector(".picked");
    const said = (p) => `${p.values.length > 1 ? "mean " : ""}${evmperf.number(p.figure)} ${series.unit}`;
    const drawn = evmperf.trend(section.querySelector(".plot"), { points, levels, marks, unit: series.unit, metric: series.metric, count: points.some((p) => p.values.length > 1) }, (p, at) => {
      const run = runs[p.run];
      card.replaceChildren();
      const by = (step, text, name) => {
        const button = make("button", text, { type: "button", "aria-label": name });
        button.addEventListener("click", () => { drawn.step(step); card.querySelector(`[aria-label="${name}"]`).focus(); });
        return button;
      };
      const text = make("p");
      text.append(make("strong", `${date(run)} UTC: ${said(p)}`), ` ${p.values.length > 1 ? `(${p.count > p.values.length ? `lowest and highest of ${p.count}: ` : ""}${p.values.map(evmperf.number).join(", ")}) ` : ""}`,
        `release ${run[2] || "unknown"}, kernel ${run[3] || "unknown"}${p.other ? `; ${p.other}` : ""} `, links(run));
      // A release has no run's folder to compare.
      if (p.run > 0 && night === "night")
        text.append("differences from the run before: ", make("code", `evmperf compare --facts ${runs[p.run - 1][1]} ${run[1]}`));
      card.append(by(-1, "‹", `${night} before`), by(1, "›", `${night} after`), text);
    });
    section.querySelectorAll("[data-nights]").forEach((button) => button.addEventListener("click", () => {
      drawn.last(Number(button.dataset.nights));
      section.querySelectorAll("[data-nights]").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
    }));
    card.append(make("p", `Tap a ${night}, or: `));
    const newest = make("button", `newest ${night}`, { type: "button" });
    newest.addEventListener("click", () => drawn.choose(points.length - 1));
    card.firstChild.append(newest);

    const details = section.querySelector(".nights");
    details.addEventListener("toggle", () => {
      if (details.querySelector("table")) return;
      const table = make("table"), head = make("tr");
      for (const name of ["date", "figure", "samples", "release", "leads to"]) head.append(make("th", name, { scope: "col" }));
      table.append(make("thead"), make("tbody"));
      table.tHead.append(head);
      for (const p of [...points].reverse()) {
        const row = make("tr"), run = runs[p.run], last = make("td");
        last.append(links(run));
        row.append(make("th", date(run), { scope: "row" }), make("td", said(p), { class: "n" }), make("td", String(p.count), { class: "n" }), make("td", run[2]), last);
        table.tBodies[0].append(row);
      }
      const wide = make("div", "", { class: "wide", tabindex: "0", role: "region", "aria-label": `Every ${night} of ${series.metric}` });
      wide.append(table);
      details.append(wide);
    });
  });
})();
