"""OpenSearch and Elasticsearch through their official clients, as the few calls that a store needs. Knows nothing of passages.

Every call makes one attempt until a deadline and raises Trouble; the clients' own retries are off.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from searchparty.errors import FailureKind, UserError, missing_package
from searchparty.http_calls import TOKEN_VARIABLE
from searchparty.retrieval.retrying import Trouble
from searchparty.retrieval.stores.address import StoreAddress

_SEARCH_TYPE = "dfs_query_then_fetch"
"""Counts words over all shards, so that scores do not depend on which shard holds a passage."""


class Engine(Protocol):
    """One index of one server."""

    def metadata(self, deadline: float) -> Mapping[str, Any] | None:
        """The `_meta` of the mapping; None if there is no such index."""

    def create(self, body: Mapping[str, Any], deadline: float) -> None:
        """Make the index."""

    def delete(self, deadline: float) -> None:
        """Remove the index."""

    def bulk(self, lines: Sequence[Mapping[str, Any]], deadline: float) -> Mapping[str, Any]:
        """Put documents in: an action and a document by turns."""

    def keep_metadata(self, metadata: Mapping[str, Any], deadline: float) -> None:
        """Make all documents findable and set the `_meta`."""

    def search(self, bodies: Sequence[Mapping[str, Any]], deadline: float) -> Mapping[str, Any]:
        """Several searches in one request."""

    def close(self) -> None:
        """Close the connections."""


class OpenSearchEngine:
    """An `Engine` through opensearch-py, extra `opensearch`. The token is `user:password`."""

    def __init__(self, address: StoreAddress, token: str | None) -> None:
        try:
            import opensearchpy
        except ImportError:
            raise missing_package("opensearch-py", "opensearch", str(address)) from None
        if token is not None and ":" not in token:
            raise UserError(f"{TOKEN_VARIABLE}: OpenSearch takes user:password")
        login = tuple(token.split(":", 1)) if token else None
        self._errors = opensearchpy.exceptions
        self._index = address.collection
        self._client = opensearchpy.OpenSearch([address.place], http_auth=login, max_retries=0, retry_on_timeout=False)

    def metadata(self, deadline: float) -> Mapping[str, Any] | None:
        """The `_meta` of the mapping; None if there is no such index."""
        found = self._call(self._client.indices.get_mapping, deadline, none_if_missing=True, index=self._index)
        return None if found is None else _meta(found)

    def create(self, body: Mapping[str, Any], deadline: float) -> None:
        """Make the index."""
        self._call(self._client.indices.create, deadline, index=self._index, body=body)

    def delete(self, deadline: float) -> None:
        """Remove the index."""
        self._call(self._client.indices.delete, deadline, index=self._index)

    def bulk(self, lines: Sequence[Mapping[str, Any]], deadline: float) -> Mapping[str, Any]:
        """Put documents in: an action and a document by turns."""
        return dict(self._call(self._client.bulk, deadline, index=self._index, body=list(lines)))

    def keep_metadata(self, metadata: Mapping[str, Any], deadline: float) -> None:
        """Make all documents findable and set the `_meta`."""
        self._call(self._client.indices.refresh, deadline, index=self._index)
        self._call(self._client.indices.put_mapping, deadline, index=self._index, body={"_meta": metadata})

    def search(self, bodies: Sequence[Mapping[str, Any]], deadline: float) -> Mapping[str, Any]:
        """Several searches in one request."""
        lines = [line for body in bodies for line in ({}, body)]
        more = {"search_type": _SEARCH_TYPE}
        return dict(self._call(self._client.msearch, deadline, index=self._index, body=lines, params=more))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _call(self, method: Any, deadline: float, *, none_if_missing: bool = False, **arguments: Any) -> Any:
        params = {**arguments.pop("params", {}), "request_timeout": _left(deadline)}
        try:
            return method(**arguments, params=params)
        except self._errors.ConnectionTimeout as error:
            raise Trouble(FailureKind.TIMEOUT, str(error)) from error
        except self._errors.ConnectionError as error:
            raise Trouble(FailureKind.UNREACHABLE, str(error)) from error
        except self._errors.TransportError as error:
            status = error.status_code if isinstance(error.status_code, int) else 500
            if status == 404 and none_if_missing:
                return None
            raise Trouble.of_status(status, str(error)) from error
        except self._errors.SerializationError as error:
            raise Trouble(FailureKind.MALFORMED_REPLY, str(error), alive=True) from error


class ElasticsearchEngine:
    """An `Engine` through elasticsearch-py, extra `elasticsearch`. The token is an API key."""

    def __init__(self, address: StoreAddress, token: str | None) -> None:
        try:
            import elasticsearch
        except ImportError:
            raise missing_package("elasticsearch", "elasticsearch", str(address)) from None
        self._errors = elasticsearch
        self._index = address.collection
        self._client = elasticsearch.Elasticsearch([address.place], api_key=token, max_retries=0, retry_on_timeout=False)

    def metadata(self, deadline: float) -> Mapping[str, Any] | None:
        """The `_meta` of the mapping; None if there is no such index."""
        found = self._call("indices.get_mapping", deadline, none_if_missing=True, index=self._index)
        return None if found is None else _meta(found)

    def create(self, body: Mapping[str, Any], deadline: float) -> None:
        """Make the index."""
        self._call("indices.create", deadline, index=self._index, **body)

    def delete(self, deadline: float) -> None:
        """Remove the index."""
        self._call("indices.delete", deadline, index=self._index)

    def bulk(self, lines: Sequence[Mapping[str, Any]], deadline: float) -> Mapping[str, Any]:
        """Put documents in: an action and a document by turns."""
        return dict(self._call("bulk", deadline, index=self._index, operations=list(lines)))

    def keep_metadata(self, metadata: Mapping[str, Any], deadline: float) -> None:
        """Make all documents findable and set the `_meta`."""
        self._call("indices.refresh", deadline, index=self._index)
        self._call("indices.put_mapping", deadline, index=self._index, meta=metadata)

    def search(self, bodies: Sequence[Mapping[str, Any]], deadline: float) -> Mapping[str, Any]:
        """Several searches in one request."""
        lines = [line for body in bodies for line in ({}, body)]
        return dict(self._call("msearch", deadline, index=self._index, searches=lines, search_type=_SEARCH_TYPE))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _call(self, name: str, deadline: float, *, none_if_missing: bool = False, **arguments: Any) -> Any:
        method: Any = self._client.options(request_timeout=_left(deadline))
        for part in name.split("."):
            method = getattr(method, part)
        try:
            return method(**arguments)
        except self._errors.ConnectionTimeout as error:
            raise Trouble(FailureKind.TIMEOUT, str(error)) from error
        except self._errors.SerializationError as error:
            raise Trouble(FailureKind.MALFORMED_REPLY, str(error), alive=True) from error
        except self._errors.TransportError as error:
            cause = error.errors[-1] if error.errors else error
            raise Trouble(FailureKind.UNREACHABLE, f"{type(cause).__name__}: {cause}") from error
        except self._errors.ApiError as error:
            if error.status_code == 404 and none_if_missing:
                return None
            raise Trouble.of_status(error.status_code, str(error)) from error


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.001)


def _meta(mappings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata out of a mapping, whose key is another one where the index is named by an alias."""
    [mapping] = mappings.values()
    return dict(mapping["mappings"].get("_meta", {}))
