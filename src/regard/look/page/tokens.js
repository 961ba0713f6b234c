// Elements and tokens. Text of the data becomes text of the page through textContent and in no other way.
const byId = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Build the inside of an element only when what it depends on has changed: focus and hover survive the rest.
function fill(element, key, build) {
  if (element.dataset.key === key) return;
  element.dataset.key = key;
  element.replaceChildren(...build());
}

// What has no form of its own gets one: nothing, blanks, control characters, halves of surrogate pairs.
function visible(text) {
  if (text === "") return "∅";
  if (!text.trim()) return "␣".repeat(Math.min(text.length, 8));
  const signs = text.replace(/[\u0000-\u001f\u007f]/g, (c) => (c === "\u007f" ? "␡" : String.fromCharCode(0x2400 + c.charCodeAt(0))));
  return signs.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");
}

function isolated(text) {
  const element = make("bdi", { dir: "auto" });
  element.textContent = visible(text);
  return element;
}

// A token of a view; `side` and `place` say which.
function tokenElement(token, tag, attributes = {}) {
  const element = make(tag, attributes, isolated(token.text));
  element.classList.add("token");
  element.classList.toggle("special", token.special);
  element.classList.toggle("joins", token.joins);
  if (token.id >= 0) element.title = `number ${token.id} of the vocabulary`;
  return element;
}

const styles = getComputedStyle(document.documentElement);
const colour = (head) => styles.getPropertyValue(`--head-${head % 8}`).trim();
const faded = (head, alpha) => colour(head) + Math.round(255 * Math.min(1, alpha)).toString(16).padStart(2, "0");

// Four digits that count, whole numbers of them: 0.8312, 0.0004152.
const digits = (weight) => (weight ? String(Number(weight.toPrecision(4))) : "0");
const percent = (logProb) => (100 * Math.exp(logProb)).toFixed(Math.exp(logProb) < 0.0995 ? 1 : 0) + " %";

// A canvas as sharp as the screen, its unit being one pixel of the style sheet.
function context(canvas, width, height) {
  const scale = Math.min(window.devicePixelRatio || 1, 32000 / Math.max(width, height));
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const drawing = canvas.getContext("2d");
  drawing.scale(scale, scale);
  return drawing;
}

function say(...parts) {
  byId("readout").replaceChildren(...parts);
}
