"""From the name of an encoder or ranker to its folder. Only files that hold no code are fetched or read."""

from __future__ import annotations

from pathlib import Path

from searchparty.errors import UserError, missing_package
from searchparty.file_digest import digest_files

_NEEDED = "config.json, the tokenizer's files (tokenizer.json or vocab.txt) and *.safetensors"


def model_folder(name: str) -> Path:
    """The folder of a model: a local one, or one of the Hugging Face hub, fetched unless it is there already.

    Raises:
        UserError: no such folder and not to be had from the hub, or a folder without the files that are needed.
    """
    folder = Path(name)
    if not folder.is_dir():
        folder = _fetched(name)
    if not any((place / "config.json").is_file() for place in (folder, folder / "0_Transformer")):
        raise UserError(f"{name}: no config.json there; a model's folder needs {_NEEDED}")
    if not any(folder.rglob("*.safetensors")):
        raise UserError(f"{name}: no *.safetensors there; other formats can carry code: save the weights as safetensors")
    return folder


def model_digest(folder: Path) -> str:
    """What the model is, wherever its folder lies: a fingerprint of its weights, settings and tokenizer."""
    return digest_files(folder, [path for path in folder.rglob("*") if path.suffix in (".json", ".txt", ".safetensors")])


def _fetched(name: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise missing_package("huggingface_hub", "dense", f"the model {name}") from None
    try:
        return Path(snapshot_download(name, allow_patterns=["*.json", "*.txt", "*.model", "*.safetensors"]))
    except Exception as error:
        reason = str(error).strip().split("\n")[0][:200]
        raise UserError(
            f"{name}: no such folder, and not to be had from the Hugging Face hub ({type(error).__name__}: {reason}); check the"
            f" name and the connection, or offline give a folder with {_NEEDED}"
        ) from None


def load_error(name: str, error: Exception) -> UserError:
    """What to say when a library does not take a model's files."""
    reason = str(error).strip().split("\n")[0][:200]
    return UserError(f"{name}: cannot be loaded ({type(error).__name__}: {reason}); its folder needs {_NEEDED}")
