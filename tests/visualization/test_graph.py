"""Pictures of recorded graphs: contents, groups, layout, formats, and the page in a browser."""

from __future__ import annotations

import gc
import random
import re
import shutil
import subprocess
import weakref
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

import chainrule as cr
from chainrule.visualization import layer_order
from chainrule.visualization.condensing import MAX_BOXES
from chainrule.visualization.layer_order import crossings
from chainrule.visualization.layered_layout import Box, Link, place
from chainrule.visualization.stretches import MIN_REPETITIONS
from chainrule.visualization.svg_drawing import width_of

SVG = "{http://www.w3.org/2000/svg}"


def boxes(graph):
    """Return the titles of the boxes of the picture."""
    root = ElementTree.fromstring(graph.to_svg())
    nodes = [g for g in root.iter(f"{SVG}g") if "cr-node" in g.get("class", "")]
    return [g.find(f"{SVG}text").text for g in nodes]


def frames(graph):
    """Return the titles of the groups of the picture."""
    root = ElementTree.fromstring(graph.to_svg())
    return [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "cr-name"]


def vertices(graph):
    """Return the vertices by name."""
    return {v.name: v for v in graph._recording.vertices if v.name}


def two_layers():
    x, y = cr.ones(64, 3), cr.zeros(64, 1)
    w1, b1 = cr.ones(3, 10, requires_grad=True), cr.zeros(10, requires_grad=True)
    w2, b2 = cr.ones(10, 1, requires_grad=True), cr.zeros(1, requires_grad=True)
    hidden = (x @ w1 + b1).relu()
    predicted = hidden @ w2 + b2
    loss = ((predicted - y) ** 2).mean()
    return loss, {k: v for k, v in locals().items() if isinstance(v, cr.Tensor)}


# --- contents -------------------------------------------------------------------------------------


def test_operands_that_no_rule_keeps_have_the_names_of_the_line():
    x, y = cr.ones(3, requires_grad=True), cr.ones(3)
    rows, index, t1, shown = [y, y], 1, cr.ones(1), []
    z = 2 - x
    z = z + y - rows[index]
    z -= t1
    z = cr.where(x > 0, z, y)
    z = y.add(z).subtract(rows[0])
    z = z + y * 2  # computed
    z = z / len(rows)
    z = cr.nn.functional.l1_loss(z, y)  # in a function of the library
    for line in str(cr.graph(z)).splitlines():
        shown += [part.split(")")[0] for part in line.split("(")[1:2] if ", " in part]
    assert shown == [
        *("·, constant", "·, 2", "·, constant", "·, rows[0]", "y, ·", "·, ·, y"),
        *("·, t1", "·, rows[index]", "·, y", "2, ·"),
    ]


def test_boxes_have_the_names_of_variables_and_shapes_of_results():
    loss, names = two_layers()
    graph = cr.graph(loss, names=names)
    assert (graph.operations, graph.leaves) == (8, 4)
    titles = boxes(graph)
    assert {"x", "w1", "b1", "w2", "b2", "hidden = relu", "predicted = add"} <= set(titles)
    assert "loss = mean" in titles
    found = vertices(graph)
    for name, tensor in names.items():
        if name != "y":  # the graph does not keep it
            assert found[name].types == [(tensor.shape, tensor.dtype)]


def _in_place():
    x = cr.ones(3, 2, requires_grad=True)
    y = x * 1
    y[0] = 5.0
    y.mul_(2)
    return y[1]


def _batched():
    w = cr.ones(2, requires_grad=True)
    return cr.vmap(lambda row: (row * w).exp())(cr.ones(4, 2))


def _second_order():
    x = cr.ones(3, requires_grad=True)
    return cr.autograd_grad((x**3).sum(), x, create_graph=True)[0]


def _several():
    u, s, vh = cr.linalg.svd(MATRIX)
    return [u, s, vh]


MATRIX = cr.ones(3, 2, requires_grad=True)


PROGRAMS = {
    "reductions": lambda x: [x.sum(0), x.mean(1, keepdim=True), x.max(), x.logsumexp(1)],
    "views": lambda x: [x.T, x[1:], x.reshape(-1), x[:, None], x.expand(5, 3, 2), x[[0, 0, 2]]],
    "broadcast": lambda x: [x + cr.ones(4, 1, 1), x * x[0], x.double() + x, 1 + x],
    "products": lambda x: [x @ x.T, cr.einsum("ij,kj->ik", x, x), cr.stack([x, x]).exp()],
    "joins": lambda x: [cr.cat([x, x, x]), cr.where(x > 0, x, x[0]), *cr.split(x, 1)],
    "nn": lambda x: [cr.nn.functional.softmax(x, 1), cr.nn.functional.layer_norm(x, (2,))],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_shapes_and_dtypes_are_those_of_the_results(name):
    x = cr.ones(3, 2, requires_grad=True)
    # More operations follow, so that the results are no outputs of the graph.
    results = PROGRAMS[name](x.sin())
    total = sum((result * 2.0).exp().sum() for result in results)
    graph = cr.graph(total, names={f"r{i}": result for i, result in enumerate(results)})
    found = vertices(graph)
    for i, result in enumerate(results):
        if f"r{i}" in found:
            number = result.output_nr
            assert found[f"r{i}"].types[number] == (result.shape, result.dtype)
    assert all(t is not None for v in graph._recording.vertices for t in v.types)


@pytest.mark.parametrize("make", [_in_place, _batched, _second_order, _several])
def test_every_kind_of_history_is_drawn(make):
    graph = cr.graph(make())
    assert graph.leaves == 1
    assert graph.operations == len(boxes(graph)) - 1 - boxes(graph).count("constant")
    assert "unknown" not in str(graph)
    assert len(str(graph).splitlines()) >= 1 + graph.operations


def test_shapes_under_vmap_are_those_of_one_example():
    x = cr.ones(4, 3, requires_grad=True)
    found = re.findall(r"vmap: (\w+) \w+ +(\S+) float32", str(cr.graph(cr.vmap(cr.sum)(x))))
    assert found == [("all", "4"), ("one", "3")]


def test_a_compiled_call_is_one_box():
    w = cr.ones(2, requires_grad=True)

    @cr.compile
    def energy(x):
        return (x * w).exp().sum()

    graph = cr.graph(energy(cr.ones(2)))
    assert "energy" in boxes(graph)
    assert "compiled" in graph.to_svg()


def test_custom_functions_have_the_name_of_the_user():
    @cr.autograd_function
    def twice(ctx, x, factor=2):
        ctx.save_for_backward(x=x)
        return x * factor

    @twice.backward
    def _(ctx, g):
        return g * 2

    graph = cr.graph(twice(cr.ones(3, requires_grad=True)).sum())
    assert "twice" in boxes(graph)
    assert 'cr-function"' in graph.to_svg()
    assert "keeps x: 12 B" in graph.to_svg()


def test_saved_bytes_count_shared_memory_once():
    x = cr.ones(1000, requires_grad=True, dtype=cr.float64)
    y = x.exp()  # keeps its result, 8 kB
    graph = cr.graph((y * y).sum())  # both operands are that memory
    assert graph.nbytes == 8000
    assert "keeps 8 kB" in str(graph)


def test_a_graph_after_a_pass_tells_norms_and_that_it_is_freed():
    x = cr.tensor([3.0, 4.0], requires_grad=True)
    y = x * 1
    y.retain_grad()
    loss = (y**2).sum()
    loss.backward()
    text = str(cr.graph(loss))
    assert len(re.findall(r"‖grad‖ = 10", text)) == 2
    assert re.search("square .*freed", text)
    assert cr.graph(loss).nbytes == 0


def test_a_tensor_without_a_history_is_one_box_with_a_hint():
    graph = cr.graph(cr.ones(3))
    assert len(boxes(graph)) == 1
    assert "cr.why" in graph.to_svg()
    assert boxes(cr.graph({"first": cr.ones(2), "second": cr.ones(3)})) == ["first", "second"]


def test_a_graph_keeps_no_arrays():
    x = cr.ones(3, requires_grad=True)
    y = x.exp()
    array = weakref.ref(y._array)
    graph = cr.graph(y.sum(), names={"x": x})
    del y
    gc.collect()
    assert array() is None
    assert "exp" in graph.to_svg()


def test_the_locals_of_the_caller_stay():
    x = cr.ones(3, requires_grad=True)
    mine = locals()
    cr.graph(x.exp())
    assert mine["x"] is x


def test_modules_without_parameters_yet_are_passed_by():
    lazy = cr.nn.LazyLinear(3)
    x = cr.ones(2, 4, requires_grad=True)
    assert "x" in boxes(cr.graph(x.exp()))
    assert "lazy.weight" in str(cr.graph(lazy(x).sum()))


def test_operations_show_their_lines():
    x = cr.ones(3, requires_grad=True)
    y = x.exp()
    svg = cr.graph(y).to_svg()
    assert "y = x.exp()" in svg
    assert "test_graph.py" in svg


# --- groups ---------------------------------------------------------------------------------------


def loop(count):
    x, w = cr.ones(2, 3), cr.ones(3, 3, requires_grad=True)
    for _ in range(count):
        x = (x @ w).tanh()
    return x.sum()


@pytest.mark.parametrize("count", [MIN_REPETITIONS - 1, MIN_REPETITIONS, 12])
def test_repetitions_are_folded_from_three_on(count):
    graph = cr.graph(loop(count))
    folded = count >= MIN_REPETITIONS
    assert boxes(graph).count("tanh") == (1 if folded else count)
    title = [t for t in frames(graph) if t.startswith("×")]
    assert title == ([f"× {count} · tanh goes into the next matmul"] if folded else [])
    assert graph.operations == 2 * count + 1


@pytest.mark.parametrize("count", [5, 20])
def test_a_nested_loop_is_folded_twice(count):
    x = cr.ones(2, requires_grad=True)
    y = x
    for _ in range(4):
        for _ in range(count):
            y = (y * 0.5).sin()
        y = y.exp()
    graph = cr.graph(y)
    titles = [title.partition(" ·")[0] for title in frames(graph)]
    assert titles == ["× 4", f"× {count}"]
    assert sorted(boxes(graph)) == ["multiply(·, 0.5)", "sin", "x", "y = exp"]


def test_stretches_with_other_connections_are_not_folded():
    x = cr.ones(2, requires_grad=True)
    y = x
    for i in range(6):
        z = y.sin()
        y = (z if i % 2 else y) * z
    assert "× 6" not in [t.partition(" ·")[0] for t in frames(cr.graph(y))]


class Net(cr.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = cr.nn.Linear(3, 4)
        self.layers = cr.nn.ModuleList([cr.nn.Linear(4, 4) for _ in range(5)])

    def forward(self, x):
        x = self.first(x).relu()
        for layer in self.layers:
            x = layer(x).relu()
        return x


def test_modules_are_frames_and_equal_layers_are_folded():
    net = Net()
    graph = cr.graph(net(cr.ones(2, 3)).sum(), names=net)
    titles = frames(graph)
    assert titles[:2] == ["Net", "first · Linear"]
    assert any(title.startswith("× 5") for title in titles)
    assert sum(title.endswith("Linear") for title in titles) == 2
    assert "first.weight" in str(graph)
    assert "weight" in boxes(graph)  # without the name of the module whose frame it is in


def test_names_are_those_of_the_callers_variables():
    net = Net()
    total = net(cr.ones(2, 3)).sum()
    text = str(cr.graph(total))
    assert "net.first.weight" in text
    assert "total = sum" in text


def test_calls_that_record_several_operations_are_frames():
    x = cr.ones(4, 3, requires_grad=True)
    loss = cr.nn.functional.huber_loss(x, cr.zeros(4, 3))
    assert frames(cr.graph(loss)) == ["huber_loss()"]


def tangle(count):
    """Return the result of many operations without repetitions."""
    draw = random.Random(0)
    values = [cr.ones(2, requires_grad=True)]
    for _ in range(count):
        first, second = draw.choice(values[-20:]), draw.choice(values[-20:])
        values.append(draw.choice([first.sin, lambda a=first, b=second: a * b, second.cos])())
    return cr.stack(values[-20:]).sum()


def test_large_graphs_are_condensed():
    graph = cr.graph(tangle(4 * MAX_BOXES))
    assert graph.operations > MAX_BOXES
    assert len(boxes(graph)) <= MAX_BOXES
    assert sum(map(int, re.findall(r"(\d+) operations?(?= ·|<)", graph.to_svg()))) >= 200


@pytest.mark.thorough
def test_ten_thousand_operations_are_condensed():
    graph = cr.graph(tangle(25_000))
    assert graph.operations > 10_000
    assert len(boxes(graph)) <= MAX_BOXES


def test_layers_of_modules_are_closed_in_large_graphs():
    net = cr.nn.Sequential(*[cr.nn.Linear(3 + i, 4 + i) for i in range(100)])
    graph = cr.graph(net(cr.ones(1, 3)).sum())
    assert len(boxes(graph)) <= MAX_BOXES
    assert "57 · Linear" in boxes(graph)


# --- layout ---------------------------------------------------------------------------------------


def random_layout(seed):
    draw = random.Random(seed)
    count = draw.randrange(2, 40)
    placed = [Box(draw.uniform(20, 200), draw.uniform(20, 80)) for _ in range(count)]
    pairs = {(draw.randrange(i), i) for i in range(1, count) for _ in range(draw.randrange(3))}
    links = [Link(*pair) for pair in sorted(pairs)]
    return placed, links, place(placed, links)


@pytest.mark.parametrize("seed", range(12))
def test_boxes_do_not_overlap_and_edges_lead_downwards(seed):
    placed, links, (width, height) = random_layout(seed)
    for i, a in enumerate(placed):
        assert a.x - a.width / 2 >= -1e-6
        assert a.x + a.width / 2 <= width + 1e-6
        assert a.y + a.height / 2 <= height + 1e-6
        for b in placed[:i]:
            apart = abs(a.x - b.x) >= (a.width + b.width) / 2 - 1e-6
            assert apart or abs(a.y - b.y) >= (a.height + b.height) / 2
    for link in links:
        path = [placed[link.tail].y, *(y for _, y in link.bends), placed[link.head].y]
        assert path == sorted(path)


def test_a_chain_is_straight():
    placed = [Box(width, 40) for width in (50, 120, 30, 80)] + [Box(70, 30)]
    place(placed, [Link(0, 1), Link(1, 2), Link(2, 3), Link(4, 2)])
    assert max(b.x for b in placed[:4]) - min(b.x for b in placed[:4]) < 3


@pytest.mark.parametrize("library", ["igraph", "dot"])
def test_libraries_find_an_order_with_few_crossings(library):
    if library == "igraph":
        pytest.importorskip("igraph")
    elif shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed")
    order = {"igraph": layer_order._order_by_igraph, "dot": layer_order._order_by_dot}[library]
    layers, edges = [[0, 1, 2], [3, 4, 5]], [(0, 5), (1, 4), (2, 3)]
    assert crossings(layers, edges) == 3
    found = order(layers, edges)
    assert found is not None
    assert [sorted(layer) for layer in found] == layers
    assert crossings(found, edges) == 0


def test_pictures_need_no_library(monkeypatch):
    monkeypatch.setattr(layer_order, "_order_by_igraph", lambda *_: None)
    monkeypatch.setattr(layer_order.shutil, "which", lambda _: None)
    assert len(boxes(cr.graph(tangle(60)))) > 20


def test_a_library_that_fails_is_done_without(monkeypatch, tmp_path):
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(layer_order.shutil, "which", lambda _: str(program))
    assert layer_order._order_by_dot([[0], [1]], [(0, 1)]) is None
    monkeypatch.setattr(layer_order.shutil, "which", lambda _: str(tmp_path / "missing"))
    assert layer_order._order_by_dot([[0], [1]], [(0, 1)]) is None


def test_texts_of_other_scripts_are_measured_as_wide():
    assert width_of("損失", 10) > width_of("Loss", 10) / 2 * 0.9
    assert width_of("MMMM", 10) > width_of("iiii", 10)


# --- formats --------------------------------------------------------------------------------------

NASTY = '<script>alert("1")</script> & \\ #[]{}|"\n名'


def test_names_of_the_user_are_escaped_in_all_formats(tmp_path):
    x = cr.ones(2, requires_grad=True)
    graph = cr.graph(x.exp(), names={NASTY: x})
    for text in (graph.to_svg(), graph.to_html(), graph.to_mermaid(), graph._repr_html_()):
        assert "alert(" not in re.sub(r"&lt;script&gt;alert\(", "", text)
    ElementTree.fromstring(graph.to_svg())
    if shutil.which("dot"):
        run = subprocess.run(
            ["dot", "-Tsvg"], input=graph.to_dot(), capture_output=True, text=True, check=True
        )
        assert "&lt;script&gt;" in run.stdout


def test_names_of_modules_are_escaped():
    net = cr.nn.Sequential(cr.nn.Linear(3, 2), cr.nn.Linear(2, 1))
    graph = cr.graph(net(cr.ones(1, 3)), names={NASTY: net})
    ElementTree.fromstring(graph.to_svg())
    assert "<script>alert" not in graph.to_svg() + graph.to_mermaid()


def test_dot_and_mermaid_have_the_same_edges():
    loss, names = two_layers()
    graph = cr.graph(loss, names=names)
    dot, mermaid = graph.to_dot(), graph.to_mermaid()
    edges = re.findall(r"(n\d+) -> (n\d+)", dot)
    assert len(edges) == 12
    assert re.findall(r"(n\d+) --> (n\d+)", mermaid) == edges


@pytest.mark.parametrize("suffix", ["svg", "html", "dot", "gv", "mmd", "txt"])
def test_save_writes_the_format_of_the_suffix(suffix, tmp_path):
    path = cr.graph(loop(2)).save(tmp_path / f"g.{suffix}")
    start = {"svg": "<svg", "html": "<!DOCTYPE", "mmd": "flowchart", "txt": "graph"}
    assert path.read_text(encoding="utf-8").startswith(start.get(suffix, "digraph"))


def test_saved_files_are_the_same_each_time(tmp_path):
    first, second = (cr.graph(loop(2)).save(tmp_path / f"{i}.svg").read_text() for i in "ab")
    assert re.sub(":[0-9]+,", "", first) == re.sub(":[0-9]+,", "", second)


def test_errors_name_the_mend(tmp_path):
    x = cr.ones(2, requires_grad=True)
    with pytest.raises(cr.ArgumentError, match=r"expected a tensor.*got ndarray"):
        cr.graph(np.ones(2))
    with pytest.raises(cr.ArgumentError, match=r"names=\{'w': w\}"):
        cr.graph(x, names=["w"])
    with pytest.raises(cr.ArgumentError, match="w is int, expected a Tensor"):
        cr.graph(x, names={"w": 1})
    with pytest.raises(cr.ArgumentError, match=r"\.svg.*got 'g.png'"):
        cr.graph(x).save(tmp_path / "g.png")


# --- the page in a browser ------------------------------------------------------------------------

ACTIONS = """
<script>
const svg = document.querySelector("svg"), view = document.getElementById("view"), seen = [];
const note = name => seen.push(name + "=" + svg.style.transform);
const key = k => document.dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true }));
note("start");
view.dispatchEvent(new WheelEvent("wheel", { deltaY: -200, clientX: 90, clientY: 90 }));
note("wheel");
document.getElementById("in").click(); note("button");
key("-"); note("key");
key("ArrowDown"); note("arrow");
key("0"); note("fit");
const search = document.getElementById("search");
search.value = "tanh"; search.dispatchEvent(new Event("input"));
seen.push("found=" + document.getElementById("found").textContent);
seen.push("marked=" + document.querySelectorAll(".cr-found").length);
seen.push("outside=" + [...document.querySelectorAll(".cr-node")].filter(node => {
  const box = node.querySelector("rect").getBBox();
  return [...node.querySelectorAll("text")].some(text => {
    const own = text.getBBox();
    return own.x < box.x || own.x + own.width > box.x + box.width;
  });
}).length);
document.body.dataset.seen = seen.join("|");
</script>
"""


def test_the_page_zooms_and_searches_in_a_browser(tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no browser is installed")
    path = tmp_path / "g.html"
    path.write_text(cr.graph(loop(2)).to_html().replace("</body>", f"{ACTIONS}</body>"))
    run = subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
            *("--no-first-run", "--disable-background-networking", "--disable-sync"),
            *("--disable-component-update", f"--user-data-dir={tmp_path}/profile"),
            *("--dump-dom", path.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    found = re.search('data-seen="([^"]*)"', run.stdout)
    assert found is not None, run.stderr
    seen = dict(part.split("=", 1) for part in found[1].split("|"))
    steps = [seen[name] for name in ("start", "wheel", "button", "key", "arrow", "fit")]
    assert all(a != b for a, b in pairwise(steps))
    assert (seen["found"], seen["marked"], seen["outside"]) == ("1 of 4", "4", "0")


class Block(cr.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = cr.nn.Linear(3, 3), cr.nn.BatchNorm1d(3)

    def forward(self, x):
        h = self.norm(self.linear(x)).relu()
        return (x + h).tanh()


def test_modules_of_one_class_and_layers_without_parameters_at_first_are_told_apart():
    net = cr.nn.Sequential(Block(), cr.nn.ReLU(), Block())
    text = str(cr.graph(net(cr.ones(4, 3)).sum(), names=net))
    assert "forward()" not in text
    assert ", in test_graph.py\n" in text
    rows = [row for row in text.splitlines() if "line " in row]
    for i in (0, 2):
        of_block = [row for row in rows if f"[{i} · Block]" in row]
        names = [row.strip(" │├└─").split()[0].partition("(")[0] for row in of_block]
        assert names == ["tanh", "add", "relu"]
        norm = [row for row in rows if f"[{i}.norm · BatchNorm1d]" in row]
        assert any("batch_normalize" in row for row in norm)
        assert len([row for row in rows if f"[{i}.linear · Linear]" in row]) == 3
    assert len([row for row in rows if "[Sequential]" in row]) == 1  # the ReLU between them
