"""`dyno completion`: the script by which a shell completes verbs and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_DYNO_COMPLETE"
"""By which the script asks the command; click makes the name from that of the program."""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script of a SHELL.

    \b
      bash  dyno completion bash > ~/.local/share/bash-completion/completions/dyno
      zsh   dyno completion zsh  > ~/.local/share/zsh/site-functions/_dyno
      fish  dyno completion fish > ~/.config/fish/completions/dyno.fish
    """
    made = get_completion_class(shell)
    assert made is not None  # click knows all SHELLS
    click.echo(made(context.find_root().command, {}, "dyno", VARIABLE).source())
