"""Performs the actions of `--on`, and `--stop-on leak`, once for each crossing."""

from __future__ import annotations

import platform
import signal
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from typing import Any

from memdiag.cli.measurement.action_process import ActionProcess
from memdiag.cli.options.actions import (
    LEVEL_OF,
    Action,
    Execute,
    Level,
    Note,
    Reaction,
    SendSignal,
    Stop,
    Webhook,
)
from memdiag.cli.output.messages import say
from memdiag.errors import CannotMeasure
from memdiag.report.sections import threshold_events
from memdiag.report.text.screen import Screen
from memdiag.values.measurements import Mark

_SCREEN = Screen(width=80)


def action_process(
    reactions: Sequence[Reaction], signal_mask: Collection[int]
) -> ActionProcess | None:
    """The process for the actions that need one; None if none does. Raises CannotMeasure."""
    actions = [r.action for r in reactions if isinstance(r.action, Execute | Webhook)]
    if not actions:
        return None
    try:
        return ActionProcess(actions, signal_mask=signal_mask)
    except OSError as error:
        raise CannotMeasure(f"the actions of --on cannot be prepared: {error.strerror}") from error


class Guard:
    """What happens when memory reaches a level.

    stops_at: the level whose action is to stop the job, once it was reached.
    """

    def __init__(
        self,
        reactions: Sequence[Reaction],
        process: ActionProcess | None,
        send: Callable[[signal.Signals], bool],
    ) -> None:
        """send: sends a signal to the main process, and returns False if that failed."""
        self._reactions = reactions
        self._process = process
        self._send = send
        self._notes: list[str] = []
        self.stops_at: Level | None = None

    def wants(self, level: Level) -> bool:
        """Return True if something is to be done at this level."""
        return any(one.level is level for one in self._reactions)

    def crossed(self, mark: Mark, about: dict[str, Any]) -> None:
        """A threshold was crossed. about: further facts."""
        said = threshold_events.live(mark, _SCREEN)
        say(said)
        facts = {**asdict(mark), "level": LEVEL_OF[mark.level].value}
        self._act(LEVEL_OF[mark.level], said, {**facts, **about}, already_said=True)

    def leaks(self, said: str, about: dict[str, Any]) -> None:
        """The leak is confirmed."""
        self._act(Level.LEAK, said, {"level": Level.LEAK.value, **about})

    def finish(self) -> tuple[str, ...]:
        """Wait for the actions. Returns what was done, for the recording."""
        if self._process is not None:
            self._notes += self._process.finish()
        return tuple(self._notes)

    def _act(
        self, level: Level, said: str, facts: dict[str, Any], *, already_said: bool = False
    ) -> None:
        facts = {**facts, "message": said, "host": platform.node()}
        actions = dict.fromkeys(one.action for one in self._reactions if one.level is level)
        if actions and not already_said:
            say(said)
        for action in actions:
            done = self._perform(action, level, facts)
            if done:
                self._notes.append(f"{level.value}: {done}")

    def _perform(self, action: Action, level: Level, facts: dict[str, Any]) -> str:
        """Perform an action; returns what to note at once, "" if the outcome is noted later."""
        match action:
            case Note():
                return ""
            case Stop():
                self.stops_at = self.stops_at or level
                say(f"{level.value}: ending the job (--on {level.value}=stop)")
                return "the job was ended"
            case SendSignal(number):
                done = self._send(number)
                text = f"{number.name} was {'' if done else 'not '}sent to process {facts['pid']}"
                say(text)
                return text
            case Execute() | Webhook():
                started = self._process is not None and self._process.start(action, facts)
                return "" if started else "an action could not be started"
