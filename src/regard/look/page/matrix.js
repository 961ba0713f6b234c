// The matrix: a row for each token that looks, a column for each that is looked at, and the number under the crosshair.
function matrix(stage, scene) {
  const size = Math.max(4, Math.min(34, Math.floor(820 / Math.max(scene.rows.length, scene.columns.length))));
  fill(stage, ["matrix", state.sentence, scene.kind].join(), () => {
    const labels = (tokens, side) => {
      const every = Math.ceil(11 / size); // labels that would lie on one another are left out
      const items = tokens.map((token, place) => (place % every ? make("span") : tokenElement(token, "span")));
      return make("div", { class: `labels ${side}` }, ...items);
    };
    const field = make("div", { class: "field" }, make("canvas", { id: "cells", role: "img" }), make("div", { class: "band across" }), make("div", { class: "band down" }));
    const corner = make("p", { class: "corner" }, make("span", {}, `${KINDS[scene.kind].left} →`), make("span", {}, `${KINDS[scene.kind].right} ↓`));
    const box = make("div", { class: "matrix", tabindex: 0 }, corner, labels(scene.columns, "top"), labels(scene.rows, "left"), field);
    box.style.setProperty("--cell", `${size}px`);
    return [box];
  });
  cells(scene, size);
  const field = stage.querySelector(".field");
  field.onmousemove = (event) => {
    const box = field.getBoundingClientRect();
    cross(scene, Math.floor((event.clientY - box.top) / size), Math.floor((event.clientX - box.left) / size));
  };
  field.onmouseleave = () => cross(scene, -1, -1);
  cross(scene, -1, -1);
}

function cells(scene, size) {
  const [rows, columns] = [scene.rows.length, scene.columns.length];
  const pixels = new ImageData(columns, rows);
  const colours = new Map(state.heads.map((head) => [head, [1, 3, 5].map((at) => parseInt(colour(head).slice(at, at + 2), 16))]));
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      const head = strongest(scene, state.heads, i, j);
      const future = scene.kind === "dec-self" && j > i;
      pixels.data.set(future ? [128, 128, 128, 28] : [...colours.get(head), 255 * scene.at(head, i, j) ** 0.7], 4 * (i * columns + j));
    }
  }
  const small = make("canvas", { width: columns, height: rows });
  small.getContext("2d").putImageData(pixels, 0, 0);
  const canvas = byId("cells");
  const drawing = context(canvas, columns * size, rows * size);
  drawing.imageSmoothingEnabled = false;
  drawing.drawImage(small, 0, 0, columns * size, rows * size);
  if (size >= 12) {
    drawing.strokeStyle = styles.getPropertyValue("--card");
    drawing.lineWidth = 2;
    drawing.beginPath();
    for (let j = 0; j <= columns; j++) drawing.rect(j * size, 0, 0, rows * size);
    for (let i = 0; i <= rows; i++) drawing.rect(0, i * size, columns * size, 0);
    drawing.stroke();
  }
  canvas.setAttribute("aria-label", `Weights: ${KINDS[scene.kind].name}, layer ${scene.layer}, heads ${state.heads.join(", ")}`);
}

function cross(scene, row, column) {
  const there = row >= 0 && column >= 0 && row < scene.rows.length && column < scene.columns.length;
  const box = document.querySelector(".matrix");
  box.classList.toggle("crossed", there);
  box.style.setProperty("--row", row);
  box.style.setProperty("--column", column);
  box.querySelectorAll(".labels").forEach((labels) => {
    const place = labels.classList.contains("top") ? column : row;
    [...labels.children].forEach((label, at) => label.classList.toggle("active", there && at === place));
  });
  if (!there) return say(`${KINDS[scene.kind].name}, layer ${scene.layer}: point at a cell to read its weight`);
  const numbers = state.heads.map((head) => {
    const dot = make("i", { class: "dot" });
    dot.style.background = colour(head);
    return make("span", { class: "weight" }, dot, `head ${head} `, make("b", { "data-weight": head }, digits(scene.at(head, row, column))));
  });
  say(isolated(scene.rows[row].text), " looks at ", isolated(scene.columns[column].text), " ", ...numbers);
}
