"""A lesson as Markdown, with its outputs, and its figures as files beside it."""

from __future__ import annotations

from regard.lessons.running import Output, Ran
from regard.lessons.show import Frames
from regard.lessons.source import Cell, Claim, Part, Prose, Solution, solved
from regard.look.drawing import Drawing
from regard.look.printing import svg


def files(ran: Ran) -> dict[str, str]:
    """The texts of the page and of its figures, by their names."""
    name, texts, said = ran.lesson.name, {}, [f"# {ran.lesson.title}\n", f"*{ran.lesson.summary}*\n"]
    for part, output in ran.parts():
        said.append(words(part))
        if output.text:
            said.append(f"```text\n{output.text.rstrip()}\n```\n")
        if drawing := still(output):
            figure = f"{name}-{len(texts) + 1}.svg"
            texts[figure] = svg(drawing)
            said.append(f"![{drawing.name}]({figure})\n")
        if isinstance(output.figure, Frames):
            said.append(f"*{moving(output.figure)}*\n")
    return {f"{name}.md": "\n".join(said), **texts}


def words(part: Part) -> str:
    """One part, without what it gives when it runs."""
    match part:
        case Prose(text):
            return text
        case Cell(code):
            return f"```python\n{solved(code).rstrip()}\n```\n"
        case Solution(text):
            return f"<details><summary>Answer</summary>\n\n{text}\n</details>\n"
        case Claim(deck, claim, verdict, check):
            return f"> **Claim** (deck {deck}): {claim}\n>\n> **Verdict:** {verdict}\n>\n> **Check:** {check}\n"


def still(output: Output) -> Drawing | None:
    """What of a figure is to be seen on paper."""
    return output.figure.frames[output.figure.first] if isinstance(output.figure, Frames) else output.figure


def moving(frames: Frames) -> str:
    first, *_, last = frames.frames
    return f"{frames.name} = {frames.first}; on the page of `regard lessons` a slider goes from {first} to {last}."


def index(lessons: list[tuple[str, str, str]]) -> str:
    """The page that lists the course, from names, titles and summaries."""
    rows = "".join(f"{place}. [{title}]({name}.md): {summary}\n" for place, (name, title, summary) in enumerate(lessons, 1))
    return f"{INDEX}\n{rows}"


INDEX = """# A course that runs

One page a theme, each building on those before. Each is code with its output and its figures, made by the package itself and run anew by
the tests; nothing but the lectures is presupposed. In a browser, as notebooks, and for a class as notebooks with blanks:

```sh
regard lessons                                    # the list
regard lessons soft-look-up                       # one of them, in the browser
regard lessons --to course                        # all of them as pages that need no network
regard lessons soft-look-up --notebook --to course
regard lessons --notebook --blanks --to class     # what is to be found out is left out
```

Where a lecture says something that does not hold, or holds only in part, the lesson puts it as a claim, says what we think of it, and
lets a cell decide. Lectures are spoken, and slips in them are human: the point is to learn from them.
"""
