"""A ``torch.export`` file, taken apart and put together again from what was found harmless."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shiftcal.errors import FileError
from shiftcal.models._pt2_graph import checked_graph

_GRAPH = "models/model.json"
_TENSORS = {
    "data/weights/model_weights_config.json": re.compile(r"weight_\d+"),
    "data/constants/model_constants_config.json": re.compile(r"tensor_\d+"),
}


def checked_archive(path: Path) -> io.BytesIO:
    """The file's network and its tensors as a new archive that holds nothing else.

    ``torch.export.load`` unpickles whatever an archive marks as pickled, its sample inputs, and
    every older format; it loads compiled libraries; and it runs text of the graph as Python. None
    of this is copied: tensors come as plain bytes, sample inputs are left out, and the graph is
    checked by :func:`checked_graph`. torch sees the new archive only, so that two readers of a zip
    file cannot disagree about what is in it.

    Raises:
        FileError: If the file is missing, something else, or needs what is left out.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            records = _records(archive)
            made = dict(_checked(archive, records))
    except FileError as error:
        raise FileError(
            f"{path} {error}, and was not loaded. Save the network with torch.export.save, torch "
            "2.9 or later, or pass the module itself."
        ) from error
    except (zipfile.BadZipFile, OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise FileError(f"{path} is not a file of torch.export.save: {error}") from error
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in made.items():
            # Made so, a record has no time of day in it: equal files give equal bytes.
            archive.writestr(zipfile.ZipInfo(f"model/{name}"), data)
    buffer.seek(0)
    return buffer


def _records(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Every record by its name below the folder that all lie in."""
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.partition("/")[2]
        if name in found:
            raise FileError(f"holds {name!r} twice")
        found[name] = info
    if _GRAPH not in found or not all(name in found for name in _TENSORS):
        compiled = any(name.startswith("data/aotinductor/") for name in found)
        raise FileError(f"holds {'compiled code' if compiled else 'no network of torch.export'}")
    return found


def _checked(
    archive: zipfile.ZipFile, records: dict[str, zipfile.ZipInfo]
) -> Iterator[tuple[str, bytes | str]]:
    yield "archive_format", "pt2"
    yield "archive_version", archive.read(records["archive_version"])
    yield ".data/version", "3\n"
    yield "byteorder", "little"
    yield _GRAPH, json.dumps(checked_graph(json.loads(archive.read(records[_GRAPH]))))
    yield "data/sample_inputs/model.pt", b""
    for name, rule in _TENSORS.items():
        described = json.loads(archive.read(records[name]))
        files = {_file_of(tensor, rule) for tensor in described["config"].values()}
        yield name, json.dumps(described)
        for file in sorted(files):
            record = name.rpartition("/")[0] + "/" + file
            yield record, archive.read(records[record])


def _file_of(tensor: dict[str, Any], rule: re.Pattern[str]) -> str:
    file = tensor["path_name"]
    if tensor["use_pickle"] is not False:
        raise FileError(f"holds {file!r} as a pickle")
    if rule.fullmatch(file) is None:
        raise FileError(f"holds {file!r}, which is no tensor")
    return str(file)
