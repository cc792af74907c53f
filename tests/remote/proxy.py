"""A TCP proxy between client and host that delays what it carries, counts it, and cuts connections on demand."""

from __future__ import annotations

import asyncio
import contextlib
import threading


class Proxy:
    """Listens on `url`; `cut()` aborts all connections, `delay` seconds pass in each direction."""

    def __init__(self, port: int, delay: float = 0.0):
        self.target, self.delay, self.refusing = port, delay, False
        self.writers: set = set()
        self.cut_after: int | None = None  # bytes from the host after which the connection is cut, once
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Proxy":
        self.thread.start()
        assert self.ready.wait(60)
        return self

    def __exit__(self, *_) -> None:
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join(10)

    def cut(self) -> None:
        def run():
            for writer in list(self.writers):
                writer.transport.abort()

        self.loop.call_soon_threadsafe(run)

    def _run(self) -> None:
        self.loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        self.stop = asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self.ready.set()
        await self.stop.wait()
        server.close()
        for writer in list(self.writers):
            writer.transport.abort()
        open_tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in open_tasks:
            task.cancel()
        await asyncio.gather(*open_tasks, return_exceptions=True)

    async def _connection(self, reader, writer) -> None:
        if self.refusing:
            writer.transport.abort()
            return
        try:
            to_host = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:  # the host has ended
            writer.transport.abort()
            return
        self.writers |= {writer, to_host[1]}
        with contextlib.suppress(asyncio.CancelledError):  # at the end of the test
            await asyncio.gather(
                self._pump(reader, to_host[1], False), self._pump(to_host[0], writer, True), return_exceptions=True
            )
        for w in (writer, to_host[1]):
            self.writers.discard(w)
            w.transport.abort()

    async def _pump(self, reader, writer, from_host: bool) -> None:
        """Every piece arrives `delay` later than it was sent, whatever came before it."""
        queue: asyncio.Queue = asyncio.Queue()

        async def deliver():
            while True:
                due, data = await queue.get()
                await asyncio.sleep(max(0.0, due - self.loop.time()))
                if data is None:
                    return
                writer.write(data)
                await writer.drain()

        delivery = asyncio.ensure_future(deliver())
        try:
            while data := await reader.read(1 << 16):
                if from_host and self.cut_after is not None:
                    self.cut_after -= len(data)
                    if self.cut_after < 0:
                        self.cut_after = None
                        break
                queue.put_nowait((self.loop.time() + self.delay, data))
            queue.put_nowait((self.loop.time() + self.delay, None))
            await delivery
        finally:
            delivery.cancel()
            writer.transport.abort()
