"""scikit-learn classifiers in ``.skops`` files."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shiftcal._optional import require
from shiftcal.errors import FileError, MissingData


def read_skops(path: str | Path, *, trusted: Sequence[str] = ()) -> Any:
    """What a ``.skops`` file holds, if all its types are known to be harmless.

    Those are the ones skops trusts by itself, of scikit-learn, numpy, scipy and Python; others must
    be named.

    Args:
        path: The file, made by ``skops.io.dump``.
        trusted: Further types that may be made, such as ``"my_package.MyTransformer"``. Whoever
            made the file decides what they are made with.

    Raises:
        FileError: If the file is missing or damaged, or holds other types; the message names them.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingData(f"{path} must be a .skops file; there is no file of that name.")
    skops = require("skops.io", extra="skops", needed_by="a .skops file")
    data = path.read_bytes()  # judged and loaded from the same bytes
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise FileError(
            f"{path} must be made by skops.io.dump; it is something else, such as a pickle, and "
            "was not opened. Load it yourself if you trust it, and pass the classifier."
        )
    try:
        unknown = sorted(set(skops.get_untrusted_types(data=data)) - set(trusted))
        if not unknown:
            return skops.loads(data, trusted=list(trusted))
    except Exception as error:  # skops raises what it likes for schemas it does not understand
        first = str(error).strip().partition("\n")[0]
        raise FileError(
            f"{path} could not be loaded by skops: {type(error).__name__}: {first}"
        ) from error
    raise FileError(
        f"{path} holds types that are not known to be harmless: {', '.join(unknown)}. It was not "
        f"loaded. If you know them, say so: sklearn:{path}?trusted={','.join(unknown)}"
    )
