"""Synchronous version of `async_stream`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ._sync import Synchronous, synchronous
from .async_stream import AsyncEmotionStream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .timeline import StreamPrediction


class EmotionStream(Synchronous):
    """
    Live audio: write samples, and read an emotion every few seconds. One thread may write while another reads.

    If the connection breaks, the next write reconnects, with increasing delays, and a warning is logged. Audio in
    flight is lost; timestamps still count it.

    >>> with client.stream(sample_rate=16_000) as stream:
    ...     for prediction in stream.feed(microphone):
    ...         print(prediction.t, prediction.main_emotion)
    """

    write = synchronous(AsyncEmotionStream.write)
    end = synchronous(AsyncEmotionStream.end)
    close = synchronous(AsyncEmotionStream.close)

    def feed(self, pieces: Iterable[bytes]) -> Iterator[StreamPrediction]:
        """Write all pieces, in a separate thread, and yield predictions as they arrive."""
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
        return self

    def __next__(self) -> StreamPrediction:
        prediction = self.read()
        if prediction is None:
            raise StopIteration
        return prediction

    read = synchronous(AsyncEmotionStream.read)

    def __enter__(self) -> EmotionStream:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
