"""Whether a discount reaches as far as the rewards are late."""

from __future__ import annotations

from typing import Any

from belated.credit import Revealed
from belated.methods import Method


def too_short_sighted(method: Method, max_length: int) -> str | None:
    """What to say if a method's discount makes it worth while to end intervals early.

    A sum of T equal rewards that is revealed after T steps is worth T·γ^T at the interval's start.
    That grows only until T = −1/ln γ, about 1/(1 − γ): from there on an agent that can end an
    episode, and with it the interval, does better to. Methods whose credit rule pays for steps at
    once do not wait for what is revealed.

    Args:
        method: how to learn.
        max_length: how many steps an interval may have.

    Returns:
        A warning; None if the discount reaches far enough.

    Example:
        >>> from belated.methods import find_method
        >>> too_short_sighted(find_method("crossq-hc-singleton"), max_length=20) is None
        True
        >>> print(too_short_sighted(find_method("crossq-hc-singleton"), max_length=500))
        Rewards come up to 500 steps late, but gamma = 0.99 looks about 100 steps ahead: an agent \
may find it best to end an episode before its reward is discounted away. Set gamma=0.999, or take \
a method that pays for steps at once (crossq-rrd, rrd).
    """
    backbone: Any = method.backbone
    gamma = getattr(backbone, "gamma", 1.0)
    waits = isinstance(getattr(backbone, "credit", Revealed()), Revealed)
    if not waits or max_length * (1 - gamma) <= 1 + 1e-9:  # 1 − 0.99 is a little more than 0.01
        return None
    return (
        f"Rewards come up to {max_length} steps late, but gamma = {gamma:g} looks about "
        f"{1 / (1 - gamma):.0f} steps ahead: an agent may find it best to end an episode before "
        f"its reward is discounted away. Set gamma={1 - 0.5 / max_length:.4g}, or take a method "
        "that pays for steps at once (crossq-rrd, rrd)."
    )
