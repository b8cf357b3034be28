"""Use valenceai 0.5.1 as its README does. The environment has its addresses."""

import math
import os
import sys
import wave

from valenceai import ValenceClient

folder = sys.argv[1]
client = ValenceClient(show_progress=False)

short = client.discrete.emotions(os.path.join(folder, "test_file.wav"))
assert short["main_emotion"] == "angry", short
assert set(short["all_predictions"]) == {"angry", "happy", "neutral", "sad"}, short
seven = client.discrete.emotions(os.path.join(folder, "test_file.wav"), model="7emotions")
assert len(seven["all_predictions"]) == 7, seven

request_id = client.asynch.upload(os.path.join(folder, "long_file_sample.wav"))
result = client.asynch.emotions(request_id, interval_seconds=1)
assert result["status"] == "completed", result
with wave.open(os.path.join(folder, "long_file_sample.wav")) as recording:
    steps = math.ceil(recording.getnframes() / recording.getframerate() / 5)
assert [step["t"] for step in result["emotions"]] == [f"00:{5 * i:02}" for i in range(steps)], result
print("short and long recordings: ok")
