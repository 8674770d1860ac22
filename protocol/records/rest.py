"""What has come of something whose end has not, in pieces that are joined once."""

from protocol.records.compression import BytesLike


class Rest:
    """Bytes that wait for more."""

    __slots__ = ("_pieces", "needed", "size")

    def __init__(self) -> None:
        self._pieces: list[BytesLike] = []
        self.needed = 1
        """So many are worth being looked at."""
        self.size = 0

    def add(self, piece: BytesLike) -> bool:
        """True when there are as many as needed."""
        if len(piece):
            self._pieces.append(piece)
            self.size += len(piece)
        return self.size >= self.needed

    def take(self) -> bytes:
        """All of them; nothing is left."""
        taken = b"".join(self._pieces)
        self._pieces = []
        self.needed = 1
        self.size = 0
        return taken
