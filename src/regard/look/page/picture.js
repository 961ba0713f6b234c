// The bipartite picture: what is looked at on one side, who looks on the other, a line for each weight.
let pointed = null;
let shownScene = null;

function picture(stage, scene) {
  shownScene = scene;
  const sides = state.flip ? ["row", "column"] : ["column", "row"];
  const tokens = { column: scene.columns, row: scene.rows };
  const name = { column: KINDS[scene.kind].left, row: KINDS[scene.kind].right };
  fill(stage, ["picture", state.sentence, scene.kind, state.flip].join(), () => {
    pointed = null;
    const swap = button("⇄", { class: "quiet", title: "swap the sides, key D", "aria-label": "swap the sides" }, () => change({ flip: 1 - state.flip }));
    const flow = make("p", { class: "flow" }, state.flip ? "← information flows " : "information flows → ", swap);
    const lists = sides.map((side) => sideList(side, tokens[side]));
    const heads = sides.map((side) => make("p", { class: `side ${side}` }, name[side]));
    return [make("div", { class: "picture" }, heads[0], flow, heads[1], lists[0], make("canvas", { id: "lines", role: "img" }), lists[1])];
  });
  stage.firstChild.classList.toggle("dense", Math.max(scene.rows.length, scene.columns.length) > 48);
  paint();
}

function sideList(side, tokens) {
  return make("div", { class: "tokens", "data-side": side }, ...tokens.map((token, place) => {
    const element = tokenElement(token, "button", { type: "button" });
    const point = (on) => () => {
      pointed = on ? { side, place } : null;
      paint();
    };
    element.addEventListener("mouseenter", point(true));
    element.addEventListener("mouseleave", point(false));
    element.addEventListener("focus", point(true));
    element.addEventListener("blur", point(false));
    element.addEventListener("click", () => change({ lock: state.lock === side + place ? "" : side + place }));
    return element;
  }));
}

// Only what depends on the token in hand: lines, shades and the numbers below.
function paint() {
  const scene = shownScene;
  const active = pointed ?? lockOf(state.lock);
  const canvas = byId("lines");
  const lists = [...document.querySelectorAll(".tokens")];
  const height = Math.max(...lists.map((list) => list.offsetHeight));
  const width = canvas.parentElement.querySelector(".flow").offsetWidth;
  const drawing = context(canvas, width, height);
  const row = lists[0].firstChild.offsetHeight;
  const spread = Math.min(3, (row * 0.6) / state.heads.length);
  const least = active ? 0.004 : scene.rows.length + scene.columns.length > 96 ? 0.06 : 0.015;
  drawing.lineCap = "round";
  state.heads.forEach((head, order) => {
    const shift = (order - (state.heads.length - 1) / 2) * spread; // heads run beside each other, not on top
    for (let i = 0; i < scene.rows.length; i++) {
      if (active?.side === "row" && active.place !== i) continue;
      for (let j = 0; j < scene.columns.length; j++) {
        if (active?.side === "column" && active.place !== j) continue;
        const weight = scene.at(head, i, j);
        if (weight < least) continue;
        const [from, to] = state.flip ? [i, j] : [j, i];
        const [y1, y2] = [row * (from + 0.5) + shift, row * (to + 0.5) + shift];
        drawing.strokeStyle = faded(head, weight * 1.1);
        drawing.lineWidth = 1 + 3 * weight;
        drawing.beginPath();
        drawing.moveTo(2, y1);
        drawing.bezierCurveTo(width * 0.42, y1, width * 0.58, y2, width - 2, y2);
        drawing.stroke();
      }
    }
  });
  for (const list of lists) shade(list, scene, active);
  tell(canvas, scene, active);
}

// Tokens at the other end of the lines are tinted, a stripe for each head.
function shade(list, scene, active) {
  const side = list.dataset.side;
  [...list.children].forEach((element, place) => {
    const own = active?.side === side && active.place === place;
    element.classList.toggle("active", own);
    element.setAttribute("aria-pressed", state.lock === side + place);
    if (!active || active.side === side) return void (element.style.background = "");
    const [i, j] = side === "row" ? [place, active.place] : [active.place, place];
    const stripes = state.heads.map((head, order) => {
      const tint = faded(head, 0.75 * scene.at(head, i, j));
      return `${tint} ${(100 * order) / state.heads.length}% ${(100 * (order + 1)) / state.heads.length}%`;
    });
    element.style.background = `linear-gradient(to right, ${stripes.join()})`;
  });
}

function tell(canvas, scene, active) {
  const about = `${KINDS[scene.kind].name}, layer ${scene.layer}, ${state.heads.length > 1 ? "heads" : "head"} ${state.heads.join(", ")}`;
  canvas.setAttribute("aria-label", `Lines of attention: ${about}`);
  if (!active) return say(about);
  const others = active.side === "row" ? scene.columns : scene.rows;
  const place = (k) => (active.side === "row" ? [active.place, k] : [k, active.place]);
  const ranked = [...others.keys()].map((k) => {
    const head = strongest(scene, state.heads, ...place(k));
    return { k, head, weight: scene.at(head, ...place(k)) };
  });
  ranked.sort((a, b) => b.weight - a.weight);
  const token = (active.side === "row" ? scene.rows : scene.columns)[active.place];
  const found = ranked.slice(0, 5).map(({ k, head, weight }) => weightOf(others[k], head, weight));
  say(isolated(token.text), active.side === "row" ? " looks at " : " is looked at by ", ...found);
}

function weightOf(token, head, weight) {
  const dot = make("i", { class: "dot", title: `head ${head}` });
  dot.style.background = colour(head);
  return make("span", { class: "weight" }, isolated(token.text), dot, digits(weight));
}
