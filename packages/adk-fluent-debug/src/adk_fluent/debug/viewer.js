"use strict";
(() => {
  // What stands in the data was said by models, tools and users: it becomes text, never markup.
  const data = JSON.parse(document.getElementById("data").textContent);
  const narrow = matchMedia("(max-width: 760px)");
  const LANE = 26, AXIS = 20, LONG = 20_000; // pixels, pixels, characters
  const BANDS = { run: [0, 26], model: [2, 8], remote: [2, 8], tool: [11, 5], span: [17, 3], event: [21, 4] }; // of a lane: top and height
  const HIDDEN = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu; // what a reader does not see
  const visible = (text) => text.replaceAll("\r\n", "\n").replace(HIDDEN, (each) => `\\u${each.codePointAt(0).toString(16).padStart(4, "0")}`);
  const SHARES = ["prompt", "cached", "output", "thoughts", "tool"]; // of the tokens of a call
  const GAP = 0.02; // between runs on the axis, of a run
  const byId = (id) => document.getElementById(id);
  const count = (number) => number.toLocaleString("en");
  const time = (value) => (value < 1000 ? `${Number(value.toFixed(value < 10 ? 1 : 0))} ms` : `${Number((value / 1000).toFixed(value < 1e4 ? 2 : 1)).toLocaleString("en")} s`);
  const isFree = (cost) => !Number(cost.usd.replace("$", ""));
  const price = (cost) => (cost.unknown && isFree(cost) ? "unknown" : `${cost.unknown ? "at least " : ""}${cost.usd}`);
  const search = byId("search");
  const off = new Set(["part"]);
  let wanted = null; // what is searched for, as a pattern
  let active = null; // the side that keys act on

  function make(tag, classes = "", ...children) {
    const made = document.createElement(tag);
    if (classes) made.className = classes;
    for (const each of children) made.append(typeof each === "string" ? visible(each) : each);
    return made;
  }

  function button(text, act, title = "") {
    const made = make("button", "", text);
    made.type = "button";
    if (title) made.title = title;
    made.addEventListener("click", act);
    return made;
  }

  /** Puts a text into an element, with what is searched for marked. */
  function put(into, text) {
    let at = 0;
    if (wanted) for (const { 0: found, index } of text.matchAll(wanted)) {
      into.append(visible(text.slice(at, index)), make("mark", "", found));
      at = index + found.length;
    }
    into.append(visible(text.slice(at)));
    return into;
  }

  function block(text, classes = "", limit = LONG) {
    const made = put(make("pre", classes), text.slice(0, limit));
    made.dir = "auto";
    if (text.length > limit) {
      const all = () => made.replaceWith(block(text, classes, Infinity));
      made.append("\n", button(`all of ${count(text.length)} characters`, all));
    }
    return made;
  }

  /** The steps from one list to another: ["same" | "gone" | "new", item]. */
  function steps(before, after) {
    let head = 0, end = 0;
    while (head < before.length && head < after.length && before[head] === after[head]) head++;
    while (end < before.length - head && end < after.length - head && before.at(-1 - end) === after.at(-1 - end)) end++;
    const was = before.slice(head, before.length - end), now = after.slice(head, after.length - end);
    const made = before.slice(0, head).map((each) => ["same", each]);
    let i = 0, j = 0;
    if (was.length * now.length <= 1e6) { // longest common subsequence
      const wide = now.length + 1, best = new Uint32Array((was.length + 1) * wide);
      for (let a = was.length - 1; a >= 0; a--) for (let b = now.length - 1; b >= 0; b--)
        best[a * wide + b] = was[a] === now[b] ? best[(a + 1) * wide + b + 1] + 1 : Math.max(best[(a + 1) * wide + b], best[a * wide + b + 1]);
      while (i < was.length && j < now.length) {
        if (was[i] === now[j]) { made.push(["same", was[i++]]); j++; }
        else if (best[(i + 1) * wide + j] >= best[i * wide + j + 1]) made.push(["gone", was[i++]]);
        else made.push(["new", now[j++]]);
      }
    }
    made.push(...was.slice(i).map((each) => ["gone", each]), ...now.slice(j).map((each) => ["new", each]));
    return made.concat(before.slice(before.length - end).map((each) => ["same", each]));
  }

  /** Two versions of a text, line by line. */
  function compared(before, after) {
    const made = make("pre");
    made.dir = "auto";
    for (const [how, line] of steps(before.split("\n"), after.split("\n"))) put(made.appendChild(make({ same: "div", gone: "del", new: "ins" }[how])), line || " ");
    return made;
  }

  class Side {
    constructor(recording, number) {
      Object.assign(this, { recording, number, rows: recording.rows, chosen: -1, zoom: 1, kin: new Map(), marks: new Map() });
      const models = new Map(), counts = new Map();
      this.layOut();
      this.rows.forEach((row, at) => {
        row.text = [row.label, recording.lanes[row.lane] ?? "", row.summary, row.error ?? ""].join("\n").toLowerCase();
        const key = [row.kind, row.lane === undefined ? "" : recording.lanes[row.lane]].join("\n");
        counts.set(key, (counts.get(key) ?? 0) + 1);
        row.key = `${key}\n${counts.get(key)}`; // its counterpart in the other recording has the same
        this.kin.set(row.key, at);
        row.uses = new Set(row.sections.map((each) => each[1]));
        for (const [, was, now] of row.state ?? []) row.uses.add(was).add(now);
        if (row.prompt) {
          row.before = models.get(row.lane);
          models.set(row.lane, row);
          const known = new Set(row.before?.prompt.map((each) => each[1]));
          for (const [, text] of row.prompt) if (!known.has(text)) row.uses.add(text);
        }
      });
      this.errors = this.rows.filter((row) => row.status === "error").map((row) => row.at);
      (data.differences ?? []).forEach(({ rows }, n) => { if (rows[number] !== null) this.marks.set(rows[number], n ? "differs" : "differs first"); });
      this.build();
    }

    /** Puts the runs after each other on the axis, and follows state through each. */
    layOut() {
      const lanes = new Map();
      let run = null, state = null, number = 0; // of each key the text of its value; null where that was not recorded
      this.end = 0;
      this.rows.forEach((row, at) => {
        if (row.kind === "run") {
          const ended = row.status || "cut off", summary = [ended, row.message].filter(Boolean).join(", ");
          run = Object.assign(row, { ended, summary, start: this.end + (at ? row.duration_ms * GAP : 0), tokens: 0, counts: {} });
          run.status = ["", "failed"].includes(row.status) ? "error" : "ok";
          this.end = run.start + row.end_ms;
          state = row.state && new Map(row.state);
          row.state = row.state?.map(([name, now]) => [name, null, now]);
        } else {
          row.start = run.start + Math.max(row.start_ms, 0);
          if (row.kind === "event" && !row.within) row.number = number++;
          if (!lanes.has(row.lane)) lanes.set(row.lane, lanes.size);
          row.lane = lanes.get(row.lane);
          run.tokens += row.tokens;
          run.counts[row.kind] = (run.counts[row.kind] ?? 0) + 1;
          const known = row.within ? null : state; // what agents of a tool write is the tool's
          row.state = row.writes?.map(([name, now]) => [name, known ? known.get(name) ?? null : undefined, now]);
          for (const [name, now] of row.writes ?? []) if (now === null) known?.delete(name); else known?.set(name, now);
        }
        Object.assign(row, { at, run, end: run.start + row.end_ms });
      });
      this.recording.lanes = [...lanes.keys()];
    }

    /** What is told of a row in figures: pairs of name and value. */
    figures(row) {
      const { cost, usage } = row, shares = SHARES.filter((name) => usage?.[name]).map((name) => `${count(usage[name])} ${name}`);
      const found = row.kind === "run" ? [
        ["status", row.ended], ["time", time(row.duration_ms)], ["tokens", count(row.tokens)],
        ["model calls", count(row.counts.model ?? 0)], ["tool calls", count(row.counts.tool ?? 0)], ["session", row.session], ["pipeline", row.pipeline],
        ["cost", cost && `${price(cost)}, ${row.noted ? "as recorded" : "by the price book installed here"}`],
      ] : [
        ["lane", this.recording.lanes[row.lane]], ["began", time(row.start_ms)], ["took", row.kind === "event" ? "" : time(row.end_ms - row.start_ms)],
        ["tokens", usage && `${count(row.tokens)} (${shares.join(", ")})`],
        ["streamed", row.fragments && `${count(row.fragments)} ${row.fragments === 1 ? "fragment" : "fragments"}, the first after ${time(row.first_ms)}`],
        ["cost", cost && [price(cost), cost.unknown].filter(Boolean).join(": ")],
      ];
      return found.filter(([, value]) => value);
    }

    build() {
      this.canvas = make("canvas");
      this.axis = make("div");
      this.lanes = make("div", "lanes", this.axis, this.canvas);
      this.room = make("div", "room");
      this.body = make("div");
      this.body.setAttribute("role", "presentation");
      this.list = make("div", "list", this.room, this.body);
      this.list.tabIndex = 0;
      this.list.setAttribute("role", "listbox");
      this.list.setAttribute("aria-label", `What happened in ${visible(this.recording.name)}`);
      this.detail = make("section", "detail");
      this.detail.setAttribute("aria-label", "Detail");
      this.detail.tabIndex = 0;
      this.element = make("section", "side", this.lanes, this.list, this.detail);
      this.element.addEventListener("pointerdown", () => activate(this), true);
      this.element.addEventListener("focusin", () => activate(this));
      this.list.addEventListener("scroll", () => this.drawList());
      this.lanes.addEventListener("scroll", () => this.drawLanes());
      this.body.addEventListener("click", (event) => {
        const row = event.target.closest(".row");
        if (row) this.choose(Number(row.dataset.at), true);
      });
      this.canvas.addEventListener("click", (event) => {
        const found = this.under(event);
        if (found) this.choose(found.at, true);
      });
      this.canvas.addEventListener("mousemove", (event) => {
        const found = this.under(event);
        this.canvas.title = found ? visible(`${found.label}: ${found.summary}`) : "";
      });
      new ResizeObserver(() => this.draw()).observe(this.element);
    }

    // --- what is shown -------------------------------------------------------------------------

    filter() {
      const hit = new Set();
      if (wanted) this.recording.texts.forEach((text, at) => { wanted.lastIndex = 0; if (wanted.test(text)) hit.add(at); });
      const matches = (row) => { wanted.lastIndex = 0; return wanted.test(row.text) || [...row.uses].some((each) => hit.has(each)); };
      this.shown = this.rows.filter((row) => !off.has(row.partial ? "part" : row.kind) && (!wanted || matches(row)));
      this.places = new Map(this.shown.map((row, place) => [row.at, place]));
      this.draw();
    }

    draw() {
      if (!this.shown || !this.element.offsetWidth) return;
      this.high = narrow.matches ? 46 : 28;
      this.room.style.height = `${this.shown.length * this.high}px`;
      this.lanes.style.height = `${AXIS + LANE * this.recording.lanes.length + 2}px`;
      this.drawList();
      this.drawLanes();
    }

    drawList() {
      const first = Math.max(0, Math.floor(this.list.scrollTop / this.high) - 4);
      const last = Math.min(this.shown.length, first + Math.ceil(this.list.clientHeight / this.high) + 8);
      this.body.replaceChildren(...this.shown.slice(first, last).map((row, place) => this.line(row, first + place)));
      if (!this.shown.length) this.body.replaceChildren(make("p", "nothing dim", this.rows.length ? "Nothing is found." : "Nothing was recorded."));
      this.list.setAttribute("aria-activedescendant", this.places.has(this.chosen) ? `s${this.number}r${this.chosen}` : "");
    }

    line(row, place) {
      const made = make("div", `row ${row.kind} ${row.status === "ok" ? "" : row.status} ${row.within ? "within" : ""} ${this.marks.get(row.at) ?? ""}`);
      made.id = `s${this.number}r${row.at}`;
      made.dataset.at = row.at;
      made.style.top = `${place * this.high}px`;
      for (const [name, value] of [["role", "option"], ["aria-selected", row.at === this.chosen], ["aria-posinset", place + 1], ["aria-setsize", this.shown.length]]) made.setAttribute(name, value);
      const why = row.status === "cancelled" ? "cancelled" : row.kind === "event" ? "" : row.error;
      const what = [row.kind === "tool" ? "" : row.kind === "model" ? `${row.label}: ` : row.kind === "span" ? row.label : "", row.summary, why && row.summary ? " — " : "", why ?? ""].join("");
      const figures = [row.kind === "event" ? "" : time(row.end - row.start), row.tokens ? `${count(row.tokens)} tok` : "", row.cost && !isFree(row.cost) ? price(row.cost) : ""];
      made.append(make("span", "n at", row.kind === "run" ? row.label : time(row.start - row.run.start)),
        make("span", "lane", row.kind === "run" ? row.label : this.recording.lanes[row.lane]),
        put(make("span", "what"), what.replace(/\s+/g, " ")), make("span", "n", figures.filter(Boolean).join(" · ")));
      if (row.kind === "run") made.querySelector(".at").textContent = "";
      return made;
    }

    // --- lanes ---------------------------------------------------------------------------------

    scale() {
      const left = Math.min(190, Math.round(this.lanes.clientWidth * 0.3)), wide = this.lanes.clientWidth - left - 12;
      const by = (wide * this.zoom) / (this.end || 1);
      return { left, by, x: (t) => left + 4 + t * by - this.lanes.scrollLeft, y: (lane) => AXIS + lane * LANE - this.lanes.scrollTop };
    }

    drawLanes() {
      const { lanes, canvas, recording } = this, width = lanes.clientWidth, height = lanes.clientHeight, ratio = devicePixelRatio;
      const { left, by, x, y } = this.scale();
      this.axis.style.width = `${left + 12 + this.end * by}px`;
      this.axis.style.height = `${AXIS + LANE * recording.lanes.length}px`;
      Object.assign(canvas, { width: width * ratio, height: height * ratio });
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      const pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
      const hue = Object.fromEntries(["ink", "dim", "line", "card", "model", "tool", "remote", "event", "span", "error", "differs"].map((name) => [name, resolved(style.getPropertyValue(`--${name}`))]));
      pen.scale(ratio, ratio);
      pen.font = "12px system-ui, sans-serif";
      pen.textBaseline = "middle";
      this.ticks(pen, hue, x, by, left, width, height);
      pen.save();
      pen.beginPath();
      pen.rect(left, AXIS, width, height);
      pen.clip(); // lanes that are scrolled away
      const seen = (lane) => y(lane) > -LANE && y(lane) < height;
      pen.fillStyle = hue.ink;
      pen.globalAlpha = 0.04;
      recording.lanes.forEach((_, lane) => { if (lane % 2 === 0 && seen(lane)) pen.fillRect(0, y(lane), width, LANE); });
      pen.globalAlpha = 1;
      for (const row of this.rows) {
        if (row.kind === "run" || !seen(row.lane)) continue;
        const from = x(row.start), wide = Math.max(row.kind === "event" ? 4 : 3, (row.end - row.start) * by);
        if (from + wide < left || from > width) continue;
        const [top, high] = BANDS[row.kind], alpha = this.places.has(row.at) ? 1 : 0.15;
        pen.globalAlpha = row.status === "cancelled" || row.kind === "span" ? alpha * 0.45 : alpha; // spans stand in each other
        pen.fillStyle = row.status === "error" ? hue.error : hue[row.kind];
        pen.fillRect(from, y(row.lane) + top, wide, high);
        pen.globalAlpha = 1;
        if (row.at === this.chosen) { pen.strokeStyle = hue.ink; pen.lineWidth = 1.5; pen.strokeRect(from - 2, y(row.lane) + top - 2, wide + 4, high + 4); }
      }
      for (const [at, how] of this.marks) {
        if (how === "differs") continue;
        pen.strokeStyle = hue.differs;
        pen.setLineDash([4, 3]);
        pen.strokeRect(x(this.rows[at].start) - 2, AXIS, 0, height);
        pen.setLineDash([]);
      }
      pen.restore();
      pen.fillStyle = hue.card;
      pen.fillRect(0, 0, left, height);
      recording.lanes.forEach((name, lane) => {
        if (!seen(lane)) return;
        pen.fillStyle = hue.ink;
        pen.fillText(fitted(pen, visible(name), left - 18), 10, y(lane) + LANE / 2);
      });
      pen.fillStyle = hue.card;
      pen.fillRect(0, 0, left, AXIS);
      pen.fillStyle = hue.line;
      pen.fillRect(left, 0, 1, height);
    }

    ticks(pen, hue, x, by, left, width, height) {
      const rough = 90 / by, power = 10 ** Math.floor(Math.log10(rough)), step = power * [1, 2, 5, 10].find((each) => each * power >= rough);
      const runs = this.rows.filter((row) => row.kind === "run" && x(row.end) > left && x(row.start) < width);
      let free = -Infinity;
      for (const run of runs) {
        if (this.rows[0] !== run) { pen.fillStyle = hue.dim; pen.fillRect(x(run.start) - 1, 0, 1, height); }
        for (let n = Math.max(0, Math.floor((left - x(run.start)) / by / step)); x(run.start + n * step) <= Math.min(width, x(run.end)); n++) {
          const at = x(run.start + n * step);
          pen.fillStyle = hue.line;
          pen.fillRect(at, AXIS - 4, 1, height);
          if (at < free) continue;
          pen.fillStyle = hue.dim;
          const text = n ? time(n * step) : runs.length > 1 ? run.label : "0";
          const wide = pen.measureText(text).width, end = run === runs.at(-1) ? width : x(run.end);
          if (n && at + 3 + wide > end) continue;
          pen.fillText(text, at + 3, AXIS / 2);
          free = at + wide + 14;
        }
      }
    }

    /** The row nearest to where the pointer is in the lanes. */
    under(event) {
      const { left, x } = this.scale(), lane = Math.floor((event.offsetY + this.lanes.scrollTop - AXIS) / LANE);
      if (event.offsetX < left || event.offsetY < AXIS) return null;
      const y = (event.offsetY + this.lanes.scrollTop - AXIS) % LANE;
      let best = null, least = 12;
      for (const row of this.shown) {
        if (row.lane !== lane) continue;
        const [top, high] = BANDS[row.kind], away = Math.max(0, x(row.start) - event.offsetX, event.offsetX - Math.max(x(row.end), x(row.start) + 3));
        const far = away + Math.max(0, top - y, y - top - high) / 2;
        if (far <= least) [best, least] = [row, far];
      }
      return best;
    }

    magnify(times) {
      const row = this.rows[this.chosen], was = this.scale(), middle = this.lanes.scrollLeft + (this.lanes.clientWidth - was.left) / 2;
      const at = row && row.kind !== "run" ? row.start : middle / was.by;
      this.zoom = times ? Math.min(2000, Math.max(1, this.zoom * times)) : 1;
      this.drawLanes();
      const { left, by } = this.scale();
      this.lanes.scrollLeft = at * by - (this.lanes.clientWidth - left) / 2;
      this.drawLanes();
    }

    // --- one row -------------------------------------------------------------------------------

    choose(at, open = false, alone = false) {
      if (at === undefined || !this.rows[at]) return;
      this.chosen = at;
      const row = this.rows[at], place = this.places.get(at);
      if (place !== undefined && this.element.offsetWidth) {
        const top = place * this.high, box = this.list;
        if (top < box.scrollTop) box.scrollTop = top;
        else if (top + this.high > box.scrollTop + box.clientHeight) box.scrollTop = top + this.high - box.clientHeight;
        const { left, x, y } = this.scale();
        if (row.lane !== undefined && (y(row.lane) < AXIS || y(row.lane) + LANE > this.lanes.clientHeight)) this.lanes.scrollTop = row.lane * LANE - this.lanes.clientHeight / 2;
        if (x(row.start) < left || x(row.start) > this.lanes.clientWidth - 20) this.lanes.scrollLeft += x(row.start) - left - (this.lanes.clientWidth - left) / 2;
      }
      this.draw();
      this.show(row);
      this.detail.classList.toggle("open", open && narrow.matches);
      if (open && narrow.matches) this.detail.focus();
      const other = sides.find((each) => each !== this);
      if (other && !alone) other.choose(other.kin.get(row.key), false, true);
    }

    show(row) {
      const text = (at) => this.recording.texts[at], { detail } = this;
      const title = make("h2", row.kind, make("span", "", row.kind === "run" ? "" : `${row.kind} `), row.label, row.number === undefined ? "" : ` (event ${row.number})`);
      const figures = make("dl");
      for (const [name, value] of this.figures(row)) figures.append(make("div", "", make("dt", "", name), make("dd", "", value)));
      detail.replaceChildren(make("span", "close", button("Close", () => this.close())), title, figures);
      detail.scrollTop = 0;
      if (row.error) detail.append(make("h3", "", "error"), block(row.error, "why"));
      else if (row.status === "cancelled") detail.append(make("h3", "", "cancelled before it was over"));
      for (const each of data.differences ?? []) if (each.rows[this.number] === row.at) detail.append(make("h3", "", "difference"), block(each.text));
      if (row.prompt) {
        const prompt = this.prompt(row), other = sides.find((each) => each !== this), beside = other?.rows[other.kin.get(row.key)];
        if (beside && this.number) this.showPrompt(`prompt, and what differs from ${other.recording.name}`, other.prompt(beside), prompt);
        else if (row.before) this.showPrompt("prompt, and what is new since the call before", this.prompt(row.before), prompt);
        else this.showPrompt("prompt, the first of this agent", null, prompt);
      }
      if (row.state?.length) this.showChanges(row.kind === "run" ? "state at the beginning" : "writes to state", row.state, text);
      for (const [name, at] of row.sections) {
        if (name === "whole event") detail.append(make("details", "", make("summary", "", name), block(text(at))));
        else detail.append(make("h3", "", name), block(text(at)));
      }
      if (row.kind === "event" && !row.partial) detail.append(this.stateAfter(row, text));
    }

    prompt(row) {
      return row.prompt.map(([who, at]) => [who, this.recording.texts[at]]);
    }

    showPrompt(title, before, after) {
      const key = (piece) => piece.join("\n"), pieces = new Map([...(before ?? []), ...after].map((each) => [key(each), each]));
      const { detail } = this, said = ([who, text], how = "") => make("div", "said", make("b", "", how ? `${who} (${how})` : who), block(text, how));
      detail.append(make("h3", "", title));
      if (!before) return void detail.append(...after.map((each) => said(each)));
      const found = steps(before.map(key), after.map(key)).map(([how, each]) => [how, pieces.get(each)]);
      for (let at = 0; at < found.length;) {
        const how = found[at][0];
        let end = at;
        if (how === "same") {
          while (end < found.length && found[end][0] === "same") end++;
          const same = make("details", "", make("summary", "", `${end - at} unchanged: ${[...new Set(found.slice(at, end).map((each) => each[1][0]))].join(", ")}`));
          const part = found.slice(at, end);
          same.addEventListener("toggle", () => same.append(...part.splice(0).map((each) => said(each[1]))));
          detail.append(same);
        } else {
          while (end < found.length && found[end][0] !== "same") end++;
          const gone = found.slice(at, end).filter((each) => each[0] === "gone").map((each) => each[1]);
          for (const [, piece] of found.slice(at, end).filter((each) => each[0] === "new")) {
            const was = gone.findIndex((each) => each[0] === piece[0]);
            if (was < 0 || Math.max(piece[1].length, gone[was][1].length) > 10 * LONG) detail.append(said(piece, "new"));
            else detail.append(make("div", "said", make("b", "", piece[0]), compared(gone.splice(was, 1)[0][1], piece[1])));
          }
          detail.append(...gone.map((each) => said(each, "gone")));
        }
        at = end;
      }
    }

    showChanges(title, changes, text) {
      const table = make("table");
      for (const [name, was, now] of changes) {
        const cell = make("td");
        for (const [how, at] of [["gone", was], ["new", now]]) if (at !== null) cell.append(block(at === undefined ? "(not recorded)" : text(at), how));
        table.append(make("tr", "", make("th", "", name), cell));
      }
      this.detail.append(make("h3", "", title), table);
    }

    stateAfter(row, text) {
      const made = make("details", "", make("summary", "", "state after this event"));
      made.addEventListener("toggle", () => {
        if (made.childElementCount > 1) return;
        const state = new Map();
        for (let at = row.run.at; at <= row.at; at++) for (const [name, , now] of this.rows[at].within ? [] : this.rows[at].state ?? []) if (now === null) state.delete(name); else state.set(name, now);
        made.append(block([...state].map(([name, now]) => `${name} = ${text(now)}`).join("\n") || "(none)"));
      });
      return made;
    }

    close() {
      this.detail.classList.remove("open");
      this.list.focus();
    }

    /** Chooses another of the rows shown. */
    move(by, same = () => true) {
      let place = this.places.get(this.chosen) ?? (by > 0 ? -1 : this.shown.length);
      const jump = Math.sign(by);
      for (let left = Math.abs(by); left > 0; left--) {
        let next = place + jump;
        while (this.shown[next] && !same(this.shown[next])) next += jump;
        if (!this.shown[next]) break;
        place = next;
      }
      if (this.shown[place]) this.choose(this.shown[place].at);
    }

    next(places) {
      const found = places.filter((at) => this.places.has(at));
      this.choose(found.find((at) => at > this.chosen) ?? found[0]);
    }
  }

  const inks = document.createElement("canvas").getContext("2d");

  /** A colour of the style that a canvas takes; it does not know light-dark(). */
  function resolved(value) {
    const pair = /light-dark\((.*),\s*(.*)\)/.exec(value);
    inks.fillStyle = pair ? pair[matchMedia("(prefers-color-scheme: dark)").matches ? 2 : 1].trim() : value.trim();
    return inks.fillStyle;
  }

  function fitted(pen, text, wide) {
    let shown = text.slice(0, 80);
    if (shown === text && pen.measureText(text).width <= wide) return text;
    while (shown && pen.measureText(`${shown}…`).width > wide) shown = shown.slice(0, -1);
    return `${shown}…`;
  }

  function activate(side) {
    active = side;
    for (const each of sides) each.element.classList.toggle("active", each === side);
    [...byId("names").children].forEach((each, at) => each.classList.toggle("active", sides[at] === side)); // one that was hidden draws itself
  }

  function find() {
    const text = search.value.trim();
    wanted = text ? new RegExp(text.replace(/[.*+?^$()[\]{}|\\]/g, "\\$&"), "giu") : null;
    for (const each of sides) each.filter();
    byId("found").textContent = sides.map(({ shown, rows }) => `${count(shown.length)} of ${count(rows.length)}`).join(" and ");
    if (active.chosen >= 0) active.show(active.rows[active.chosen]);
  }

  function about({ holds, metadata, edited }) {
    const made = Object.entries(metadata.versions ?? {}).filter(([name]) => name.includes("adk")).map((each) => each.join(" "));
    return [holds, metadata.recorded_at && `recorded ${metadata.recorded_at}`, ...made, edited && "edited after it was recorded"].filter(Boolean).join(" · ");
  }

  const sides = data.sides.map((recording, at) => new Side(recording, at));
  byId("sides").append(...sides.map((each) => each.element));
  document.body.classList.toggle("two", sides.length > 1);
  for (const side of sides) {
    const name = sides.length > 1 ? button(side.recording.name, () => activate(side), "Keys act on this one (s)") : side.recording.name;
    byId("names").append(make("div", "", make("h1", "", name), make("div", "about", about(side.recording))));
  }
  activate(sides[0]);
  const kinds = [["model", "model"], ["tool", "tool"], ["remote", "remote"], ["event", "event"], ["span", "span"], ["part", "event"]].filter(([kind]) => sides.some(({ rows }) => rows.some((row) => (row.partial ? "part" : row.kind) === kind)));
  for (const [kind, hue] of kinds) {
    const made = button({ model: "models", tool: "tools", remote: "remote agents", event: "events", span: "spans", part: "parts of streams" }[kind], () => {
      if (!off.delete(kind)) off.add(kind);
      made.setAttribute("aria-pressed", !off.has(kind));
      find();
    });
    made.className = hue;
    made.setAttribute("aria-pressed", !off.has(kind));
    byId("kinds").append(made);
  }
  if (sides.some((each) => each.errors.length)) {
    const made = button(`${sides.reduce((sum, each) => sum + each.errors.length, 0)} failed`, () => active.next(active.errors), "The next one that failed (e)");
    made.className = "error";
    byId("kinds").append(made);
  }
  const places = (side) => [...side.marks.keys()].sort((a, b) => a - b);
  if (data.summary) {
    const box = byId("difference"), first = data.differences[0];
    box.hidden = false;
    box.append(make("span", "", first ? `First difference: ${first.text}` : data.summary));
    if (first) box.append(button(`next of ${data.differences.length} (d)`, () => active.next(places(active))));
  }
  search.addEventListener("input", find);
  byId("in").addEventListener("click", () => active.magnify(2));
  byId("out").addEventListener("click", () => active.magnify(0.5));
  byId("all").addEventListener("click", () => active.magnify(0));
  const KEYS = [["↑ ↓ k j", "the row before, after"], ["← →", "the same in its lane"], ["Page Up, Page Down, Home, End", "further"], ["e", "the next one that failed"], ["d", "the next difference"], ["s", "the other recording"], ["/", "search; Escape ends it"], ["+ − 0", "zoom in, out, the whole time"]];
  byId("help").append(...KEYS.map(([keys, does]) => make("div", "", make("kbd", "", keys), ` ${does}`)), button("Close", () => byId("help").close()));
  byId("keys").addEventListener("click", () => byId("help").showModal());

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    if (event.key === "Escape") {
      if (event.target === search) { search.value = ""; find(); active.list.focus(); } else active.close();
      return;
    }
    if (event.target === search && event.key !== "Enter" && event.key !== "ArrowDown") return;
    if (event.target.closest?.("button, summary") && [" ", "Enter"].includes(event.key)) return;
    const page = Math.max(1, Math.floor(active.list.clientHeight / active.high) - 1), lane = active.rows[active.chosen]?.lane;
    const act = {
      ArrowDown: () => active.move(1), j: () => active.move(1), ArrowUp: () => active.move(-1), k: () => active.move(-1),
      ArrowRight: () => active.move(1, (row) => row.lane === lane), ArrowLeft: () => active.move(-1, (row) => row.lane === lane),
      PageDown: () => active.move(page), PageUp: () => active.move(-page), Home: () => active.move(-Infinity), End: () => active.move(Infinity),
      Enter: () => (active.places.has(active.chosen) ? active.choose(active.chosen, true) : active.move(1)), e: () => active.next(active.errors), d: () => active.next(places(active)),
      s: () => activate(sides[(active.number + 1) % sides.length]), "/": () => { search.focus(); search.select(); },
      "+": () => active.magnify(2), "=": () => active.magnify(2), "-": () => active.magnify(0.5), 0: () => active.magnify(0), "?": () => byId("help").showModal(),
    }[event.key];
    if (!act || (event.target.closest?.(".detail") && /^(ArrowUp|ArrowDown|Page|Home|End)/.test(event.key))) return; // these scroll the detail
    event.preventDefault();
    if (event.target === search) active.list.focus();
    act();
  });

  const redraw = () => { for (const each of sides) each.draw(); };
  narrow.addEventListener("change", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  find();
  const start = data.differences?.length ? data.differences[0].rows : [sides[0].errors[0] ?? 0];
  start.forEach((at, side) => { if (at !== null) sides[side].choose(at, false, start[1 - side] !== null); });
})();
