"""Whole numbers on the command line, also as people write large ones: 1e5, 100_000."""

from __future__ import annotations

import tyro

registry = tyro.constructors.ConstructorRegistry()


def whole_number(text: str) -> int:
    """Read a whole number.

    >>> whole_number("1e5"), whole_number("100_000"), whole_number("-3")
    (100000, 100000, -3)

    Raises:
        ValueError: if it is none.
    """
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer():
            raise ValueError(f"{text} is no whole number") from None
        return int(number)


@registry.primitive_rule
def _rule(
    info: tyro.constructors.PrimitiveTypeInfo,
) -> tyro.constructors.PrimitiveConstructorSpec[int] | None:
    if info.type is not int:
        return None
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda texts: whole_number(texts[0]),
        is_instance=lambda value: isinstance(value, int) and not isinstance(value, bool),
        str_from_instance=lambda value: [str(value)],
    )
