// A surface that a reader turns, by dragging or with the arrow keys: quadrilaterals, painted from the farthest to the nearest.
document.addEventListener("DOMContentLoaded", () => {
  for (const piece of document.querySelectorAll("details.turnable")) {
    const [canvas, choice] = [piece.querySelector("canvas"), piece.querySelector("select")];
    const { surfaces, shades } = JSON.parse(piece.querySelector("script").textContent);
    const pen = canvas.getContext("2d");
    const view = { turn: -0.6, tilt: 0.6 };
    const project = ([x, y, z]) => { // each between -1 and 1
      const right = x * Math.cos(view.turn) - y * Math.sin(view.turn);
      const back = x * Math.sin(view.turn) + y * Math.cos(view.turn);
      const up = z * Math.cos(view.tilt) + back * Math.sin(view.tilt);
      return { x: 320 + 170 * right, y: 210 - 112 * up, depth: back * Math.cos(view.tilt) - z * Math.sin(view.tilt) };
    };
    const trace = (places) => {
      pen.beginPath();
      places.map(project).forEach(({ x, y }) => pen.lineTo(x, y));
      pen.closePath();
    };
    const draw = () => {
      const { alphas, betas, heights, marks } = surfaces[choice.selectedIndex];
      const along = (values, place) => 2 * (values[place] - values[0]) / (values.at(-1) - values[0]) - 1;
      const at = (row, column) => [along(alphas, column), along(betas, row), 2 * heights[row][column] - 1];
      const corners = (row, column) => [[0, 0], [0, 1], [1, 1], [1, 0]].map(([down, right]) => [row + down, column + right]);
      const places = betas.slice(1).flatMap((_, row) => alphas.slice(1).map((__, column) => corners(row, column)));
      const cells = places.filter((four) => four.every(([row, column]) => heights[row][column] !== null)).map((four) => ({
        places: four.map(([row, column]) => at(row, column)),
        depth: four.reduce((sum, [row, column]) => sum + project(at(row, column)).depth, 0),
        height: four.reduce((sum, [row, column]) => sum + heights[row][column], 0) / 4,
      }));
      pen.clearRect(0, 0, canvas.width, canvas.height);
      pen.strokeStyle = "#888";
      trace([[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1]]);
      pen.stroke();
      for (const cell of cells.sort((one, other) => other.depth - one.depth)) {
        pen.fillStyle = pen.strokeStyle = shades[Math.round(cell.height * (shades.length - 1))];
        trace(cell.places);
        pen.fill();
        pen.stroke();
      }
      pen.fillStyle = "#222";
      pen.font = "15px sans-serif";
      const words = [["α", [0, -1.15, -1]], ["β", [1.15, 0, -1]]];
      words.push(...Object.entries(marks).map(([name, [row, column]]) => [`● ${name}`, at(row, column)]));
      words.forEach(([word, place]) => pen.fillText(word, project(place).x - 5, project(place).y + 5));
    };
    const turn = (sideways, upwards) => {
      view.turn += sideways;
      view.tilt = Math.min(1.5, Math.max(0, view.tilt + upwards));
      draw();
    };
    canvas.addEventListener("pointermove", (event) => event.buttons && turn(event.movementX / 150, event.movementY / 150));
    const steps = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] };
    canvas.addEventListener("keydown", (event) => {
      if (!(event.key in steps)) return;
      event.preventDefault();
      turn(...steps[event.key]);
    });
    choice.addEventListener("change", draw);
    draw();
  }
});
