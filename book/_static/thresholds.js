// A reader moves a claim's thresholds on its card and sees the verdict of each run change, by the ledger's own rule.
document.addEventListener("DOMContentLoaded", () => {
  const rounding = 1e-12; // what lies nearer to its threshold is a tie
  const ofGroup = (parts, thresholds) => {
    let open = false;
    for (const [name, [low, high]] of Object.entries(parts)) {
      const threshold = thresholds[name];
      const tie = rounding * Math.max(1, Math.abs(threshold));
      if (high !== null && high < threshold - tie) return "fails";
      open ||= low === null || low <= threshold + tie;
    }
    return open ? "open" : "holds";
  };
  const ofRun = (groups, halves, wanted, thresholds) => {
    const outcomes = Object.values(groups).map((parts) => ofGroup(parts, thresholds));
    // Of a sentence of two halves, each needs a group, and to be reproduced one that holds.
    const about = (half) => Object.values(groups).map((parts, place) => half.some((name) => name in parts) && outcomes[place]);
    const untested = halves.length < wanted || halves.some((half) => !about(half).some(Boolean));
    const unheld = halves.some((half) => !about(half).includes("holds"));
    const [held, failed] = ["holds", "fails"].map((outcome) => outcomes.filter((one) => one === outcome).length);
    const clear = 3 * Math.max(held, failed) >= 2 * outcomes.length;
    const whole = held && failed ? "mixed" : !clear ? "open" : held ? "reproduced" : "contradicted";
    const verdict = untested || (unheld && whole === "reproduced") ? "open" : whole;
    return { verdict, counted: `holds in ${held}, fails in ${failed} of ${outcomes.length}` };
  };
  const finite = (text) => (text.endsWith("inf") ? null : Number(text));
  for (const place of document.querySelectorAll(".thresholds-moved")) {
    const card = place.closest("details.claim");
    const parts = [...card.querySelectorAll(".thresholds li")].map((item) => {
      const { part: name, half, unit, threshold } = item.dataset;
      const plot = [...card.querySelectorAll("table.intervals")].find((table) => table.dataset.part === name);
      return { name, half, unit, threshold: Number(threshold), ...(plot && { least: Number(plot.dataset.least), most: Number(plot.dataset.most) }) };
    });
    const halves = [...new Set(parts.map((part) => part.half).filter(Boolean))].map(
      (half) => parts.filter((part) => part.half === half).map((part) => part.name),
    );
    const wanted = card.querySelector(".thresholds").dataset.halves;
    const runs = {};
    for (const view of card.querySelectorAll(".view")) {
      for (const row of view.querySelectorAll("tbody tr[data-group]")) {
        const groups = (runs[view.dataset.run] ??= {});
        const { group, low, high } = row.dataset;
        (groups[group] ??= {})[row.closest("table").dataset.part] = [finite(low), finite(high)];
      }
    }
    if (!Object.keys(runs).length) continue;
    const thresholds = Object.fromEntries(parts.map((part) => [part.name, part.threshold]));
    const said = document.createElement("ul");
    said.setAttribute("aria-live", "polite");
    const show = () => {
      said.replaceChildren(...Object.entries(runs).map(([run, groups]) => {
        const { verdict, counted } = ofRun(groups, halves, Number(wanted), thresholds);
        const line = document.createElement("li");
        line.dataset.run = run;
        line.dataset.verdict = verdict;
        line.textContent = `${run}: ${verdict} (it ${counted})`;
        return line;
      }));
    };
    for (const part of parts.filter((one) => "least" in one)) {
      const step = 10 ** Math.floor(Math.log10((part.most - part.least) / 50));
      const label = document.createElement("label");
      const input = document.createElement("input");
      const number = document.createElement("output");
      Object.assign(input, { type: "range", min: part.least, max: part.most, step: "any", value: part.threshold });
      const tell = () => {
        number.textContent = `${String(+thresholds[part.name].toPrecision(3)).replace("-", "\u2212")} ${part.unit}`;
      };
      input.addEventListener("input", () => {
        thresholds[part.name] = Math.round(input.valueAsNumber / step) * step;
        tell();
        show();
      });
      label.append(`${part.name} above `, input, number);
      place.append(label);
      tell();
    }
    place.append(said);
    place.hidden = false;
    show();
  }
});
