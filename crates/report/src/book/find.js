// Search and filters of the report. Without a script everything is shown.
(() => {
  const form = document.querySelector(".find");
  const sections = [...document.querySelectorAll("section.experiment")];
  const words = new Map(sections.map((section) => [section, section.textContent.toLowerCase()]));
  const input = form.querySelector("input[type=search]");
  const boxes = [...form.querySelectorAll("input[type=checkbox]")];
  const causes = [...document.querySelectorAll(".causes button")];
  const told = form.querySelector("output");
  const apply = () => {
    const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdicts = boxes.filter((box) => box.checked).map((box) => box.value);
    const pressed = causes.filter((button) => button.getAttribute("aria-pressed") === "true").map((button) => button.dataset.cause);
    let count = 0;
    for (const section of sections) {
      const own = section.dataset.verdicts.split("|");
      const why = section.dataset.causes.split("|");
      const shown = wanted.every((word) => words.get(section).includes(word))
        && own.some((verdict) => verdicts.includes(verdict))
        && (pressed.length === 0 || pressed.some((cause) => why.includes(cause)));
      section.hidden = !shown;
      const onward = section.nextElementSibling;
      if (onward && onward.classList.contains("onward")) onward.hidden = !shown;
      const entry = document.querySelector(`.index li[data-id="${section.id}"]`);
      if (entry) entry.hidden = !shown;
      count += shown;
    }
    told.textContent = `${count} of ${sections.length} experiments`;
  };
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", apply);
  for (const button of causes) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") === "true" ? "false" : "true");
      apply();
    });
  }
  // j and k: the next experiment and the one before.
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { j: 1, k: -1 }[event.key];
    if (!step) return;
    const shown = sections.filter((section) => !section.hidden);
    const at = shown.findIndex((section) => section.getBoundingClientRect().top > (step > 0 ? 8 : -8));
    const target = step > 0 ? shown[at < 0 ? shown.length - 1 : at] : shown[(at < 0 ? shown.length : at) - 1];
    if (target) target.scrollIntoView();
  });
  apply();
})();
