"use strict";
// Draws the charts of the page, and nothing else. Every text is set as text, never as HTML.
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const PREFIXES = ["B", "KB", "MB", "GB", "TB", "PB"];
  const COLORS = 6;
  // Curves that are shown at first: of the same metric as the first one, and none that flattens it.
  const SHOWN = 4, FLATTENS = 5;
  const CLOCK = [[1, "s"], [60, "min"], [3600, "h"], [86400, "d"]];
  // Distances of the ticks of an axis in seconds: round in seconds, minutes, hours or days.
  const BELOW = [1e-4, 1e-3, 1e-2, 0.1].flatMap((unit) => [unit, 2 * unit, 5 * unit]);
  const TIMES = [...BELOW, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800,
    21600, 43200, ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map((days) => days * 86400)];
  // Of steps, samples and runs: whole numbers.
  const COUNTS = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((n) => n * 10 ** power)).flat();
  const HEIGHT = 320;
  const built = new Map(); // figure -> its chart

  function element(tag, text, className) {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  const colors = new Map(); // of the style, as long as its scheme does not change

  function css(name) {
    if (!colors.has(name)) {
      colors.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
    }
    return colors.get(name);
  }

  // Three significant digits, as in the other reports.
  function significant(value) {
    if (value === 0) return "0";
    const decimals = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
    return value.toLocaleString("en-US", {
      minimumFractionDigits: Math.min(decimals, 8), maximumFractionDigits: Math.min(decimals, 8),
    });
  }

  function quantity(value, unit) {
    if (unit === "percent") return significant(value) + "%";
    if (unit === "count") return value.toLocaleString("en-US", { maximumFractionDigits: 2 });
    let power = 0;
    while (power < PREFIXES.length - 1 && Math.abs(value) >= 999.5 * 1000 ** power) power++;
    return (power ? significant(value / 1000 ** power) : Math.round(value)) + " " + PREFIXES[power];
  }

  function position(x, chart) {
    if (chart.axis !== "seconds") {
      const shown = chart.axis === "epoch" ? x : Math.round(x);
      return chart.word + " " + shown.toLocaleString("en-US", { maximumFractionDigits: 2 });
    }
    const clock = x >= 3600 ? 3600 : x >= 60 ? 60 : 0;
    if (!clock) return significant(x) + " s";
    const small = clock / 60;
    const rest = Math.floor((x % clock) / small);
    return Math.floor(x / clock) + (clock === 60 ? " min " : " h ") + rest +
      (clock === 60 ? " s" : " min");
  }

  // The ticks of an axis share one unit and have as few decimals as distinguish them.
  function labels(values, divisor, symbol) {
    const numbers = values.map((value) => (value == null ? null : value / divisor));
    for (let decimals = 0; decimals < 7; decimals++) {
      const texts = numbers.map((value) => value == null ? "" : value.toLocaleString("en-US", {
        minimumFractionDigits: decimals, maximumFractionDigits: decimals,
      }));
      const shown = texts.filter(Boolean);
      if (new Set(shown).size === shown.length) {
        return texts.map((text) => (text && symbol ? text + " " + symbol : text));
      }
    }
    return numbers.map((value) => (value == null ? "" : String(value)));
  }

  function memoryLabels(values, unit) {
    if (unit === "percent") return labels(values, 1, "%");
    if (unit === "count") return labels(values, 1, "");
    const largest = Math.max(...values.map((value) => Math.abs(value || 0)));
    let power = 0;
    while (power < PREFIXES.length - 1 && largest >= 1000 ** (power + 1)) power++;
    return labels(values, 1000 ** power, PREFIXES[power]);
  }

  function timeLabels(values, chart) {
    if (chart.axis !== "seconds") return labels(values, 1, "");
    const known = values.filter((value) => value != null);
    const span = known.length ? known[known.length - 1] - known[0] : 0;
    let [divisor, symbol] = CLOCK[0];
    for (const [seconds, name] of CLOCK) if (span >= 3 * seconds) [divisor, symbol] = [seconds, name];
    return labels(values, divisor, symbol);
  }

  // The phase at a position: spans are in order and do not overlap.
  function phaseAt(chart, x) {
    const [starts, ends, names] = chart.phases;
    let low = 0, high = starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (starts[middle] <= x) low = middle + 1; else high = middle;
    }
    return low && x <= ends[low - 1] ? chart.phase_names[names[low - 1]] : "";
  }

  // uPlot needs ascending positions: of two readings at one position, the second is a hair beside it.
  function apart(xs) {
    const gap = xs.reduce((least, x, at) => (x > xs[at - 1] ? Math.min(least, x - xs[at - 1]) : least), 2);
    const beside = Math.min(1e-6 * (xs[xs.length - 1] - xs[0]) || 1, gap / 2);
    return xs.map((x, at) => (x === xs[at - 1] ? x + beside : x));
  }

  function join(chart) {
    const tables = chart.curves.map((curve) => [apart(curve.x), curve.y]);
    const first = chart.curves[0];
    if (first.cone.length) {  // room for the forecast
      const end = first.cone[first.cone.length - 1][0];
      tables.push([[end], [null]]);
    }
    const joined = tables.length === 1 ? tables[0].slice() : uPlot.join(tables);
    return first.cone.length ? joined.slice(0, -1) : joined;
  }

  function startShown(chart, tops) {
    const { metric } = chart.curves[0];
    let number = 0;
    return chart.curves.map((curve, at) =>
      curve.metric === metric && tops[at] <= FLATTENS * tops[0] && number++ < SHOWN);
  }

  function build(figure) {
    const chart = data.charts[figure.dataset.page][figure.dataset.chart];
    const plot = figure.querySelector(".plot");
    const old = built.get(figure);
    const tops = chart.curves.map((curve) => curve.y.reduce((a, b) => Math.max(a, b), 0));
    const shown = old ? old.series.slice(1).map((series) => series.show) :
      startShown(chart, tops);
    if (old) old.destroy();
    plot.replaceChildren();
    if (!chart.curves.some((curve) => curve.x.length)) {
      plot.append(element("p", "There are no readings to draw."));
      return;
    }
    const ink = css("--ink"), line = css("--line");
    const tip = element("div", "", "tip");
    tip.hidden = true;
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line } };
    const made = new uPlot({
      width: plot.clientWidth, height: HEIGHT,
      legend: { show: false },
      cursor: { drag: { x: true, y: false }, points: { size: 6 } },
      scales: { x: { time: false }, y: { range: (u, low, high) => range(u, chart, low, high) } },
      axes: [
        { ...axis,
          ...(chart.axis === "epoch" ? {} : { incrs: chart.axis === "seconds" ? TIMES : COUNTS }),
          values: (u, values) => timeLabels(values, chart),
          label: chart.axis === "seconds" ? "time" : chart.word, size: 34, labelSize: 20, labelGap: 0 },
        { ...axis, size: 74, values: (u, values) => memoryLabels(values, chart.unit) },
      ],
      series: [{}, ...chart.curves.map((curve, at) => ({
        label: String(at), show: shown[at], stroke: css("--c" + (at % COLORS)),
        width: at ? 1.2 : 1.8, dash: at ? [[6, 3], [2, 2], [8, 3, 2, 3]][(at - 1) % 3] : [],
        spanGaps: true, points: { show: curve.x.length <= 60 },
      }))],
      hooks: {
        drawClear: [(u) => behind(u, chart)],
        draw: [(u) => found(u, chart)],
        setCursor: [(u) => hover(u, chart, tip)],
      },
    }, join(chart), plot);
    made.over.append(tip);
    built.set(figure, made);
    plot.prepend(tools(made));
    plot.append(...legend(made, chart));
  }

  // The vertical range: what is in view, the limits and the forecast of the first curve.
  function range(u, chart, low, high) {
    if (low == null) return [0, 1];
    const first = chart.curves[0];
    const span = u.scales.x;
    if (u.series[1].show) {
      for (const [x, , under, over] of first.cone) {
        if (span.max != null && x > span.max) continue;
        low = Math.min(low, under);
        high = Math.max(high, over);
      }
    }
    for (const [value] of chart.levels) { low = Math.min(low, value); high = Math.max(high, value); }
    const lacking = Math.max(chart.least_span - (high - low), high === low ? Math.abs(high) / 10 || 1 : 0);
    const under = low >= 0 ? Math.max(0, low - lacking / 2) : low - lacking / 2;
    const over = high + Math.max(0, lacking - (low - under));
    const margin = (over - under) * 0.05;
    const labeled = (over - under) * 17 / HEIGHT * (u.series[1].show ? first.marks.length : 0);
    return [low >= 0 ? Math.max(0, under - margin) : under - margin, over + margin + 1.4 * labeled];
  }

  function behind(u, chart) {
    const { ctx, bbox } = u;
    const [starts, ends, names] = chart.phases;
    const left = u.scales.x.min, right = u.scales.x.max;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (let at = 0; at < starts.length; at++) {
      if (ends[at] < left || starts[at] > right) continue;
      const from = u.valToPos(starts[at], "x", true);
      const wide = Math.max(1, u.valToPos(ends[at], "x", true) - from);
      ctx.fillStyle = css("--p" + (names[at] % COLORS)) || "#999";
      ctx.globalAlpha = 0.1;
      ctx.fillRect(from, bbox.top, wide, bbox.height);
      ctx.globalAlpha = 1;
      ctx.fillRect(from, bbox.top + bbox.height - 6 * devicePixelRatio, wide, 6 * devicePixelRatio);
    }
    chart.curves.forEach((curve, at) => {
      if (!curve.plateau || !u.series[at + 1].show) return;
      const [since, lasted, low, high] = curve.plateau;
      const from = u.valToPos(since, "x", true), top = u.valToPos(high, "y", true);
      ctx.globalAlpha = 0.2;
      ctx.fillStyle = css("--plateau");
      ctx.fillRect(from, top, u.valToPos(since + lasted, "x", true) - from,
        Math.max(2, u.valToPos(low, "y", true) - top));
    });
    ctx.restore();
  }

  function found(u, chart) {
    const { ctx, bbox } = u;
    const scale = devicePixelRatio;
    const across = (x) => u.valToPos(x, "x", true), up = (y) => u.valToPos(y, "y", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = 12 * scale + "px system-ui, sans-serif";
    ctx.textBaseline = "top";
    ctx.textAlign = "left";
    for (const [value, text] of chart.levels) {
      stroke(ctx, css("--ink"), 1.2, [6, 3], [[bbox.left, up(value)], [bbox.left + bbox.width, up(value)]]);
      ctx.fillStyle = css("--ink");
      ctx.fillText(text, bbox.left + 4 * scale, up(value) - 15 * scale);
    }
    let row = 0;
    chart.curves.forEach((curve, at) => {
      if (!u.series[at + 1].show || at && chart.curves.length > 1 && u.series[1].show) return;
      const fitted = css(curve.verdict === "leak" ? "--growth" : "--faint");
      for (const [x0, y0, x1, y1] of curve.segments) {
        stroke(ctx, fitted, 2.4, [4, 2], [[across(x0), up(y0)], [across(x1), up(y1)]]);
      }
      for (const [x, before, after] of curve.jumps) {
        stroke(ctx, css("--faint"), 1, [2, 2], [[across(x), up(before)], [across(x), up(after)]]);
      }
      if (curve.cone.length) {
        ctx.globalAlpha = 0.2;
        ctx.fillStyle = css("--growth");
        ctx.beginPath();
        for (const [x, , low] of curve.cone) ctx.lineTo(across(x), up(low));
        for (const [x, , , high] of curve.cone.slice().reverse()) ctx.lineTo(across(x), up(high));
        ctx.fill();
        ctx.globalAlpha = 1;
        stroke(ctx, css("--growth"), 1.4, [2, 3], curve.cone.map(([x, value]) => [across(x), up(value)]));
      }
      for (const [x, text, kind] of curve.marks) {
        const color = css({ plateau: "--plateau", threshold: "--faint" }[kind] || "--growth");
        stroke(ctx, color, 1, [1, 2], [[across(x), bbox.top], [across(x), bbox.top + bbox.height]]);
        if (x < u.scales.x.min || x > u.scales.x.max) continue;
        const wide = ctx.measureText(text).width;
        const fits = across(x) + wide + 6 * scale < bbox.left + bbox.width;
        const left = fits ? across(x) + 4 * scale : across(x) - wide - 4 * scale;
        const top = bbox.top + (4 + 16 * row) * scale;
        ctx.globalAlpha = 0.85;
        ctx.fillStyle = css("--paper");
        ctx.fillRect(left - scale, top - scale, wide + 2 * scale, 15 * scale);
        ctx.globalAlpha = 1;
        ctx.fillStyle = color;
        ctx.fillText(text, left, top);
        row++;
      }
    });
    ctx.restore();
  }

  function stroke(ctx, color, width, dash, points) {
    ctx.strokeStyle = color;
    ctx.lineWidth = width * devicePixelRatio;
    ctx.setLineDash(dash.map((part) => part * devicePixelRatio));
    ctx.beginPath();
    for (const [x, y] of points) ctx.lineTo(x, y);
    ctx.stroke();
  }

  // The reading of a curve that is nearest to a position.
  function nearest(curve, x) {
    let low = 0, high = curve.x.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (curve.x[middle] < x) low = middle + 1; else high = middle;
    }
    if (low && (low === curve.x.length || x - curve.x[low - 1] < curve.x[low] - x)) low--;
    return low;
  }

  function hover(u, chart, tip) {
    const { left, top } = u.cursor;
    tip.hidden = left == null || left < 0;
    if (tip.hidden) return;
    const x = u.posToVal(left, "x");
    const lead = chart.curves.find((curve, at) => u.series[at + 1].show && curve.x.length);
    if (!lead) { tip.hidden = true; return; }
    const at = lead.x[nearest(lead, x)];
    const lines = [position(at, chart)];
    const phase = phaseAt(chart, at);
    if (phase) lines[0] += ", " + phase;
    chart.curves.forEach((curve, number) => {
      if (!u.series[number + 1].show || !curve.x.length) return;
      const near = nearest(curve, x);
      lines.push(curve.name + ": " + quantity(curve.y[near], chart.unit));
      const segment = curve.segments.find(([from, , to]) => from <= at && at <= to);
      if (segment && curve === lead) lines.push("segment: " + segment[4]);
    });
    tip.textContent = lines.slice(0, 14).join("\n");
    const room = u.over.clientWidth;
    const wide = tip.offsetWidth;
    tip.style.left = Math.max(0, left + 14 + wide > room ? left - wide - 14 : left + 14) + "px";
    tip.style.top = Math.max(0, Math.min(top + 10, u.over.clientHeight - tip.offsetHeight)) + "px";
  }

  function tools(u) {
    const box = element("div", "", "tools");
    const zoom = (factor) => () => {
      const { min, max } = u.scales.x;
      const middle = (min + max) / 2, half = (max - min) / 2 * factor;
      const all = u.data[0];
      u.setScale("x", {
        min: Math.max(all[0], middle - half), max: Math.min(all[all.length - 1], middle + half),
      });
    };
    for (const [text, act, name] of [
      ["+", zoom(0.5), "Zoom in"], ["−", zoom(2), "Zoom out"],
      ["whole run", () => u.setData(u.data, true), "Show the whole run"],
    ]) {
      const button = element("button", text);
      button.type = "button";
      button.setAttribute("aria-label", name);
      button.addEventListener("click", act);
      box.append(button);
    }
    return box;
  }

  // Series on and off, and all series of a process at once.
  function legend(u, chart) {
    const curves = element("div", "", "curves");
    const processes = new Map();
    const boxes = chart.curves.map((curve, at) => {
      const [label, box] = switched(curve.name, u.series[at + 1].show, (on) => {
        u.setSeries(at + 1, { show: on });
      });
      const swatch = element("span", "", "swatch");
      swatch.style.borderTop = "3px " + (at ? "dashed " : "solid ") + css("--c" + (at % COLORS));
      label.append(swatch, curve.name);
      curves.append(label);
      if (curve.process) processes.set(curve.process, [...(processes.get(curve.process) || []), box]);
      return box;
    });
    if (processes.size > 1 && boxes.length > processes.size) {
      for (const [process, those] of processes) {
        const [label] = switched(process, those.some((box) => box.checked), (on) => {
          for (const box of those) if (box.checked !== on) box.click();
        });
        label.className = "process";
        label.append("all of " + process);
        curves.append(label);
      }
    }
    const phases = element("div", "", "phases");
    chart.phase_names.slice(0, 20).forEach((name, at) => {
      const label = element("span");
      const swatch = element("span", "", "swatch");
      swatch.style.background = css("--p" + (at % COLORS));
      label.append(swatch, "phase " + name);
      phases.append(label);
    });
    const more = chart.left_out ? [element("p", "and " + chart.left_out + " more series")] : [];
    return [curves, phases, ...more];
  }

  function switched(name, on, act) {
    const label = element("label"), box = element("input");
    box.type = "checkbox";
    box.checked = on;
    box.addEventListener("change", () => act(box.checked));
    label.append(box);
    return [label, box];
  }

  function save(name, text, type) {
    const link = element("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function csv(charts) {
    const cell = (text) => /[",\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
    // A spreadsheet would run a cell that begins so as a formula.
    const inert = (text) => cell(/^[=+@\-\t\r]/.test(text) ? "'" + text : text);
    const lines = ["series,unit,axis,position,value"];
    for (const chart of charts) {
      for (const curve of chart.curves) {
        const head = [inert(curve.name), chart.unit, chart.axis].join(",");
        curve.x.forEach((x, at) => lines.push(head + "," + x + "," + curve.y[at]));
      }
    }
    return lines.join("\n") + "\n";
  }

  // One recording at a time, chosen by the address; its charts are built when it is first shown.
  function route() {
    const views = [...document.querySelectorAll("[data-view]")];
    const chosen = views.find((view) => "#" + view.id === location.hash) || views[0];
    for (const view of views) view.hidden = view !== chosen;
    for (const figure of chosen.querySelectorAll(".chart")) if (!built.has(figure)) build(figure);
  }

  function rebuild() {
    colors.clear();
    for (const figure of [...built.keys()]) {
      if (figure.closest("[data-view]").hidden) {
        built.get(figure).destroy();
        built.delete(figure);
      } else {
        build(figure);
      }
    }
  }

  function sort(table, column, button) {
    const heads = table.tHead.rows[0].cells;
    const falls = heads[column].getAttribute("aria-sort") === "ascending";
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[column].setAttribute("aria-sort", falls ? "descending" : "ascending");
    const key = (row) => {
      const cell = row.cells[column];
      return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
    };
    const order = (a, b) => typeof a === "number" ? a - b : a.localeCompare(b);
    const rows = [...table.tBodies[0].rows].sort((a, b) => order(key(a), key(b)) * (falls ? -1 : 1));
    table.tBodies[0].append(...rows);
  }

  for (const table of document.querySelectorAll(".sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = head.querySelector("button");
      if (button) button.addEventListener("click", () => sort(table, column));
    });
  }
  for (const button of document.querySelectorAll("[data-save]")) {
    button.addEventListener("click", () => {
      if (button.dataset.save === "document") {
        save("memdiag.json", JSON.stringify(data.document, null, 2), "application/json");
      } else {
        save("memdiag.csv", csv(data.charts[button.dataset.page]), "text/csv");
      }
    });
  }
  let width = innerWidth;
  addEventListener("resize", () => {
    if (width === innerWidth) return; // the address bar of a phone
    width = innerWidth;
    for (const [figure, u] of built) {
      const wide = figure.querySelector(".plot").clientWidth;
      if (wide) u.setSize({ width: wide, height: HEIGHT });
    }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", rebuild);
  addEventListener("beforeprint", () => {
    document.documentElement.dataset.theme = "light";
    for (const part of document.querySelectorAll("details")) part.open = true;
    rebuild();
  });
  addEventListener("afterprint", () => {
    delete document.documentElement.dataset.theme;
    rebuild();
  });
  addEventListener("hashchange", () => { route(); scrollTo(0, 0); });
  route();
})();
