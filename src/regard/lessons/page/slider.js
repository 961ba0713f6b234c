for (const figure of document.querySelectorAll("figure.slider")) {
  const states = [...figure.querySelectorAll(".state")];
  const slider = figure.querySelector("input"), said = figure.querySelector("output");
  slider.addEventListener("input", () => {
    states.forEach((state, place) => { state.hidden = place !== Number(slider.value); });
    said.textContent = states[Number(slider.value)].dataset.value;
    slider.setAttribute("aria-valuetext", said.textContent);
  });
}
