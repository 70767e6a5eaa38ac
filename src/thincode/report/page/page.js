"use strict";
// Text of trajectories is hostile: it reaches the page through textContent only, never as markup.
(() => {
  const byId = (id) => document.getElementById(id);
  const make = (name, kind, text) => {
    const node = document.createElement(name);
    if (kind) node.className = kind;
    if (text !== undefined && text !== null) node.textContent = String(text);
    return node;
  };

  byId("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll(".published details, section > details")) part.open = true;
  });

  const rows = JSON.parse(byId("page-data").textContent);
  const labels = JSON.parse(byId("page-labels").textContent);
  if (!rows.length || !byId("browser")) return;
  byId("browser").hidden = false;

  const failed = (row) => row.s.some((part) => part.b && part.b.s !== "ok");
  const calls = (row) => row.s.filter((part) => part.b).length;
  const shelf = (key) => (Object.hasOwn(labels, key) ? labels[key] : key);
  const tags = ["family", "source", "subject", "level"];
  const tag = tags.find((name) => rows.some((row) => Object.hasOwn(row.t, name)));
  const where = (row) => (tag && Object.hasOwn(row.t, tag) ? row.t[tag] : "");
  for (const row of rows) {
    row.find = [row.p, row.q, row.a, row.o, ...row.s.map((part) => part.x)].join("\n").toLowerCase();
  }

  // --- filters ---
  const fill = (id, options) => {
    for (const [value, text] of options) {
      const option = make("option", "", text);
      option.value = value;
      byId(id).append(option);
    }
  };
  const values = (pick) => [...new Set(rows.map(pick))].filter((value) => value !== "");
  const any = ["", "all"];
  fill("f-shelf", [any, ...values((row) => row.c).map((key) => [key, shelf(key)])]);
  fill("f-ok", [any, ["true", "right"], ["false", "wrong"]]);
  fill("f-end", [any, ...values((row) => row.end).sort().map((end) => [end, end.replaceAll("_", " ")])]);
  fill("f-blocks", [any, ["ok", "all ran"], ["failed", "some failed"], ["none", "no code ran"]]);
  fill("f-calls", [any, ["1", "1"], ["2", "2"], ["3", "3"], ["4", "4 or more"]]);
  if (tag) {
    byId("tag-name").textContent = tag[0].toUpperCase() + tag.slice(1);
    fill("f-tag", [any, ...values(where).sort().map((value) => [value, value])]);
  } else byId("l-tag").hidden = true;
  // The page opens on the last checkpoint: that is what people come to see.
  const evaluated = Object.keys(labels).filter((key) => key !== "rl" && key !== "distill");
  if (evaluated.length) byId("f-shelf").value = evaluated[evaluated.length - 1];

  let shown = [];
  let at = -1;
  const most = 400;

  const keep = (row) => {
    const value = (id) => byId(id).value;
    const n = calls(row);
    const state = n === 0 ? "none" : failed(row) ? "failed" : "ok";
    return (!value("f-shelf") || row.c === value("f-shelf"))
      && (!value("f-ok") || String(row.ok) === value("f-ok"))
      && (!value("f-end") || row.end === value("f-end"))
      && (!value("f-tag") || where(row) === value("f-tag"))
      && (!value("f-blocks") || state === value("f-blocks"))
      && (!value("f-calls") || (value("f-calls") === "4" ? n >= 4 : n === Number(value("f-calls"))))
      && row.find.includes(value("f-text").trim().toLowerCase());
  };

  const grade = (row) => (row.ok === true ? ["yes", "✓", "right"] : row.ok === false ? ["no", "✗", "wrong"] : ["", "·", "not graded"]);

  const refresh = (wanted) => {
    shown = rows.filter(keep);
    const list = byId("list");
    list.replaceChildren();
    shown.slice(0, most).forEach((row, place) => {
      const item = make("li");
      item.id = `row-${place}`;
      item.setAttribute("role", "option");
      const [kind, sign, word] = grade(row);
      const mark = make("span", kind, sign);
      mark.title = word;
      item.append(mark, make("span", "id", `${row.p} · ${row.n}`), make("span", "n", `${calls(row)} ${calls(row) === 1 ? "call" : "calls"}`));
      item.append(make("span", "q", row.q.replace(/\s+/g, " ").slice(0, 120)));
      item.addEventListener("click", () => open(place));
      list.append(item);
    });
    if (shown.length > most) list.append(make("li", "rest", `${shown.length - most} more: narrow the filters`));
    const right = shown.filter((row) => row.ok === true).length;
    const graded = shown.filter((row) => row.ok !== null).length;
    byId("count").textContent = `${shown.length} of ${rows.length} trajectories` + (graded ? `, ${right} of ${graded} right` : "");
    at = -1;
    if (shown.length) open(Math.max(0, wanted ? shown.indexOf(wanted) : 0), !wanted);
    else byId("reader").replaceChildren(make("p", "meta", "No trajectory matches."));
  };

  // --- one trajectory ---
  const python = /(#[^\n]*)|("""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|\b(and|as|assert|break|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|import|in|is|lambda|None|not|or|pass|raise|return|True|try|while|with|yield)\b|\b(\d[\w.]*)/g;

  // Pieces [start, end, class] of one text; where two meet, the later in the list wins.
  const paint = (parent, text, pieces) => {
    const cuts = new Set([0, text.length]);
    for (const [start, end] of pieces) { cuts.add(start); cuts.add(end); }
    const places = [...cuts].filter((place) => place >= 0 && place <= text.length).sort((a, b) => a - b);
    for (let i = 0; i + 1 < places.length; i += 1) {
      const [start, end] = [places[i], places[i + 1]];
      const over = pieces.filter((piece) => piece[0] <= start && piece[1] >= end);
      const kind = over.length ? over[over.length - 1][2] : "";
      const marked = kind === "answer" || kind === "ground" || kind === "hit";
      parent.append(kind ? make(marked ? "mark" : "span", kind, text.slice(start, end)) : document.createTextNode(text.slice(start, end)));
    }
  };

  const hits = (text) => {
    const wanted = byId("f-text").value.trim().toLowerCase();
    const found = [];
    if (wanted.length < 2) return found;
    const low = text.toLowerCase();
    for (let i = low.indexOf(wanted); i >= 0 && found.length < 200; i = low.indexOf(wanted, i + wanted.length)) found.push([i, i + wanted.length, "hit"]);
    return found;
  };

  const segment = (part, number) => {
    const author = part.w || "model";
    const box = make("div", `seg ${author}`);
    const what = make("div", "what");
    what.append(make("span", "", part.k === "code" ? `${author} · block ${number}` : `${author} · ${part.k}`));
    if (part.b) {
      what.append(make("span", `st st-${part.b.s.replace(/\W/g, "")}`, part.b.d ? `${part.b.s}: ${part.b.d}` : part.b.s));
      if (part.b.t !== null) what.append(make("span", "", `${part.b.t < 0.01 ? "< 0.01" : part.b.t.toFixed(2)} s`));
      if (part.b.c) what.append(make("span", "", `${part.b.c} characters cut`));
    }
    const text = part.x.replace(/\n+$/, "");
    const pieces = [];
    const [from, to] = part.in || [0, text.length];
    if (part.in) pieces.push([0, from, "fence"], [to, text.length, "fence"]);
    if (part.k === "code" && text.length < 20000) {
      for (const match of text.slice(from, to).matchAll(python)) {
        const kind = match[1] ? "hl-c" : match[2] ? "hl-s" : match[3] ? "hl-k" : "hl-n";
        pieces.push([from + match.index, from + match.index + match[0].length, kind]);
      }
    }
    for (const span of part.h || []) pieces.push([span[0], span[1], "ground"]);
    if (part.m) pieces.push([part.m[0], part.m[1], "answer"]);
    pieces.push(...hits(text));
    const body = make(part.k === "code" || part.k === "output" ? "pre" : "div", part.k === "code" || part.k === "output" ? "" : "prose");
    paint(body, text, pieces);
    box.append(what, body);
    return box;
  };

  const twins = (row) => rows.filter((other) => other.p === row.p && other.n === row.n && other.c !== "rl" && other.c !== "distill");

  const open = (place, still) => {
    const list = byId("list");
    const before = list.querySelector(".on");
    if (before) { before.classList.remove("on"); before.removeAttribute("aria-selected"); }
    at = Math.min(Math.max(place, 0), Math.min(shown.length, most) - 1);
    const item = list.children[at];
    if (!item) return;
    item.classList.add("on");
    item.setAttribute("aria-selected", "true");
    list.setAttribute("aria-activedescendant", item.id);
    if (!still) {
      const over = item.offsetTop - list.offsetTop;
      if (over < list.scrollTop) list.scrollTop = over;
      else if (over + item.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = over + item.offsetHeight - list.clientHeight;
    }
    show(shown[at]);
  };

  const show = (row) => {
    const reader = byId("reader");
    const [kind, sign, word] = grade(row);
    const title = make("h3");
    title.append(make("span", kind, `${sign} ${word}`), document.createTextNode(` · ${row.p} · sample ${row.n}`));
    const facts = [shelf(row.c)];
    if (row.g && row.e !== null) facts.push(`${row.g}, step ${row.e}`);
    if (row.end) facts.push(`ended: ${row.end.replaceAll("_", " ")}`);
    facts.push(`answer ${row.a === null ? "none" : row.a}`);
    if (row.o !== undefined && row.o !== null) facts.push(`gold ${row.o}`);
    if (row.why) facts.push(row.why.replaceAll("_", " "));
    if (row.r !== null) facts.push(`reward ${row.r}`);
    for (const [name, value] of Object.entries(row.t)) facts.push(`${name} ${value}`);
    const nodes = [title, make("p", "meta", facts.join(" · "))];
    const same = twins(row);
    if (same.length > 1) {
      const jump = make("div", "jump");
      for (const other of same) {
        const button = make("button", "", `${grade(other)[1]} ${shelf(other.c)}`);
        button.type = "button";
        if (other === row) button.setAttribute("aria-current", "true");
        button.addEventListener("click", () => go(other));
        jump.append(button);
      }
      nodes.push(jump);
    }
    const question = make("div", "question");
    paint(question, row.q, hits(row.q));
    nodes.push(question);
    let number = 0;
    for (const part of row.s) {
      if (part.k === "code") number += 1;
      nodes.push(segment(part, number));
    }
    reader.replaceChildren(...nodes);
    reader.scrollTop = 0;
  };

  const go = (row) => {
    if (byId("f-shelf").value) byId("f-shelf").value = row.c;
    if (!keep(row)) {
      for (const id of ["f-ok", "f-end", "f-tag", "f-blocks", "f-calls"]) byId(id).value = "";
      byId("f-text").value = "";
    }
    refresh(row);
  };

  byId("filters").addEventListener("input", () => refresh());
  byId("filters").addEventListener("submit", (event) => event.preventDefault());

  let near = false;
  new IntersectionObserver((seen) => { near = seen.some((one) => one.isIntersecting); }).observe(byId("browser"));
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const field = event.target.closest ? event.target.closest("input, select, textarea") : null;
    if (field) {
      if (event.key === "Escape") field.blur();
      return;
    }
    if (!near) return;
    const arrows = byId("list").contains(event.target);
    const move = { j: 1, k: -1, ...(arrows ? { ArrowDown: 1, ArrowUp: -1 } : {}) }[event.key];
    if (move) open(at + move);
    else if (event.key === "/") byId("f-text").focus();
    else if ((event.key === "[" || event.key === "]") && shown[at]) {
      const same = twins(shown[at]);
      const other = same[same.indexOf(shown[at]) + (event.key === "]" ? 1 : -1)];
      if (other) go(other);
    } else return;
    event.preventDefault();
  });
  refresh();
})();
