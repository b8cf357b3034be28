"""Use valenceai 1.0.5 as its README does. The environment has its addresses."""

import os
import sys
import time

from valenceai import ValenceClient

folder = sys.argv[1]
short, long = (os.path.join(folder, name) for name in ("test_file.wav", "long_file_sample.wav"))
client = ValenceClient(show_progress=False, comprehensive_output=True)

assert client.rate_limit.get_health()["status"] == "healthy"
assert client.rate_limit.get_status()["limits"]["max_audio_size_mb"] == 1024
assert client.discrete.emotions(short)["main_emotion"] == "angry"
request_id = client.asynch.upload(long)
result = client.asynch.emotions(request_id, interval_seconds=1)
assert len(result["emotions"][0]["all_predictions"]) == 4, result
assert client.asynch.get_emotion_at_time(request_id, 2)["start_time"] == 0

heard, connected = [], []
stream = client.streaming.connect(model="7emotions")
stream.on_connected(connected.append)
stream.on_prediction(heard.append)
stream.connect()
for _ in range(6):
    stream.send_audio(bytes(2 * 44_100))
for _ in range(100):
    if heard:
        break
    time.sleep(0.1)
stream.disconnect()
assert connected[0]["session_id"], connected
assert len(heard[0]["all_predictions"]) == 7, heard
print("discrete, asynch, rate limits and streaming: ok")
