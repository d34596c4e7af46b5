"""What a name in a text stands for, where else it stands, and how it is renamed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ait_mlir.dims import DimError, check_name
from ait_mlir.tools.language.document import Document, Edit, Part, Refused, Span
from ait_mlir.tools.language.outline import PARAMS, Place, Statement
from ait_mlir.tools.language.tokens import Kind, Token

_FORMS: dict[Kind, tuple[str, re.Pattern[str]]] = {
    "value": ("%", re.compile(r"\d+|[A-Za-z$._-][\w$.-]*", re.ASCII)),
    "symbol": ("@", re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)),
    "string": ('"', re.compile(r'[^"\\\n]+')),
}
"""The first character of a name by its kind, and what may follow."""


@dataclass(frozen=True)
class Named:
    """A named thing: its definition and all its names in the text, the definition among them."""

    kind: Kind
    name: str
    definition: Span | None
    places: tuple[Span, ...]


def named_at(document: Document, line: int, column: int) -> Named | None:
    """The thing that is named at a place; None if there is no name."""
    part, token = document.part_at(line), document.token_at(line, column)
    if part is None or token is None:
        return None
    found = _places(part, line - part.first, token)
    if found is None:
        return None
    definition, places = found
    spans = tuple(dict.fromkeys(_span(part, p) for p in places))
    return Named(token.kind, token.text, None if definition is None else _span(part, definition), spans)


def _span(part: Part, place: Place) -> Span:
    return Span(place.line + part.first, place.token.start, place.token.end)


def _places(part: Part, line: int, token: Token) -> tuple[Place | None, list[Place]] | None:
    outline = part.outline
    s = outline.at(line)
    match token.kind:
        case "value":
            found = outline.value_definition(line, token.text)
            if found is None:
                return None, [Place(line, token)]
            definition, scope = found
            places = [
                place
                for place in _all(part, scope)
                if place.token.text == token.text
                and (known := outline.value_definition(place.line, token.text)) is not None
                and known[0] == definition
            ]
            return definition, places
        case "dim" | "word":
            declared = outline.dims_in_scope(line).get(token.text)
            if declared is None or token.kind == "word":
                return None
            definition, scope = declared
            return definition, [p for p in _all(part, scope) if p.token.kind == "dim" and p.token.text == token.text]
        case "symbol":
            places = [p for p in _all(part, None) if p.token.kind == "symbol" and p.token.text == token.text]
            return outline.symbols().get(token.text[1:].strip('"')), places
        case "string" if s is not None and outline.op(s) in PARAMS:
            places = [
                place
                for other in outline.statements
                if outline.op(other) in PARAMS
                for place in outline.tokens(other, nested=False)
                if place.token.kind == "string" and place.token.text == token.text
            ]
            return places[0], places
        case "block":
            around = s if s is not None and outline.op_token(s) is not None and s.last > line else None
            scope = around if around is not None else s.parent if s is not None else None
            places = [p for p in _all(part, scope) if p.token.kind == "block" and p.token.text == token.text]
            heads = [p for p in places if not part.outline.lines[p.line][: p.token.start].strip()]
            return (heads[0] if heads else None), places
        case _:
            return None


def _all(part: Part, scope: Statement | None) -> Iterator[Place]:
    """The tokens of a statement, or of the whole part."""
    for s in part.outline.roots if scope is None else (scope,):
        yield from part.outline.tokens(s)


def renamed(document: Document, line: int, column: int, new: str) -> list[Edit]:
    """The edits that give the thing at a place a new name; `Refused` if the name is not allowed or taken."""
    named = named_at(document, line, column)
    part = document.part_at(line)
    if named is None or part is None or named.definition is None:
        raise Refused("there is no name here that can be changed: values, dims, symbols, blocks and params have names")
    if named.kind == "dim":
        try:
            check_name(new)
        except DimError as e:
            raise Refused(str(e)) from None
        text, inside = new, new
    else:
        sign, form = _FORMS.get(named.kind, ("^", _FORMS["value"][1]))
        inside = new.strip('"') if sign == '"' else new.removeprefix(sign)
        if not form.fullmatch(inside):
            raise Refused(f"{new!r} cannot name a {named.kind}; expected letters, digits or '_'")
        text = f'"{inside}"' if sign == '"' else sign + inside
    if text != named.name and _is_taken(part, named, text, inside):
        raise Refused(f"{text} is the name of something else here; choose another name")
    edits = [Edit(p.line, p.start, p.line, p.end, text) for p in named.places]
    if text != named.name and _names_input(part, named.definition):
        edits = [
            replace(e, text=f'"{named.name[1:]}" {text}') if p == named.definition else e
            for e, p in zip(edits, named.places, strict=True)
        ]
    return edits


def _names_input(part: Part, definition: Span) -> bool:
    """Whether a value gives an input of a graph its name, which callers use: the name must stay, as a string."""
    line = definition.line - part.first
    s = part.outline.at(line)
    if s is None or part.outline.op(s) != "ait.graph":
        return False
    tokens = list(part.outline.tokens(s, nested=False))
    i = next((i for i, p in enumerate(tokens) if p.line == line and p.token.start == definition.start), 0)
    return tokens[i].token.kind == "value" and tokens[i - 1].token.kind != "string"


def _is_taken(part: Part, named: Named, text: str, inside: str) -> bool:
    lines = {p.line - part.first for p in named.places}
    if named.kind == "symbol":
        return inside in part.outline.symbols()
    if named.kind == "dim":
        return any(inside in part.outline.dims_in_scope(line) for line in lines)
    if named.kind == "value":
        assert named.definition is not None
        found = part.outline.value_definition(named.definition.line - part.first, named.name)
        scope = found[1] if found is not None else None
        return any(p.token.text == text for p in _all(part, scope)) or any(
            part.outline.value_definition(line, text) is not None for line in lines
        )
    return any(p.token.kind == named.kind and p.token.text == text for p in _all(part, None))
