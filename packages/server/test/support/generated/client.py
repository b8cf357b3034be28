"""Classifies a recording both ways with nothing but the generated client; prints the answers as JSON."""

import json
import sys
import time
from io import BytesIO
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from undertone_api import AuthenticatedClient
from undertone_api.api.asynch import complete_upload, get_prediction, initiate_upload, put_part
from undertone_api.api.discrete import classify_clip
from undertone_api.models import (
    AsynchResult,
    ClassifyClipFilesBody,
    CompleteBody,
    CompleteBodyPartsItem,
    CompleteResult,
    DiscreteResult,
    InitiateResult,
    ModelId,
    PendingResult,
    Problem,
)
from undertone_api.types import File

url, key, path = sys.argv[1:]
recording = Path(path).read_bytes()


def client_with(api_key: str) -> AuthenticatedClient:
    return AuthenticatedClient(url, token=api_key, prefix="", auth_header_name="x-api-key")


def classify(client: AuthenticatedClient) -> DiscreteResult | Problem:
    form = ClassifyClipFilesBody(File(BytesIO(recording), "voice.wav", "audio/wav"))
    result = classify_clip.sync(client=client, body=form, model=ModelId.FIVE_EMOTIONS, details=True)
    assert isinstance(result, DiscreteResult | Problem), result
    return result


def upload(client: AuthenticatedClient) -> str:
    half = len(recording) // 2
    pieces = [recording[:half], recording[half:]]
    begun = initiate_upload.sync(client=client, file_name="voice.wav", part_count=len(pieces))
    assert isinstance(begun, InitiateResult), begun
    parts = []
    for target, piece in zip(begun.presigned_urls, pieces, strict=True):
        query = parse_qs(urlsplit(target.url).query)
        stored = put_part.sync_detailed(
            begun.request_id,
            target.part_number,
            client=client,
            body=File(BytesIO(piece)),
            expires=int(query["expires"][0]),
            signature=query["signature"][0],
        )
        assert stored.parsed is None, stored.parsed
        parts.append(CompleteBodyPartsItem(target.part_number, stored.headers["etag"]))
    done = complete_upload.sync(client=client, body=CompleteBody(begun.request_id, begun.upload_id, parts))
    assert isinstance(done, CompleteResult), done
    return done.request_id


def wait_for(client: AuthenticatedClient, request_id: str) -> AsynchResult:
    while isinstance(result := get_prediction.sync(client=client, request_id=request_id), PendingResult):
        time.sleep(0.1)
    assert isinstance(result, AsynchResult), result
    return result


refusal = classify(client_with("not-a-key"))
assert isinstance(refusal, Problem), refusal
with client_with(key) as client:
    answers = {
        "refusal": refusal.code.value,
        "discrete": classify(client).to_dict(),
        "asynch": wait_for(client, upload(client)).to_dict(),
    }
print(json.dumps(answers))
