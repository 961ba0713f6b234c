// What a page that comes from a server may ask it for.
byId("asker").hidden = !given.live.includes("trace");

async function ask(path, body) {
  const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error);
  return value;
}

// While the model works, what is shown stays; what went wrong is said where numbers are said.
async function waiting(element, work) {
  element.setAttribute("aria-busy", "true");
  element.disabled = true;
  try {
    return await work();
  } catch (error) {
    say(error.message);
  } finally {
    element.removeAttribute("aria-busy");
    element.disabled = false;
  }
}

byId("asker").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = byId("asked");
  if (!field.value.trim()) return;
  waiting(field, async () => {
    const { trace, opening } = await ask("trace", { text: field.value });
    given.traces.push(trace);
    given.openings.push(opening);
    field.value = "";
    pause();
    change({ ...opened(given.traces.length - 1), step: 0, lock: "" });
  });
});
