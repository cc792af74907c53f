"""The HTTP endpoints of published programs."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import pathlib
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aiohttp import web
from weft.base.errors import BackendError, WeftError
from weft.version import __version__

from ..access import Gate
from ..grants import PROGRAMS, Denied
from ..headers import bearer
from ..journal import Journal
from .batches import Batcher
from .description import NPZ, TIMEOUT, described, openapi
from .errors import RequestError
from .repository import Published, Repository

log = logging.getLogger("weft.host")
SCAN_SECONDS = 2.0  # between two looks at the folder
CALLS = 4  # that run at one time
OCTETS = ("application/octet-stream", "application/x-npy", NPZ)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Inference:
    """Answers requests for the programs of a folder.

    Args:
        folder: where the exported programs are.
        gate: who may ask.
        place: gives the device that computes. It may raise BackendError.
        allowed: whether pages of an origin may ask.
        batch: requests of one call at most.
        body_bytes: of a request at most.
        journal: of what happens.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        gate: Gate,
        place: Callable[[], Any],
        allowed: Callable[[str | None], bool],
        batch: int = 32,
        body_bytes: int = 64 << 20,
        journal: Journal | None = None,
    ):
        self.repository = Repository(folder)
        self.gate, self.place, self.allowed = gate, place, allowed
        self.batch, self.body_bytes = batch, body_bytes
        self.journal = Journal() if journal is None else journal
        self.threads = ThreadPoolExecutor(CALLS, "inference")
        self.active = 0  # requests that are not answered yet
        self.asked_at = 0.0  # when the last one came
        self.closing = lambda: False  # whether connections end with their answers
        self.batchers: dict[tuple[str, int], Batcher] = {}

    def add_to(self, app: web.Application) -> None:
        """Adds the endpoints to an application."""
        app.router.add_get("/v1/programs", self._answer(self._list))
        app.router.add_get("/v1/programs/{name}", self._answer(self._describe))
        app.router.add_post("/v1/programs/{name}", self._answer(self._run))
        app.router.add_get("/v1/programs/{name}/versions/{version}", self._answer(self._describe))
        app.router.add_post("/v1/programs/{name}/versions/{version}", self._answer(self._run))
        app.router.add_get("/openapi.json", self._answer(self._openapi))
        for path in ("/v1/{path:.*}", "/openapi.json"):
            app.router.add_options(path, self._preflight)
        app.cleanup_ctx.append(self._watched)

    async def _watched(self, app: web.Application) -> Any:
        self._take(self.repository.scan())
        watching = asyncio.ensure_future(self._watch())
        yield
        watching.cancel()
        self.threads.shutdown(wait=False, cancel_futures=True)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(SCAN_SECONDS)
            try:
                self._take(await asyncio.get_running_loop().run_in_executor(self.threads, self.repository.scan))
            except OSError as e:  # what was read before is served on
                log.error("%s can't be read: %s", self.repository.folder, e)

    def _take(self, programs: list[Published]) -> None:
        for program in programs:
            log.info("%s, version %d, is served", program.name, program.version)
            self.batchers[program.name, program.version] = Batcher(
                program, self.place, self.batch, self.threads, self.journal.metrics.sizes(program.name, program.version)
            )

    # requests ---------------------------------------------------------------------------------------------------------

    def _answer(self, handle: Handler) -> Handler:
        """A handler whose errors are answers."""

        async def answer(request: web.Request) -> web.StreamResponse:
            self.active, self.asked_at = self.active + 1, time.monotonic()
            try:
                return await answered(request)
            finally:
                self.active -= 1

        async def answered(request: web.Request) -> web.StreamResponse:
            began = time.perf_counter()
            try:
                await self._admit(request)
                response = await handle(request)
            except RequestError as e:
                response = _failed(e.status, str(e))
                if e.retry_after is not None:
                    response.headers["Retry-After"] = str(e.retry_after)
            except BackendError as e:
                log.error("%s: %s", request.path, e)
                response = _failed(503, str(e))
            except WeftError as e:  # the program's own
                response = _failed(422, str(e))
            self._for_pages(request, response)
            if request.method == "POST":
                self._count(request, response.status, time.perf_counter() - began)
            if self.closing():  # so that its client takes another connection, to another host if there is one
                response.force_close()
            return response

        return answer

    def _count(self, request: web.Request, status: int, seconds: float) -> None:
        try:
            program = self._program(request)
            self.journal.metrics.answered(program.name, program.version, status, seconds)
        except RequestError:  # its name is the client's word
            self.journal.metrics.answered("", 0, status, seconds)

    async def _preflight(self, request: web.Request) -> web.StreamResponse:
        """A browser asks whether a page may send what it is about to send."""
        response = web.Response(status=204)
        if self.allowed(request.headers.get("Origin")):
            response.headers["Access-Control-Allow-Methods"] = "GET, POST"
            response.headers["Access-Control-Allow-Headers"] = f"Authorization, Content-Type, Accept, {TIMEOUT}"
            response.headers["Access-Control-Max-Age"] = "600"
        self._for_pages(request, response)
        return response

    def _for_pages(self, request: web.Request, response: web.StreamResponse) -> None:
        """Lets pages of allowed origins read an answer."""
        origin = request.headers.get("Origin")
        response.headers["Vary"] = "Origin"
        if origin is not None and self.allowed(origin):
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Expose-Headers"] = "Retry-After"

    async def _admit(self, request: web.Request) -> None:
        if not self.allowed(request.headers.get("Origin")):
            error = "pages of this origin may not ask; the operator allows them with --allow-origin."
            raise self._refused(request, "origin", 403, error)
        try:
            grant = await self.gate.enter(bearer(request), request.remote or "")
        except Denied as e:
            message = f"{e} It is sent as `Authorization: Bearer TOKEN`."
            raise self._refused(request, e.cause, 401, message, e.reason) from None
        name = request.match_info.get("name")
        if not grant.may(PROGRAMS if name is None else f"{PROGRAMS}:{name}") and not (
            name is None and any(s.startswith(f"{PROGRAMS}:") for s in grant.scopes)
        ):
            what = "programs" if name is None else f"the program {name!r}"
            raise self._refused(request, "scope", 403, f"this token is not for {what}.")
        if wait := self.gate.rates.request(grant):
            message = f"this token has sent as many requests in a second as it may. Try again in {wait} s."
            late = self._refused(request, "rate", 429, message, grant.whose)
            late.retry_after = wait
            raise late

    def _refused(self, request: web.Request, cause: str, status: int, message: str, reason: str = "") -> RequestError:
        error = RequestError(status, message)
        self.journal.refused(request.remote or "", cause, error, reason)
        return error

    def _program(self, request: web.Request) -> Published:
        return self.repository.find(request.match_info["name"], request.match_info.get("version"))

    def counts(self) -> list[dict[str, Any]]:
        """The programs, and how many requests and calls of them there were."""
        return [
            {"name": p.name, "version": p.version, "requests": b.requests, "calls": b.calls}
            for p in self.repository.all()
            if (b := self.batchers.get((p.name, p.version))) is not None
        ]

    async def _list(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"programs": [described(p) for p in self.repository.all()]})

    async def _describe(self, request: web.Request) -> web.StreamResponse:
        program = self._program(request)
        batcher = self.batchers[program.name, program.version]
        counts = {"requests": batcher.requests, "calls": batcher.calls}
        return web.json_response(described(program) | counts)

    async def _openapi(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(openapi(self.repository.all(), __version__))

    async def _run(self, request: web.Request) -> web.StreamResponse:
        program = self._program(request)
        signature, loop = program.signature, asyncio.get_running_loop()
        seconds = _seconds(request)
        deadline = loop.time() + seconds
        body = await self._body(request)
        if request.content_type in OCTETS:
            arrays = await loop.run_in_executor(self.threads, signature.from_npz, body, self.body_bytes)
        elif request.content_type == "application/json":
            arrays = await loop.run_in_executor(self.threads, lambda: signature.from_json(_parsed(body)))
        else:
            raise RequestError(415, f"the body is application/json or {NPZ}, not {request.content_type[:60]}.")
        results = await self.batchers[program.name, program.version](arrays, deadline, seconds)
        if any(kind in request.headers.get("Accept", "") for kind in OCTETS):
            made = await loop.run_in_executor(self.threads, signature.to_npz, results)
            return web.Response(body=made, content_type=NPZ)
        text = await loop.run_in_executor(self.threads, lambda: json.dumps(signature.to_json(results)))
        return web.Response(text=text, content_type="application/json")

    async def _body(self, request: web.Request) -> bytes:
        """The body, read as it comes, so that its length need not be believed."""
        data = bytearray()
        async for part in request.content.iter_any():
            data += part
            if len(data) > self.body_bytes:
                raise RequestError(413, f"the body has more than {self.body_bytes} bytes.")
        return bytes(data)


def _seconds(request: web.Request) -> float:
    """The time that a request gives its answer."""
    word = request.headers.get(TIMEOUT)
    try:
        seconds = math.inf if word is None else float(word)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise RequestError(400, f"{TIMEOUT}: {str(word)[:60]!r} is no number of seconds above 0.")
    return seconds


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as e:
        raise RequestError(400, f"the body is no JSON: {str(e)[:200]}.") from None


def _failed(status: int, message: str) -> web.Response:
    return web.json_response({"error": message}, status=status)
