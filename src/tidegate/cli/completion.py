"""tidegate completion: what a shell needs to complete verbs and options."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer

VARIABLE = "_TIDEGATE_COMPLETE"  # the shell sets it when it asks


class Shell(StrEnum):
    """Shells that are known."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="Your shell.", show_default=False)],
) -> None:
    """Print a script that completes verbs and options with the Tab key.

    tidegate completion bash >> ~/.bashrc
    tidegate completion zsh >> ~/.zshrc
    tidegate completion fish > ~/.config/fish/completions/tidegate.fish
    """
    from typer.completion import get_completion_script

    print(get_completion_script(prog_name="tidegate", complete_var=VARIABLE, shell=shell.value))


def prepare_completion() -> None:
    """Let Typer answer a shell that asks for completions, and do nothing otherwise."""
    if VARIABLE in os.environ:
        from typer.completion import completion_init

        completion_init()
