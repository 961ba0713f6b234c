// The header and the choices above the view.
function button(text, attributes, act) {
  const element = make("button", { type: "button", ...attributes });
  element.textContent = text;
  element.addEventListener("click", act);
  return element;
}

function press(box, chosen) {
  for (const element of box.children) if (element.dataset.value !== undefined) element.setAttribute("aria-pressed", chosen(element.dataset.value));
}

function controls() {
  const trace = traceNow();
  byId("source-text").textContent = visible(trace.text);
  byId("target-text").textContent = visible(trace.answers[0].text);
  byId("about").textContent = trace.about.model ? `· ${visible(trace.about.model)}` : "";
  chooser();
  segments(byId("views"), viewsOf(trace), (view) => VIEWS[view], (view) => change({ view }));
  press(byId("views"), (view) => view === state.view);
  segments(byId("kinds"), kindsOf(trace), (kind) => KINDS[kind].name, (kind) => change({ kind, lock: "" }));
  press(byId("kinds"), (kind) => kind === kindShown());
  byId("kind-group").classList.toggle("resting", state.view === "replay");
  segments(byId("layers"), layersNow().map(String), (layer) => layer, (layer) => change({ layer: Number(layer) }));
  press(byId("layers"), (layer) => Number(layer) === state.layer);
  headSquares();
}

function segments(box, values, name, act) {
  fill(box, values.join(), () => values.map((value) => button(name(value), { "data-value": value }, () => act(value))));
}

function headSquares() {
  const box = byId("heads");
  const heads = headsNow();
  fill(box, heads.join(), () => [
    ...heads.map((head, place) => {
      const key = place < 9 ? `, key ${place + 1}` : "";
      const square = button(String(head), { "data-value": head, "aria-label": `head ${head}`, title: `head ${head}${key}` }, (event) => clickHead(head, event));
      square.style.setProperty("--own", `var(--head-${head % 8})`);
      return square;
    }),
    button("all", { class: "quiet", title: "all heads, key 0" }, () => change({ heads: [...headsNow()] })),
  ]);
  press(box, (head) => state.heads.includes(Number(head)));
}

let lastHead = 0;
function clickHead(head, event) {
  const heads = headsNow();
  if (event.shiftKey) {
    const [low, high] = [Math.min(lastHead, head), Math.max(lastHead, head)];
    change({ heads: heads.filter((one) => one >= low && one <= high) });
  } else if (event.detail === 2) change({ heads: [head] });
  else change({ heads: state.heads.includes(head) ? state.heads.filter((one) => one !== head) : [...state.heads, head] });
  lastHead = head;
}

function chooser() {
  const select = byId("sentences");
  byId("chooser").hidden = given.traces.length < 2;
  fill(select, String(given.traces.length), () =>
    given.traces.map((trace, place) => {
      const option = make("option", { value: place, dir: "auto" });
      option.textContent = visible(trace.text);
      return option;
    }),
  );
  select.value = String(state.sentence);
}
