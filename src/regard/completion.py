"""Completion for shells: a static script, made from the parser itself, so that pressing tab starts no Python."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import Literal

Shell = Literal["bash", "zsh", "fish"]
HOW = {
    "bash": "# regard --completion bash > ~/.local/share/bash-completion/completions/regard",
    "zsh": '# regard --completion zsh > "${fpath[1]}/_regard"',
    "fish": "# regard --completion fish > ~/.config/fish/completions/regard.fish",
}


def script(shell: Shell, root: argparse.ArgumentParser) -> str:
    """The completions of every verb and flag of this parser."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](root)


def verbs_of(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """The parsers below this one, by name."""
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return groups[0].choices if groups else {}


def flags_of(parser: argparse.ArgumentParser) -> list[str]:
    """Every long flag."""
    return [word for action in parser._actions for word in action.option_strings if word.startswith("--")]


def _says(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Each verb below, and what it is for."""
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return {one.dest: one.help or "" for group in groups for one in group._choices_actions}


def _choices(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """The flags that take one of a few words, and these words."""
    listed = [action for action in parser._actions if action.option_strings and action.choices]
    return {word: [str(choice) for choice in action.choices or ()] for action in listed for word in action.option_strings}


def _bash(root: argparse.ArgumentParser) -> str:
    cases, values = [], []
    for verb, one in verbs_of(root).items():
        cases.append(f"    {verb}) words={_quoted(' '.join([*verbs_of(one), *flags_of(one)]))} ;;")
        values += [f"    {verb}:{flag}) words={_quoted(' '.join(choices))} ;;" for flag, choices in _choices(one).items()]
    return "\n".join(
        [
            HOW["bash"],
            "_regard() {",
            '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" verb="" words="" one',
            f"  local verbs={_quoted(' '.join(verbs_of(root)))}",
            '  for one in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
            '    case " $verbs " in *" $one "*) verb="$one"; break ;; esac',
            "  done",
            '  case "$verb:$before" in',
            *values,
            "  esac",
            '  if [ -z "$words" ]; then case "$verb" in',
            f'    "") words="$verbs "{_quoted(" ".join(flags_of(root)))} ;;',
            *cases,
            "  esac; fi",
            '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
            "}",
            "complete -o default -F _regard regard",
            "",
        ]
    )


def _zsh(root: argparse.ArgumentParser) -> str:
    lines = ["#compdef regard", HOW["zsh"], "local -a verbs", "verbs=("]
    lines += [f"  {_quoted(f'{verb}:{says}')}" for verb, says in _says(root).items()]
    lines += [")", "if (( CURRENT == 2 )); then", "  _describe verb verbs", f"  compadd -- {' '.join(flags_of(root))}", "  return", "fi"]
    lines.append('case "$words[2]" in')
    for verb, one in verbs_of(root).items():
        lines.append(f"  {verb})")
        lines += [
            f'    [[ "$words[CURRENT-1]" == {flag} ]] && {{ compadd -- {" ".join(few)}; return }}' for flag, few in _choices(one).items()
        ]
        lines.append(f"    compadd -- {' '.join([*verbs_of(one), *flags_of(one)])}; _files ;;")
    return "\n".join([*lines, "esac", ""])


def _fish(root: argparse.ArgumentParser) -> str:
    lines = [HOW["fish"]]
    lines += [f"complete -c regard -n __fish_use_subcommand -l {flag[2:]}" for flag in flags_of(root)]
    says = _says(root)
    for verb, one in verbs_of(root).items():
        lines.append(f"complete -c regard -n __fish_use_subcommand -f -a {verb} -d {_quoted(says.get(verb, ''))}")
        within = f"-n '__fish_seen_subcommand_from {verb}'"
        lines += [f"complete -c regard {within} -a {name}" for name in verbs_of(one)]
        few = _choices(one)
        for flag in flags_of(one):
            takes = f" -x -a {_quoted(' '.join(few[flag]))}" if flag in few else ""
            lines.append(f"complete -c regard {within} -l {flag[2:]}{takes}")
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    """In single quotes, which every shell leaves alone."""
    return "'" + re.sub("'", r"'\\''", text) + "'"
