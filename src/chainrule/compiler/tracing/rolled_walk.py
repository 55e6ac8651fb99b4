"""Backward passes through the steps of loops in Python: three steps are walked, the rest is a loop.

Where the nodes of a pass repeat (see `graph_periods`), what the pass records follows from the steps
before, once two steps have recorded the same and have left the same behind: pending cotangents that
were made at the same place of the step. The nodes of the steps that follow don't run. One `for` is
recorded in their place, which gets what each of them holds as tables. Whatever differs is walked.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

from chainrule.autograd.node import Node, reachable
from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.passes.reroll import MIN_STEPS, is_profitable
from chainrule.compiler.passes.step_tables import StepTables
from chainrule.compiler.passes.structural_keys import Window, rebuild_op, structural_key
from chainrule.compiler.tracing.graph_periods import (
    PassNodes,
    Period,
    UnlikeError,
    present_value,
)
from chainrule.compiler.tracing.repeated_calls import kind_of
from chainrule.compiler.tracing.size_reads import READS
from chainrule.compiler.tracing.symbol import Symbol

if TYPE_CHECKING:
    from chainrule.autograd.reverse import BackwardPass
    from chainrule.compiler.tracing.trace import Trace

MIN_NODES = 64
"""Number of nodes from which a pass is searched for steps that repeat."""
WALKED = 3
"""Number of steps that are walked before a loop: the first one may begin sums."""

REPLACED = 2
"""Number of them, the last ones, that the loop replaces."""

Place = tuple[int, int]  # of a cotangent: the number of its node, and that of the output or a mark
SINGLE, LEAF = -1, -2


def prepare(trace: Trace, run: BackwardPass) -> None:
    """Have a pass that is about to begin stop between steps that repeat, to leave some out."""
    if run.xp is not None or READS.get() is not None or len(trace.ops) < MIN_NODES:
        return
    if sum([len(g) if type(g) is dict else 1 for g in run.pending.values()]) > 1:
        return  # cotangents that a later pass may lack: see `backward.partial_pass`
    nodes = reachable(run.pending) if run.receiving is None else run.receiving
    if len(nodes) < MIN_NODES:
        return
    found = PassNodes(trace, nodes, run.captures)
    for period in found.periods():
        _RolledSteps(found, run, period).begin()


class _Boundary(Node):
    """A pending node between those of two steps: when it comes to run, the first step has ended."""

    __slots__ = ("number", "steps")

    edges = ()
    hooks = None
    code = None
    instruction = 0
    runs_user_code = False

    def __init__(self, steps: _RolledSteps, number: int, seq: float) -> None:
        self.steps, self.number = steps, number
        self.seq: Any = seq

    def vjp(self, g: Any, run: BackwardPass) -> Sequence[Any]:
        steps = self.steps
        del self.steps  # which hold the pass, and so this node
        steps.arrive(self.number)
        return ()


class _Cotangent(NamedTuple):
    """A pending cotangent; not its symbol, since the pass counts references."""

    value: Value
    kind: object
    is_sum: bool


class _RolledSteps:
    """The steps of one loop in a backward pass."""

    def __init__(self, found: PassNodes, run: BackwardPass, period: Period, factor: int = 1):
        self.found, self.run, self.whole, self.factor = found, run, period, factor
        self.trace, self.nodes = found.trace, found.nodes
        self.start, self.length = period.begin, period.length * factor
        self.steps = period.steps // factor
        self.end = self.start + self.length * self.steps
        self.margin = -(-period.reach // self.length)  # steps that the edges of one pass
        self.marks: list[int] = []  # numbers of ops
        self.states: list[dict[Place, _Cotangent]] = []

    def begin(self) -> None:
        """Put boundaries before each of the steps that are walked, and after them."""
        if self.steps < WALKED - REPLACED + MIN_STEPS:
            return
        for number in range(WALKED + 1):
            first = self.nodes[self.start + number * self.length]
            boundary = _Boundary(self, number, first.seq + 0.5)
            for among in (self.run.receiving, self.run.running):
                if isinstance(among, set):
                    among.add(boundary)
            self.run.pending[boundary] = True
            heappush(self.run.queue, (-boundary.seq, boundary))

    def arrive(self, number: int) -> None:
        """Take down what a step has recorded; after the last one, leave out those that follow."""
        if len(self.marks) != number:
            return
        try:
            self.states.append(self._state())
            self.marks.append(len(self.trace.ops))
            if number == WALKED:
                _RolledLoop(self).record()
        except UnlikeError:
            self.marks.clear()
            if number == WALKED and self.factor < MAX_FACTOR:
                rest = self._after(WALKED)
                _RolledSteps(self.found, self.run, rest, self.factor + 1).begin()

    def _after(self, steps: int) -> Period:
        """Return the period without the first steps of this loop."""
        count = steps * self.factor
        begin, rest = self.whole.begin + count * self.whole.length, self.whole.steps - count
        return self.whole._replace(begin=begin, steps=rest)

    def go_on(self, steps: int) -> None:
        """Look at what follows after so many steps, of which some may be unlike the others."""
        rest = self._after(steps)
        if rest.steps > 0:
            _RolledSteps(self.found, self.run, rest, self.factor).begin()

    def _state(self) -> dict[Place, _Cotangent]:
        """Return the pending cotangents."""
        run, state = self.run, {}
        for node, g in run.pending.items():
            if node.__class__ is not _Boundary:
                number = self.found.index.get(node)
                if number is None:
                    raise UnlikeError
                if type(g) is dict:  # `__class__` of symbols is a property
                    for output, part in g.items():
                        state[number, output] = self._cotangent(part, (node, output))
                else:
                    state[number, SINGLE] = self._cotangent(g, node)
        for node, g in (run.leaves or {}).items():
            state[self.found.index[node], LEAF] = self._cotangent(g, node)
        return state

    def _cotangent(self, symbol: Any, key: Any) -> _Cotangent:
        value = present_value(symbol)
        return _Cotangent(value, symbol.kind or kind_of(self.trace, symbol), key in self.run.sums)


MAX_FACTOR = 3
"""Largest number of steps of the user that one step of a loop may be."""


class _RolledLoop:
    """The loop in the place of the steps that follow those that were walked."""

    def __init__(self, steps: _RolledSteps) -> None:
        self.all, self.found, self.run, self.trace = steps, steps.found, steps.run, steps.trace
        self.length, self.margin, self.end = steps.length, steps.margin, steps.end
        self.base = steps.start + WALKED * steps.length  # the number of the first node left out
        marks, ops = steps.marks, steps.trace.ops
        parts = [ops[marks[i] : marks[i + 1]] for i in range(WALKED)]
        self.last, self.before = parts[-1], parts[-2]
        self.made = {
            v: (step, offset, position)
            for step, part in enumerate(parts)
            for offset, op in enumerate(part)
            for position, v in enumerate(op.outs)
        }
        self.left = self._carried()
        self.passed = {g.value for g in self.left.values() if g.value not in self.made}
        self.count, self.next = self._count()
        self.tables = StepTables(self.trace.constants, self.found.makers(ops))
        self.tables.begin_loop()
        self.carries: dict[tuple[Value, Value], Value] = {}  # by what the last step made, and first
        self.results: dict[Value, Value] = {}  # by what the last step made
        self._columns: dict[_Source, tuple[Any, ...]] = {}
        self.sources: dict[Value, list[_Source]] = {}
        self.numbers: dict[tuple[int, int], list[_Source]] = {}
        self._find_sources()

    # --- what the walked steps have in common ---

    def _carried(self) -> dict[Place, _Cotangent]:
        """Return the cotangents that the last step left: the others wait for later steps.

        They are where the step before left them, but one step later, or in the same sums.
        """
        first, earlier, before, now = self.all.states
        touched, waiting = self._split(now, before)
        touched_before, waiting_before = self._split(before, earlier)
        if len(touched) != len(touched_before):
            raise UnlikeError
        for place, g in touched.items():
            other = touched_before.get(self._moved(place, -1))
            if other is None or other[1:] != g[1:] or not self._corresponds(other.value, g.value):
                raise UnlikeError
        for known in (waiting, waiting_before):
            if any(first.get(place) != g for place, g in known.items()):
                raise UnlikeError
        within = self.base + (self.margin + 1) * self.length
        ahead = {place: g[1:] for place, g in waiting.items() if place[0] < within}
        if ahead != {
            self._moved(place, 1): g[1:]
            for place, g in waiting_before.items()
            if place[0] + self.length < within
        }:
            raise UnlikeError
        self.waiting, self.waiting_before = waiting, waiting_before
        return touched

    def _split(
        self, state: dict[Place, _Cotangent], before: dict[Place, _Cotangent]
    ) -> tuple[dict[Place, _Cotangent], dict[Place, _Cotangent]]:
        """Return what a step has changed, and what waits for the steps that follow."""
        changed = {place: g for place, g in state.items() if before.get(place) != g}
        waiting = {p: g for p, g in state.items() if p not in changed and p[0] < self.end}
        return changed, waiting

    def _moved(self, place: Place, steps: int) -> Place:
        """Return the place of a cotangent so many steps later."""
        number, output = place
        return (number + steps * self.length, output) if number < self.end else place

    def _corresponds(self, value: Value, later: Value) -> bool:
        """Whether two steps made values at the same place, or neither made the one value."""
        made, other = self.made.get(value), self.made.get(later)
        if made is None or other is None:
            return value is later and made is None
        return made == (WALKED - 2, *other[1:]) and other[0] == WALKED - 1

    def _count(self) -> tuple[int, int]:
        """Return how many steps to leave out, and after how many more the next loop may begin.

        They end where cotangents wait for some steps and not for others, or for what follows.
        """
        count = following = self.all.steps - WALKED
        if not self.found.leads_to(self.all.whole, self.end).isdisjoint(
            [number for number, _ in self.all.states[-1]]
        ):
            count -= self.margin
        groups: dict[Place, dict[int, Any]] = {}
        for (number, output), g in self.waiting.items():
            step, offset = divmod(number - self.base, self.length)
            groups.setdefault((offset, output), {})[step] = g[1:]
        for group in groups.values():
            first = irregular = min(group)
            if first <= self.margin:
                while group.get(irregular) == group[first]:
                    irregular += 1
            if irregular - self.margin < count:
                count, following = irregular - self.margin, irregular + 1
        return count, following

    # --- the loop ---

    def record(self) -> None:
        """Record the loop, and bring the pass to where it would be after it."""
        if len(self.last) != len(self.before):
            raise UnlikeError
        if not is_profitable(len(self.last), self.count + REPLACED):
            raise UnlikeError
        for op, before in zip(self.last, self.before, strict=True):
            (key, leaves), (other_key, others) = structural_key(op), structural_key(before)
            if key != other_key or op.regions or op.function == DRAW:
                raise UnlikeError
            pairs = [*zip(leaves, others, strict=True)]
            found = self.tables.side_by_side([self._leaf(*pair) for pair in pairs], pairs)
            outs = tuple([Value(v.shape, v.dtype, v.hint) for v in op.outs])
            self.results.update(zip(op.outs, outs, strict=True))
            self.tables.body.append(rebuild_op(op, iter(found), outs))
        finals = self._add_loop()
        self._leave(finals)
        self.all.go_on(WALKED + self.next)

    def _add_loop(self) -> dict[Value, Value]:
        """Add the loop in place of the two steps; return its results by what the last one made."""
        carried = {value for value, _ in self.carries}
        for g in self.left.values():
            if g.value in self.made and g.value not in carried:  # a carry that no step reads
                zeros = Value(g.value.shape, g.value.dtype)
                self.tables.add(Op("np.zeros", (zeros.shape, zeros.dtype), {}, (zeros,)))
                self._carry(g.value, zeros)
                carried.add(g.value)
        begins = [first for _, first in self.carries]
        outs = tuple([Value(v.shape, v.dtype) for v in begins])
        slices = self.tables.slices
        outputs = [self.results[value] for value, _ in self.carries]
        inputs = [*self.carries.values(), *slices]
        body = Program("steps", inputs, {}, self.tables.body, outputs, [])
        settings = {"length": self.count + REPLACED, "reverse": False}
        begin = self.all.marks[-1 - REPLACED]
        del self.trace.ops[begin:]
        self.found.forget_makers(begin)
        self.trace.elements.read_from(begin)
        if begins:
            args = tuple(begins), tuple(slices.values())
            loop = Op("for", args, settings, outs, None, (body,))
            self.trace.append([*self.tables.ops, loop])
        return {value: out for (value, _), out in zip(self.carries, outs, strict=True)}

    def _carry(self, value: Value, first: Value) -> Value:
        """Return the input of the body that is what the step before made in a place."""
        if (value, first) not in self.carries:
            self.carries[value, first] = Value(value.shape, value.dtype, value.hint)
        return self.carries[value, first]

    def _leaf(self, leaf: Any, before: Any) -> Any:
        """Return the leaf of the body for what the last step used, and the one before it."""
        if leaf.__class__ is not Value:
            return leaf if leaf == before else self._place(leaf, before)
        made = self.made.get(leaf)
        if made is None:
            found = self._outside(self.sources.get(leaf, []), before)
            if found is not leaf and (leaf in self.passed or found is before):
                raise UnlikeError
            return found
        step, offset, position = made
        if step == WALKED - 1 and self.made.get(before) == (WALKED - 2, offset, position):
            return self.results[leaf]
        if step == WALKED - 2 and self.made.get(before, (0,))[0] == 0:
            return self._carry(self.last[offset].outs[position], before)
        raise UnlikeError

    def _place(self, leaf: Any, before: Any) -> Any:
        """Return the leaf of the body for an integer or a window that moves with the steps."""
        if leaf.__class__ is not Window:
            return self._outside(self.numbers.get((before, leaf)), before)
        sources = self.numbers.get((before.start, leaf.start))
        if sources is None or before._replace(start=leaf.start) != leaf:
            raise UnlikeError
        column = self._same(sources)
        if column[0] != before.start:
            raise UnlikeError
        return self.tables.outside([leaf._replace(start=start) for start in column])

    def _outside(self, sources: list[_Source] | None, first: Any) -> Any:
        """Return the leaf of the body for what no step has made."""
        if sources == []:
            return first
        if sources is None:
            raise UnlikeError
        column = self._same(sources)
        if column[0] != first:
            raise UnlikeError
        return self.tables.outside(column)

    def _same(self, sources: list[_Source]) -> tuple[Any, ...]:
        """Return what the steps get from a source, or from several that give the same."""
        found, *others = [self._column(source) for source in sources]
        if any(column != found for column in others):  # values are equal if they are identical
            raise UnlikeError
        return found

    # --- what each step gets ---

    def _find_sources(self) -> None:
        """Find where the last step got its values from, and its integers if steps differ in them.

        The latter must differ between the steps that were walked, to be found again in the ops.
        """
        first = self.base - self.length
        for offset in range(self.length):
            before = self.found.slots[first - self.length + offset]
            for slot, x in enumerate(self.found.slots[first + offset]):
                source = _Source(offset, slot)
                if x.__class__ is Value:
                    self.sources.setdefault(x, []).append(source)
                elif any(number != x for number in self._column(source)):
                    if x == before[slot]:
                        raise UnlikeError
                    self.numbers.setdefault((before[slot], x), []).append(source)
        for (number, output), g in self.waiting_before.items():
            if number < self.base + self.margin * self.length:
                source = _Source(number - first, output, True)
                self.sources.setdefault(g.value, []).append(source)

    def _column(self, source: _Source) -> tuple[Any, ...]:
        """Return what each of the steps that are left out gets from a source."""
        found = self._columns.get(source)
        if found is None:
            offset, slot, waits = source
            first = self.base - REPLACED * self.length + offset
            numbers = range(first, first + (self.count + REPLACED) * self.length, self.length)
            if waits:
                state = self.all.states[0]
                found = tuple([state[number, slot].value for number in numbers])
            else:
                found = tuple([self.found.slots[number][slot] for number in numbers])
            self._columns[source] = found
        return found

    # --- after the loop ---

    def _leave(self, finals: dict[Value, Value]) -> None:
        """Bring the pass to where it would be after the steps that are left out."""
        run, nodes, skipped = self.run, self.found.nodes, self.count * self.length
        cotangents = [
            (self._moved(place, self.count), self._final(place, g, finals))
            for place, g in self.left.items()
        ]
        for number in range(self.base, self.base + skipped):
            node: Any = nodes[number]
            run.pending.pop(node, None)
            like: Any = nodes[self.base - self.length + (number - self.base) % self.length]
            if like.saved is None:
                node.saved = None
        for (number, output), (symbol, is_sum) in cotangents:
            node = nodes[number]
            if output == LEAF:
                assert run.leaves is not None
                run.leaves[node] = symbol
            elif output == SINGLE:
                run.pending[node] = symbol
            else:
                run.pending.setdefault(node, {})[output] = symbol
            if is_sum:
                run.sums.add(node if output < 0 else (node, output))
        run.queue[:] = [(-node.seq, node) for node in run.pending]
        heapify(run.queue)

    def _final(
        self, place: Place, g: _Cotangent, finals: dict[Value, Value]
    ) -> tuple[Symbol, bool]:
        """Return a cotangent as it is after the loop, and whether it is a sum of the pass."""
        number, output = place
        node: Any = self.found.nodes[number]
        among: Any = self.run.leaves if output == LEAF else self.run.pending
        like = among[node] if output < 0 else among[node][output]
        symbol = Symbol(finals.get(g.value, g.value))
        symbol.layout, symbol.kind = like.layout, like.kind
        symbol.maybe_view, symbol.read_only = like.maybe_view, like.read_only
        symbol.is_scalar, symbol.finish = like.is_scalar, like.finish
        return symbol, g.is_sum


class _Source(NamedTuple):
    """Where a step gets a value or an integer from, as seen from its first node."""

    offset: int
    slot: int
    waits: bool = False  # whether it is a pending cotangent that the pass had before the loop
