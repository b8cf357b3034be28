"""
Test the newest livekit-plugins-valenceai: both modes of its client, and its STT around a recogniser that returns one sentence.

No LiveKit server is needed: frames are pushed like an agent's session does.
"""

import asyncio
import sys
import wave

import numpy as np
from livekit import rtc
from livekit.agents import APIConnectOptions, stt
from livekit.plugins import valenceai

url, path = sys.argv[1:]
SENTENCE = "I have told you this before."

with wave.open(path) as recording:
    RATE = recording.getframerate()
    SAMPLES = np.frombuffer(recording.readframes(recording.getnframes()), np.int16)


def frames():
    step = RATE // 50
    for at in range(0, len(SAMPLES) - step + 1, step):
        yield rtc.AudioFrame(SAMPLES[at : at + step].tobytes(), RATE, 1, step)


async def client_in_both_modes() -> None:
    import os

    client = valenceai.ValenceWebSocketClient(os.environ["VALENCE_API_KEY"], server_url=url)
    await client.connect()
    await client.start_streaming()
    for frame in frames():
        await client.send_audio_chunk(bytes(frame.data), frame.sample_rate, frame.samples_per_channel)
    for _ in range(100):
        heard = await client.get_latest_emotion()
        if heard["confidence"] > 0:
            break
        await asyncio.sleep(0.1)
    assert heard["dominant"] == "angry", heard
    await client.disconnect()

    client = valenceai.ValenceWebSocketClient(os.environ["VALENCE_API_KEY"], server_url=url, model="7emotions")
    await client.connect()
    heard = await client.process_audio(SAMPLES, RATE)
    assert len(heard["all_emotions"]) == 7, heard
    assert client.session_id
    await client.disconnect()


class OneSentence(stt.STT):
    """A recogniser that reads all frames and then returns one sentence."""

    def __init__(self) -> None:
        super().__init__(capabilities=stt.STTCapabilities(streaming=True, interim_results=False))

    async def _recognize_impl(self, *_args, **_settings):
        raise NotImplementedError

    def stream(self, *, language=None, conn_options=APIConnectOptions()):
        return OneSentenceStream(stt=self, conn_options=conn_options)


class OneSentenceStream(stt.RecognizeStream):
    async def _run(self) -> None:
        async for _ in self._input_ch:
            pass
        # The time a recogniser would take; the emotion arrives meanwhile.
        await asyncio.sleep(2)
        said = [stt.SpeechData(language="en", text=SENTENCE, start_time=0, end_time=5)]
        self._event_ch.send_nowait(stt.SpeechEvent(type=stt.SpeechEventType.FINAL_TRANSCRIPT, alternatives=said))


async def speech_to_text() -> None:
    recogniser = valenceai.STT(underlying_stt=OneSentence(), server_url=url)
    stream = recogniser.stream()
    for frame in frames():
        stream.push_frame(frame)
        await asyncio.sleep(0)
    stream.end_input()
    async for event in stream:
        if event.type == stt.SpeechEventType.FINAL_TRANSCRIPT:
            text = event.alternatives[0].text
            break
    await stream.aclose()
    assert text == f"[Angry] {SENTENCE}", text


async def main() -> None:
    await client_in_both_modes()
    await speech_to_text()


asyncio.run(main())
print("both modes of its client and its STT: ok")
