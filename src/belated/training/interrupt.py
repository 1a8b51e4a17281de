"""Ctrl-C and SIGTERM between two steps instead of in the middle of one."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

TERMINATED = 128 + signal.SIGTERM
"""The exit code of a process that was asked to go."""


class Interrupted(BaseException):
    """Something that may be left in the middle, such as an evaluation, was."""


class Interrupt:
    """Whether somebody asked to stop, and how."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.left_evaluation = False
        """Whether an evaluation was left out, or in the middle, because of it."""
        self._at_once = False

    @property
    def requested(self) -> bool:
        """Whether somebody did."""
        return self.signal is not None

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Do not wait for the end of what follows.

        Raises:
            Interrupted: in the middle of it, if somebody asks to stop.
        """
        if self.requested:
            raise Interrupted
        self._at_once = True
        try:
            yield
        finally:
            self._at_once = False

    def note(self, number: int) -> None:
        """Remember a signal."""
        self.signal = number
        if self._at_once:
            self._at_once = False
            raise Interrupted

    def leave(self) -> None:
        """End as somebody wished, after all was saved.

        Raises:
            KeyboardInterrupt: after Ctrl-C.
            SystemExit: after SIGTERM, with its exit code.
        """
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signal == signal.SIGTERM:
            raise SystemExit(TERMINATED)


@contextmanager
def deferred_interrupt() -> Iterator[Interrupt]:
    """Note Ctrl-C and SIGTERM instead of acting on them; a second one acts as usual.

    SIGTERM is left alone where somebody else handles it.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt  # only the main thread gets signals
        return
    previous = {signal.SIGINT: signal.getsignal(signal.SIGINT)}
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        previous[signal.SIGTERM] = signal.SIG_DFL

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    process = os.getpid()

    def note(number: int, frame: FrameType | None) -> None:
        restore()
        if os.getpid() != process:  # a child that was forked meanwhile: not its business
            signal.raise_signal(number)
            return
        interrupt.note(number)

    for number in previous:
        signal.signal(number, note)
    try:
        yield interrupt
    finally:
        restore()
