"""`assent completion`: completion of commands and options in a shell."""

import click
from click.shell_completion import get_completion_class

VARIABLE = "_ASSENT_COMPLETE"
"""The variable by which the script asks `assent` for words."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands and options of `assent` in a shell.

    For bash, into ~/.bashrc: eval "$(assent completion bash)". For zsh, into ~/.zshrc: eval "$(assent completion zsh)". For fish:
    assent completion fish > ~/.config/fish/completions/assent.fish
    """
    of_shell = get_completion_class(shell)
    assert of_shell, f"click completes in {shell}"
    click.echo(of_shell(click.get_current_context().find_root().command, {}, "assent", VARIABLE).source())
