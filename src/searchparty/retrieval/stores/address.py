"""How a recipe names a collection in a search server: `qdrant+http://host:6333/wiki`, `opensearch+https://host:9200/wiki`, …"""

from __future__ import annotations

from dataclasses import dataclass

from searchparty.errors import UserError
from searchparty.http_calls import read_address

KINDS = ("qdrant", "opensearch", "elasticsearch")
STORE_PREFIXES = tuple(f"{kind}+" for kind in KINDS)
"""What the name of a collection in a search server begins with."""


@dataclass(frozen=True)
class StoreAddress:
    """A collection and where it is.

    Attributes:
        kind: the program that holds it, one of `KINDS`.
        place: `http://host:port`, or for Qdrant's local mode a folder.
        is_folder: which of the two.
        collection: name of the collection, or index.
    """

    kind: str
    place: str
    is_folder: bool
    collection: str

    def __str__(self) -> str:
        return f"{self.kind}+{'file:' if self.is_folder else ''}{self.place}/{self.collection}"


def parse_store_address(text: str, secret_variable: str) -> StoreAddress:
    """Take an address apart.

    Args:
        text: `KIND+http://host:port/COLLECTION`, or `qdrant+file:FOLDER/COLLECTION` for Qdrant's local mode.
        secret_variable: the environment variable that holds what would otherwise be put into the address.

    Raises:
        UserError: it is none of these.
    """
    kind, _, rest = text.partition("+")
    place, _, collection = rest.rstrip("/").rpartition("/")
    if kind not in KINDS:
        raise UserError(
            f"{text}: not the address of a collection; give one of {', '.join(KINDS)}, then +http://host:port/COLLECTION"
        )
    if rest.startswith("file:"):
        if kind != "qdrant":
            raise UserError(f"{text}: only qdrant has a local mode; give {kind}+http://host:port/COLLECTION")
        folder = place.removeprefix("file:")
        if not folder or not collection:
            raise UserError(f"{text}: give qdrant+file:FOLDER/COLLECTION")
        return StoreAddress(kind, folder, True, collection)
    parts = read_address(rest, secret_variable)
    if kind == "elasticsearch" and parts.port is None:  # its client has no port of its own choice
        raise UserError(f"{kind}+{parts.scheme}://{parts.netloc}: names no port; give {kind}+http://host:port/COLLECTION")
    if not collection or parts.path.strip("/") == "":
        raise UserError(f"{kind}+{parts.scheme}://{parts.netloc}: names no collection; give {kind}+http://host:port/COLLECTION")
    return StoreAddress(kind, place, False, collection)
