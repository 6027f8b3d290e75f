"use strict";
// Draws everything, and again when the colors or the width change.

(async () => {
  const data = await unpackData();
  const makers = {
    allocation: allocationChart, space: spaceChart, queue: queueChart, waits: classWaits, quality: qualityChart,
    latency: latencyChart, arrival: (d, colors) => arrivalChart(d.arrival, colors),
    "waits-compared": comparedWaits, "use-compared": comparedUse, scatter: scatterChart,
  };
  const charts = [];
  for (const [id, make] of Object.entries(makers)) {
    const root = document.getElementById("chart-" + id);
    if (!root) continue;
    const chart = echarts.init(root, null, { renderer: "canvas" });
    if (["allocation", "space", "queue"].includes(id)) chart.group = "time";
    charts.push({ id, chart, make });
  }
  echarts.connect("time");
  const root = document.querySelector("[data-map]");
  const map = root && data.map ? new FleetMap(root, data.map) : null;

  const draw = () => {
    const colors = palette();
    for (const { chart, make } of charts) chart.setOption(make(data, colors, chart.getHeight()), true);
    if (map) map.draw();
  };
  const fit = () => {
    for (const { chart } of charts) chart.resize();
    if (map) map.resize();
  };
  fit();
  draw();
  if (map) {
    map.show(data.busiest);
    link(charts.find((c) => c.id === "allocation"), map, data);
  }
  window.addEventListener("resize", () => {
    fit();
    draw();
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  const paper = (printing) => {
    document.documentElement.classList.toggle("printing", printing);
    fit();
    draw();
  };
  window.addEventListener("beforeprint", () => paper(true));
  window.addEventListener("afterprint", () => paper(false));
  document.documentElement.dataset.ready = "true";
})();

// link shows on the map the instant that is clicked in the chart.
function link(entry, map, data) {
  if (!entry) return;
  entry.chart.getZr().on("click", (event) => {
    const [x] = entry.chart.convertFromPixel({ gridIndex: 0 }, [event.offsetX, event.offsetY]);
    map.show(x * unitOf(data.end).seconds);
  });
}
