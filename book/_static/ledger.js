// The ledger's filters: a card is shown when one of its runs fits every choice, with those runs alone; the address keeps
// the choices (claims.html?paper=hao2020).
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("form.ledger-filters");
  if (!form) return;
  const cards = [...document.querySelectorAll(".claim-cards > details.claim")];
  const choices = [...form.querySelectorAll("select")];
  const asked = new URLSearchParams(window.location.search);
  const fits = (element, names) => choices.every(
    (choice) => !choice.value || !names.includes(choice.dataset.filter) || element.dataset[choice.dataset.filter] === choice.value,
  );
  const show = () => {
    let count = 0;
    for (const card of cards) {
      let some = false;
      for (const part of card.querySelectorAll(".chip, .view")) {
        part.hidden = !fits(part, ["run", "outcome"]);
        some ||= !part.hidden;
      }
      card.hidden = !some || !fits(card, ["paper"]);
      count += card.hidden ? 0 : 1;
    }
    form.querySelector("output").textContent = `${count} of ${cards.length} claims`;
  };
  for (const choice of choices) {
    if ([...choice.options].some((option) => option.value === asked.get(choice.dataset.filter))) {
      choice.value = asked.get(choice.dataset.filter);
    }
    choice.addEventListener("change", show);
  }
  // A link into a card opens it; one to what is filtered away shows everything again.
  const open = () => {
    const place = document.getElementById(decodeURIComponent(window.location.hash.slice(1)));
    const card = place && place.closest("details.claim");
    if (!card) return;
    if (card.hidden || place.hidden) {
      choices.forEach((choice) => { choice.value = ""; });
      show();
    }
    card.open = true;
    place.scrollIntoView();
  };
  window.addEventListener("hashchange", open);
  window.addEventListener("beforeprint", () => cards.forEach((card) => { card.open = !card.hidden; }));
  form.hidden = false;
  show();
  open();
});
