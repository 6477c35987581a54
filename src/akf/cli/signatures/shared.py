"""Arguments and options that several commands take in the same words.

`readable=False`: a file that may not be read is no usage error; the commands say what it is (exit 7).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder, made by init-run.", readable=False)]
CandidateArgument = Annotated[str, typer.Argument(metavar="CANDIDATE", help="Id of a submitted candidate.")]
KeysOption = Annotated[
    Path | None,
    typer.Option(
        "--keys", metavar="FOLDER", help="Folder of the role keys [AKF_KEYS, ~/.config/akf/keys].", readable=False
    ),
]
ReadyOption = Annotated[bool, typer.Option("--require-ready", help="Exit 10 unless the result is ready.")]
DataClassOption = Annotated[
    str, typer.Option("--data-class", metavar="CLASS", help="public, internal or confidential.")
]
RevisionOption = Annotated[
    str | None, typer.Option("--revision", metavar="REVISION", help="Version or commit of the framework.")
]
StepKernelOption = Annotated[
    str | None, typer.Option("--step-kernel", metavar="NAME", help="Cut steps where this kernel starts.")
]
