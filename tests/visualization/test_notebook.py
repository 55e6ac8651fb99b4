"""Displays in notebooks, and heat maps of matrices."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

import chainrule as cr
from chainrule.visualization import notebook

# --- tensors --------------------------------------------------------------------------------------


def test_a_tensor_shows_type_values_origin_and_gradient():
    x = cr.tensor([[1.0, 2.5], [3.0, -4.0]], requires_grad=True)
    assert "requires no gradient" in x.detach()._repr_html_()
    html = x._repr_html_()
    assert "2 × 2 float32" in html
    assert "<td>2.5</td>" in html
    assert "leaf: its gradient" in html
    assert "gradient, norm" not in html
    y = x.exp()
    assert "result of ExpBackward0, line" in y._repr_html_()
    assert "y = x.exp()" in y._repr_html_()
    (x * x).sum().backward()
    assert "gradient, norm 11.3" in x._repr_html_()
    assert x._repr_html_().count("<table>") == 2


@pytest.mark.parametrize("length", [11, 12])
def test_long_tensors_are_cut_from_twelve_on(length):
    html = cr.arange(length)._repr_html_()
    assert html.count("<td>") == 11
    assert ("…" in html) == (length > 11)
    assert f"<td>{length - 1}</td>" in html
    column = cr.zeros(length, 2)._repr_html_()
    assert column.count("<tr>") == 11
    assert ("⋮" in column) == (length > 11)


@pytest.mark.parametrize(
    "make", [lambda: cr.tensor(2.0), lambda: cr.ones(2, 2, 2), lambda: cr.ones(0, 3)]
)
def test_other_shapes_show_as_text(make):
    html = make()._repr_html_()
    assert "<pre>tensor(" in html
    assert "<table>" not in html


def test_tensors_of_a_running_transform_show_as_text():
    seen = []
    cr.vmap(lambda row: seen.append(row._repr_html_()) or row * 2)(cr.ones(2, 3))
    assert "<pre>" in seen[0]


def test_parameters_are_named_so():
    assert "<b>Parameter</b> 2" in cr.nn.Parameter(cr.ones(2))._repr_html_()
    assert "<pre>" in cr.nn.LazyLinear(3).weight._repr_html_()


def test_text_of_the_user_is_escaped(monkeypatch):
    monkeypatch.setattr(notebook.linecache, "getline", lambda *_: "<script>alert(1)</script>")
    html = cr.ones(2, requires_grad=True).exp()._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_displays_cost_no_import():
    code = (
        "import sys, chainrule as cr; cr.ones(2); "
        "assert not any('visualization' in name for name in sys.modules); "
        "cr.ones(2)._repr_html_(); cr.graph(cr.ones(2)).to_html(); "
        "assert 'pygments' not in sys.modules and 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- compiled functions ---------------------------------------------------------------------------


@cr.compile
def energy(x):
    return (x * x).sum()


def test_a_compiled_function_shows_cost_and_source():
    assert "has not been compiled yet" in cr.compile(lambda x: x)._repr_html_()
    energy(cr.ones(3))
    html = energy._repr_html_()
    assert "compiled energy" in html
    assert "1 signature, the last one" in html
    assert "FLOP" in html
    assert "energy" in html
    energy(cr.ones(4))
    assert "2 signatures, the last one" in energy._repr_html_()


def test_source_is_coloured_if_pygments_is_installed(monkeypatch):
    pytest.importorskip("pygments")
    assert '<span class="k">def</span>' in notebook.highlighted("def f(x): return x")

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(notebook, "import_module", missing)
    assert notebook.highlighted("a < b") == "<pre>a &lt; b</pre>"


# --- heat maps ------------------------------------------------------------------------------------


def cells(found):
    root = ElementTree.fromstring(found.to_svg())
    rects = root.iter("{http://www.w3.org/2000/svg}rect")
    return [(r.find("{*}title").text, r.get("fill")) for r in rects if len(r)]


def test_cells_have_the_colours_of_their_signs():
    found = dict(cells(cr.heatmap(cr.tensor([[0.0, 2.0], [-2.0, np.nan]]))))
    assert found["[0, 0] = 0"] == "#ffffff"
    assert found["[0, 1] = 2"] == "#b2182b"
    assert found["[1, 0] = -2"] == "#2166ac"
    assert found["[1, 1] = nan"] == "#f2c200"


def test_the_text_shows_the_pattern():
    text = str(cr.heatmap(np.array([[1.0, 0.0], [0.2, np.inf]])))
    assert text.splitlines() == ["2 × 2, from 0 to 1, 1 not finite", "@", "-!"]


def test_blocks_of_a_jacobian_have_names():
    blocks = cr.jacobian(lambda p: p["a"] * p["b"].sum())({"a": cr.ones(2), "b": cr.ones(3)})
    found = cr.heatmap(blocks)
    assert "['a'] 2 × 2" in str(found)
    assert "['b'] 2 × 3" in str(found)
    assert len(cells(found)) == 4 + 6


@pytest.mark.parametrize(("output_ndim", "shape"), [(None, (6, 20)), (1, (2, 60)), (3, (24, 5))])
def test_arrays_of_more_dimensions_are_split(output_ndim, shape):
    values = np.ones((2, 3, 4, 5))
    text = str(cr.heatmap(values, output_ndim=output_ndim))
    assert text.startswith(f"{shape[0]} × {shape[1]}")


@pytest.mark.parametrize("length", [96, 97, 300])
def test_large_matrices_keep_their_strongest_elements(length):
    matrix = np.zeros((length, 2))
    matrix[50, 1] = -3.0
    found = cells(cr.heatmap(matrix))
    assert len(found) == 2 * 96
    assert sum(colour == "#2166ac" for _, colour in found) == 1


def test_heat_maps_name_the_mend(tmp_path):
    path = cr.heatmap(cr.eye(3)).save(tmp_path / "j.svg")
    assert path.read_text().startswith("<svg")
    with pytest.raises(cr.ArgumentError, match=r"ends in \.svg, got 'j.png'"):
        cr.heatmap(cr.eye(3)).save(tmp_path / "j.png")
    with pytest.raises(cr.ArgumentError, match=r"expected numbers, got an array of .*U"):
        cr.heatmap("matrix")
    with pytest.raises(cr.ArgumentError, match="got no array"):
        cr.heatmap([])
