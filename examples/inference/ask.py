"""Ask the service about a text: ask.py URL TEXT."""

import json
import sys
import urllib.request
from urllib.parse import urlsplit

url, text = sys.argv[1:]
where = urlsplit(url)
# The name of the host says which workload is meant; it need not be known to this machine's resolver.
request = urllib.request.Request(f"http://127.0.0.1:{where.port}/predict", json.dumps({"text": text}).encode())
request.add_header("Host", where.netloc)
with urllib.request.urlopen(request, timeout=60) as answer:
    print(json.loads(answer.read())["label"])
