// The ledger's filters: a line is shown when it fits every choice; the address keeps the choices (claims.html?paper=hao2020).
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("form.ledger-filters");
  if (!form) return;
  const rows = [...document.querySelectorAll("table.ledger tbody tr")];
  const choices = [...form.querySelectorAll("select")];
  const asked = new URLSearchParams(window.location.search);
  const show = () => {
    let count = 0;
    for (const row of rows) {
      row.hidden = choices.some((choice) => choice.value && row.dataset[choice.dataset.filter] !== choice.value);
      count += row.hidden ? 0 : 1;
    }
    form.querySelector("output").textContent = `${count} of ${rows.length} lines`;
  };
  for (const choice of choices) {
    if ([...choice.options].some((option) => option.value === asked.get(choice.dataset.filter))) {
      choice.value = asked.get(choice.dataset.filter);
    }
    choice.addEventListener("change", show);
  }
  // A link to a line that is filtered away shows everything again.
  window.addEventListener("hashchange", () => {
    const row = document.getElementById(window.location.hash.slice(1));
    if (row && row.hidden) {
      choices.forEach((choice) => { choice.value = ""; });
      show();
      row.scrollIntoView();
    }
  });
  form.hidden = false;
  show();
});
