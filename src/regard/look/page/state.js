// What is being looked at. All of it stands in the address, so that any picture is a link and survives a reload.
const VIEWS = { picture: "Picture", matrix: "Matrix", replay: "Step by step" };
const viewsOf = (trace) => Object.keys(VIEWS).filter((view) => view !== "replay" || trace.steps.length);
const state = { sentence: 0, view: "picture", kind: "cross", layer: 0, heads: [], step: 0, lock: "", flip: 0 };

const traceNow = () => given.traces[state.sentence];
const layersNow = () => layersOf(traceNow(), state.kind);
const headsNow = () => mapOf(traceNow(), state.kind, state.layer).heads;

function opened(sentence) {
  const { kind, layer, head } = given.openings[sentence];
  return { sentence, kind, layer, heads: [head] };
}

// The replay speaks of cross-attention only; the kind chosen for the other views is kept.
const kindShown = () => (state.view === "replay" && kindsOf(traceNow()).includes("cross") ? "cross" : state.kind);

function change(changes) {
  Object.assign(state, changes);
  settle();
  try {
    history.replaceState(null, "", "#" + written());
  } catch {
    // a frame inside a notebook has no address of its own
  }
  return show();
}

// Whatever was asked for, only what the trace holds can be shown.
function settle() {
  const within = (value, list, otherwise) => (list.includes(value) ? value : otherwise);
  state.sentence = within(state.sentence, [...given.traces.keys()], 0);
  state.view = within(state.view, viewsOf(traceNow()), "picture");
  state.kind = within(state.kind, kindsOf(traceNow()), given.openings[state.sentence].kind);
  const layers = layersNow();
  state.layer = within(state.layer, layers, layers[layers.length - 1]);
  state.heads = headsNow().filter((head) => state.heads.includes(head));
  if (!state.heads.length) state.heads = [...headsNow()];
  state.step = Math.max(0, Math.min(state.step, traceNow().steps.length - 1));
  state.flip = state.flip ? 1 : 0;
  const locked = lockOf(state.lock);
  const tokens = locked && (locked.side === "row" ? rowsOf : columnsOf)(traceNow(), state.kind);
  if (!locked || locked.place >= tokens.length) state.lock = "";
}

function lockOf(text) {
  const found = /^(row|column)(\d{1,6})$/.exec(text);
  return found && { side: found[1], place: Number(found[2]) };
}

const written = () => new URLSearchParams({ ...state, heads: state.heads.join(".") }).toString();

function read(hash) {
  const asked = new URLSearchParams(hash.replace(/^#/, ""));
  const number = (name) => (/^\d{1,6}$/.test(asked.get(name) ?? "") ? Number(asked.get(name)) : 0);
  const first = opened(number("sentence") < given.traces.length ? number("sentence") : 0);
  if (!asked.has("kind")) return { ...first, view: asked.get("view") ?? "picture" };
  return {
    sentence: first.sentence,
    view: asked.get("view"),
    kind: asked.get("kind"),
    layer: number("layer"),
    heads: (asked.get("heads") ?? "").split(".").filter((part) => /^\d{1,4}$/.test(part)).map(Number),
    step: number("step"),
    lock: asked.get("lock") ?? "",
    flip: number("flip"),
  };
}
