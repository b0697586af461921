/* The page of a study: a report with its data inside, or the live page, which asks a server for the same data.
 *
 * Everything that comes from a study is set as text, never as HTML. Labels in figures, where Plotly reads tags, come
 * escaped. Nothing is loaded from anywhere but the server of the page, and a report loads nothing at all. */
"use strict";

(() => {
  const ROWS = 25; // of one page of the table
  const EVERY = { figure: 1000, models: 10000, poll: 3000, wait: 500, first: 60 }; // milliseconds between looks at what has changed
  const byId = (id) => document.getElementById(id);

  /* ---- Elements ---- */

  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === undefined || value === null || value === false) continue;
      if (name === "on") for (const [event, listen] of Object.entries(value)) made.addEventListener(event, listen);
      else made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  const number = (value) => {
    if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value);
    return String(Number(value.toPrecision(6)));
  };
  const text = (cell) => (cell === null || cell === undefined ? "" : typeof cell === "number" ? number(cell) : cell);

  const facts = (pairs) =>
    element("dl", { class: "facts" }, ...pairs.flatMap(([name, value]) =>
      [element("dt", { dir: "auto" }, name), element("dd", { dir: "auto" }, value)]));

  /* Texts under tabs, and a button that copies the one that is shown. */
  function copies(texts, label) {
    const code = element("code", {});
    const tabs = texts.map(({ title }, i) =>
      element("button", { type: "button", class: "tab", role: "tab", "data-key": `${label} ${title}`, on: { click: () => choose(i) } }, title));
    let chosen = 0;
    function choose(i, focus) {
      chosen = (i + texts.length) % texts.length;
      tabs.forEach((tab, j) => {
        tab.setAttribute("aria-selected", String(j === chosen));
        tab.tabIndex = j === chosen ? 0 : -1;
      });
      code.textContent = texts[chosen].text;
      if (focus) tabs[chosen].focus();
    }
    const list = element("div", { role: "tablist", "aria-label": label }, ...tabs);
    list.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step) choose(chosen + step, true);
    });
    const said = element("span", { role: "status" }, "Copy");
    const button = element("button", { type: "button", class: "action copy", "data-key": `${label} copy`, on: {
      click: async () => {
        said.textContent = (await copy(texts[chosen].text)) ? "Copied" : "Not copied: select the text";
        setTimeout(() => { said.textContent = "Copy"; }, 1600);
      },
    } }, said);
    choose(0);
    return element("div", { class: "copies" },
      element("div", { class: "tabs" }, list, button), element("pre", { tabindex: 0, "aria-label": label }, code));
  }

  async function copy(what) {
    try {
      await navigator.clipboard.writeText(what);
      return true;
    } catch (_) { // an old browser, or a page that may not: a selection can still be copied
      const area = element("textarea", { readonly: true, style: "position:fixed;top:0;opacity:0" });
      area.value = what;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }

  /* ---- Where the data comes from ---- */

  function reportSource(data) {
    const study = (id) => data.studies.find((one) => one.id === id);
    return {
      live: false,
      made: data.made,
      studies: async () => data.studies.map(({ id, name }) => ({ id, name })),
      figures: async () => data.figures,
      overview: async (id) => study(id).overview,
      figure: async (id, name) => structuredClone(study(id).figures[name]), // Plotly changes what it is given
      trials: async (id, view) => pageOf(study(id).trials, view),
      control: async () => ({ enabled: false }),
      plotly: async () => {
        const packed = Uint8Array.from(atob(byId("plotly").textContent), (letter) => letter.charCodeAt(0));
        const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
        document.head.append(element("script", {}, await new Response(stream).text()));
      },
      watch() {},
    };
  }

  /* One page of a whole table: numbers before text, and what has no value last in either direction. */
  function pageOf(table, { sort, descending, offset, count }) {
    const place = Math.max(table.columns.findIndex((column) => column.key === sort), 0);
    const rank = (cell) => (typeof cell === "string" ? 1 : 0);
    const order = (a, b) => rank(a) - rank(b) || (a < b ? -1 : a > b ? 1 : 0);
    const has = (row) => row.cells[place] !== null;
    const sorted = table.rows.filter(has)
      .sort((a, b) => (descending ? -1 : 1) * order(a.cells[place], b.cells[place]))
      .concat(table.rows.filter((row) => !has(row)));
    return { ...table, rows: sorted.slice(offset, offset + count), shown: sorted.length };
  }

  function liveSource() {
    async function ask(path, options) {
      for (let pause = EVERY.first; ; pause = Math.min(2 * pause, EVERY.wait)) {
        const response = await fetch(`api/${path}`, { cache: "no-store", ...options });
        const answer = await response.json().catch(() => ({}));
        if (!response.ok) throw new Error(answer.error || `${response.status} ${response.statusText}`);
        if (response.status !== 202) return answer;
        wait(answer.trouble || `Reading the file${answer.share ? `: ${Math.round(100 * answer.share)} %` : " …"}`);
        await new Promise((resolve) => setTimeout(resolve, pause)); // there is nothing to show yet
      }
    }
    const wait = (why) => { byId("problem").textContent = why; byId("problem").hidden = false; };
    const of = (id) => `studies/${encodeURIComponent(id)}`;
    return {
      live: true,
      studies: () => ask("studies"),
      figures: () => ask("figures"),
      overview: (id) => ask(`${of(id)}/overview`),
      figure: (id, name) => ask(`${of(id)}/figures/${encodeURIComponent(name)}`),
      trials: (id, { sort, descending, offset, count }) =>
        ask(`${of(id)}/trials?${new URLSearchParams({ sort, descending: descending ? 1 : 0, offset, count })}`),
      control: () => ask("control"),
      post: (id, token, request) => ask(`${of(id)}/control`, {
        method: "POST", headers: { "Content-Type": "application/json", "X-Farthing-Token": token }, body: JSON.stringify(request),
      }),
      plotly: () => new Promise((resolve, reject) => {
        document.head.append(element("script", { src: "assets/plotly.min.js", on: { load: resolve, error: () => reject(new Error("plotly.min.js did not load")) } }));
      }),
      watch,
    };
    /* The server says when a study has changed; where that does not work, the page asks from time to time. */
    function watch(changed, connected, shown) {
      let polling = null;
      const poll = async () => {
        try {
          const { events } = await ask(`${of(shown())}/overview`);
          connected(true);
          changed({ id: shown(), events });
        } catch (_) { connected(false); }
      };
      const stream = new EventSource("api/stream");
      stream.onopen = () => { clearInterval(polling); polling = null; connected(true); };
      stream.onmessage = (message) => changed(JSON.parse(message.data));
      stream.onerror = () => {
        if (stream.readyState !== EventSource.CLOSED) connected(false); // it tries again by itself
        else if (polling === null) polling = setInterval(poll, EVERY.poll);
      };
    }
  }

  /* ---- What is shown ---- */

  const embedded = byId("data");
  const source = embedded ? reportSource(JSON.parse(embedded.textContent)) : liveSource();
  const view = { id: null, sort: "number", descending: false, offset: 0, count: ROWS, open: new Set(), best: null, events: null, trouble: "" };
  const last = new Map(); // what each part of the page shows, as JSON: it is made again only if that changes

  function part(name, data, make) {
    const written = JSON.stringify(data);
    if (last.get(name) === written) return;
    last.set(name, written);
    const key = document.activeElement && document.activeElement.getAttribute("data-key");
    make();
    if (key) for (const found of document.querySelectorAll("[data-key]")) if (found.getAttribute("data-key") === key) found.focus({ preventScroll: true });
  }

  function showOverview(overview) {
    view.best = overview.best ? overview.best.trial : null;
    view.events = overview.events;
    view.trouble = overview.trouble || "";
    if (overview.more) setTimeout(update, EVERY.figure);
    document.title = `${overview.name} – Farthing`;
    byId("name").textContent = overview.name;
    byId("state").textContent = overview.state.text;
    byId("state").setAttribute("data-tone", overview.state.kind);
    byId("headline").textContent = (overview.headline[0] || overview.name).replace(/e-(\d)/g, "e\u2011$1"); // not broken there
    byId("also").textContent = overview.headline.slice(1).join(" ");
    part("cards", [overview.cards, overview.counts], () =>
      byId("cards").replaceChildren(...overview.cards.map((card) => cardOf(card, overview.counts))));
    byId("best").hidden = !overview.best;
    part("best", overview.best, () => byId("best-content").replaceChildren(...(overview.best ? [bestOf(overview.best)] : [])));
    const { facts: known, copies: texts } = overview.reproduction;
    part("again", overview.reproduction, () =>
      byId("again-content").replaceChildren(element("div", { class: "pair" }, facts(known), copies(texts, "The search"))));
  }

  function cardOf({ title, value, note, share }, counts) {
    const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
    const segments = title === "Trials" && all ? Object.entries(counts).map(([status, count]) => [status, count / all]) : share === null ? [] : [["", share]];
    const meter = element("div", { class: "meter", "aria-hidden": "true" }, ...segments.map(([tone, width]) =>
      element("span", { "data-tone": tone, style: `width:${(100 * width).toFixed(2)}%` })));
    return element("dl", { class: "card", style: "margin-block:0" },
      element("dt", {}, title), element("dd", { class: "number", dir: "auto" }, value),
      element("dd", { class: "note" }, segments.length ? meter : null, note));
  }

  function bestOf(best) {
    const rows = best.config.map(([name, value]) =>
      element("tr", {}, element("th", { scope: "row", dir: "auto" }, name), element("td", { dir: "auto", class: typeof value === "number" && "numeric" }, value === null ? "–" : String(value))));
    return element("div", { class: "pair" },
      element("table", { class: "values" }, element("tbody", {}, ...rows)), copies(best.copies, "The best configuration"));
  }

  /* ---- The table of trials ---- */

  async function showTrials() {
    const { id } = view;
    let page = await source.trials(id, view);
    const shown = page.shown === undefined ? page.total : page.shown;
    if (view.offset >= shown && view.offset > 0) { // there are fewer than there were
      view.offset = Math.max(Math.ceil(shown / view.count) - 1, 0) * view.count;
      page = await source.trials(id, view);
    }
    if (id !== view.id) return;
    part("trials", [page, view.sort, view.descending, view.offset, view.best, [...view.open]], () => tableOf(page, shown));
  }

  function tableOf(page, shown) {
    const table = byId("table");
    const sides = page.columns.map((column, i) => isNumeric(column, i, page.rows));
    table.tHead.replaceChildren(element("tr", {}, ...page.columns.map((column, i) => headOf(column, sides[i]))));
    table.tBodies[0].replaceChildren(...page.rows.flatMap((row) => rowOf(row, page.columns, sides)));
    const caption = page.note || (shown ? "" : "There are no trials yet.");
    byId("trials-caption").textContent = caption;
    byId("trials-caption").hidden = !caption;
    const move = (title, by, possible) => element("button", { type: "button", disabled: !possible, "data-key": title, on: {
      click: () => { view.offset += by * view.count; showTrials(); byId("trials-title").scrollIntoView({ block: "nearest" }); },
    } }, title);
    const end = Math.min(view.offset + view.count, shown);
    byId("paging").replaceChildren(
      element("span", {}, shown ? `${(view.offset + 1).toLocaleString("en")}–${end.toLocaleString("en")} of ${shown.toLocaleString("en")}` : ""),
      element("span", { class: "spring" }), move("Previous", -1, view.offset > 0), move("Next", 1, end < shown));
    byId("paging").hidden = shown <= view.count;
  }

  /* Whether a column is aligned as numbers: what it holds at first decides for a parameter. */
  function isNumeric(column, place, rows) {
    const first = rows.find((row) => row.cells[place] !== null);
    return column.kind === "number" || (column.kind === "parameter" && Boolean(first) && typeof first.cells[place] === "number");
  }

  function headOf(column, numeric) {
    const sorted = column.key === view.sort ? (view.descending ? "descending" : "ascending") : null;
    const sort = () => {
      view.descending = column.key === view.sort ? !view.descending : false;
      view.sort = column.key;
      view.offset = 0;
      showTrials();
    };
    return element("th", { scope: "col", "aria-sort": sorted, class: numeric && "numeric" },
      element("button", { type: "button", title: column.title, dir: "auto", "data-key": `sort ${column.key}`, on: { click: sort } }, column.title));
  }

  function rowOf(row, columns, sides) {
    const id = row.cells[0];
    const open = view.open.has(id);
    const toggle = () => {
      if (!view.open.delete(id)) view.open.add(id);
      showTrials();
    };
    const cells = row.cells.map((cell, i) => {
      const made = element("td", { class: sides[i] && "numeric", title: cell === null ? null : String(cell) });
      if (i === 0) made.append(element("button", { type: "button", class: "opener", "aria-expanded": String(open), "aria-label": `Trial ${id}: details`, "data-key": `trial ${id}` }, text(cell)));
      else if (columns[i].kind === "status") made.append(element("span", { class: "status", "data-tone": cell }, text(cell)));
      else made.append(element("bdi", {}, text(cell)));
      return made;
    });
    const shown = element("tr", { class: id === view.best ? "trial is-best" : "trial", on: {
      click: () => { if (!String(getSelection())) toggle(); },
    } }, ...cells);
    if (!open) return [shown];
    const more = row.more.length ? facts(row.more) : "There is nothing more to tell.";
    return [shown, element("tr", { class: "details" }, element("td", { colspan: columns.length }, more))];
  }

  /* ---- Figures ---- */

  const CONFIG = {
    responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    toImageButtonOptions: { format: "svg" }, showLink: false, showEditInChartStudio: false,
  };
  const figures = new Map(); // by name
  let loading = null; // Plotly

  const plotly = () => (loading = loading || source.plotly());

  /* What drawings leave to the page: colours of text and lines, and the font. */
  function template() {
    const style = getComputedStyle(document.documentElement);
    const [ink, muted, rule, strong, surface, sunken] =
      ["text", "muted", "rule", "strong", "surface", "sunken"].map((name) => style.getPropertyValue(`--${name}`).trim());
    const font = { color: muted, size: 12, family: style.getPropertyValue("--sans").trim() };
    const axis = { gridcolor: rule, linecolor: strong, zerolinecolor: rule, tickcolor: strong, automargin: true, title: { standoff: 10 } };
    const lines = { bgcolor: sunken, bordercolor: strong, font: { color: ink } };
    return {
      layout: {
        font, xaxis: axis, yaxis: axis, colorscale: {}, hoverlabel: { ...lines, font: { ...font, color: ink } },
        coloraxis: { colorbar: { outlinecolor: rule, tickcolor: strong } }, annotationdefaults: { font: { color: muted } },
        sliderdefaults: { ...lines, bgcolor: strong, bordercolor: surface, activebgcolor: muted, tickcolor: strong, currentvalue: { font: { color: ink } } },
        updatemenudefaults: lines, legend: { font: { color: ink } },
      },
      data: { parcoords: [{ labelfont: { color: ink }, tickfont: { color: muted }, rangefont: { color: muted } }] },
    };
  }

  function figureOf({ name, title, models }, place) {
    const plot = element("div", { class: "plot waiting", role: "img" });
    const heading = element("h3", { id: `figure-${name}` }, title);
    const caption = element("p", { class: "caption" });
    const article = element("article", { class: place === 0 ? "figure wide" : "figure", "aria-labelledby": `figure-${name}`, "data-figure": name }, heading, caption, plot);
    return { name, title, models, first: place === 0, article, heading, caption, plot, near: false, stale: true, reason: null, looked: -Infinity, busy: false };
  }

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const figure = figures.get(entry.target.getAttribute("data-figure"));
      figure.near = entry.isIntersecting;
      if (figure.near && figure.stale) refresh(figure);
    }
  }, { rootMargin: "300px 0px" });

  async function setUpFigures() {
    for (const [place, one] of (await source.figures()).entries()) {
      const figure = figureOf(one, place);
      figures.set(figure.name, figure);
      byId("drawn").append(figure.article);
      near.observe(figure.article);
    }
    byId("figures").hidden = figures.size === 0;
    if (!source.live) for (const figure of figures.values()) { // reasons are known: what cannot be drawn is folded at once
      const found = await source.figure(view.id, figure.name);
      if (found.reason !== undefined) fold(figure, found.reason);
    }
  }

  async function refresh(figure) {
    if (figure.busy) return;
    const { id } = view;
    Object.assign(figure, { busy: true, stale: false, looked: performance.now() });
    try {
      const drawing = await source.figure(id, figure.name);
      if (id !== view.id) return;
      if (drawing.reading || drawing.events < view.events) figure.stale = true; // the server has had no time for a new one
      fold(figure, drawing.reason === undefined ? null : drawing.reason);
      if (figure.reason === null) await draw(figure, drawing);
    } catch (error) {
      fold(figure, `It could not be drawn: ${error.message}`);
    } finally {
      figure.busy = false;
      if (figure.stale && figure.near) due();
    }
  }

  async function draw(figure, drawing) {
    await plotly();
    figure.heading.textContent = drawing.title;
    figure.caption.textContent = drawing.caption;
    figure.plot.setAttribute("aria-label", `${drawing.title}. ${drawing.caption}`);
    const wide = figure.first || drawing.layout.grid || Object.keys(drawing.layout).some((key) => /^xaxis\d/.test(key)) || drawing.data.some(({ type }) => type === "parcoords");
    figure.article.classList.toggle("wide", Boolean(wide));
    const moved = chosenSteps(figure.plot, drawing.layout);
    const layout = { ...drawing.layout, template: template(), uirevision: `${view.id}`, autosize: true };
    await Plotly.react(figure.plot, drawing.data, layout, CONFIG);
    for (const { method, args } of moved) if (["restyle", "relayout", "update"].includes(method)) await Plotly[method](figure.plot, ...args);
    figure.plot.classList.remove("waiting");
  }

  /* Sliders and menus stay where somebody has put them: at the step of the same label, and at the end if they were there.
   * The steps that a new drawing does not show by itself are returned. */
  function chosenSteps(plot, layout) {
    const moved = [];
    for (const [kind, steps, otherwise] of [["updatemenus", "buttons", 0], ["sliders", "steps", 0]]) {
      const before = (plot.layout && plot.layout[kind]) || [];
      (layout[kind] || []).forEach((now, i) => {
        const held = before[i] && before[i][steps];
        if (!held || !now[steps] || !now[steps].length) return;
        const was = before[i].active || 0;
        const same = now[steps].findIndex(({ label }) => held[was] && label === held[was].label);
        const atEnd = kind === "sliders" && was === held.length - 1;
        const active = atEnd ? now[steps].length - 1 : same >= 0 ? same : Math.min(was, now[steps].length - 1);
        if (active === (now.active || otherwise)) return;
        now.active = active;
        moved.push(now[steps][active]);
      });
    }
    return moved;
  }

  function fold(figure, reason) {
    figure.reason = reason;
    figure.article.hidden = reason !== null;
    const without = [...figures.values()].filter((one) => one.reason !== null);
    byId("folded").hidden = without.length === 0;
    byId("folded-count").textContent = `${without.length} more with nothing to draw`;
    byId("folded-list").replaceChildren(...without.flatMap((one) => [element("dt", {}, one.title), element("dd", { dir: "auto" }, one.reason)]));
  }

  /* Draw again what has changed and is in view, or may now have something to draw; models are asked less often. */
  async function due() {
    if (document.hidden) return;
    for (const figure of figures.values()) {
      const old = performance.now() - figure.looked >= (figure.models || figure.reason !== null ? EVERY.models : EVERY.figure);
      if (figure.stale && old && (figure.near || figure.reason !== null)) await refresh(figure);
    }
  }

  /* ---- Light and dark ---- */

  const dark = matchMedia("(prefers-color-scheme: dark)");
  let wanted = null;
  try { wanted = localStorage.getItem("farthing-theme"); } catch (_) { /* a page that may keep nothing */ }
  const theme = () => (wanted === "light" || wanted === "dark" ? wanted : dark.matches ? "dark" : "light");

  function paint(name) {
    document.documentElement.setAttribute("data-theme", name);
    byId("theme").textContent = name === "dark" ? "Light" : "Dark";
    byId("theme").setAttribute("aria-label", `Show the page in ${name === "dark" ? "light" : "dark"} colours`);
    for (const { plot } of figures.values()) if (plot.layout) Plotly.relayout(plot, { template: template() });
  }

  byId("theme").addEventListener("click", () => {
    wanted = theme() === "dark" ? "light" : "dark";
    try { localStorage.setItem("farthing-theme", wanted); } catch (_) { /* then it is for this time only */ }
    paint(wanted);
  });
  dark.addEventListener("change", () => paint(theme()));
  addEventListener("beforeprint", () => { paint("light"); for (const figure of figures.values()) if (figure.stale) refresh(figure); });
  addEventListener("afterprint", () => paint(theme()));

  /* ---- Control ---- */

  function showControl() {
    let kept = "";
    const given = /^#token=([\w-]+)$/.exec(location.hash); // of the link that was printed; nobody else is to see it
    if (given) {
      try { sessionStorage.setItem("farthing-token", given[1]); } catch (_) { kept = given[1]; }
      history.replaceState(null, "", location.pathname);
    }
    try { kept = sessionStorage.getItem("farthing-token") || kept; } catch (_) { /* it is typed each time */ }
    const token = element("input", { type: "password", autocomplete: "off", spellcheck: "false", id: "token" });
    token.value = kept;
    token.addEventListener("input", () => { try { sessionStorage.setItem("farthing-token", token.value); } catch (_) { /* as above */ } });
    const said = element("p", { class: "said", role: "status" });
    async function send(request) {
      said.removeAttribute("data-tone");
      said.textContent = "Sending …";
      try {
        said.textContent = (await source.post(view.id, token.value, request)).said || "Accepted.";
      } catch (error) {
        said.setAttribute("data-tone", "failed");
        said.textContent = error.message;
      }
    }
    const button = (title, click) => element("button", { type: "button", class: "action", on: { click } }, title);
    const budget = element("input", { type: "text", placeholder: "20m", id: "budget", autocomplete: "off" });
    const config = element("textarea", { placeholder: '{"learning_rate": 0.01}', id: "config", spellcheck: "false" });
    const enqueue = () => {
      try {
        send({ action: "enqueue", config: JSON.parse(config.value) });
      } catch (error) {
        said.setAttribute("data-tone", "failed");
        said.textContent = `The configuration is not JSON: ${error.message}`;
      }
    };
    byId("control").append(element("form", { class: "controls", on: { submit: (event) => event.preventDefault() } },
      element("div", {}, element("label", { for: "token" }, "Token that the server printed", token), element("div", { class: "row" },
        button("Pause", () => send({ action: "pause" })), button("Resume", () => send({ action: "resume" })),
        button("Stop", () => { if (confirm("Stop the study? It can be resumed later.")) send({ action: "stop" }); }))),
      element("div", {}, element("label", { for: "budget" }, "New total budget", budget), element("div", { class: "row" },
        button("Raise the budget", () => send({ action: "budget", budget: budget.value })))),
      element("div", {}, element("label", { for: "config" }, "Configuration to evaluate next, as JSON", config), element("div", { class: "row" },
        button("Enqueue", enqueue)))), said);
    byId("control").hidden = false;
  }

  /* ---- From the beginning ---- */

  async function guarded(work) {
    try {
      await work();
      byId("problem").textContent = view.trouble;
      byId("problem").hidden = !view.trouble;
    } catch (error) {
      byId("problem").textContent = `Something went wrong: ${error.message}`;
      byId("problem").hidden = false;
    }
  }

  async function showStudy(id) {
    Object.assign(view, { id, sort: "value", offset: 0, open: new Set(), told: null, trouble: "" });
    for (const figure of figures.values()) { // they do not wait for the words
      Object.assign(figure, { stale: true, looked: -Infinity });
      if (figure.reason !== null) fold(figure, null);
      if (figure.near) refresh(figure);
    }
    const overview = await source.overview(id);
    if (id !== view.id) return; // another one was chosen meanwhile
    view.descending = overview.maximize;
    showOverview(overview);
    byId("study").hidden = false;
    await showTrials();
  }

  let busy = false;
  let again = false;

  async function update(anew) { // one at a time; what happens meanwhile is looked at once more
    if (anew) for (const figure of figures.values()) figure.stale = true;
    if (busy) { again = true; return; }
    busy = true;
    await guarded(async () => {
      do {
        again = false;
        const { id } = view;
        const overview = await source.overview(id);
        if (id !== view.id) continue;
        showOverview(overview);
        await showTrials();
        const told = Object.entries(view.told || {});
        if (told.some(([key, value]) => key in overview && overview[key] !== value)) setTimeout(update, EVERY.figure); // it is an old one
      } while (again);
    });
    busy = false;
    due();
  }

  guarded(async () => {
    paint(theme());
    const studies = await source.studies();
    const chooser = byId("studies");
    chooser.append(...studies.map(({ id, name }) => element("option", { value: id }, name)));
    chooser.addEventListener("change", () => guarded(() => showStudy(chooser.value)));
    byId("chooser").hidden = studies.length < 2;
    byId("footer").textContent = source.live ? "Farthing · live" : `${source.made} This file loads nothing from the network.`;
    if (!studies.length) throw new Error("there is no study to show");
    view.id = studies[0].id;
    if (source.live) {
      byId("study").hidden = false;
      plotly().catch(() => {}); // now, so that it is there with the first figure, which says so if it is not
    }
    await Promise.all([setUpFigures(), showStudy(view.id)]);
    if (!source.live) return;
    source.watch(
      ({ id, ...how }) => {
        if (id !== view.id || JSON.stringify(how) === JSON.stringify(view.told)) return;
        view.told = how;
        update(how.events !== view.events);
      },
      (there) => { byId("link").textContent = there ? "" : "Connection lost; trying again"; },
      () => view.id,
    );
    setInterval(due, EVERY.figure);
    if ((await source.control()).enabled) showControl();
  });
})();
