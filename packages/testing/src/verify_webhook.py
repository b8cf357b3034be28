"""Verify webhooks with the `standardwebhooks` package: JSON lines of secret, headers and body in, "ok" out."""

import json
import sys

from standardwebhooks import Webhook

for line in sys.stdin:
    given = json.loads(line)
    Webhook(given["secret"]).verify(given["body"], given["headers"])
print("ok")
