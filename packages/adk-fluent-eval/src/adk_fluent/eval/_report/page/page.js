"use strict";
// The cases: a list that draws only what is in sight, filters kept in the address, and details built
// when a case is opened. Texts of models and tools become text nodes and nothing else.
{
  const ROW = 54, AHEAD = 6, BATCH = 100, KEPT = 4, DIFF = 250_000;
  const ERASED = /\p{Surrogate}/gu; // halves of characters, which an address cannot hold
  const at = (id) => document.getElementById(id);
  const whole = (text) => text.replace(ERASED, "\ufffd");
  const number = new Intl.NumberFormat("en-US");

  const data = JSON.parse(at("data").textContent);
  const cases = data.cases;
  const panes = at("panes"), list = at("list"), rows = at("rows"), details = at("details");
  cases.forEach((each, place) => { each.place = place; each.key = whole(each.id); });
  const runsOf = new Map();
  for (const each of cases) {
    if (!runsOf.has(each.key)) runsOf.set(each.key, []);
    runsOf.get(each.key).push(each);
  }
  const worst = Object.keys(data.statuses);

  // --- making elements ------------------------------------------------------------------------

  /** An element; children are elements, or texts that stay texts. */
  function h(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes ?? {})) {
      if (value === false || value === null || value === undefined) continue;
      if (typeof value === "function") made.addEventListener(key, value);
      else made.setAttribute(key, value === true ? "" : value);
    }
    made.append(...children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== ""));
    return made;
  }
  const textOf = (cut) => (Array.isArray(cut) ? cut[0] : cut ?? "");
  const leftOf = (cut) => (Array.isArray(cut) ? cut[1] : 0);
  const leftOut = (cut) => leftOf(cut)
    ? h("p", { class: "cut" }, `${number.format(leftOf(cut))} more characters are left out here; the JSON report has all of them.`)
    : null;
  const inline = (cut) => textOf(cut) + (leftOf(cut) ? `… (${number.format(leftOf(cut))} characters more)` : "");
  const breakable = (name) => name.split(/(?<=_)/).flatMap((part) => [part, h("wbr")]);
  const prose = (cut, kind = "") => [h("div", { class: `prose ${kind}`, dir: "auto" }, textOf(cut)), leftOut(cut)];
  const block = (cut, label) => [h("pre", { tabindex: "0", role: "group", "aria-label": label }, textOf(cut)), leftOut(cut)];
  const badge = (text, kind = "") => h("span", { class: `badge ${kind}` }, text);
  const sign = (status) => h("span", { class: `sign s-${status}`, "aria-hidden": "true" }, data.statuses[status][1]);
  const SIGNS = { passed: "✓", failed: "✗", not_evaluated: "!", informational: "i" };
  const KIND = { passed: "passed", failed: "failed", not_evaluated: "error", informational: "skipped" };

  /** Puts many things on the page a batch at a time. */
  function inBatches(parent, things, make, what) {
    let shown = 0;
    const more = h("button", { type: "button", class: "quiet", click: next });
    function next() {
      const batch = things.slice(shown, shown + BATCH).map(make);
      shown += batch.length;
      more.remove();
      parent.append(...batch.flat());
      if (shown < things.length) {
        more.textContent = `Show more: ${number.format(things.length - shown)} ${what} are left`;
        parent.append(more);
      }
    }
    next();
    return parent;
  }

  // --- what is asked for, as the address has it -------------------------------------------------

  const NAMES = ["q", "tag", "metric", "score", "change", "flaky", "sort"];
  let wanted = {};
  let open = null; // the case whose details are shown
  let active = 0; // the row that the keys are on
  let visible = cases;

  const known = (value, among) => (among.includes(value) ? value : "");

  function readAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    const value = (name) => given.get(name) ?? "";
    wanted = {
      q: value("q"),
      status: value("status").split(",").filter((each) => worst.includes(each)),
      tag: known(value("tag"), data.tags.map(whole)),
      metric: known(value("metric"), data.metrics.map(whole)),
      score: known(value("score"), ["failed", "not_evaluated", "passed", "informational"]),
      change: known(value("change"), ["regressed", "improved", "added"]),
      flaky: value("flaky") === "1" ? "1" : "",
      sort: known(value("sort"), ["suite", "time", "cost", "id"]),
    };
    const runs = runsOf.get(value("case"));
    return runs ? runs.find((each) => String(each.run) === value("run")) ?? runs[0] : null;
  }

  function address(opened) {
    const made = new URLSearchParams();
    for (const name of NAMES) if (wanted[name]) made.set(name, wanted[name]);
    if (wanted.status.length) made.set("status", wanted.status.join(","));
    if (opened) {
      made.set("case", opened.key);
      made.set("run", opened.run);
    }
    return `#${made}`;
  }

  // --- filters ----------------------------------------------------------------------------------

  const LETTER = { failed: "f", not_evaluated: "n", passed: "p", informational: "i" };

  function hay(each) {
    each.hay ??= [each.id, each.i, each.w, each.h, ...each.t.map((tag) => data.tags[tag])].join("\n").toLowerCase();
    return each.hay;
  }

  function choose() {
    const words = wanted.q.toLowerCase().split(/\s+/).filter(Boolean);
    const tag = data.tags.map(whole).indexOf(wanted.tag);
    const metric = data.metrics.map(whole).indexOf(wanted.metric);
    const letter = LETTER[wanted.score];
    const fits = (each, free) =>
      (free || !wanted.status.length || wanted.status.includes(each.s)) &&
      (tag < 0 || each.t.includes(tag)) &&
      (metric < 0 || (letter ? each.m[metric] === letter : each.m[metric] !== "-")) &&
      (!wanted.change || each.ch === wanted.change) &&
      (!wanted.flaky || each.f) &&
      words.every((word) => hay(each).includes(word));
    const fitting = cases.filter((each) => fits(each, true));
    const perStatus = Object.fromEntries(worst.map((status) => [status, 0]));
    for (const each of fitting) perStatus[each.s] += 1;
    visible = fitting.filter((each) => fits(each, false)).sort(ORDERS[wanted.sort || "worst"]);
    return perStatus;
  }

  const ORDERS = {
    worst: (a, b) => worst.indexOf(a.s) - worst.indexOf(b.s) || (b.ch === "regressed") - (a.ch === "regressed") || a.place - b.place,
    suite: (a, b) => a.place - b.place,
    time: (a, b) => (b.d ?? 0) - (a.d ?? 0) || a.place - b.place,
    cost: (a, b) => (b.c ?? 0) - (a.c ?? 0) || a.place - b.place,
    id: (a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : a.run - b.run),
  };

  const fields = {};
  const chips = {};

  function select(name, label, options) {
    fields[name] = h("select", { name, change: () => ask({ [name]: fields[name].value }) },
      options.map(([value, text]) => h("option", { value }, text)));
    return h("label", { class: `field for-${name}` }, h("span", null, label), fields[name]);
  }

  function buildFilters() {
    let waiting = 0;
    fields.q = h("input", {
      type: "search", name: "q", placeholder: "id, text, reason, tool …", spellcheck: "false",
      input: () => {
        clearTimeout(waiting);
        waiting = setTimeout(() => ask({ q: fields.q.value }), 120);
      },
    });
    const statuses = worst.filter((status) => cases.some((each) => each.s === status));
    const group = h("div", { class: "chips", role: "group", "aria-label": "Status" }, statuses.map((status) => {
      const total = h("b");
      const chip = h("button", { type: "button", "data-status": status, click: () => toggle(status) },
        sign(status), ` ${data.statuses[status][0]} `, total);
      chips[status] = { chip, total };
      return chip;
    }));
    const plain = (name) => [whole(name), name.length > 60 ? `${name.slice(0, 60)}…` : name];
    const parts = [
      h("label", { class: "field for-q" }, h("span", null, "Search"), fields.q),
      group,
    ];
    const selects = [
      data.tags.length ? select("tag", "Tag", [["", "all"], ...[...data.tags].sort().map(plain)]) : null,
      data.metrics.length ? select("metric", "Metric", [["", "all"], ...data.metrics.map(plain)]) : null,
      data.metrics.length ? select("score", "Its score", [["", "any"], ["failed", "failed"], ["not_evaluated", "not evaluated"], ["passed", "passed"], ["informational", "informs only"]]) : null,
      data.compared ? select("change", "Baseline", [["", "all"], ["regressed", "regressed"], ["improved", "improved"], ["added", "added"]]) : null,
      cases.some((each) => each.f) ? select("flaky", "Runs", [["", "all"], ["1", "of flaky cases"]]) : null,
      select("sort", "Order", [["", "worst first"], ["suite", "as in the suite"], ["time", "slowest first"], ["cost", "dearest first"], ["id", "by id"]]),
    ];
    const form = at("filters");
    form.append(...parts, h("div", { class: "selects" }, selects));
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  function toggle(status) {
    const among = new Set(wanted.status);
    if (!among.delete(status)) among.add(status);
    ask({ status: worst.filter((each) => among.has(each)) });
  }

  /** Changes what is asked for; typing does not fill the history. */
  function ask(change) {
    Object.assign(wanted, change);
    if (!wanted.metric) wanted.score = "";
    history.replaceState(null, "", address(open));
    showList();
    list.scrollTop = 0;
    draw();
  }

  function showList() {
    const perStatus = choose();
    for (const [name, field] of Object.entries(fields)) if (field.value !== wanted[name]) field.value = wanted[name];
    if (fields.score) fields.score.disabled = !wanted.metric;
    for (const [status, { chip, total }] of Object.entries(chips)) {
      chip.setAttribute("aria-pressed", wanted.status.includes(status));
      total.textContent = number.format(perStatus[status]);
    }
    const narrowed = NAMES.some((name) => name !== "sort" && wanted[name]) || wanted.status.length > 0;
    at("clear").hidden = !narrowed;
    at("found").textContent = visible.length === cases.length
      ? `${number.format(cases.length)} ${cases.length === 1 ? "run" : "runs"}`
      : `${number.format(visible.length)} of ${number.format(cases.length)} runs`;
    active = Math.max(visible.indexOf(open), 0);
    rows.style.height = `${visible.length * ROW}px`;
    list.classList.toggle("empty", !visible.length);
    drawn = [-1, -1];
    draw();
  }

  // --- the list ---------------------------------------------------------------------------------

  let drawn = [-1, -1], drawnOf = null;

  const scrolls = () => list.scrollHeight > list.clientHeight + 1; // else the page does

  function draw() {
    const box = rows.getBoundingClientRect(), pane = list.getBoundingClientRect();
    const [top, bottom] = scrolls() ? [pane.top, pane.bottom] : [0, innerHeight];
    const first = Math.max(Math.floor((top - box.top) / ROW) - AHEAD, 0);
    const last = Math.min(Math.max(Math.ceil((bottom - box.top) / ROW), 0) + AHEAD, visible.length);
    if (first === drawn[0] && last === drawn[1]) return;
    drawn = [first, last];
    if (drawnOf !== visible) rows.replaceChildren();
    drawnOf = visible;
    const kept = new Map(); // a row that stays must not be replaced while somebody clicks on it
    for (const each of [...rows.children]) {
      const place = Number(each.id.slice(4));
      if (place < first || place >= last) each.remove();
      else kept.set(place, each);
    }
    let next = null;
    for (let place = last - 1; place >= first; place -= 1) {
      next = kept.get(place) ?? rows.insertBefore(row(visible[place], place), next);
    }
    mark();
  }

  function row(each, place) {
    const [word] = data.statuses[each.s];
    const several = runsOf.get(each.key).length > 1;
    const made = h("div", {
      class: `row s-${each.s}`, role: "option", id: `row-${place}`, "aria-posinset": place + 1, "aria-setsize": visible.length,
    },
    h("span", { class: "status" }, sign(each.s), h("span", { class: "word" }, word)),
    h("span", { class: "what" },
      h("span", { class: "id" }, h("bdi", null, each.id), several ? badge(`run ${each.run}`) : null),
      h("span", { class: "line", dir: "auto" }, each.w || each.i || "\u00a0")),
    h("span", { class: "tags" },
      each.ch ? badge(each.ch, `c-${each.ch}`) : null, each.f ? badge("flaky", "c-flaky") : null,
      each.t.slice(0, 3).map((tag) => badge(data.tags[tag], "tag")), each.t.length > 3 ? badge(`+${each.t.length - 3}`) : null),
    h("span", { class: "spent" }, h("span", null, each.dt), h("span", { class: "dim" }, each.ct)));
    made.style.top = `${place * ROW}px`;
    made.addEventListener("click", () => { active = place; show(each); });
    return made;
  }

  function mark() {
    for (const each of rows.children) {
      const place = Number(each.id.slice(4));
      each.setAttribute("aria-selected", visible[place] === open);
      each.classList.toggle("active", place === active);
    }
    if (visible.length && at(`row-${active}`)) list.setAttribute("aria-activedescendant", `row-${active}`);
    else list.removeAttribute("aria-activedescendant");
  }

  function bring(place) {
    active = Math.min(Math.max(place, 0), Math.max(visible.length - 1, 0));
    const pane = list.getBoundingClientRect(), y = rows.getBoundingClientRect().top + active * ROW;
    const [top, bottom] = scrolls() ? [pane.top, pane.bottom] : [0, innerHeight];
    const off = y < top ? y - top : y + ROW > bottom ? y + ROW - bottom : 0;
    if (scrolls()) list.scrollTop += off;
    else scrollBy(0, off);
    drawn = [-1, -1];
    draw();
  }

  function onKey(event) {
    const page = Math.max(Math.floor(list.clientHeight / ROW) - 1, 1);
    const moves = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: visible.length - 1 };
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key in moves) bring(moves[event.key]);
    else if ((event.key === "Enter" || event.key === " ") && visible[active]) show(visible[active]);
    else return;
    event.preventDefault();
  }

  // --- details ----------------------------------------------------------------------------------

  const parcels = new Map(); // the last few that were read

  function detailsOf(each) {
    if (!each.at) return null;
    const [parcel, place] = each.at;
    const read = parcels.get(parcel) ?? JSON.parse(at(`parcel-${parcel}`).textContent);
    parcels.delete(parcel);
    parcels.set(parcel, read);
    if (parcels.size > KEPT) parcels.delete(parcels.keys().next().value);
    return read[place];
  }

  /** Opens a case as a new step of the history. */
  function show(each) {
    if (open !== each) history.pushState(null, "", address(each));
    opened(each);
    details.focus({ preventScroll: true });
  }

  function opened(each) {
    open = each;
    panes.classList.toggle("reading", each !== null);
    details.hidden = each === null;
    details.replaceChildren(...(each ? story(each) : []));
    details.scrollTop = 0;
    if (each) {
      document.body.classList.add("reading");
      const place = visible.indexOf(each);
      if (place >= 0) bring(place);
      const top = panes.getBoundingClientRect().top;
      if (top < 0 || top > innerHeight * 0.3) panes.scrollIntoView();
    } else document.body.classList.remove("reading");
    drawn = [-1, -1];
    draw();
  }

  function close() {
    history.pushState(null, "", address(null));
    opened(null);
    if (visible.length) bring(active);
    list.focus({ preventScroll: true });
  }

  const beside = (step) => visible[visible.indexOf(open) + step];

  function story(each) {
    const found = detailsOf(each);
    const [word] = data.statuses[each.s];
    const runs = runsOf.get(each.key);
    const turn = (step, text, label) => h("button", {
      type: "button", class: "quiet", "aria-label": label,
      disabled: visible.indexOf(each) < 0 || !beside(step), click: () => show(beside(step)),
    }, text);
    const bar = h("div", { class: "bar" },
      h("button", { type: "button", class: "quiet back", click: close }, "← All cases"),
      h("span", { class: "grow" }),
      turn(-1, "↑ Previous", "Previous case"), turn(1, "↓ Next", "Next case"));
    const head = h("header", null,
      h("p", { class: `state s-${each.s}` }, sign(each.s), word,
        each.ch ? badge(each.ch, `c-${each.ch}`) : null, each.f ? badge("flaky", "c-flaky") : null),
      h("h3", null, h("a", { href: address(each), title: "Link to this run", dir: "auto" }, each.id)),
      runs.length > 1 ? h("nav", { class: "runs", "aria-label": "Runs of this case" }, runs.map((run) =>
        h("a", { href: address(run), "aria-current": run === each ? "true" : null, title: data.statuses[run.s][0] },
          `Run ${run.run} `, sign(run.s), h("span", { class: "hidden" }, data.statuses[run.s][0])))) : null,
      each.t.length ? h("p", { class: "tags" }, each.t.map((tag) => badge(data.tags[tag], "tag"))) : null);
    if (found === null) {
      return [bar, head, h("p", { class: "cut" }, "There was no room for what this run said and did; the JSON report has all of it."),
        each.w ? prose(each.w) : null].flat().filter(Boolean);
    }
    return [bar, head, facts(found), why(found), scores(found), checks(found),
      part("Transcript", transcript(found.turns)), state(found), before(found)].flat().filter(Boolean);
  }

  const part = (title, ...content) => h("section", { class: "part" }, h("h4", null, title), ...content);

  function folded(title, open, make) {
    const made = h("details", { class: "fold", open }, h("summary", null, title));
    const fill = () => { if (made.open && made.children.length === 1) made.append(...[make()].flat(Infinity).filter(Boolean)); };
    made.addEventListener("toggle", fill);
    fill();
    return made;
  }

  const table = (pairs) => h("dl", { class: "data" }, pairs.slice(0, 500).map(([key, value]) =>
    h("div", null, h("dt", { dir: "auto" }, inline(key)), h("dd", null, block(value, `Value of ${textOf(key)}`)))),
  pairs.length > 500 ? h("p", { class: "cut" }, `${number.format(pairs.length - 500)} more keys; the JSON report has all of them.`) : null);

  const facts = (found) => h("dl", { class: "facts" }, found.facts.map(([name, value]) =>
    h("div", null, h("dt", null, name), h("dd", { dir: "auto" }, inline(value)))));

  function why(found) {
    const lines = found.reasons.map((each) => h("li", { dir: "auto" }, inline(each)));
    if (!lines.length && !textOf(found.error) && !textOf(found.note)) return null;
    return h("section", { class: "part why" },
      h("h4", null, found.reasons.length || textOf(found.error) ? "Why" : "Note"),
      textOf(found.error) ? h("div", { class: "error" }, block(found.error, "The error")) : null,
      lines.length ? inBatches(h("ul", { class: "plain" }), lines, (each) => each, "reasons") : null,
      textOf(found.note) ? prose(found.note, "dim") : null);
  }

  function scores(found) {
    if (!found.scores.length) return null;
    const svg = (name, attributes) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      return made;
    };
    const drawing = (each) => {
      if (each.share === null) return "";
      const made = svg("svg", { class: "rate", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
      made.append(svg("rect", { class: "track", y: 2, width: 100, height: 6 }),
        svg("rect", { class: `f-${KIND[each.s]}`, y: 2, width: each.share * 100, height: 6 }));
      if (each.least !== null) made.append(svg("path", { class: "whisker", d: `M${each.least * 100} 0V10` }));
      return made;
    };
    const rowOf = (each) => [
      h("tr", null,
        h("th", { scope: "row", dir: "auto" }, breakable(inline(each.name))),
        h("td", null, h("span", { class: `verdict s-${KIND[each.s]}` }, h("span", { "aria-hidden": "true" }, SIGNS[each.s]), ` ${each.s.replace("_", " ")}`)),
        h("td", { class: "n" }, each.score, each.unit ? h("span", { class: "dim" }, ` ${each.unit}`) : null),
        h("td", { class: "n dim" }, each.threshold),
        h("td", { class: "wide" }, drawing(each))),
      textOf(each.reason) || each.turns.length > 1 ? h("tr", { class: "reason" }, h("td", { colspan: 5 },
        textOf(each.reason) ? prose(each.reason) : null,
        each.turns.length > 1 ? h("p", { class: "dim" }, "By turn: ", each.turns.join(" · ")) : null)) : null,
    ];
    return part("Metrics", h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Metrics of this run" },
      h("table", { class: "scores" },
        h("thead", null, h("tr", null, ["Metric", "", "Score", "Asked"].map((name, place) =>
          h("th", { scope: "col", class: place > 1 ? "n" : null }, name || h("span", { class: "hidden" }, "Status"))),
        h("td"))),
        h("tbody", null, found.scores.map(rowOf)))));
  }

  // --- expected against actual --------------------------------------------------------------------

  function checks(found) {
    const missed = found.findings.filter((each) => !each.ok), met = found.findings.filter((each) => each.ok);
    if (!found.findings.length) return null;
    const several = found.turns.length > 1;
    const made = part("Expected and actual");
    if (missed.length) made.append(inBatches(h("div", null), missed, (each) => check(each, several), "findings"));
    if (met.length) {
      made.append(folded(`${number.format(met.length)} as expected`, !missed.length && met.length < 4,
        () => inBatches(h("div", null), met, (each) => check(each, several), "findings")));
    }
    return made;
  }

  function check(each, several) {
    const kind = each.ok ? "passed" : "failed";
    const place = several && each.turn !== null && !/\bturn\b/.test(textOf(each.what)) ? ` · turn ${each.turn}` : "";
    return h("div", { class: `check ${kind}` },
      h("p", { class: "name" }, h("span", { class: `s-${kind}` }, each.ok ? "✓ " : "✗ ", h("span", { class: "hidden" }, each.ok ? "As expected: " : "Not as expected: ")),
        h("bdi", null, inline(each.what)), h("span", { class: "dim" }, place, " · ", h("bdi", null, each.metric))),
      textOf(each.reason) ? prose(each.reason) : null,
      each.sides ? sides(each.sides, ["Expected", "Actual"], !each.ok) : null);
  }

  function sides(pair, names, compare) {
    const changed = compare ? difference(textOf(pair[0]), textOf(pair[1])) : null;
    return h("div", { class: "sides" }, pair.map((cut, side) => h("div", null,
      h("p", { class: "side" }, names[side]),
      changed
        ? [h("pre", { tabindex: "0", role: "group", "aria-label": names[side] }, changed[side].map(([same, line]) =>
          h("span", { class: same ? "same" : side ? "added" : "gone" },
            h("span", { class: "gutter", "aria-hidden": "true" }, same ? " " : side ? "+" : "−"),
            same ? null : h("span", { class: "hidden" }, side ? "only here: " : "missing: "), line, "\n"))), leftOut(cut)]
        : block(cut, names[side]))));
  }

  /** The lines of two texts, each with whether the other has it in the same place; null if there is no use in it. */
  function difference(one, other) {
    const a = one.split("\n"), b = other.split("\n");
    if (a.length + b.length < 4 || a.length * b.length > DIFF) return null;
    const json = [one, other].every((text) => /^[[{]/.test(text)); // the comma after a line of JSON is not its own
    const key = (line) => (json ? line.replace(/,$/, "") : line);
    const alike = (i, j) => key(a[i]) === key(b[j]);
    const longest = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
    for (let i = a.length - 1; i >= 0; i--) {
      for (let j = b.length - 1; j >= 0; j--) {
        longest[i][j] = alike(i, j) ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
      }
    }
    const left = [], right = [];
    let i = 0, j = 0;
    while (i < a.length || j < b.length) {
      if (i < a.length && j < b.length && alike(i, j)) { left.push([true, a[i++]]); right.push([true, b[j++]]); }
      else if (j >= b.length || (i < a.length && longest[i + 1][j] >= longest[i][j + 1])) left.push([false, a[i++]]);
      else right.push([false, b[j++]]);
    }
    return [left, right];
  }

  // --- the conversation -------------------------------------------------------------------------

  function transcript(turns) {
    if (!turns.length) return h("p", { class: "dim" }, "Nothing was said.");
    return inBatches(h("ol", { class: "turns" }), turns, (each, place) => turn(each, place, turns.length > 1), "turns");
  }

  function turn(each, place, several) {
    const made = h("li", null,
      h("p", { class: "turn" }, several ? h("b", null, `Turn ${place + 1}`) : null, h("span", { class: "dim" }, each.facts)),
      said("User", each.input, "user"));
    inBatches(made, each.steps, step, "steps");
    if (textOf(each.response)) made.append(said("Answer", each.response, "agent"));
    return made;
  }

  const said = (who, text, kind) => h("div", { class: `said ${kind}` }, h("p", { class: "who" }, h("bdi", null, who)), prose(text));

  function step(each) {
    const who = inline(each.author), made = [];
    if (each.thought) made.push(h("div", { class: "said thought" }, folded(`${who} thought`, false, () => prose(each.thought))));
    if (each.text) made.push(said(who, each.text, "agent"));
    if (each.tool) made.push(tool(each.tool, who));
    if (each.state) {
      made.push(h("div", { class: "said wrote" }, h("p", { class: "who" }, h("bdi", null, who), " wrote to state"), table(each.state)));
    }
    if (each.error) made.push(h("div", { class: "said raised" }, h("p", { class: "who" }, h("bdi", null, who), " reported an error"), h("div", { class: "error" }, block(each.error, "The error"))));
    if (each.inside) made.forEach((one) => one.classList.add("inside"));
    return made;
  }

  function tool(use, who) {
    const failed = textOf(use.error) !== "";
    const size = textOf(use.args).length + textOf(use.response).length + textOf(use.error).length;
    const title = [h("bdi", { class: "call" }, inline(use.name)), h("span", { class: "args" }, brief(textOf(use.args))),
      use.mocked ? badge("mocked", "c-mocked") : null, failed ? badge("✗ error", "c-regressed") : null,
      h("span", { class: "dim by" }, "by ", h("bdi", null, inline(use.agent) || who))];
    return h("div", { class: `said tool${failed ? " raised" : ""}` }, folded(h("span", { class: "head" }, title), failed || size < 700, () =>
      h("div", { class: "io" },
        h("div", null, h("p", { class: "side" }, "Arguments"), block(use.args, "Arguments")),
        h("div", null, h("p", { class: "side" }, failed ? "Error" : use.mocked ? "Mocked response" : "Response"),
          failed ? h("div", { class: "error" }, block(use.error, "Error")) : block(use.response, "Response"),
          failed && use.response !== null && textOf(use.response) !== "null" ? block(use.response, "Response") : null))));
  }

  const brief = (json) => {
    const line = json.replace(/\s+/g, " ").replace(/^\{ ?/, "(").replace(/ ?\}$/, ")");
    return line.length > 90 ? `${line.slice(0, 90)}…` : line;
  };

  function state(found) {
    const made = [];
    if (found.state.length) made.push(folded(`State at the end: ${number.format(found.state.length)} ${found.state.length === 1 ? "key" : "keys"}`, false, () => table(found.state)));
    if (found.metadata.length) made.push(folded("Metadata of the case", false, () => table(found.metadata)));
    return made.length ? h("section", { class: "part" }, made) : null;
  }

  function before(found) {
    const was = found.before;
    if (was === null) return null;
    const cells = ([name, now, then, change]) => h("tr", { class: now === then ? "dim" : null },
      h("th", { scope: "row", dir: "auto" }, breakable(name)), h("td", { class: "n" }, now), h("td", { class: "n" }, then), h("td", { class: "n" }, change));
    return part("Against the baseline",
      h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "This run against the baseline" }, h("table", { class: "scores" },
        h("thead", null, h("tr", null, h("td"), ["Now", "Baseline", "Change"].map((name) => h("th", { scope: "col", class: "n" }, name)))),
        h("tbody", null, was.rows.map(cells)))),
      was.reasons.length ? folded("Why the baseline's run did not pass", false, () => h("ul", { class: "plain" }, was.reasons.map((each) => h("li", { dir: "auto" }, inline(each))))) : null,
      was.answers ? [h("p", { class: "side" }, "Last answer"), sides(was.answers, ["Now", "Baseline"], false)] : h("p", { class: "dim" }, "The last answer is the same."),
      was.turns.length ? folded("Transcript of the baseline's run", false, () => transcript(was.turns)) : null);
  }

  // --- on paper -----------------------------------------------------------------------------------

  /** Paper does not scroll: it gets a plain table of the cases that the filters leave. */
  function toPaper() {
    if (at("paper").childElementCount) return;
    at("paper").append(h("table", { class: "runs" },
      h("thead", null, h("tr", null, ["Status", "Case", "Run", "Time", "Cost", "Why"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", null, visible.map((each) => h("tr", null,
        h("td", { class: `s-${each.s}` }, `${data.statuses[each.s][1]} ${data.statuses[each.s][0]}`),
        h("th", { scope: "row", dir: "auto" }, each.id), h("td", null, each.run), h("td", null, each.dt), h("td", null, each.ct), h("td", { dir: "auto" }, each.w))))));
  }

  // --- light and dark -----------------------------------------------------------------------------

  function theme() {
    const choice = at("theme"), key = "adk-fluent-eval-theme";
    const apply = (value) => {
      if (value) document.documentElement.setAttribute("data-theme", value);
      else document.documentElement.removeAttribute("data-theme");
    };
    try {
      const kept = localStorage.getItem(key);
      choice.value = kept === "light" || kept === "dark" ? kept : "";
    } catch { choice.value = ""; } // a page from a file may have no storage
    apply(choice.value);
    choice.addEventListener("change", () => {
      apply(choice.value);
      try { localStorage.setItem(key, choice.value); } catch { /* then it is chosen again next time */ }
    });
  }

  // --- beginning ----------------------------------------------------------------------------------

  /** Follows the address, also back and forth. */
  function follow() {
    if (location.hash && !location.hash.includes("=")) return; // a place on the page
    const asked = readAddress();
    showList();
    if (asked !== open || asked) opened(asked);
    else if (location.hash) at("cases").scrollIntoView();
  }

  document.documentElement.classList.add("scripted");
  theme();
  buildFilters();
  list.addEventListener("scroll", draw, { passive: true });
  list.addEventListener("keydown", onKey);
  details.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  at("clear").addEventListener("click", () => {
    ask({ q: "", status: [], tag: "", metric: "", score: "", change: "", flaky: "" });
    fields.q.focus();
  });
  addEventListener("scroll", draw, { passive: true });
  addEventListener("resize", () => { drawn = [-1, -1]; draw(); });
  addEventListener("popstate", follow); // comes with a link to a place in the page, too
  addEventListener("beforeprint", toPaper);
  addEventListener("afterprint", () => at("paper").replaceChildren());
  follow();
}
