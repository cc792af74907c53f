"""Exported programs by name over HTTP."""

import asyncio
import contextlib
import io
import json
import os
import random
import threading
import zipfile

import aiohttp
import numpy as np
import pytest
import weft
import weft.numpy as jnp
from aiohttp import web
from hosts import run_host
from weft import export, lax
from weft.errors import BackendError
from weft_native.host.access import Gate
from weft_native.host.inference.batches import Batcher
from weft_native.host.inference.errors import RequestError
from weft_native.host.inference.repository import Repository
from weft_native.host.inference.routes import Inference
from weft_native.host.inference.values import Signature

TOKEN, PAGE = "sesame", "https://app.example.org"
F3 = weft.ShapeDtypeStruct((3,), np.float32)


def scale(x, by):
    return {"y": x * by["factor"], "n": (jnp.sum(x > 0), None)}


def kinds(flags, small, z):
    return ~flags, small + jnp.int8(1), z * 1j, z.real.astype(jnp.bfloat16)


def rows(x):
    return x - x.mean(0)  # of a batch, each result would depend on all rows


def until_large(x):
    return lax.while_loop(lambda v: jnp.sum(v) < 100, lambda v: 2 * v, x)


def write(folder, name, fun, *args, **kwargs):
    path = folder / f"{name}.weft"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(export.export(weft.jit(fun))(*args, **kwargs).serialize())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("models")
    write(made, "scale", scale, F3, by={"factor": weft.ShapeDtypeStruct((), np.float32)})
    write(
        made,
        "kinds",
        kinds,
        weft.ShapeDtypeStruct((2,), np.bool_),
        weft.ShapeDtypeStruct((), np.int8),
        weft.ShapeDtypeStruct((2,), np.complex64),
    )
    write(made, "rows", rows, weft.ShapeDtypeStruct((*export.symbolic_shape("n"), 2), np.float32))
    write(made, "until", until_large, F3)
    for version in (1, 2, 10):
        write(made, f"versions/{version}", lambda x, v=version: x + v, F3)
    return made


@contextlib.asynccontextmanager
async def served(folder, place=lambda: weft.devices("cpu")[0], token=TOKEN, **options):
    """A client of a host for the folder, and its Inference."""
    inference = Inference(folder, Gate(TOKEN), place, lambda origin: origin in (None, PAGE), **options)
    app = web.Application()
    inference.add_to(app)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with aiohttp.ClientSession(address, headers=headers) as client:
        yield client, inference
    await runner.cleanup()


async def call(client, name, **body):
    async with client.post(f"/v1/programs/{name}", json=body) as response:
        return response.status, await response.json()


def run(folder, work, **options):
    async def go():
        async with served(folder, **options) as (client, inference):
            return await work(client, inference)

    return asyncio.run(go())


def test_json_in_and_out(folder):
    async def work(client, _):
        assert await call(client, "scale", args=[[1, -2, "Infinity"]], kwargs={"by": {"factor": 2}}) == (
            200,
            {"result": {"y": [2.0, -4.0, "Infinity"], "n": [2, None]}},
        )
        status, found = await call(client, "kinds", args=[[True, False], 4, [[1, 2], [3, 4]]])
        assert (status, found["result"]) == (200, [[False, True], 5, [[-2.0, 1.0], [-4.0, 3.0]], [1.0, 3.0]])
        assert (await call(client, "rows", args=[[[1, 2], [3, 4]]]))[1] == {"result": [[-1.0, -1.0], [1.0, 1.0]]}
        assert (await call(client, "rows", args=[[[1, 2]]]))[1] == {"result": [[0.0, 0.0]]}

    run(folder, work)


def test_numpy_files_in_and_out(folder):
    async def work(client, _):
        out = io.BytesIO()
        np.savez_compressed(out, **{"0": np.float32([1, 2, 3]), "by.factor": np.float32(3)})
        headers = {"Content-Type": "application/x-npz", "Accept": "application/x-npz"}
        async with client.post("/v1/programs/scale", data=out.getvalue(), headers=headers) as response:
            assert response.status == 200
            found = np.load(io.BytesIO(await response.read()), allow_pickle=False)
        assert set(found) == {"y", "n.0"} and found["n.0"] == 3
        np.testing.assert_array_equal(found["y"], np.float32([3, 6, 9]))
        out = io.BytesIO()
        np.save(out, np.asfortranarray(np.float32([[1, 2], [5, 8]])))
        headers = {"Content-Type": "application/octet-stream", "Accept": "application/x-npz"}
        async with client.post("/v1/programs/rows", data=out.getvalue(), headers=headers) as response:
            found = np.load(io.BytesIO(await response.read()))
        np.testing.assert_array_equal(found["result"], [[-2, -3], [2, 3]])

    run(folder, work)


def test_versions(folder):
    async def work(client, _):
        assert (await call(client, "versions", args=[[0, 0, 0]]))[1] == {"result": [10.0] * 3}
        assert (await call(client, "versions/versions/2", args=[[0, 0, 0]]))[1] == {"result": [2.0] * 3}
        status, found = await call(client, "versions/versions/3", args=[[0, 0, 0]])
        assert (status, found) == (404, {"error": "versions has no version '3'; it has 1, 2, 10."})

    run(folder, work)


def test_a_folder_is_followed(tmp_path):
    write(tmp_path, "f", lambda x: x + 1, F3)
    repository = Repository(tmp_path)
    assert [p.name for p in repository.scan()] == ["f"] and repository.scan() == []
    write(tmp_path, "g/4", lambda x: x + 2, F3)
    (tmp_path / "f.weft").write_bytes(b"damaged")
    (tmp_path / "not a name.weft").write_bytes(b"")
    assert [p.name for p in repository.scan()] == ["g"]
    assert repository.find("f").version == 1, "what was there goes on"
    os.remove(tmp_path / "f.weft")
    repository.scan()
    with pytest.raises(RequestError, match="no program 'f' here; there are: g"):
        repository.find("f")
    assert repository.find("g").version == 4


WRONG = {
    "another program": ("nothing", {"args": []}, 404, "there is no program 'nothing' here"),
    "a path": ("..%2F..%2Fetc%2Fpasswd", {"args": []}, 404, "there is no program"),
    "too few arguments": ("scale", {"args": []}, 400, "args must be a list of 1"),
    "no arguments": ("scale", {}, 400, "args must be a list of 1"),
    "another word": ("scale", {"arguments": []}, 400, 'the body is an object with "args"'),
    "keywords": ("scale", {"args": [[1, 2, 3]], "kwargs": {"by": {}}}, 400, "kwargs.by must be an object with factor"),
    "a shape": ("scale", {"args": [[1, 2]], "kwargs": {"by": {"factor": 1}}}, 400, "args[0] must be float32[3]"),
    "a ragged list": ("rows", {"args": [[[1], [2, 3]]]}, 400, "lists of equal lengths"),
    "an object": ("rows", {"args": [{"a": 1}]}, 400, "must be float32[n,2]"),
    "text": ("rows", {"args": [[["a", "b"]]]}, 400, "no such numbers"),
    "null": ("rows", {"args": [None]}, 400, "must be float32[n,2]"),
    "truth as number": ("kinds", {"args": [[1, 0], 1, [[0, 0], [0, 0]]]}, 400, "args[0] must be bool[2]"),
    "a number too large": ("kinds", {"args": [[True, True], 200, [[0, 0], [0, 0]]]}, 400, "beyond that type"),
    "a fraction": ("kinds", {"args": [[True, True], 1.5, [[0, 0], [0, 0]]]}, 400, "no such numbers"),
    "half a complex number": ("kinds", {"args": [[True, True], 1, [1, 2]]}, 400, "must be complex64[2]"),
    "three parts": ("kinds", {"args": [[True, True], 1, [[1, 2, 3]]]}, 400, "real and imaginary part"),
}


@pytest.mark.parametrize("case", WRONG)
def test_requests_that_do_not_fit(folder, case):
    name, body, status, words = WRONG[case]

    async def work(client, _):
        got, found = await call(client, name, **body)
        assert got == status and words in found["error"], (got, found)

    run(folder, work)


def zipped(entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return out.getvalue()


def saved(x, **options):
    out = io.BytesIO()
    np.save(out, x, **options)
    return out.getvalue()


HUGE = saved(np.zeros(1, np.float32)).replace(b"(1,), }", b"(9999999999, 2), }")
BODIES = {
    "no JSON": (b"{", "application/json", 400, "no JSON"),
    "nested lists": (b"[" * 100_000, "application/json", 400, "no JSON"),
    "deep lists": (b'{"args": [' + b"[" * 400 + b"]" * 400 + b"]}", "application/json", 400, "equal lengths"),
    "a long number": (b'{"args": [' + b"9" * 10_000 + b"]}", "application/json", 400, "no JSON"),
    "a form": (b"x=1", "application/x-www-form-urlencoded", 415, "application/json"),
    "no file": (b"abc", "application/x-npz", 400, "no .npz file"),
    "another array": (zipped({"1.npy": saved(np.ones(1))}), "application/x-npz", 400, "missing: 0, unknown: 1"),
    "a bomb": (zipped({"0.npy": bytes(3_000_000)}), "application/x-npz", 413, "more than 1000000 bytes"),
    "a pickle": (
        zipped({"0.npy": saved(np.array([{}]), allow_pickle=True)}),
        "application/x-npz",
        400,
        "array of shape",
    ),
    "a header that lies": (zipped({"0.npy": HUGE}), "application/x-npz", 400, "fewer bytes than its shape"),
    "a dtype": (saved(np.ones((1, 2))), "application/octet-stream", 400, "its dtype is float64"),
    "too many bytes": (bytes(1_000_001), "application/octet-stream", 413, "more than 1000000 bytes"),
    "a cut array": (saved(np.ones((9, 2), np.float32))[:-8], "application/octet-stream", 400, "fewer bytes|ends early"),
}


@pytest.mark.parametrize("case", BODIES)
def test_bodies_that_are_none(folder, case):
    body, kind, status, words = BODIES[case]

    async def work(client, _):
        async with client.post("/v1/programs/rows", data=body, headers={"Content-Type": kind}) as response:
            found = await response.json()
        assert response.status == status and any(w in found["error"] for w in words.split("|")), found

    run(folder, work, body_bytes=1_000_000)


def test_changed_files_are_refused_or_read(folder):
    signature = Signature(export.deserialize((folder / "rows.weft").read_bytes()))
    good = [zipped({"0.npy": saved(np.ones((3, 2), np.float32))}), saved(np.ones((3, 2), np.float32))]
    rng = random.Random(0)
    for _ in range(3000):
        data = bytearray(rng.choice(good))
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with contextlib.suppress(RequestError):
            (found,) = signature.from_npz(bytes(data), 1 << 20)
            assert found.dtype == np.float32 and found.ndim == 2


def test_a_token_is_needed(folder):
    async def work(client, _):
        for method, path in [("get", "/v1/programs"), ("post", "/v1/programs/scale"), ("get", "/openapi.json")]:
            async with client.request(method, path) as response:
                assert response.status == 401 and "Bearer TOKEN" in (await response.json())["error"]

    run(folder, work, token="")
    run(folder, work, token="sesam")


def test_pages_of_allowed_origins_may_ask(folder):
    async def work(client, _):
        path, body = "/v1/programs/rows", {"args": [[[1, 2]]]}
        for origin, allowed in ((PAGE, PAGE), ("https://elsewhere.example.org", None)):
            asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
            async with client.options(path, headers=asked) as response:
                assert response.headers.get("Access-Control-Allow-Origin") == allowed
                assert ("Authorization" in response.headers.get("Access-Control-Allow-Headers", "")) == bool(allowed)
            async with client.post(path, json=body, headers={"Origin": origin}) as response:
                assert response.status == (200 if allowed else 403)
                assert response.headers.get("Access-Control-Allow-Origin") == allowed

    run(folder, work)


def test_the_command_serves_a_folder(folder, tmp_path):
    """Its programs run in a session, which is opened again after it has been ended."""

    async def work(url):
        async with aiohttp.ClientSession(url, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
            found = await asyncio.gather(*[call(client, "rows", args=[[[i, 2], [3, 4]]]) for i in range(20)])
            for i, (status, answer) in enumerate(found):
                assert status == 200
                np.testing.assert_allclose(answer["result"][0], [(i - 3) / 2, -1], atol=1e-6)
            status, answer = await call(client, "until", args=[[-1, -1, -1]])  # never ends
            assert status == 503 and "2 s" in answer["error"]
            assert (await call(client, "rows", args=[[[1, 2]]]))[0] == 200

    with run_host(tmp_path, "--platform", "cpu", "--serve", str(folder), "--seconds", "2") as host:
        asyncio.run(work(host.url.replace("ws:", "http:")))


def test_requests_at_one_time_are_one_call(folder):
    """And each gets what it would have got alone, though loops of others take longer."""

    async def work(client, inference):
        xs = np.random.default_rng(0).uniform(0.1, 9, (60, 3)).astype(np.float32)
        found = await asyncio.gather(*[call(client, "until", args=[x.tolist()]) for x in xs])
        for x, (status, answer) in zip(xs, found):
            assert status == 200
            np.testing.assert_array_equal(np.float32(answer["result"]), np.asarray(until_large(x)))
        batcher = inference.batchers["until", 1]
        assert batcher.requests == 60 and batcher.calls < 30

    run(folder, work)


def test_requests_of_other_shapes_are_not_mixed(folder):
    async def work(client, _):
        xs = [np.random.default_rng(i).normal(size=(i % 3 + 1, 2)).astype(np.float32) for i in range(12)]
        found = await asyncio.gather(*[call(client, "rows", args=[x.tolist()]) for x in xs])
        for x, (_, answer) in zip(xs, found):
            np.testing.assert_allclose(np.float32(answer["result"]), rows(x), atol=1e-6)

    run(folder, work)


def test_a_device_that_is_gone_is_told_and_asked_for_again(folder):
    down = [True]

    def place():
        if down[0]:
            raise BackendError("the worker has ended.")
        return weft.devices("cpu")[0]

    async def work(client, _):
        body = dict(args=[[[1, 2]]])
        assert await call(client, "rows", **body) == (503, {"error": "the worker has ended."})
        down[0] = False
        assert (await call(client, "rows", **body))[0] == 200

    run(folder, work, place=place)


def test_a_client_that_leaves_is_not_computed_for(folder):
    async def go():
        program = Repository(folder)
        program.scan()
        started = asyncio.Event()
        loop = asyncio.get_running_loop()

        def place():
            loop.call_soon_threadsafe(started.set)
            return weft.devices("cpu")[0]

        from concurrent.futures import ThreadPoolExecutor

        batcher = Batcher(program.find("until"), place, 1, ThreadPoolExecutor(1))
        first = asyncio.ensure_future(batcher([np.ones(3, np.float32)]))
        second = asyncio.ensure_future(batcher([np.ones(3, np.float32)]))
        await started.wait()
        second.cancel()
        await first
        await asyncio.sleep(0.05)
        assert (batcher.calls, batcher.running) == (1, False)

    asyncio.run(go())


def test_requests_have_deadlines(folder):
    """What nobody waits for any more is not computed, and of those that wait the most urgent comes first."""
    started, go_on = threading.Event(), threading.Event()

    def place():
        started.set()
        assert go_on.wait(60)
        return weft.devices("cpu")[0]

    async def work(client, inference):
        async def ask(x: float, seconds: str | None = None):
            headers = {} if seconds is None else {"Request-Timeout": seconds}
            body = {"args": [[x, 1.0, 1.0]]}
            async with client.post("/v1/programs/until", json=body, headers=headers) as response:
                answered.append(x)
                return response.status, (await response.json()).get("error", "")

        answered: list[float] = []
        first = asyncio.ensure_future(ask(1.0))
        await asyncio.to_thread(started.wait, 60)
        (batcher,) = [b for b in inference.batchers.values() if b.calls]
        late = asyncio.ensure_future(ask(2.0))
        while len(batcher.waiting) < 1:
            await asyncio.sleep(0.01)
        urgent = asyncio.ensure_future(ask(3.0, "1e3"))
        while len(batcher.waiting) < 2:
            await asyncio.sleep(0.01)
        status, error = await ask(4.0, "0.05")
        assert status == 504 and "until has no result within the 0.05 s of the request" in error
        go_on.set()
        assert [(await x)[0] for x in (first, late, urgent)] == [200] * 3
        assert answered == [4.0, 1.0, 3.0, 2.0] and batcher.calls == 3
        for word in ("0", "-1", "nan", "soon"):
            status, error = await ask(1.0, word)
            assert status == 400 and f"Request-Timeout: '{word}' is no number of seconds above 0" in error

    run(folder, work, place=place, batch=1)


def test_the_description(folder):
    async def work(client, _):
        async with client.get("/v1/programs") as response:
            listed = (await response.json())["programs"]
        assert [(p["name"], p["version"]) for p in listed] == [
            ("kinds", 1),
            ("rows", 1),
            ("scale", 1),
            ("until", 1),
            ("versions", 1),
            ("versions", 2),
            ("versions", 10),
        ]
        async with client.get("/v1/programs/rows") as response:
            assert (await response.json())["inputs"] == [{"path": "0", "dtype": "float32", "shape": ["n", 2]}]
        async with client.get("/openapi.json") as response:
            document = await response.json()
        body = document["paths"]["/v1/programs/scale"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert body["required"] == ["args", "kwargs"]
        (x,) = body["properties"]["args"]["prefixItems"]
        assert (x["minItems"], x["maxItems"], x["description"]) == (3, 3, "float32[3]")
        body = document["paths"]["/v1/programs/kinds"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        truths, whole, parts = body["properties"]["args"]["prefixItems"]
        assert truths["items"] == {"type": "boolean"} and whole["type"] == "integer"
        number = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
        assert parts["items"] == {"type": "array", "items": number, "minItems": 2, "maxItems": 2}
        json.dumps(document)

    run(folder, work)
