"""State dicts of modules that save and load themselves in part, as PyTorch's do."""

from __future__ import annotations

import copy
import importlib
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr


def both(program: Any) -> None:
    """Compare what a program of (library) returns with what it returns for PyTorch."""
    assert program(cr) == program(pytest.importorskip("torch"))


def leaves(state: Any) -> dict[str, Any]:
    return {name: value.tolist() for name, value in state.items()}


def test_a_module_renames_what_it_loads() -> None:
    def program(lib: Any) -> Any:
        class Renamed(lib.nn.Linear):  # type: ignore[misc]
            def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
                if prefix + "w" in state_dict:
                    state_dict[prefix + "weight"] = state_dict.pop(prefix + "w")
                super()._load_from_state_dict(state_dict, prefix, *args)

        net = lib.nn.Sequential(lib.nn.ReLU(), Renamed(2, 1))
        ones = lib.ones(1, 2)
        before = {"1.w": ones, "1.bias": lib.ones(1)}
        found = [tuple(net.load_state_dict(before)), leaves(net.state_dict()), list(before)]
        typo = {"1.w": ones * 2, "1.typo": ones, "1.a.b": ones, "2.w": ones, "x": ones}
        return *found, tuple(net.load_state_dict(typo, strict=False)), leaves(net.state_dict())

    both(program)


def test_a_module_changes_what_it_has_loaded() -> None:
    def program(lib: Any) -> Any:
        class Doubled(lib.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.weight = lib.nn.Parameter(lib.ones(2))
                self.inner = lib.nn.Linear(1, 1)

            def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
                super()._save_to_state_dict(destination, prefix, keep_vars)
                destination[prefix + "weight"] = destination[prefix + "weight"] / 2

            def _load_from_state_dict(self, *args: Any) -> None:
                super()._load_from_state_dict(*args)
                self.weight.data.mul_(2)

        net, other = Doubled(), Doubled()
        with lib.no_grad():
            net.inner.weight.fill_(3), net.inner.bias.fill_(4), net.weight.fill_(5)
        return other.load_state_dict(net.state_dict()), leaves(net.state_dict()), other.weight

    for lib in (cr, pytest.importorskip("torch")):
        keys, state, weight = program(lib)
        assert repr(keys) == "<All keys matched successfully>"
        assert state == {"weight": [2.5, 2.5], "inner.weight": [[3.0]], "inner.bias": [4.0]}
        assert weight.tolist() == [5.0, 5.0]


def test_a_module_loads_without_the_method_of_its_class() -> None:
    def program(lib: Any) -> Any:
        class Packed(lib.nn.Module):  # type: ignore[misc]
            def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
                destination[prefix + "packed"] = lib.ones(1)

            def _load_from_state_dict(
                self, state_dict: Any, prefix: str, metadata: Any, strict: bool, *report: Any
            ) -> None:
                missing, _, errors = report
                self.packed = state_dict.get(prefix + "packed")
                if self.packed is None:
                    missing.append(prefix + "packed")
                errors += ["much"] * (prefix + "bad" in state_dict)

        net = lib.nn.Sequential(Packed(), lib.nn.Linear(1, 1))
        state = net.state_dict()
        found = [list(state), tuple(net.load_state_dict(state)), net[0].packed.tolist()]
        for name in ("0.bad", "0.packed"):
            changed = {**state, name: lib.ones(1)}
            if name == "0.packed":
                del changed[name]
            with pytest.raises(RuntimeError) as caught:
                net.load_state_dict(changed)
            found.append("much" in str(caught.value))
            found.append('Missing key(s) in state_dict: "0.packed"' in str(caught.value))
        return found

    both(program)


def test_a_walk_over_modules_by_hand() -> None:
    """As libraries of pretrained models load."""

    def program(lib: Any) -> Any:
        net = lib.nn.Sequential(lib.nn.Linear(2, 1), lib.nn.BatchNorm1d(1))
        state = {name: value * 0 + 7 for name, value in net.state_dict().items()}
        del state["1.bias"]
        state["1.more"] = state["top"] = state["0.weight"]
        state["0.bias"] = lib.ones(3)
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []

        def load(module: Any, prefix: str = "") -> None:
            module._load_from_state_dict(state, prefix, {}, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                load(child, prefix + name + ".")

        load(net)
        return missing, unexpected, len(errors), net[0].weight.tolist(), net[1].running_var.tolist()

    both(program)


def test_hooks_replace_and_complete_states() -> None:
    def program(lib: Any) -> Any:
        net, seen = lib.nn.Sequential(lib.nn.Linear(1, 1)), []
        net[0].register_state_dict_pre_hook(lambda m, prefix, keep: seen.append((prefix, keep)))
        net._register_state_dict_hook(
            lambda m, state, prefix, _: OrderedDict((f"net.{k}", v) for k, v in state.items())
        )
        net._register_load_state_dict_pre_hook(
            lambda state, prefix, *rest: state.update(
                {k.removeprefix("net."): state.pop(k) for k in list(state)}
            )
        )
        seen.append(list(state := net.state_dict()))
        del state["net.0.bias"]
        net[0].register_load_state_dict_post_hook(
            lambda m, keys: (seen.append(m.weight.item()), keys.missing_keys.clear(), None)[-1]
        )
        state["net.0.weight"] = lib.full((1, 1), 9.0)
        return tuple(net.load_state_dict(state)), seen

    both(program)


def test_names_lose_the_prefix_of_a_wrapper() -> None:
    utils = importlib.import_module("chainrule.nn.modules.utils")
    net = cr.nn.Linear(1, 1)
    state = cr.nn.DataParallel(net).state_dict()
    utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["weight", "bias"]
    net.load_state_dict(state)


def test_ensembles_without_running_statistics() -> None:
    def program(lib: Any) -> Any:
        net = lib.nn.Sequential(lib.nn.BatchNorm1d(2), lib.nn.Tanh())
        lib.func.replace_all_batch_norm_modules_(net)
        x = lib.arange(24.0).reshape(3, 4, 2).sin()
        found = lib.vmap(net.eval())(x).tolist()
        return np.round(found, 4).tolist(), list(net.state_dict()), repr(net)

    both(program)


def test_a_module_compiles_in_place() -> None:
    def program(lib: Any) -> Any:
        net = lib.nn.Linear(1, 1)
        lib.nn.init.ones_(net.weight), lib.nn.init.zeros_(net.bias)
        if lib is cr:
            net.compile(mode="reduce-overhead", fullgraph=True)
        return net(lib.ones(1, 1)).tolist(), list(net.state_dict())

    both(program)


def test_versions_of_modules_are_in_the_state(tmp_path: Path) -> None:
    def program(lib: Any) -> Any:
        seen = []

        class Second(lib.nn.Module):  # type: ignore[misc]
            _version = 2

            def _load_from_state_dict(
                self, state: Any, prefix: str, metadata: Any, *args: Any
            ) -> None:
                seen.append(metadata.get("version"))
                super()._load_from_state_dict(state, prefix, metadata, *args)

        net = lib.nn.Sequential(Second(), lib.nn.BatchNorm1d(1), lib.nn.Linear(1, 1))
        state = net.state_dict()
        path = tmp_path / f"{lib.__name__}.file"
        lib.save(state, path)
        for each in (state, dict(state), lib.load(path), copy.deepcopy(state)):
            net.load_state_dict(each)
        prefixed = net[2].state_dict(prefix="a.")._metadata
        return seen, dict(state._metadata), dict(lib.load(path)._metadata), dict(prefixed)

    both(program)


def test_versions_in_pytorchs_files(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    state = torch.nn.BatchNorm1d(1).state_dict()
    torch.save(state, tmp_path / "state.pt")
    assert cr.load(tmp_path / "state.pt")._metadata == state._metadata
