"""Options of constructors, as grids and commands set them."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from private_rl_gym.lab.references import GridError, Reference, refer
from private_rl_gym.privacy.schedule import Schedule
from private_rl_gym.wrappers.arguments import CommonArguments
from private_rl_gym.wrappers.base import Sealed
from private_rl_gym.wrappers.boundary import Boundary

__all__ = ["LARGEST", "Option", "arguments_of", "is_kind", "options_of"]

LARGEST = 10**15
"""Largest number in a grid; a larger one is taken for a mistake."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a constructor.

    Attributes:
        annotation: Its type.
        default: Its default.
    """

    annotation: Any = Any
    default: Any = inspect.Parameter.empty

    def value(self, given: Any, where: str, code: Collection[str] | None = ()) -> Any:
        """Return a value of a configuration, checked, with ``reference``.

        A whole number becomes a float where the option is one, so that 1 and 1.0 are the same.

        Raises:
            GridError: If the value is not finite, or does not fit the annotation.
        """
        given = self.reference(given, where, code)
        kinds = set(_flat(self.annotation)) & {bool, int, float, str}
        whole = isinstance(given, int) and not isinstance(given, bool) and float in kinds
        value = float(given) if whole and abs(given) < LARGEST else given
        _check_finite(value, where)
        if not kinds or whole or isinstance(value, list | Reference) or type(value) in kinds:
            return value
        if isinstance(value, float) and int in kinds and value.is_integer():
            return value
        words = {int: "a number", float: "a number", str: "a string", bool: "true or false"}
        wanted = " or ".join(dict.fromkeys(word for kind, word in words.items() if kind in kinds))
        raise GridError(f"{where} is {value!r}: it must be {wanted}.")

    def reference(self, given: Any, where: str, code: Collection[str] | None = ()) -> Any:
        """Return ``module:object`` as a ``Reference`` where the option takes a class.

        Any other value is returned as it is.

        Args:
            given: The value.
            where: Its place, for errors.
            code: The modules that may be imported; None if the user has typed the value.
        """
        base = next((get_args(part)[0] for part in _flat(self.annotation) if get_origin(part) is type), None)
        if base is None or not isinstance(given, str) or ":" not in given:
            return given
        reference = refer(given, code, where)
        if not is_kind(reference.load(), base):
            raise GridError(f"{where} is {given!r}: it must be a subclass of {base.__module__}.{base.__name__}.")
        return reference


def is_kind(kind: Any, base: type) -> bool:
    """Return whether ``kind`` is a class, and a subclass of ``base``."""
    return inspect.isclass(kind) and issubclass(kind, base)


@dataclass(frozen=True)
class RandomNumbers:
    """The random numbers of a boundary, as a configuration states them.

    Attributes:
        seed: A seed of all noise, which voids guarantees.
        secure: Whether noise is drawn from a cryptographic generator.
    """

    seed: int | None = None
    secure: bool = False


@cache  # a stack is built for every run of an audit
def options_of(kind: type) -> Mapping[str, Option]:
    """Return the options of a constructor, including those of parent classes that get the rest.

    Those of the schedule and of the random numbers of a boundary are written one by one.
    """
    options: dict[str, Option] = {}
    for parent in inspect.getmro(kind):
        if "__init__" not in parent.__dict__:
            continue
        if parent is Boundary:
            break
        parameters = inspect.signature(parent.__init__).parameters.values()  # type: ignore[misc]
        for parameter in parameters:
            if parameter.name != "self" and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                annotation = _resolved(parameter.annotation, parent.__init__.__module__)  # type: ignore[misc]
                options.setdefault(parameter.name, Option(annotation, parameter.default))
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            break
    if not issubclass(kind, Sealed):
        return MappingProxyType(options)
    named, hints = inspect.signature(kind).parameters, get_type_hints(CommonArguments)
    options = {**{name: Option(hints[name], named[name].default) for name in hints if name in named}, **options}
    parts = {"schedule": (Schedule, {"batch_size": kind.usual_batch}), "rng": (RandomNumbers, {})}
    for name, (part, usual) in parts.items():
        if options.pop(name, None) is not None:
            types = get_type_hints(part)
            options |= {one.name: Option(types[one.name], usual.get(one.name, one.default)) for one in fields(part)}
    if not getattr(kind, "plans_releases", False):
        options.pop("releases", None)
    return MappingProxyType(options)


def arguments_of(kind: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a constructor for these options."""
    rest = dict(options)
    if not issubclass(kind, Sealed):
        return rest
    schedule, numbers = (
        {one.name: rest.pop(one.name) for one in fields(part) if one.name in rest} for part in (Schedule, RandomNumbers)
    )
    if schedule:
        rest["schedule"] = Schedule(**{"batch_size": kind.usual_batch, **schedule})
    if RandomNumbers(**numbers) != RandomNumbers():
        rest["rng"] = "secure" if numbers.get("secure") else numbers["seed"]
    return rest


def _resolved(annotation: Any, module: str) -> Any:
    """Return the annotation as a type, or ``Any``.

    It is ``Any`` if there is no annotation, or for names that are not imported at run time.
    """
    if annotation is inspect.Parameter.empty:
        return Any
    try:
        holder = type("Holder", (), {"__annotations__": {"it": annotation}, "__module__": module})
        return get_type_hints(holder)["it"]
    except NameError:
        return Any


def _flat(annotation: Any) -> Iterator[Any]:
    """Yield the types in a union, and those of a ``Literal``'s values."""
    if get_origin(annotation) is Literal:
        yield from map(type, get_args(annotation))
    elif get_args(annotation) and get_origin(annotation) is not type:
        for part in get_args(annotation):
            yield from _flat(part)
    else:
        yield annotation


def _check_finite(value: Any, where: str) -> None:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, list):
            _check_finite(item, where)
        elif not isinstance(item, bool | int | float | str):
            raise GridError(f"{where} is {item!r}: it must be a number, a string, true or false.")
        elif isinstance(item, int | float) and not abs(item) <= LARGEST:
            raise GridError(f"{where} is out of range: it must be a finite number.")
