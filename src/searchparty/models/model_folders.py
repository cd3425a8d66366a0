"""Where a model's files are: a folder, a name on the Hugging Face hub, or a GGUF file that is converted once into a cache.

Knows files and hashes; loads no model.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from searchparty.errors import UserError, missing_package
from searchparty.file_digest import digest_files
from searchparty.files import read_json, require_file

CONVERTER_VERSION = 1
"""Part of the name of a converted folder: raise it when the conversion gives other files."""


def check_model_folder(folder: Path) -> Path:
    """`folder` if it holds config, tokenizer and safetensors weights; UserError naming what is missing."""
    if not (folder / "config.json").is_file():
        raise UserError(f"{folder}: no config.json; a model folder needs config.json, tokenizer.json and *.safetensors")
    if not (folder / "tokenizer.json").is_file():
        raise UserError(f"{folder}: no tokenizer.json; save the tokenizer (a fast one) into the folder with save_pretrained")
    if not any(folder.glob("*.safetensors")):
        raise UserError(f"{folder}: no *.safetensors; other formats can carry code: save the weights as safetensors")
    return folder


def trained_model(reference: str) -> Path:
    """The model folder that `run:DIR` (the last model that the run made) or `run:DIR#STAGE` names.

    Raises:
        UserError: no finished stage there.
    """
    place, _, stage = reference.removeprefix("run:").partition("#")
    run = Path(place).expanduser()
    finished = {path.parent.name: path for path in sorted(run.glob("stages/*/result.json"))}
    results = {name: read_json(path, lambda value: dict(value)) for name, path in finished.items()}
    made = {name: result for name, result in results.items() if result.get("model")}
    if stage and stage not in made:
        raise UserError(f"{reference}: no model of that stage; finished stages with a model: {', '.join(made) or 'none'}")
    if not made:
        raise UserError(f"{reference}: no model there; train one, or finish the run with --resume")
    name = stage or max(made, key=lambda name: int(made[name]["number"]))
    return run / str(made[name]["model"])


def model_identity(folder: Path) -> str:
    """A fingerprint of config, tokenizer and weights: `sha256:` and 16 digits.

    Weight files above 1 GiB go in by their size, their header and 1,024 samples spread over them: any training step changes it,
    a single altered weight may not.
    """
    return digest_files(folder, [folder / "config.json", folder / "tokenizer.json", *folder.glob("*.safetensors")])


def fetch_model(name: str) -> Path:
    """The local folder of a model on the Hugging Face hub, fetched unless it is there already."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise missing_package("huggingface_hub", "train", f"--model {name}") from None
    try:
        folder = snapshot_download(name, allow_patterns=["*.json", "*.safetensors", "*.jinja", "*.txt"])
    except Exception as error:
        reason = str(error).strip().split("\n")[0][:200]
        raise UserError(
            f"--model {name}: no such folder, and not to be had from the Hugging Face hub ({type(error).__name__}: {reason}); "
            "check the name and the connection"
        ) from None
    return Path(folder)


def cache_folder() -> Path:
    """Where converted models are kept: `searchparty` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "searchparty"


def convert_gguf(path: Path) -> Path:
    """The folder with the converted GGUF file; converted on first use, then found by the file's sha256.

    Two processes may do this at once: each writes a folder of its own, and the first to finish gives it its name.
    """
    with require_file(path).open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    target = cache_folder() / "gguf" / f"{path.stem}-{digest[:16]}-v{CONVERTER_VERSION}"
    if target.is_dir():
        return target
    try:
        from searchparty.models.gguf_conversion import convert
    except ImportError as error:
        raise missing_package(error.name or "transformers", "train", f"reading {path.name}") from None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    except OSError as error:
        raise UserError(
            f"{target.parent}: cannot be written ({error.strerror}); set XDG_CACHE_HOME to another folder"
        ) from None
    try:
        convert(path, unfinished)
        unfinished.rename(target)
    except OSError as error:
        if not target.is_dir():
            raise UserError(f"{target}: cannot be written ({error.strerror}); nothing was left behind") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return target
