"""Files that stand for cards, images to put on them, and both compared."""

import hashlib
import random

from evmperf.lab.provision import writer

MIB = 1 << 20
USED = 0xA5
"""Every byte of a card that has been used."""
SHELL = ["sh", "-c", 'exec sh -c "$*"', "_"]
"""What ssh does with its words, without a network."""


class Image:
    """What a way needs of an image: random data at its start and end, and zeros between."""

    def __init__(self, file, size=5 * MIB + 1536):
        draw = random.Random(size)
        self.data = draw.randbytes(size // 2) + bytes(size // 4)
        self.data += draw.randbytes(size - len(self.data))
        file.write_bytes(self.data)
        self.content = self.file = file
        self.name = file.name
        self.size, self.content_sha256 = size, hashlib.sha256(self.data).hexdigest()


def used_card(file, size):
    file.write_bytes(bytes([USED]) * size)
    return file


def put(image, card, begins=lambda: None, prefix=(), spoil=None):
    """Write an image as `evmperf image show --write`; `spoil` is called before it is read back."""

    def copy(content, path):
        writer._dd(content, path)
        spoil()

    writer.write(str(card), image, begins, copy if spoil else None, prefix)


def assert_equal(card, image):
    """The image, and behind it what the card held before."""
    data = card.read_bytes()
    assert data[: image.size] == image.data
    assert set(data[image.size :]) <= {USED}
