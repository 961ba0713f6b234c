// What the page was given, and its attention maps, unpacked when they are first looked at.
const given = JSON.parse(document.getElementById("given").textContent);

const KINDS = {
  "enc-self": { name: "Input – Input", left: "looked at", right: "who looks" },
  cross: { name: "Input – Output", left: "source, looked at", right: "written while looking" },
  "dec-self": { name: "Output – Output", left: "looked at", right: "who looks" },
};
const WEIGHTS = Float64Array.from({ length: 256 }, (_, byte) => (byte / 255) ** 2); // the file keeps square roots
const unpacked = new Map();

const rowsOf = (trace, kind) => (kind === "enc-self" ? trace.source : kind === "dec-self" ? trace.target : trace.steps.map((step) => step.chosen.token));
const columnsOf = (trace, kind) => (kind === "dec-self" ? trace.target : trace.source);
const kindsOf = (trace) => Object.keys(KINDS).filter((kind) => trace.maps.some((map) => map.kind === kind));
const layersOf = (trace, kind) => trace.maps.filter((map) => map.kind === kind).map((map) => map.layer).sort((a, b) => a - b);
const mapOf = (trace, kind, layer) => trace.maps.find((map) => map.kind === kind && map.layer === layer);

async function inflate(base64) {
  const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// One layer of one kind, ready to be asked: scene.at(head, row, column) is the weight.
async function sceneOf(trace, kind, layer) {
  const map = mapOf(trace, kind, layer);
  if (!map) return null;
  if (!unpacked.has(map)) unpacked.set(map, inflate(map.weights));
  const bytes = await unpacked.get(map);
  const rows = rowsOf(trace, kind);
  const columns = columnsOf(trace, kind);
  const places = new Map(map.heads.map((head, place) => [head, place]));
  const at = (head, row, column) => WEIGHTS[bytes[(places.get(head) * rows.length + row) * columns.length + column]];
  return { trace, kind, layer, rows, columns, at };
}

// The strongest of the heads at one place: heads are never mixed into a mean.
function strongest(scene, heads, row, column) {
  let best = heads[0];
  for (const head of heads) if (scene.at(head, row, column) > scene.at(best, row, column)) best = head;
  return best;
}
