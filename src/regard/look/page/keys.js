// Showing, keys, and the beginning.
let shows = 0;

async function show() {
  const ticket = ++shows;
  try {
    const trace = traceNow();
    const [scene, own] = await Promise.all([sceneOf(trace, kindShown(), state.layer), sceneOf(trace, "dec-self", state.layer)]);
    if (ticket !== shows) return; // something else has been asked for meanwhile
    controls();
    const stage = byId("stage");
    if (state.view === "picture") picture(stage, scene);
    else if (state.view === "matrix") matrix(stage, scene);
    else replay(stage, scene, own);
    document.body.dataset.ready = written();
  } catch (error) {
    say(`This view cannot be drawn: ${error.message}`);
    throw error;
  }
}

const next = (list, value, by) => list[(list.indexOf(value) + by + list.length) % list.length];
const KEYS = {
  ArrowRight: () => change({ layer: next(layersNow(), state.layer, 1) }),
  ArrowLeft: () => change({ layer: next(layersNow(), state.layer, -1) }),
  ArrowDown: () => change({ heads: [state.heads.length > 1 ? headsNow()[0] : next(headsNow(), state.heads[0], 1)] }),
  ArrowUp: () => change({ heads: [state.heads.length > 1 ? headsNow()[headsNow().length - 1] : next(headsNow(), state.heads[0], -1)] }),
  0: () => change({ heads: [...headsNow()] }),
  a: () => change({ kind: next(kindsOf(traceNow()), state.kind, 1), lock: "" }),
  v: () => change({ view: next(viewsOf(traceNow()), state.view, 1) }),
  d: () => change({ flip: 1 - state.flip }),
  " ": play,
  Escape: () => change({ lock: "" }),
  "?": () => byId("help").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open || event.target.closest("input, select")) return;
  if (event.key === " " && event.target.closest("button")) return; // there it presses the button
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const solo = /^[1-9]$/.test(key) && headsNow()[Number(key) - 1];
  const act = solo === false ? Object.hasOwn(KEYS, key) && KEYS[key] : solo !== undefined && (() => change({ heads: [solo] }));
  if (!act) return;
  event.preventDefault();
  act();
});

// A click leaves the focus where it was, so that keys go on to mean what they mean; Tab still reaches every button.
document.addEventListener("mousedown", (event) => event.target.closest("button") && event.preventDefault());
byId("sentences").addEventListener("change", (event) => {
  pause();
  change({ ...opened(Number(event.target.value)), step: 0, lock: "" });
  event.target.blur();
});
byId("help-button").addEventListener("click", () => byId("help").showModal());
window.addEventListener("hashchange", () => change(read(location.hash)));
window.addEventListener("resize", () => show());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show());
change(read(location.hash));
