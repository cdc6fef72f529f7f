"""Places where results are kept: a folder, or object storage (``s3://bucket/prefix``).

Both keep whole files under names: ``put`` shows a file whole or not at all, also to other machines.
"""

from __future__ import annotations

import functools
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate.errors import TidegateError
from tidegate.files import write_atomically

OBJECTS = ("s3://", "gs://", "az://")
_RETRIES = 4
_TIMEOUT = "20s"


class FileStore(ABC):
    """Files by name, such as ``parts/ab12.parquet``."""

    @abstractmethod
    def put(self, name: str, content: bytes) -> None:
        """Write a file, whole or not at all."""

    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """Return a file's content; None if there is no such file."""

    @abstractmethod
    def names(self, kind: str) -> list[str]:
        """Return the names that begin with ``kind/``."""

    @abstractmethod
    def remove(self, names: Iterable[str]) -> None:
        """Remove files; those that are gone already do not matter."""

    def check(self) -> None:
        """Raise TidegateError unless files can be written here."""
        probe = f"probe/{uuid.uuid4().hex}"
        self.put(probe, b"")
        self.remove([probe])


def place_of(given: str | Path | FileStore) -> FileStore:
    """Return the place that a text names."""
    if isinstance(given, FileStore):
        return given
    text = str(given)
    if text.startswith(OBJECTS):
        return Bucket(text)
    if "://" in text:
        raise TidegateError(f"store must be a folder or one of {', '.join(OBJECTS)}…, got {text}")
    return Folder(Path(text).absolute())


@dataclass(frozen=True)
class Folder(FileStore):
    """A folder; it is made when the first file is written."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def put(self, name: str, content: bytes) -> None:
        file = self.path / name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._cannot(error) from error
        write_atomically(file, content)

    def get(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._cannot(error) from error

    def names(self, kind: str) -> list[str]:
        try:
            found = os.listdir(self.path / kind)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._cannot(error) from error
        return sorted(f"{kind}/{name}" for name in found if not name.startswith("."))

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            (self.path / name).unlink(missing_ok=True)

    def check(self) -> None:
        super().check()
        (self.path / "probe").rmdir()

    def is_writable(self) -> bool:
        """Return whether files can be written here."""
        try:
            self.check()
        except TidegateError:
            return False
        return True

    def _cannot(self, error: OSError) -> TidegateError:
        return TidegateError(f"cannot use the store {self.path}: {error.strerror}; give another")


@dataclass(frozen=True)
class Bucket(FileStore):
    """Object storage, through obstore. Keys and the endpoint come from the usual variables of the
    environment, such as AWS_ACCESS_KEY_ID and AWS_ENDPOINT_URL.
    """

    url: str

    def __str__(self) -> str:
        return self.url

    def put(self, name: str, content: bytes) -> None:
        try:
            self._store.put(name, content)
        except Exception as error:
            raise self._cannot(error) from error

    def get(self, name: str) -> bytes | None:
        try:
            return bytes(self._store.get(name).bytes())
        except FileNotFoundError:  # obstore's NotFoundError is one
            return None
        except Exception as error:
            raise self._cannot(error) from error

    def names(self, kind: str) -> list[str]:
        try:
            found = [meta["path"] for page in self._store.list(f"{kind}/") for meta in page]
        except Exception as error:
            raise self._cannot(error) from error
        return sorted(found)

    def remove(self, names: Iterable[str]) -> None:
        try:
            for name in names:
                self._store.delete(name)
        except FileNotFoundError:
            pass
        except Exception as error:
            raise self._cannot(error) from error

    @property
    def _store(self) -> Any:
        return _open(self.url)

    def _cannot(self, error: Exception) -> TidegateError:
        said = " ".join(str(error).split())[:200]
        return TidegateError(
            f"cannot use the store {self.url}: {said}; check its name, the network and your keys"
        )


@functools.cache
def _open(url: str) -> Any:
    try:
        from obstore.store import from_url
    except ImportError as error:
        raise TidegateError(f"the store {url} needs obstore; install tidegate[cluster]") from error
    plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
    retries: Any = {"max_retries": _RETRIES}
    options: Any = {"timeout": _TIMEOUT, "allow_http": plain}
    try:
        return from_url(url, client_options=options, retry_config=retries)
    except Exception as error:
        raise TidegateError(f"cannot use the store {url}: {error}") from error
