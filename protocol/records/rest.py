"""The bytes of a record or message that is not complete yet."""

from protocol.records.compression import BytesLike


class Rest:
    """Pieces that are joined once there are enough of them."""

    __slots__ = ("_pieces", "needed", "size")

    def __init__(self) -> None:
        self._pieces: list[BytesLike] = []
        self.needed = 1
        """How many bytes make it worth taking them."""
        self.size = 0

    def add(self, piece: BytesLike) -> bool:
        """Keep `piece`; True when there are as many bytes as needed."""
        if len(piece):
            self._pieces.append(piece)
            self.size += len(piece)
        return self.size >= self.needed

    def take(self) -> bytes:
        """Return all bytes and keep none."""
        taken = b"".join(self._pieces)
        self._pieces = []
        self.needed = 1
        self.size = 0
        return taken
