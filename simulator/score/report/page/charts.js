"use strict";
// Charts: each function makes an option of ECharts from the page's data and the colors of its scheme.

// panels are lines below each other over one axis of time, so that no chart needs two scales.
function panels(colors, data, height, parts) {
  const unit = unitOf(data.end), left = 60, right = 20, gap = 32, legend = parts.some((part) => part.lines.length > 1);
  const top = legend ? 52 : 30, room = height - top - 34 - gap * (parts.length - 1);
  const total = parts.reduce((sum, part) => sum + part.share, 0);
  const option = base(colors);
  Object.assign(option, {
    legend: Object.assign(legendOf(colors), { show: legend, data: [...new Set(parts.flatMap((part) => part.lines.length > 1 ? part.lines.map((l) => l.name) : []))] }),
    axisPointer: { link: [{ xAxisIndex: "all" }], label: { show: false } },
    grid: [], xAxis: [], yAxis: [], series: [],
    dataZoom: [{ type: "inside", xAxisIndex: parts.map((_, i) => i), zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, filterMode: "none" }],
  });
  option.tooltip.trigger = "axis";
  option.tooltip.formatter = (points) => timeTip(points, unit);
  let at = top;
  parts.forEach((part, i) => {
    const size = room * part.share / total, last = i === parts.length - 1;
    option.grid.push({ left, right, top: at, height: size });
    at += size + gap;
    option.xAxis.push(Object.assign(axis(colors), {
      type: "value", gridIndex: i, min: 0, max: data.end / unit.seconds, splitLine: { show: false }, axisTick: { show: last },
      axisLabel: { show: last, color: colors.soft, hideOverlap: true, showMaxLabel: false, formatter: (v) => number(v) + (v === 0 ? " " + unit.name : "") },
    }));
    option.yAxis.push(Object.assign(axis(colors), {
      type: "value", gridIndex: i, name: part.name, nameLocation: "end", nameGap: 9, min: 0, splitNumber: size < 120 ? 2 : 4,
      nameTextStyle: { color: colors.soft, align: "left" }, axisLabel: { color: colors.soft, formatter: part.format },
    }));
    part.lines.forEach((line, k) => option.series.push(Object.assign({
      type: "line", xAxisIndex: i, yAxisIndex: i, step: "end", showSymbol: false, animation: false,
      emphasis: { disabled: true }, lineStyle: { width: 1.5 }, markLine: k ? undefined : windowMarks(data, unit, colors, legend && i === 0),
    }, line)));
  });
  return option;
}

// windowMarks are lines where the window begins and ends that the scorecard is of.
function windowMarks(data, unit, colors, named) {
  if (!data.window) return undefined;
  const inside = data.window.filter((t) => t > 0 && t < data.end * 0.999);
  return {
    silent: true, symbol: "none", animation: false, lineStyle: { color: colors.soft, type: "dashed", width: 1 },
    data: inside.map((t) => ({
      xAxis: t / unit.seconds,
      label: { show: named, formatter: t === data.window[0] ? "window begins" : "window ends", color: colors.soft, fontSize: 10, distance: 3 },
    })),
  };
}

function legendOf(colors) {
  return { top: 0, left: "center", textStyle: { color: colors.soft }, itemHeight: 9, itemWidth: 14, icon: "rect" };
}

function timeTip(points, unit) {
  if (!points.length) return "";
  const seen = new Set();
  const rows = points.filter((p) => !seen.has(p.seriesIndex) && seen.add(p.seriesIndex)).map((p) => {
    const say = p.data && p.data.length > 2 ? p.data[2] : number(p.value[1]);
    return `${p.marker}${escaped(p.seriesName)}: <b>${say}</b>`;
  });
  return `<b>${lasting(points[0].value[0] * unit.seconds)}</b> since the beginning<br>` + rows.join("<br>");
}

function escaped(text) {
  return String(text).replace(/[&<>"']/g, (c) => "&#" + c.charCodeAt(0) + ";");
}

// base is what all options share.
function base(colors) {
  return {
    animation: false, backgroundColor: "transparent", color: colors.hues,
    textStyle: { color: colors.ink, fontFamily: getComputedStyle(document.body).fontFamily },
    tooltip: { confine: true, backgroundColor: colors.card, borderColor: colors.line, textStyle: { color: colors.ink, fontSize: 12 } },
    aria: { enabled: true },
  };
}

function axis(colors) {
  return {
    axisLine: { lineStyle: { color: colors.line } }, axisTick: { lineStyle: { color: colors.line } },
    axisLabel: { color: colors.soft }, splitLine: { lineStyle: { color: colors.line, opacity: 0.6 } },
    nameTextStyle: { color: colors.soft },
  };
}

// over pairs a column with the instants, with a text for tips.
function over(at, unit, column, say) {
  return at.map((t, i) => [t / unit.seconds, column[i], say(column[i])]);
}

const gpus = (v) => number(v) + " GPUs";

// allocationChart paints the areas over each other, the largest first: each hides what is not its own.
function allocationChart(data, colors, height) {
  const s = data.series, unit = unitOf(data.end);
  const useless = s.capacity.map((c, i) => Math.max(0, c - s.used[i]) * s.fragmentation[i]);
  const area = (name, color, top, own) => ({
    name, color, data: s.at.map((t, i) => [t / unit.seconds, top[i], gpus(Math.round(own[i]))]), lineStyle: { width: 0 }, areaStyle: { color, opacity: 1 },
  });
  return panels(colors, data, height, [
    { name: "GPUs", share: 2, format: number, lines: [
      area("free", colors.free, s.capacity, s.capacity.map((c, i) => Math.max(0, c - s.used[i] - useless[i]))),
      area("free, of no use to the mix", colors.orange, s.used.map((u, i) => u + useless[i]), useless),
      area("in use", colors.blue, s.used, s.used),
    ] },
    { name: "GPUs asked for by those who wait", share: 1, format: number, lines: [
      { name: "asked for by those who wait", data: over(s.at, unit, s.demanded, gpus), color: colors.red, areaStyle: { opacity: 0.15 } },
    ] },
  ]);
}

function spaceChart(data, colors, height) {
  const s = data.series, unit = unitOf(data.end);
  return panels(colors, data, height, [
    { name: "fragmentation: part of the free GPUs that is of no use to the mix", share: 1, format: (v) => number(v * 100) + " %", lines: [
      { name: "fragmentation", data: over(s.at, unit, s.fragmentation, percent), color: colors.orange, areaStyle: { opacity: 0.15 } },
    ] },
    { name: "largest placeable gang, GPUs", share: 1, format: number, lines: [
      { name: "largest placeable gang", data: over(s.at, unit, s.largest, gpus), color: colors.green, areaStyle: { opacity: 0.15 } },
    ] },
  ]);
}

function queueChart(data, colors, height) {
  const s = data.series, unit = unitOf(data.end), of = unitOf(Math.max(...s.oldest, 1));
  return panels(colors, data, height, [
    { name: `age of the oldest job that waits, ${of.name}`, share: 1, format: number, lines: [
      { name: "oldest", data: s.at.map((t, i) => [t / unit.seconds, s.oldest[i] / of.seconds, lasting(s.oldest[i])]), color: colors.pink, areaStyle: { opacity: 0.15 } },
    ] },
    { name: "jobs that wait", share: 1, format: number, lines: [
      { name: "waiting", data: over(s.at, unit, s.waiting, (v) => number(v) + " jobs"), color: colors.sky, areaStyle: { opacity: 0.15 } },
    ] },
  ]);
}

// waitsChart begins at a second: who waited less stands there.
function waitsChart(curves, colors, styleOf) {
  const option = base(colors);
  const longest = Math.max(60, ...curves.flatMap((c) => c.x));
  option.legend = Object.assign(legendOf(colors), { itemStyle: { opacity: 1 }, itemWidth: 18, itemHeight: 4 });
  option.grid = { left: 52, right: 26, top: 66, bottom: 42 };
  option.tooltip.trigger = "item";
  option.tooltip.formatter = (p) => `${escaped(p.seriesName)}<br><b>${percent(p.value[1])}</b> waited at most <b>${lasting(p.data[2])}</b>`;
  option.xAxis = Object.assign(axis(colors), {
    type: "log", logBase: 60, min: 1, max: longest, name: "waited at most", nameLocation: "middle", nameGap: 26,
    axisLabel: { color: colors.soft, formatter: (v) => (v <= 1 ? "≤ 1 s" : lasting(v)), hideOverlap: true },
  });
  option.yAxis = Object.assign(axis(colors), { type: "value", min: 0, max: 1, axisLabel: { color: colors.soft, formatter: (v) => Math.round(v * 100) + " %" } });
  option.series = curves.map((c, i) => Object.assign({
    name: c.name, type: "line", step: "end", symbol: "circle", symbolSize: 5, showSymbol: true, animation: false,
    itemStyle: { opacity: 0 }, emphasis: { focus: "series", itemStyle: { opacity: 1 } },
    data: c.x.map((x, k) => [Math.max(1, x), c.y[k], x]),
  }, styleOf(c, i)));
  return option;
}

function classWaits(data, colors) {
  return waitsChart(data.waits, colors, (c, i) => {
    if (i === 0) return { color: colors.ink, lineStyle: { width: 2.5 }, z: 5 };
    if (i === 1) return { color: colors.ink, lineStyle: { width: 2, type: "dashed" }, z: 5 };
    return { color: colors.hues[(i - 2) % colors.hues.length], lineStyle: { width: 1.5 } };
  });
}

function qualityChart(data, colors) {
  const q = data.quality, option = base(colors);
  const totals = q.counts.map((row) => row.reduce((a, b) => a + b, 0));
  const shades = [colors.blue, colors.sky, colors.yellow, colors.orange, colors.red];
  option.legend = legendOf(colors);
  option.grid = { left: 8, right: 26, top: 46, bottom: 40, containLabel: true };
  option.tooltip.formatter = (p) => `${escaped(q.classes[p.dataIndex])}<br>${escaped(p.seriesName)}: <b>${number(p.data.count)}</b> of ${number(totals[p.dataIndex])} placements`;
  option.xAxis = Object.assign(axis(colors), { type: "value", max: 1, axisLabel: { color: colors.soft, formatter: (v) => Math.round(v * 100) + " %" }, name: "part of the placements", nameLocation: "middle", nameGap: 24 });
  option.yAxis = Object.assign(axis(colors), { type: "category", inverse: true, data: q.classes.map((c, i) => `${c} (${number(totals[i])})`), axisTick: { show: false } });
  option.series = q.bins.map((bin, b) => ({
    name: bin, type: "bar", stack: "all", barMaxWidth: 26, color: shades[b], itemStyle: { borderColor: colors.card, borderWidth: 0.5 },
    data: q.counts.map((row, i) => ({ value: row[b] / totals[i], count: row[b] })),
  }));
  return option;
}

function latencyChart(data, colors) {
  const l = data.latency, option = base(colors);
  const time = (us) => (us >= 1e6 ? number(us / 1e6) + " s" : us >= 1e3 ? number(us / 1e3) + " ms" : us + " µs");
  option.legend = legendOf(colors);
  option.grid = { left: 8, right: 16, top: 46, bottom: 40, containLabel: true };
  option.tooltip.trigger = "axis";
  option.tooltip.axisPointer = { type: "shadow" };
  option.xAxis = Object.assign(axis(colors), { type: "category", data: l.below.map((v) => "< " + time(v)), name: "wall time of one decision", nameLocation: "middle", nameGap: 26, axisTick: { show: false } });
  option.yAxis = Object.assign(axis(colors), { type: "value", name: "decisions", minInterval: 1, nameTextStyle: { color: colors.soft, align: "left" }, axisLabel: { color: colors.soft, formatter: number } });
  option.series = [["a start", colors.blue, l.placed], ["no place now", colors.orange, l.refused]].map(([name, color, values]) => ({
    name, type: "bar", stack: "all", color, data: values, barCategoryGap: "12%",
  }));
  return option;
}

function arrivalChart(runs, colors) {
  const option = base(colors);
  option.legend = { top: 0, show: runs.length > 1, textStyle: { color: colors.soft } };
  option.grid = { left: 56, right: 22, top: 36, bottom: 42 };
  option.tooltip.trigger = "axis";
  option.tooltip.formatter = (ps) => `GPUs asked for: <b>${ps[0].value[0]} %</b><br>` + ps.map((p) => `${p.marker}${escaped(p.seriesName)}: <b>${p.value[1].toFixed(2)} %</b> allocated`).join("<br>");
  const xs = runs.flatMap((r) => r.x), ys = runs.flatMap((r) => r.y);
  option.xAxis = Object.assign(axis(colors), { type: "value", min: Math.min(...xs), max: Math.max(...xs), name: "GPUs asked for so far, per cent of the fleet", nameLocation: "middle", nameGap: 26 });
  option.yAxis = Object.assign(axis(colors), { type: "value", min: Math.floor(Math.min(...ys) / 5) * 5, max: 100, name: "allocated, per cent" });
  option.series = runs.map((r, i) => ({
    name: r.name, type: "line", color: colors.hues[i % colors.hues.length], symbolSize: 7, data: r.x.map((x, k) => [x, r.y[k]]),
    label: { show: runs.length === 1, position: "bottom", color: colors.ink, formatter: (p) => p.value[1].toFixed(1) },
  }));
  return option;
}
