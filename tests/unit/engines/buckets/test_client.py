"""Signatures of S3 requests, against the worked example of Amazon's documentation."""

import hashlib

from fairlead.engines.buckets.client import canonical_request, sign


def test_the_documented_example() -> None:
    nothing = hashlib.sha256(b"").hexdigest()
    headers = {
        "host": "examplebucket.s3.amazonaws.com",
        "range": "bytes=0-9",
        "x-amz-content-sha256": nothing,
        "x-amz-date": "20130524T000000Z",
    }
    request = canonical_request("GET", "/test.txt", "", headers, nothing)
    signature = sign(
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "20130524/us-east-1/s3/aws4_request", "20130524T000000Z", request
    )
    assert signature == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
