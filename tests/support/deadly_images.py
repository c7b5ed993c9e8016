"""Images that end the process that reads them. Nothing heavy is imported for them."""

from __future__ import annotations

import os
import signal

from shiftcal.datasets.arrays import ArrayImages


class DeadlyImages(ArrayImages):
    """Whichever process reads image 5 is killed."""

    def _image(self, index):
        if index == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return super()._image(index)

    def _images(self, indices):
        return None
