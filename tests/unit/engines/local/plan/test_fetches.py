"""What a pod's buckets and repositories are fetched from, worked out from their fields."""

from fairlead.engines.local.plan.fetches import render_s3
from fairlead.engines.local.settings import LocalSettings

SETTINGS = LocalSettings(data_dir="/d")


def test_a_bucket_is_amazons_where_no_service_is_named() -> None:
    item = {"bucket": "data", "path": "/data"}
    assert render_s3(item, "storage.s3[0]", {}, SETTINGS)["url"] == "https://s3.amazonaws.com"
    named = render_s3({**item, "url": "http://minio:9000/"}, "storage.s3[0]", {}, SETTINGS)
    assert named["url"] == "http://minio:9000"
