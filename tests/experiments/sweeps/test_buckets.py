"""Object storage: the same store and the same kills, against moto's server on this machine."""

from __future__ import annotations

import pytest

from killed_sweeps import check_whole, killing, own_workers, start_client, tiny_runs, wait_for_rows
from tidegate import Sweep, TidegateError
from tidegate.experiments.sweeps.places import Bucket, place_of

pytestmark = pytest.mark.extra
pytest.importorskip("obstore", reason="needs tidegate[cluster]")
moto_server = pytest.importorskip("moto.server", reason="needs moto[server]")


@pytest.fixture(scope="module")
def endpoint():
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(endpoint, monkeypatch):
    """An empty bucket, by the variables that users set."""
    import urllib.request

    for name, value in {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/moto-api/reset", method="POST"))
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/results", method="PUT"))
    return "s3://results/sizes"


def test_files_are_put_listed_and_removed(bucket):
    place = place_of(bucket)
    assert isinstance(place, Bucket)
    place.check()
    assert place.get("parts/a") is None
    for name in ("a", "b"):
        place.put(f"parts/{name}", name.encode())
    place.put("failed/c", b"c")
    assert place.names("parts") == ["parts/a", "parts/b"]
    assert place.get("parts/b") == b"b"
    place.remove(["parts/a", "parts/none"])
    assert place.names("parts") == ["parts/b"]


def test_a_killed_client_and_killed_workers_lose_nothing(bucket, tmp_path):
    sweep = Sweep(tiny_runs(200), bucket)
    client = start_client(bucket, 200, workers=2)
    wait_for_rows(sweep.place, 5, client)
    client.kill()
    client.communicate(timeout=300)
    with killing(own_workers, times=1):
        swept = sweep.run(workers=2)
    assert swept.there >= 5
    assert (swept.made, swept.failures) == (200 - swept.there, [])
    check_whole(sweep)
    before = sweep.table()
    files, merged = sweep.results.compact()
    assert files > merged == 1
    local = Sweep(tiny_runs(200)[:5], tmp_path)
    local.run(workers=1)
    assert Sweep(tiny_runs(200), bucket).table().equals(before)
    assert before.head(5).equals(local.table())


def test_a_bucket_that_is_not_there_is_refused_before_anything_runs(bucket, monkeypatch):
    monkeypatch.setattr(
        "tidegate.experiments.sweeps.sweep.execute", lambda *_, **__: pytest.fail("it ran")
    )
    with pytest.raises(TidegateError, match=r"cannot use the store s3://none/x: .*check its name"):
        Sweep(tiny_runs(1), "s3://none/x").run()
