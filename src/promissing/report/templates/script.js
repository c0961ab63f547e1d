"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";

  /* Only elements and text nodes are created: no text of the table is read as HTML. */
  const make = (tag, attributes = {}, ...children) => {
    const known = ["svg", "rect", "line"].includes(tag);
    const element = known ? document.createElementNS(SVG, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  const theme = () => {
    const root = document.documentElement;
    const button = $("theme");
    const names = ["auto", "light", "dark"];
    const recall = () => { try { return localStorage.getItem("promissing-theme"); } catch { return null; } };
    const keep = (name) => { try { localStorage.setItem("promissing-theme", name); } catch { /* Storage is not allowed: the choice is not kept. */ } };
    const apply = (name) => {
      if (name === "auto") root.removeAttribute("data-theme"); else root.dataset.theme = name;
      button.textContent = `Colours: ${name}`;
      button.dataset.now = name;
    };
    apply(names.includes(recall()) ? recall() : "auto");
    button.hidden = false;
    button.addEventListener("click", () => {
      const name = names[(names.indexOf(button.dataset.now) + 1) % names.length];
      apply(name);
      keep(name);
    });
  };

  theme();
  const data = JSON.parse($("data").textContent);
  if (!data.rows) return; /* A report without individual rows. */
  const { kind, classes, rows: section } = data;
  const numeric = kind === "regression";
  const KINDS = ["flips", "supports", "opposes", "none", "raises", "lowers"];
  const EFFECT = {
    flips: "decisive", supports: "supports the class", opposes: "opposes the class", none: "no effect",
    raises: "raises it", lowers: "lowers it",
  };
  const FIRST = 10;
  const rows = section.items.map((item, place) => ({
    ...item, place, outcomeName: section.outcomes[item.outcome].name,
  }));
  for (const row of rows) {
    const values = row.bars.flatMap((level) => level.bars.map((bar) => bar[3]));
    row.text = [`row ${row.id}`, row.truth, row.decision, row.outcomeName, ...values].join("\n").toLowerCase();
  }
  const all = rows.map((row) => row.prediction);
  const low = Math.min(...all), high = Math.max(...all);
  let shown = rows, current = 0, level = 0, open = false;

  const percent = (share) => `${Math.round(100 * share)}\u00a0%`;
  const number = (value) => {
    const size = Math.abs(value);
    if (size < 1e-9) return "0";
    const rounded = Number(value.toPrecision(size < 1e-3 ? 1 : 3));
    return rounded.toLocaleString("en", { maximumFractionDigits: 12 }).replace("-", "\u2212");
  };
  const say = numeric ? number : percent;

  const strip = (left, width, style) => make("svg", { class: "strip", "aria-hidden": "true", focusable: "false" },
    make("rect", { class: "track", width: "100%", height: "100%" }),
    make("rect", { class: style, x: `${left}%`, width: `${width}%`, height: "100%" }));

  const list = () => {
    const items = shown.map((row, k) => {
      const share = numeric ? (row.prediction - low) / (high - low || 1) : row.prediction;
      const item = make("li", { id: `row-${row.place}`, role: "option", "aria-selected": "false" },
        make("span", {}, row.id), strip(0, 100 * share, "bar main"),
        make("span", { class: "value" }, say(row.prediction)),
        make("small", {}, numeric ? `true value ${row.truth}` : `${row.outcomeName} · true class ${row.truth}`));
      item.addEventListener("click", () => go(k));
      return item;
    });
    $("row-list").replaceChildren(...items);
    if (!items.length) $("row-list").append(make("li", { class: "none-found" }, "No row matches."));
    $("status").textContent = `${shown.length} of ${rows.length} rows`;
  };

  const sentence = (row) => {
    const known = `${percent(row.known)} of the values are known.`;
    if (numeric) {
      return `The predicted value is ${number(row.prediction)}, and the true value is ${row.truth}. ` +
        (row.std === null ? "" : `The predicted standard deviation is ${number(row.std)}. `) +
        (row.set === null ? "" : `With a confidence of 90\u00a0%, the value is from ${row.set}. `) + known;
    }
    const right = row.truth === row.decision;
    const outcome = classes.length === 2 ? ` (${row.outcomeName})` : right ? " (correct)" : " (incorrect)";
    let text = `The predicted class is ${row.decision}, with a probability of ${percent(row.certainty)}. The true ` +
      `class is ${row.truth}${outcome}. ` +
      (row.set === null ? "" : `With a confidence of 90\u00a0%, the class is ${row.set}. `) + known;
    const small = row.smallest;
    if (small && small.names && small.names.length) {
      text += ` The predicted class would be ${small.decision} if ${small.names.join(" and ")} ` +
        `were unknown.${small.exact ? " No smaller loss changes it." : ""}`;
    } else if (small && small.names === null) {
      text += small.exact ? " No loss of information changes the predicted class."
        : " No loss of information was found that changes the predicted class.";
    }
    return text;
  };

  const effect = (names, [group, change, which, value], reach, prediction) => {
    const name = KINDS[which];
    const width = 50 * Math.min(Math.abs(change) / reach, 1);
    const bar = make("svg", { class: "strip", role: "img", "aria-label": EFFECT[name] },
      make("rect", { class: "track", width: "100%", height: "100%" }),
      make("rect", { class: `kind ${name}`, x: `${change < 0 ? 50 - width : 50}%`, width: `${Math.max(width, 0.4)}%`, y: "2", height: "12" }),
      make("line", { class: "zero", x1: "50%", x2: "50%", y1: "0", y2: "100%" }));
    const then = prediction + change;
    const told = numeric ? number(then) : `${(100 * then).toFixed(Math.abs(change) < 0.01 ? 1 : 0)}\u00a0%`;
    const head = make("th", { scope: "row", title: names[group] }, names[group], make("small", {}, value));
    return make("tr", { "data-kind": name }, head, make("td", {}, bar),
      make("td", { class: "number" }, told, make("small", {}, EFFECT[name])));
  };

  const show = () => {
    const row = shown[current];
    $("row").hidden = !row;
    $("previous").disabled = current <= 0;
    $("next").disabled = current >= shown.length - 1;
    if (!row) return;
    const names = section.levels[level].groups;
    const { bars, more, unknown } = row.bars[level];
    $("place").textContent = `${current + 1} of ${shown.length}`;
    $("row-title").textContent = `Row ${row.id}: ` +
      (numeric ? number(row.prediction) : `${row.decision}, ${percent(row.certainty)}`);
    $("row-text").textContent = sentence(row);
    const reach = Math.max(...bars.map((bar) => Math.abs(bar[1])), 1e-9);
    const shift = (sign) => sign + (numeric ? number(reach) : `${Number((100 * reach).toPrecision(2))} points`);
    $("ends").replaceChildren(...[shift("\u2212"), "now", shift("+")].map((text) => make("span", {}, text)));
    const some = open ? bars : bars.slice(0, FIRST);
    $("effects").tBodies[0].replaceChildren(...some.map((bar) => effect(names, bar, reach, row.prediction)));
    $("effects").hidden = !bars.length;
    $("more").hidden = bars.length <= FIRST;
    $("more").textContent = open ? "Show fewer" : `Show all ${bars.length}`;
    const rest = more ? `${more} more are known and have smaller effects. ` : "";
    const lost = unknown.map((g) => names[g]);
    const few = lost.slice(0, 20).join(", ") + (lost.length > 20 ? ` and ${lost.length - 20} more` : "");
    $("unknown").textContent = rest + (lost.length ? `Unknown in this row: ${few}.` : `No ${section.levels[level].name} is entirely unknown in this row.`);
    for (const item of $("row-list").children) item.setAttribute("aria-selected", String(item.id === `row-${row.place}`));
    $("row-list").setAttribute("aria-activedescendant", `row-${row.place}`);
  };

  const go = (place) => {
    if (!shown.length) return;
    current = Math.min(Math.max(place, 0), shown.length - 1);
    show();
    /* Scroll the list, not the page. */
    const list = $("row-list"), item = $(`row-${shown[current].place}`);
    const top = item.offsetTop - list.offsetTop;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + item.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = top + item.offsetHeight - list.clientHeight;
  };

  const ORDERS = {
    place: (a, b) => a.place - b.place, prediction: (a, b) => b.prediction - a.prediction,
    uncertain: (a, b) => a.certainty - b.certainty, certain: (a, b) => b.certainty - a.certainty,
    std: (a, b) => b.std - a.std, known: (a, b) => a.known - b.known,
  };
  const choose = () => {
    const before = shown[current];
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const outcome = $("filter").value;
    shown = rows.filter((row) => (outcome === "" || row.outcome === Number(outcome)) &&
      words.every((word) => row.text.includes(word)));
    shown.sort((a, b) => ORDERS[$("sort").value](a, b) || a.place - b.place);
    list();
    current = Math.max(shown.indexOf(before), 0);
    if (shown.length) go(current); else show();
  };

  const keys = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const inField = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    const inList = event.target === $("row-list");
    const steps = inList ? { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 } : {};
    if (!inField) Object.assign(steps, { j: 1, k: -1 });
    if (event.key in steps) go(current + steps[event.key]);
    else if (inList && event.key === "Home") go(0);
    else if (inList && event.key === "End") go(shown.length - 1);
    else if (!inField && event.key === "/") $("search").focus();
    else return;
    event.preventDefault();
  };

  const levels = () => {
    if (section.levels.length < 2) { $("levels").hidden = true; return; }
    const buttons = section.levels.map((one, k) => {
      const button = make("button", { type: "button", "aria-pressed": String(k === level) }, `By ${one.name}`);
      button.addEventListener("click", () => {
        level = k;
        buttons.forEach((other, j) => other.setAttribute("aria-pressed", String(j === k)));
        show();
      });
      return button;
    });
    $("levels").replaceChildren(...buttons);
  };

  $("search").addEventListener("input", choose);
  $("filter").addEventListener("change", choose);
  $("sort").addEventListener("change", choose);
  $("previous").addEventListener("click", () => go(current - 1));
  $("next").addEventListener("click", () => go(current + 1));
  $("more").addEventListener("click", () => { open = !open; show(); });
  document.addEventListener("keydown", keys);
  levels();
  $("browser").hidden = false;
  choose();
})();
