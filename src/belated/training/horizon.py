"""Whether a discount reaches as far as the rewards are late."""

from __future__ import annotations

from belated.credit import Revealed
from belated.methods import Method


def too_short_sighted(method: Method, latest: int) -> str | None:
    """What to say if rewards come later than a method's discount looks ahead.

    A sum of T equal rewards that is revealed after T steps, when the episode ends, is worth T·γ^T
    at its start. That grows only until T = −1/ln γ, about 1/(1 − γ): from there on an agent that
    can end an episode does better to. Methods whose credit rule pays for steps at once do not wait
    for what is revealed.

    Args:
        method: how to learn.
        latest: how many steps after the first that it counts a reward may come.

    Returns:
        A warning; None if the discount reaches far enough.

    Example:
        >>> from belated.methods import find_method
        >>> too_short_sighted(find_method("crossq-hc-singleton"), latest=20) is None
        True
        >>> print(too_short_sighted(find_method("crossq-hc-singleton"), latest=500))
        Rewards come up to 500 steps late, but gamma = 0.99 looks about 100 steps ahead: they \
count little then, and where an episode can end early, that may look best. Set gamma=0.999, or \
take a method that pays for steps at once (crossq-rrd, rrd).
    """
    gamma = method.gamma
    waits = isinstance(getattr(method.backbone, "credit", Revealed()), Revealed)
    if not waits or latest * (1 - gamma) <= 1 + 1e-9:  # 1 − 0.99 is a little more than 0.01
        return None
    enough = f"{1 - 0.5 / latest:.{len(str(latest))}f}"
    return (
        f"Rewards come up to {latest} steps late, but gamma = {gamma:g} looks about "
        f"{1 / (1 - gamma):.0f} steps ahead: they count little then, and where an episode can end "
        f"early, that may look best. Set gamma={enough}, or take a method that pays for steps at "
        "once (crossq-rrd, rrd)."
    )
