"""What a pod's buckets and repositories are fetched from, worked out from their fields."""

from msgspec.structs import replace

from fairlead.engines.local.plan.fetches import render_s3
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.pods.container_fields import BucketMount

SETTINGS = LocalSettings(data_dir="/d")


def test_a_bucket_is_amazons_where_no_service_is_named() -> None:
    mount = BucketMount(bucket="data", path="/data")
    assert render_s3(mount, "storage.s3[0]", "/m", {}, SETTINGS).url == "https://s3.amazonaws.com"
    named = render_s3(replace(mount, url="http://minio:9000/"), "storage.s3[0]", "/m", {}, SETTINGS)
    assert named.url == "http://minio:9000"
