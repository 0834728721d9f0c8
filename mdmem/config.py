"""Settings in layers: option, environment, user file, repository file, default.

A pulled repository is data: what could run a program, reach the network or read a path is taken
from the user's own side only, and a repository that tries is answered with a notice.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mdmem.errors import MdmemError, UsageError

# Every setting with its default. The type of the default is the type of the setting.
DEFAULTS: dict[str, Any] = {
    "agent": "",
    "device": "",
    "default_store": "",
    "recall.limit": 5,
    "recall.fusion": "minmax",
    "recall.bm25_weight": 0.45,
    "recall.decay_window": "45d",
    "recall.graph": True,
    "recall.languages": True,
    "recall.conversations": True,
    "recall.speakers": True,
    "recall.common": True,
    "recall.standing": True,
    "recall.length": False,
    "recall.diversity": True,
    "recall.mmr": False,
    "recall.routing": False,
    "recall.synonyms": True,
    "lifecycle.decay": "weibull",
    "lifecycle.half_life": "30d",
    "rerank.backend": "off",
    "rerank.path": "",
    "rerank.base_url": "",
    "rerank.model": "",
    "rerank.api_key_env": "",
    "embedding.backend": "bundled",
    "embedding.path": "",
    "embedding.base_url": "",
    "embedding.model": "",
    "embedding.dimensions": 0,
    "embedding.query_prefix": "",
    "embedding.passage_prefix": "",
    "embedding.query_task": "",
    "embedding.passage_task": "",
    "embedding.api_key_env": "",
    "embedding.threads": 1,
    "index.engine": "whoosh",
    # The shared index, with engine = "milvus".
    "index.uri": "",
    "index.token_env": "",
    "index.collection": "mdmem",
    "index.repositories": "",
    "index.share": "others",
    "index.wait": 3.0,
    "llm.backend": "none",
    "llm.base_url": "",
    "llm.model": "",
    "llm.api_key_env": "",
    "llm.key_command": "",
    "llm.command": "",
    "llm.timeout": 60.0,
    "llm.patience": 8.0,
    "llm.max_tokens": 2000,
    "llm.daily_calls": 200,
    "llm.daily_cost": 0.0,
    "serve": "auto",
    # What is drawn from a session at its end.
    "extract.auto": True,
    "extract.min_messages": 4,
    "extract.max_chars": 60000,
    "extract.max_facts": 20,
    "extract.tasks": "propose",
    # What hooks put into an agent's context: on, off, or own (only what this device wrote).
    "hooks.inject": "on",
    "hooks.token_budget": 2000,
    "hooks.capture": True,
}

# Texts that must be one of a few, or of one form: regular expressions.
CHOICES: dict[str, str] = {
    "recall.fusion": "minmax|rrf",
    "recall.decay_window": "off|none|[1-9][0-9]*(h|d|w|mo|y)",
    "lifecycle.decay": "weibull|exponential",
    "lifecycle.half_life": "[1-9][0-9]*(h|d|w|mo|y)",
    "rerank.backend": "off|none|onnx|http",
    "index.engine": "whoosh|tantivy|milvus",
    "index.share": "others|all",
    "llm.backend": "none|off|openai|anthropic|command",
    "embedding.backend": "bundled|onnx|openai|http|none|off",
    "hooks.inject": "on|off|own",
    "extract.tasks": "propose|apply|off",
}

# What a repository's .mdmem.toml may set; everything else there is ignored with a notice.
SHARED: frozenset[str] = frozenset(
    {"recall.limit", "recall.fusion", "recall.bm25_weight", "recall.decay_window", "recall.graph", "recall.languages"}
    | {
        f"recall.{name}"
        for name in ("common", "speakers", "conversations", "standing", "length", "diversity", "mmr", "routing", "synonyms")
    }
)

# Tables that are not settings: read by the room that owns them.
USER_TABLES = frozenset({"folders", "stores", "agents"})
REPOSITORY_TABLES = frozenset({"agents", "format", "store"})


def config_home() -> Path:
    """Return the folder of the user's configuration."""
    return _home("XDG_CONFIG_HOME", ".config") / "mdmem"


def data_home() -> Path:
    """Return the folder of what must outlive a clone: device id, trusted stores, local notes."""
    return _home("XDG_DATA_HOME", ".local/share") / "mdmem"


def _home(variable: str, below: str) -> Path:
    named = os.environ.get(variable, "")
    if named and os.path.isabs(named):
        return Path(named)
    try:
        return Path.home() / below
    except RuntimeError:
        # No HOME and no passwd entry: a folder of this user's own in the temporary directory.
        import tempfile

        return Path(tempfile.gettempdir()) / f"mdmem-{os.getuid() if hasattr(os, 'getuid') else 'user'}" / below


def runtime_dir() -> Path:
    """Return a 0700 folder of this user's own for sockets; creates it. Raises MdmemError when it is not ours."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(base) / "mdmem" if base and os.path.isdir(base) else data_home() / "run"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = os.lstat(folder)
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        raise MdmemError(f"the folder {folder} belongs to another user", hint="set XDG_RUNTIME_DIR")
    return folder


def user_file() -> Path:
    """Return the path of the user's configuration file (it need not exist)."""
    return config_home() / "config.toml"


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return {"a.b": value} for nested tables; lists and scalars are values."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat.update(flatten(value, name + "."))
        else:
            flat[name] = value
    return flat


def read_plain(path: str | os.PathLike[str], limit: int = 1 << 20) -> bytes:
    """Return up to `limit` + 1 bytes of a regular file. Raises OSError, also for a pipe or a device: reading those may never
    end."""
    flags = (getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
    descriptor = os.open(path, os.O_RDONLY | sum(flags))
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
            raise OSError(code, os.strerror(code) if code == errno.EISDIR else "this is not a regular file", str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            return stream.read(limit + 1)
    finally:
        os.close(descriptor)


def read_toml(path: Path, limit: int = 1 << 20) -> dict[str, Any]:
    """Return the tables of a TOML file, {} when it is absent; raises MdmemError when it is broken or too large."""
    import tomllib

    try:
        data = read_plain(path, limit)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise MdmemError(f"cannot read {path}", why=error.strerror or str(error)) from error
    if len(data) > limit:
        raise MdmemError(f"{path} is larger than {limit} bytes")
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MdmemError(f"cannot read {path}", why=str(error), hint=f"mend {path} in an editor", code="bad_config") from error


_KIND = {int: "a whole number", float: "a number", bool: "true or false", list: "a list"}


def coerce(name: str, value: Any) -> Any:
    """Return `value` in the type of the setting `name`; raises UsageError when it does not fit."""
    default = DEFAULTS[name]
    if isinstance(default, bool):
        if isinstance(value, bool):
            return value
        word = str(value).strip().lower()
        if word in ("1", "true", "yes", "on"):
            return True
        if word in ("0", "false", "no", "off"):
            return False
    elif isinstance(default, list):
        return list(value) if isinstance(value, list) else [part.strip() for part in str(value).split(",") if part.strip()]
    elif isinstance(default, (int, float)):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            number = type(default)(value)
            if number == number and number not in (float("inf"), float("-inf")):
                return number
    elif isinstance(value, (str, int, float)):
        allowed = CHOICES.get(name)
        if allowed is None or re.fullmatch(allowed, str(value).strip().lower()):
            return str(value)
        raise UsageError(f"{name} cannot be {value!r}", why=f"it must be like {allowed.replace('|', ' or ')}")
    raise UsageError(f"{name} cannot be {value!r}", why=f"it is {_KIND.get(type(default), 'text')}, such as {default!r}")


@dataclass
class Config:
    """The settings in force. `user` and `repository` keep the whole files for tables of their own."""

    values: dict[str, Any] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)
    user: dict[str, Any] = field(default_factory=dict)
    repository: dict[str, Any] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)

    def get(self, name: str) -> Any:
        """Return the value of a setting; raises UsageError for an unknown name."""
        if name in self.values:
            return self.values[name]
        if name in DEFAULTS:
            return DEFAULTS[name]
        raise UsageError(f"no setting is named {name}", hint="mdmem config list")

    def source(self, name: str) -> str:
        """Return where the value comes from: option, environment, user, repository or default."""
        return self.origin.get(name, "default")

    def _put(self, name: str, value: Any, origin: str) -> None:
        try:
            self.values[name] = coerce(name, value)
            self.origin[name] = origin
        except UsageError as error:
            self.notices.append(f"{error} ({origin}); using {self.get(name)!r}")


def load_config(root: Path | None = None, options: Mapping[str, Any] | None = None) -> Config:
    """Return the settings for the store at `root` (None: no store). A broken user file raises; a broken
    repository file is a notice, because a pulled file must not stop a command."""
    config = Config(user=read_toml(user_file()))
    if root is not None:
        try:
            config.repository = read_toml(root / ".mdmem.toml")
        except MdmemError as error:
            config.notices.append(str(error))
    for name, value in flatten(config.repository).items():
        if name.split(".")[0] in REPOSITORY_TABLES:
            continue
        if name in SHARED:
            config._put(name, value, "repository")
        elif name in DEFAULTS or name.split(".")[0] in USER_TABLES:
            config.notices.append(f".mdmem.toml names {name!r}, which only the user's own configuration may set; ignored")
        else:
            config.notices.append(f".mdmem.toml names {name!r}, which this mdmem does not know; ignored")
    for name, value in flatten({k: v for k, v in config.user.items() if k not in USER_TABLES}).items():
        if name in DEFAULTS:
            config._put(name, value, "user")
        else:
            config.notices.append(f"{user_file()} has an unknown setting {name!r}")
    for name in DEFAULTS:
        variable = "MDMEM_" + name.upper().replace(".", "_")
        if variable in os.environ:
            config._put(name, os.environ[variable], "environment")
    for name, value in (options or {}).items():
        if value is not None:
            config._put(name, value, "option")
    return config


def write_crash_log(text: str) -> str:
    """Write a redacted report for an unexpected error; returns its path, or `(no log: …)`."""
    import platform

    from mdmem import __version__

    try:
        from mdmem.notes.redact import redact

        text = redact(text).text
    except Exception:
        text = "(the report could not be redacted and was left out)\n"
    head = f"mdmem {__version__}, Python {platform.python_version()}, {sys.platform}\n\n"
    try:
        folder = data_home() / "log"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / f"crash-{os.urandom(4).hex()}.txt"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(head + text)
        return str(path)
    except OSError as error:
        return f"(no log: {error.strerror})"
