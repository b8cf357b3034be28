"""Live audio for callers that block: `async_stream`, run on the client's event loop in the background."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._portal import Portal
    from .async_stream import AsyncEmotionStream
    from .results import StreamPrediction


class EmotionStream:
    """
    Live audio: write samples, and read an emotion every few seconds. One thread may write while another reads.

    A connection that breaks is made again when the next samples are written, with growing pauses; that is logged as a
    warning. What was on its way then is lost, and times go on counting what was written.

    >>> with client.stream(sample_rate=16_000) as stream:
    ...     for prediction in stream.feed(microphone):
    ...         print(prediction.t, prediction.main_emotion)
    """

    def __init__(self, stream: AsyncEmotionStream, portal: Portal) -> None:
        """Wrap the stream of the event loop."""
        self._stream = stream
        self._portal = portal

    def write(self, samples: bytes) -> None:
        """Send raw samples, in pieces of any size. Returns when there is room for more."""
        self._portal.run(self._stream.write(samples))

    def end(self) -> None:
        """Say that there is no more: the last prediction comes, then the iteration ends."""
        self._portal.run(self._stream.end())

    def close(self) -> None:
        """End at once, without the last prediction."""
        self._portal.run(self._stream.close())

    def feed(self, pieces: Iterable[bytes]) -> Iterator[StreamPrediction]:
        """Write pieces to their end, in a thread of their own, and give the predictions as they come."""
        failure: list[Exception] = []

        def write_all() -> None:
            try:
                for piece in pieces:
                    self.write(piece)
                self.end()
            except Exception as error:
                failure.append(error)
                self.close()

        writer = threading.Thread(target=write_all, name="undertone_client_feed", daemon=True)
        writer.start()
        try:
            yield from self
            writer.join()
            if failure:
                raise failure[0]
        finally:
            self.close()

    def __iter__(self) -> Iterator[StreamPrediction]:
        """Give the predictions as they come, until the stream has ended."""
        return self

    def __next__(self) -> StreamPrediction:
        """Wait for the next prediction."""
        prediction = self.read()
        if prediction is None:
            raise StopIteration
        return prediction

    def read(self) -> StreamPrediction | None:
        """Wait for the next prediction; None at the end of the stream."""
        return self._portal.run(self._stream.read())

    def __enter__(self) -> EmotionStream:
        """Use it in a `with` block."""
        return self

    def __exit__(self, *_exception: object) -> None:
        """Close the connection at the end of the block."""
        self.close()
