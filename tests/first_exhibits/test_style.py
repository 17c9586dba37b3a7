import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb

from fivelenses.first_exhibits import style


@pytest.mark.parametrize("ends", [(0.0, 0.5, 1.0), (0.0, 0.0, 0.01), (0.97, 0.98, 1.0), (0.0,)])
def test_names_beside_curves_keep_clear_of_each_other_and_of_the_axis(ends):
    figure, axes = plt.subplots()
    axes.set_ylim(0, 1)
    style.label_line_ends(axes, 6, {f"curve {place}": (end, "black") for place, end in enumerate(ends)}, gap=0.06)
    heights = [text.xy[1] for text in axes.texts]
    assert min(heights) >= 0.03 - 1e-9
    assert len(heights) == len(ends) and (np.diff(sorted(heights)) >= 0.06 - 1e-9).all()
    plt.close(figure)


def test_a_name_with_room_stands_where_its_curve_ends():
    figure, axes = plt.subplots()
    axes.set_ylim(0, 1)
    style.label_line_ends(axes, 6, {"low": (0.2, "black"), "high": (0.8, "black")})
    assert [text.xy[1] for text in axes.texts] == [0.2, 0.8]
    plt.close(figure)


@pytest.mark.parametrize(
    "colours",
    [style.TASK_COLOURS.values(), style.OWN_COLOURS, style.SEQUENCE, style.looks_in_order(range(12)).colours.values()],
    ids=["tasks", "own tasks", "sequence", "order"],
)
def test_a_name_in_any_colour_of_the_house_style_can_be_read_on_white(colours):
    channels = np.array([to_rgb(colour) for colour in colours])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    assert (1.05 / (luminance + 0.05)).min() > 2.2
