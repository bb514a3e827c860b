"""Ask a model server for words, and print each as it comes: ask.py URL PROMPT TOKENS."""

import http.client
import json
import sys
from urllib.parse import urlsplit

url, prompt, tokens = sys.argv[1:]
where = urlsplit(url)
# The name of the host says which workload is meant; it need not be known to this machine's resolver.
connection = http.client.HTTPConnection("127.0.0.1", where.port or 80, timeout=60)
body = json.dumps({"prompt": prompt, "tokens": int(tokens)})
connection.request("POST", "/generate", body, {"Host": where.netloc, "Content-Type": "application/json"})
response = connection.getresponse()
if response.status != 200:
    sys.exit(f"{response.status} {response.read().decode()}")
print(prompt, end="", flush=True)
for line in response:
    if line.startswith(b"data: "):
        print(" " + line[6:].strip().decode(), end="", flush=True)
print()
