"use strict";
// Charts of several schedulers: the first is blue, and the same scheduler has the same color everywhere.

function comparedUse(data, colors, height) {
  const unit = unitOf(data.end);
  const lines = (column, what) => data.runs.map((run, i) => ({
    name: run.name, color: colors.hues[i % colors.hues.length], data: over(run.series.at, unit, run.series[column], (v) => `${gpus(v)} ${what}`),
  }));
  return panels(colors, data, height, [
    { name: "GPUs in use", share: 3, format: number, lines: lines("used", "in use") },
    { name: "GPUs asked for by those who wait", share: 2, format: number, lines: lines("demanded", "asked for") },
  ]);
}

function comparedWaits(data, colors) {
  const curves = data.runs.flatMap((run, i) => run.waits.map((c, k) => ({ ...c, name: run.name + (k ? ", by GPU-hours" : ""), run: i, dashed: k > 0 })));
  return waitsChart(curves, colors, (c) => ({
    color: colors.hues[c.run % colors.hues.length], lineStyle: { width: 1.8, type: c.dashed ? "dashed" : "solid" },
  }));
}

function scatterChart(data, colors) {
  const option = base(colors), s = data.scatter;
  const longest = Math.max(60, ...s.pairs.flatMap((p) => [...p.x, ...p.y]));
  const shown = (v) => Math.max(1, v);
  const scale = (name, gap) => Object.assign(axis(colors), {
    type: "log", logBase: 60, min: 1, max: longest, name, nameLocation: "middle", nameGap: gap,
    axisLabel: { color: colors.soft, formatter: (v) => (v <= 1 ? "≤ 1 s" : lasting(v)), hideOverlap: true },
  });
  option.legend = Object.assign(legendOf(colors), { icon: "circle" });
  option.grid = { left: 86, right: 26, top: 40, bottom: 44 };
  option.xAxis = scale(`waited under ${s.first}`, 26);
  option.yAxis = scale("waited under the other", 66);
  option.tooltip.formatter = (p) => `a job of ${number(p.data[4])} GPUs<br>${escaped(s.first)}: <b>${lasting(p.data[2])}</b><br>${escaped(p.seriesName)}: <b>${lasting(p.data[3])}</b>`;
  option.series = s.pairs.map((pair, i) => ({
    name: pair.name, type: "scatter", color: colors.hues[(i + 1) % colors.hues.length], itemStyle: { opacity: 0.55 },
    symbolSize: (d) => 3 + Math.min(12, Math.log2(1 + d[4])), data: pair.x.map((x, k) => [shown(x), shown(pair.y[k]), x, pair.y[k], pair.sizes[k]]),
  }));
  option.series.push({
    type: "line", data: [[1, 1], [longest, longest]], showSymbol: false, silent: true, animation: false, tooltip: { show: false },
    lineStyle: { color: colors.soft, type: "dashed", width: 1 },
  });
  return option;
}
