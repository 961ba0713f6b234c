// Decoding, one word after the other: where the model looked, what it could have said, what it said.
let playing = 0;

function replay(stage, scene, own) {
  const trace = traceNow();
  fill(stage, ["replay", state.sentence].join(), () => {
    const move = (by) => () => pause() || change({ step: state.step + by });
    const slider = make("input", { type: "range", id: "step", min: 0, max: trace.steps.length - 1, "aria-label": "step of decoding" });
    slider.addEventListener("input", () => pause() || change({ step: Number(slider.value) }));
    const bar = make("div", { class: "player" }, button("◀", { "aria-label": "step back", id: "back" }, move(-1)), button("▶ play", { id: "play", title: "space" }, play), button("▶", { "aria-label": "step on", id: "on" }, move(1)), slider, make("output", { id: "count" }));
    const line = (id, name, tokens) => [make("p", { class: "side" }, name), make("div", { class: "sentence", id, dir: "auto" }, ...tokens.map((token) => tokenElement(token, "span")))];
    const read = trace.source.length ? line("read", "The source, as far as this step looks at it", trace.source) : [];
    const lines = make("div", { class: "lines" }, ...read, ...line("known", "Written so far, and the word to come", [trace.target[0], ...trace.steps.map((step) => step.chosen.token)]));
    const table = make("table", { id: "next" }, make("caption", {}, "The next word"), make("tbody"));
    return [make("div", { class: "replay" }, bar, lines, make("div", { class: "tables" }, table, others(trace)))];
  });
  const { step } = state;
  byId("step").value = step;
  byId("count").textContent = `step ${step + 1} of ${trace.steps.length}`;
  byId("back").disabled = step === 0;
  byId("on").disabled = step === trace.steps.length - 1;
  byId("play").textContent = playing ? "❚❚ pause" : "▶ play";
  if (byId("read")) heat(byId("read"), (place) => scene && [strongest(scene, state.heads, step, place), scene]);
  heat(byId("known"), (place) => own && place <= step && [strongest(own, state.heads, step, place), own]);
  [...byId("known").children].forEach((element, place) => {
    element.classList.toggle("coming", place === step + 1);
    element.classList.toggle("unwritten", place > step + 1);
  });
  nextWords(trace.steps[step]);
  const sum = trace.steps.slice(0, step + 1).reduce((total, one) => total + one.chosen.log_prob, 0);
  const chosen = trace.steps[step].chosen;
  say("writes ", isolated(chosen.token.text), make("span", { class: "weight" }, percent(chosen.log_prob)), make("span", { class: "weight" }, `log-probability so far ${sum.toFixed(3)}`));
}

function heat(line, source) {
  [...line.children].forEach((element, place) => {
    const found = source(place);
    const weight = found ? found[1].at(found[0], state.step, place) : 0;
    element.style.background = found ? faded(found[0], 0.8 * weight ** 0.7) : "";
    element.dataset.weight = found ? digits(weight) : "";
  });
}

function nextWords({ chosen, top }) {
  const told = top.some((choice) => choice.token.id === chosen.token.id && choice.token.text === chosen.token.text) ? top : [...top, chosen];
  byId("next").tBodies[0].replaceChildren(
    ...told.map((choice) => {
      const bar = make("div", { class: "bar" });
      bar.style.width = `${100 * Math.exp(choice.log_prob)}%`;
      const row = make("tr", {}, make("th", { scope: "row" }, tokenElement(choice.token, "span")), make("td", { class: "bars" }, bar), make("td", { title: `log-probability ${choice.log_prob}` }, percent(choice.log_prob)));
      row.classList.toggle("chosen", choice.token.id === chosen.token.id && choice.token.text === chosen.token.text);
      return row;
    }),
  );
}

function others(trace) {
  const rows = trace.answers.map((answer) => make("tr", {}, make("th", { scope: "row" }, isolated(answer.text)), make("td", { title: `log-probability ${answer.log_prob}` }, answer.score.toFixed(3))));
  return make("table", { id: "answers" }, make("caption", {}, trace.answers.length > 1 ? "Candidates by score" : "The answer and its score"), make("tbody", {}, ...rows));
}

function pause() {
  clearInterval(playing);
  playing = 0;
}

function play() {
  if (playing) {
    pause();
    return change({});
  }
  const last = () => state.step >= traceNow().steps.length - 1;
  const from = state.view !== "replay" || last() ? 0 : state.step;
  playing = setInterval(() => (last() || state.view !== "replay" ? play() : change({ step: state.step + 1 })), 900);
  return change({ view: "replay", step: from });
}
