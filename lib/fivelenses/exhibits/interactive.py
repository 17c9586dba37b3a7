"""Pictures that a reader can turn, folded under their still ones; they work with the network off.

A page holds the data; plotly's script lies once beside the book (`_static/plotly.min.js`) and is loaded when the first
picture is unfolded. Where it is not available, as in a bare notebook, the still picture above says the same.
"""

import json

from plotly import graph_objects

SCRIPT = "plotly.min.js"
HEIGHT = 460

_PAGE = """<details class="interactive" id="{key}"><summary>{summary}</summary>
<div class="interactive-picture" style="height:{height}px" role="img" aria-label="{label}"></div>
<script type="application/json">{content}</script>
<script>
(() => {{
  const details = document.getElementById("{key}");
  if (!details) return;
  const draw = () => {{
    const {{data, layout}} = JSON.parse(details.querySelector("script[type='application/json']").textContent);
    const place = details.querySelector("div");
    window.Plotly.newPlot(place, data, layout, {{responsive: true, displayModeBar: false}});
  }};
  details.addEventListener("toggle", () => {{
    if (!details.open || details.dataset.drawn) return;
    details.dataset.drawn = "yes";
    if (window.Plotly) {{ draw(); return; }}
    const script = document.createElement("script");
    script.src = (document.documentElement.dataset.content_root || "../") + "_static/{script}";
    script.onload = draw;
    document.head.appendChild(script);
  }});
}})();
</script></details>"""


def folded(figure: graph_objects.Figure, key: str, summary: str, label: str) -> str:
    """A plotly figure as a folded piece of a page.

    Args:
        key: the exhibit's key: the piece's name on its page.
        summary, label: the line that unfolds it, and what is to be seen for readers who cannot see it.

    Example:
        >>> figure = graph_objects.Figure(graph_objects.Scatter(x=[0, 1], y=[1, 0]))
        >>> "<details" in folded(figure, "some-key", "Turn it", "A line that falls.")
        True
    """
    figure.update_layout(
        template="none", height=HEIGHT, margin=dict(l=0, r=0, t=30, b=0), paper_bgcolor="white", font=dict(size=12)
    )
    content = json.loads(figure.to_json())
    # A page may not hold the end of a script inside a script.
    written = json.dumps({"data": content["data"], "layout": content["layout"]}).replace("</", "<\\/")
    return _PAGE.format(
        key=f"{key}-interactive", summary=summary, label=label, height=HEIGHT, content=written, script=SCRIPT
    )
