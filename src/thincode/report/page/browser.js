"use strict";
// The list of trajectories, its filters, and one or two of them to read.
(() => {
  const byId = (id) => document.getElementById(id);
  const { make, nodes, grade, counted } = reader;
  const read = (id) => JSON.parse(byId(id).textContent);
  const rows = read("page-data");
  const { labels, opens, live } = read("page-settings");
  if (!rows.length || !byId("browser")) return;
  byId("browser").hidden = false;

  // --- where texts come from: the page itself, or the server of `thincode view` ---
  const trees = read("page-formulas");
  const ask = async (path) => (await fetch(path)).json();
  const whole = async (row) => {
    if (row.s) return { row, trees };
    const found = await ask(`trajectory?c=${encodeURIComponent(row.c)}&i=${row.i}`);
    return { row: { ...row, ...found.row }, trees: found.formulas };
  };
  const text = (row) => {
    if (row.find === undefined) row.find = [row.p, row.q, row.a, row.o, ...row.s.map((part) => part.x)].join("\n").toLowerCase();
    return row.find;
  };
  const finds = async (wanted) => {
    if (!wanted) return () => true;
    if (!live) return (row) => text(row).includes(wanted);
    const found = await ask(`search?q=${encodeURIComponent(wanted)}`);
    const numbers = new Map(Object.entries(found).map(([key, list]) => [key, new Set(list)]));
    return (row) => numbers.has(row.c) && numbers.get(row.c).has(row.i);
  };
  // Lower case once, while nobody waits.
  const prepare = (from) => requestIdleCallback((left) => {
    let at = from;
    while (at < rows.length && left.timeRemaining() > 2) text(rows[at++]);
    if (at < rows.length) prepare(at);
  });
  if (!live) prepare(0);

  // --- filters ---
  const shelf = (key) => (Object.hasOwn(labels, key) ? labels[key] : key);
  const tags = ["benchmark", "family", "source", "subject", "level"];
  const tag = tags.find((name) => rows.some((row) => Object.hasOwn(row.t, name)));
  const where = (row) => (tag && Object.hasOwn(row.t, tag) ? row.t[tag] : "");
  const values = (pick) => [...new Set(rows.map(pick))].filter((value) => value !== "");
  const fill = (id, options) => {
    for (const [value, text] of options) {
      const option = make("option", "", text);
      option.value = value;
      byId(id).append(option);
    }
  };
  const any = ["", "all"];
  const shelves = values((row) => row.c);
  fill("f-shelf", [any, ...shelves.map((key) => [key, shelf(key)])]);
  fill("f-beside", [["", "nothing"], ...shelves.map((key) => [key, shelf(key)])]);
  fill("f-ok", [any, ["true", "right"], ["false", "wrong"]]);
  fill("f-end", [any, ...values((row) => row.end).sort().map((end) => [end, end.replaceAll("_", " ")])]);
  fill("f-calls", [any, ["0", "none"], ["1", "1"], ["2", "2"], ["3", "3"], ["4", "4 or more"]]);
  fill("f-errors", [any, ["0", "every block ran"], ["1", "some failed"], ["every", "every block failed"]]);
  fill("f-ground", [any, ["true", "grounded"], ["false", "not grounded"]]);
  if (tag) {
    byId("tag-name").textContent = tag[0].toUpperCase() + tag.slice(1);
    fill("f-tag", [any, ...values(where).sort().map((value) => [value, value])]);
  } else byId("l-tag").hidden = true;
  fill("problems", values((row) => row.p).sort().slice(0, 2000).map((id) => [id, ""]));
  const failures = [...new Set(rows.flatMap((row) => row.f))].sort();
  fill("f-fail", [any, ...failures.map((name) => [name, name])]);
  byId("l-fail").hidden = !failures.length;
  if (shelves.includes(opens)) byId("f-shelf").value = opens;
  const evaluated = shelves.filter((key) => !/(^|\/)(rl|distill)$/.test(key));

  const fields = ["f-shelf", "f-ok", "f-end", "f-tag", "f-calls", "f-errors", "f-ground", "f-fail", "f-problem"];
  const errors = (row) => (row.k === 0 ? "" : row.x === 0 ? "0" : row.x === row.k ? "1 every" : "1");
  const keeps = () => {
    const [at, ok, end, group, calls, failed, ground, fault, problem] = fields.map((id) => byId(id).value.trim());
    const known = problem && rows.some((row) => row.p === problem);
    return (row) => (!at || row.c === at) && (!ok || String(row.ok) === ok) && (!end || row.end === end) && (!group || where(row) === group)
      && (!calls || (calls === "4" ? row.k >= 4 : row.k === Number(calls)))
      && (!failed || errors(row).split(" ").includes(failed)) && (!ground || String(row.gr) === ground) && (!fault || row.f.includes(fault))
      && (!problem || (known ? row.p === problem : row.p.includes(problem)));
  };

  // --- the list ---
  const list = byId("list");
  const step = 60;
  let shown = [];
  let at = -1;
  let asked = 0;

  const entry = (row, place) => {
    const item = make("li");
    item.id = `row-${place}`;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    const [kind, sign, word] = grade(row);
    const mark = make("span", kind, sign);
    mark.title = word;
    item.append(mark, make("span", "id", `${row.p} · ${row.n}`), make("span", "n", counted(row.k, "call")));
    item.append(make("span", "q", row.q.slice(0, 160).replace(/\s+/g, " ")));
    item.addEventListener("click", () => open(place));
    return item;
  };
  const more = (least) => {
    const from = list.children.length;
    const to = Math.min(shown.length, Math.max(least, from + step));
    if (to > from) list.append(...shown.slice(from, to).map((row, place) => entry(row, from + place)));
  };
  list.addEventListener("scroll", () => {
    if (list.scrollTop + list.clientHeight > list.scrollHeight - 400) more(0);
  });

  const refresh = async (wanted) => {
    const turn = ++asked;
    const found = await finds(byId("f-text").value.trim().toLowerCase());
    if (turn !== asked) return;
    const keep = keeps();
    shown = rows.filter((row) => keep(row) && found(row));
    list.replaceChildren();
    list.scrollTop = 0;
    at = -1;
    const right = shown.filter((row) => row.ok === true).length;
    const graded = shown.filter((row) => row.ok !== null).length;
    byId("count").textContent = `${shown.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} trajectories`
      + (graded ? `, ${right} of ${graded} right` : "");
    more(0);
    if (shown.length) await open(Math.max(0, wanted ? shown.indexOf(wanted) : 0), !wanted);
    else show();
  };

  // --- reading ---
  const byProblem = new Map();
  for (const row of rows) {
    if (!byProblem.has(row.p)) byProblem.set(row.p, []);
    byProblem.get(row.p).push(row);
  }
  // The same problem elsewhere: the same sample of each checkpoint, or the first there is.
  const twins = (row) => evaluated.map((key) => {
    const there = byProblem.get(row.p).filter((other) => other.c === key);
    return there.find((other) => other.n === row.n) || there[0];
  }).filter((other) => other);
  const besides = (row) => {
    const key = byId("f-beside").value;
    if (!key) return undefined;
    const there = byProblem.get(row.p).filter((other) => other.c === key && other !== row);
    return there.find((other) => other.n === row.n) || there[0];
  };

  const open = async (place, still) => {
    const before = list.querySelector(".on");
    if (before) { before.classList.remove("on"); before.setAttribute("aria-selected", "false"); }
    at = Math.min(Math.max(place, 0), shown.length - 1);
    if (at >= list.children.length) more(at + 1);
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
    await show(shown[at]);
  };

  const jumps = (row) => {
    const same = twins(row);
    if (same.length < 2) return [];
    const bar = make("div", "jump");
    for (const other of same) {
      const button = make("button", "", `${grade(other)[1]} ${shelf(other.c)}`);
      button.type = "button";
      if (other === row) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => go(other));
      bar.append(button);
    }
    return [bar];
  };

  const show = async (row) => {
    const turn = asked;
    const [first, second] = [byId("reader"), byId("beside")];
    if (!row) {
      second.hidden = true;
      first.replaceChildren(make("p", "meta", "No trajectory matches."));
      return;
    }
    const other = besides(row);
    const wanted = byId("f-text").value.trim().toLowerCase();
    const [left, right] = await Promise.all([row, other].map((one) => one && whole(one)));
    if (turn !== asked || shown[at] !== row) return;
    first.replaceChildren(...jumps(row), ...nodes(left.row, shelf(row.c), wanted, left.trees));
    first.scrollTop = 0;
    const beside = byId("f-beside").value;
    second.hidden = !beside;
    byId("desk").classList.toggle("two", Boolean(beside));
    second.replaceChildren(...(right ? nodes(right.row, shelf(other.c), wanted, right.trees) : [make("p", "meta", `${shelf(beside)} has no other trajectory of this problem.`)]));
    second.scrollTop = 0;
  };

  const go = async (row) => {
    if (byId("f-shelf").value) byId("f-shelf").value = row.c;
    if (!keeps()(row)) for (const id of fields.slice(1)) byId(id).value = "";
    await refresh(row);
    if (shown[at] !== row) {
      byId("f-text").value = "";
      await refresh(row);
    }
  };

  byId("filters").addEventListener("input", (event) => {
    if (event.target.id === "f-beside") show(shown[at]);
    else refresh();
  });
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("clear").addEventListener("click", () => {
    for (const id of [...fields, "f-text"]) byId(id).value = "";
    refresh(shown[at]);
  });

  // --- keys ---
  const near = () => {
    const { top, bottom } = byId("browser").getBoundingClientRect();
    return top < innerHeight && bottom > 0;
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const field = event.target.closest ? event.target.closest("input, select, textarea") : null;
    if (field) {
      if (event.key === "Escape") field.blur();
      return;
    }
    if (!near() && !byId("browser").contains(event.target)) return;
    const arrows = list.contains(event.target);
    const move = { j: 1, k: -1, ...(arrows ? { ArrowDown: 1, ArrowUp: -1 } : {}) }[event.key];
    if (move) open(at + move);
    else if (event.key === "/") byId("f-text").focus();
    else if (event.key === "b") byId("f-beside").focus();
    else if ((event.key === "[" || event.key === "]") && shown[at]) {
      const same = twins(shown[at]);
      const other = same[same.indexOf(shown[at]) + (event.key === "]" ? 1 : -1)];
      if (other) go(other);
    } else return;
    event.preventDefault();
  });

  // --- a page of `thincode view` is loaded again when its run folders grow, and opens where it was ---
  const kept = "thincode-view";
  const remember = () => {
    const state = { fields: [...fields, "f-text", "f-beside"].map((id) => [id, byId(id).value]), key: shown[at] && [shown[at].c, shown[at].g, shown[at].e, shown[at].p, shown[at].n] };
    sessionStorage.setItem(kept, JSON.stringify(state));
  };
  const recall = () => {
    const state = JSON.parse(sessionStorage.getItem(kept) || "null");
    sessionStorage.removeItem(kept);
    if (!state) return undefined;
    for (const [id, value] of state.fields) byId(id).value = value;
    return state.key && rows.find((row) => [row.c, row.g, row.e, row.p, row.n].every((value, place) => value === state.key[place]));
  };
  if (live) {
    const button = byId("news");
    button.addEventListener("click", () => { remember(); location.reload(); });
    setInterval(async () => {
      const { version } = await ask("version").catch(() => ({ version: live }));
      if (version === live) return;
      // Who reads a trajectory, or types, is not interrupted.
      if (near() || document.activeElement !== document.body) button.hidden = false;
      else { remember(); location.reload(); }
    }, 3000);
  }
  refresh(live ? recall() : undefined);
})();
