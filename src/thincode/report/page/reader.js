"use strict";
// One trajectory as nodes. Its text is hostile: it reaches the page through textContent only, never as markup.
const reader = (() => {
  const make = (name, kind, text) => {
    const node = document.createElement(name);
    if (kind) node.className = kind;
    if (text !== undefined && text !== null) node.textContent = String(text);
    return node;
  };

  const elements = new Set(("math mrow mi mn mo mtext mspace msup msub msubsup mfrac msqrt mroot mtable mtr mtd mover munder "
    + "munderover mstyle menclose mpadded mphantom mmultiscripts mprescripts none").split(" "));
  const formula = ([name, attributes, children]) => {
    const node = document.createElementNS("http://www.w3.org/1998/Math/MathML", elements.has(name) ? name : "mrow");
    for (const [key, value] of Object.entries(attributes)) if (/^[a-z]+$/.test(key) && !/^(on|href|src|style)/.test(key)) node.setAttribute(key, value);
    for (const child of children) node.append(typeof child === "string" ? child : formula(child));
    return node;
  };

  const python = /(#[^\n]*)|("""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|\b(and|as|assert|break|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|import|in|is|lambda|None|not|or|pass|raise|return|True|try|while|with|yield)\b|\b(\d[\w.]*)/g;
  const marks = new Set(["answer", "ground", "hit"]);

  // Pieces [start, end, class] of one text; where two meet, the later in the list wins. A formula is never cut.
  const paint = (parent, text, pieces, places = [], trees = []) => {
    const within = (at, side) => {
      const over = places.find((place) => place[0] < at && at < place[1]);
      return over ? over[side] : at;
    };
    const whole = pieces.map(([start, end, kind]) => [within(start, 0), within(end, 1), kind]);
    const cuts = new Set([0, text.length]);
    for (const [start, end] of [...whole, ...places]) { cuts.add(start); cuts.add(end); }
    const edges = [...cuts].filter((place) => place >= 0 && place <= text.length).sort((a, b) => a - b);
    const starts = new Map(places.map((place) => [place[0], place]));
    for (let i = 0; i + 1 < edges.length; i += 1) {
      const [start, end] = [edges[i], edges[i + 1]];
      const over = whole.filter((piece) => piece[0] <= start && piece[1] >= end);
      const kind = over.length ? over[over.length - 1][2] : "";
      const place = starts.get(start);
      const tree = place && place[1] === end ? trees[place[2]] : undefined;
      const said = tree ? formula(tree) : document.createTextNode(text.slice(start, end));
      if (!kind) { parent.append(said); continue; }
      const node = make(marks.has(kind) ? "mark" : "span", kind);
      node.append(said);
      parent.append(node);
    }
  };

  const hits = (text, wanted) => {
    const found = [];
    if (wanted.length < 2) return found;
    const low = text.toLowerCase();
    for (let i = low.indexOf(wanted); i >= 0 && found.length < 200; i = low.indexOf(wanted, i + wanted.length)) found.push([i, i + wanted.length, "hit"]);
    return found;
  };

  const seconds = (value) => `${value < 0.01 ? "< 0.01" : value.toFixed(2)} s`;
  const counted = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;

  const segment = (part, number, wanted, trees) => {
    const author = part.w || "model";
    const code = part.k === "code" || part.k === "output";
    const box = make("div", `seg ${author}`);
    const what = make("p", "what");
    what.append(make("span", "", part.k === "code" ? `${author} · block ${number}` : `${author} · ${part.k}`));
    if (part.b) {
      what.append(make("span", `st st-${part.b.s.replace(/\W/g, "")}`, part.b.d ? `${part.b.s}: ${part.b.d}` : part.b.s));
      if (part.b.t !== null) what.append(make("span", "", seconds(part.b.t)));
      if (part.b.c) what.append(make("span", "", `${counted(part.b.c, "character")} cut`));
    }
    if (part.n !== undefined) what.append(make("span", "", counted(part.n, "token")));
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
    pieces.push(...hits(text, wanted));
    const body = make(code ? "pre" : "div", code ? "" : "prose");
    paint(body, text, pieces, part.z, trees);
    box.append(what, body);
    return box;
  };

  const grade = (row) => (row.ok === true ? ["yes", "✓", "right"] : row.ok === false ? ["no", "✗", "wrong"] : ["", "·", "not graded"]);

  const facts = (row, shelf) => {
    const found = [shelf];
    if (row.g && row.e !== null) found.push(`${row.g}, step ${row.e}`);
    found.push(`ended: ${row.end.replaceAll("_", " ")}`, `answer ${row.a === null ? "none" : row.a}`);
    if (row.o !== undefined && row.o !== null) found.push(`gold ${row.o}`);
    if (row.why) found.push(row.why.replaceAll("_", " "));
    if (row.gr !== null) found.push(row.gr ? "grounded in an output" : "not grounded");
    found.push(...row.f);
    if (row.tk) found.push(`${counted(row.tk[0], "token")} written, ${row.tk[1].toLocaleString("en")} shown to it`);
    if (row.r !== null) found.push(`reward ${row.r}`);
    for (const [name, value] of Object.entries(row.t)) found.push(`${name.replaceAll("_", " ")} ${value}`);
    return found;
  };

  // The whole trajectory; `trees` are the formulas its segments name.
  const nodes = (row, shelf, wanted, trees) => {
    const [kind, sign, word] = grade(row);
    const title = make("h3");
    title.append(make("span", kind, `${sign} ${word}`), ` · ${row.p} · sample ${row.n}`);
    const question = make("div", "question");
    paint(question, row.q, hits(row.q, wanted), row.z, trees);
    const parts = [title, make("p", "meta", facts(row, shelf).join(" · ")), question];
    let number = 0;
    for (const part of row.s) {
      if (part.k === "code") number += 1;
      parts.push(segment(part, number, wanted, trees));
    }
    return parts;
  };

  return { make, nodes, grade, counted };
})();
